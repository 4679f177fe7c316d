"""What `irrl noise measure` left, as sections of a report."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from irrl.analysis.noise import (
    DELTA_HEADER,
    REWARD_HEADER,
    delta_cells,
    each_once,
    oracle_text,
    reward_cells,
)
from irrl.errors import UserError
from irrl.report.html import Picture, Table, png_uri
from irrl.runs.reading import is_there, read_json, read_plain

NoiseSection = tuple[str, list[Table], list[Picture]]
"""Title, tables, pictures."""

PNG = b"\x89PNG\r\n\x1a\n"
PICTURE_BYTES = 32 << 20


def find_noise(folders: Sequence[str]) -> list[Path]:
    """What `irrl noise measure` left in some folders: noise.json, or a name that ends so."""
    return sorted({path for folder in folders for path in Path(folder).glob("**/*noise.json")})


def sound_noise(paths: Sequence[Path]) -> tuple[list[NoiseSection], list[str]]:
    """Sections for those of some files that can be shown, and a line about each of the others."""
    sections, left_out = [], []
    for path in paths:
        try:
            sections.append(noise_section(path))
        except UserError as error:
            left_out.append(str(error))
            print(f"irrl: left out: {error}", file=sys.stderr)
    return sections, left_out


def noise_section(path: Path) -> NoiseSection:
    try:
        record = read_json(path)
        judged = f" {oracle_text(record['oracle'])}" if "oracle" in record else ""
        tables = [_delta_table(record["runs"], judged), _reward_table(record["runs"])]
        command = str(record["command"])
    except UserError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path} is not what `irrl noise measure` writes") from None
    title, image = f"Discriminator noise ({path.name})", path.with_suffix(".png")
    alt = f"Posterior of the true label by the online discriminator less the oracle's: {command}"
    if not is_there(image):
        return title, tables, [Picture("Violins", alt, None, f"there is no {image.name} beside it")]
    try:
        content = read_plain(image, PICTURE_BYTES)
        if not content.startswith(PNG):
            raise UserError(f"{image} is not a PNG")
    except UserError as error:
        return title, tables, [Picture("Violins", alt, None, str(error))]
    return title, tables, [Picture("Violins", alt, png_uri(content))]


def _delta_table(runs: dict[str, Any], judged: str) -> Table:
    found = ((n, (str(d["step"]), *delta_cells(d))) for n, f in runs.items() for d in f["delta"])
    caption = f"The noise itself, and the paper's hypotheses.{judged}"
    return Table(["run", "step", *DELTA_HEADER], each_once(found), caption)


def _reward_table(runs: dict[str, Any]) -> Table:
    found = (
        (name, (str(r["step"]), str(r["reward"]), *reward_cells(r)))
        for name, found in runs.items()
        for r in found["rewards"]
    )
    header = ["run", "step", "reward", *REWARD_HEADER]
    caption = "What it does to rewards: measured, and predicted (Eq. 5 and 6)."
    return Table(header, each_once(found), caption)
