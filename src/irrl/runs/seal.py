"""What the files of a run were when it ended: digests in its summary, by which damage is noticed.

A run of before there were seals has none, and is taken as it is.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from irrl.errors import UserError
from irrl.runs.files import append
from irrl.runs.folder import CONFIG, METRICS, SUMMARY, read_settings
from irrl.runs.reading import digest_of, read_object, sha256_of

SEAL = "sha256"
"""The key of a summary under which the digests stand."""


def sealed(folder: Path, summary: dict[str, Any], may_change: Sequence[str]) -> dict[str, Any]:
    """A summary with the digests of the metrics, of the settings that stay, and of itself."""
    metrics = folder / METRICS
    seal = {
        "metrics": sha256_of(metrics, append(metrics, b"", sync=True)),
        "settings": _settings_digest(folder, may_change),
        "summary": digest_of(summary),
    }
    return {**summary, SEAL: seal}


def read_summary(folder: Path, may_change: Sequence[str]) -> dict[str, Any]:
    """The summary of a run, if it and the settings are as they were when the run ended."""
    path = folder / SUMMARY
    summary = read_object(path, "the summary of a run")
    seal = summary.pop(SEAL, None)
    _check(seal, "summary", path, lambda: digest_of(summary))
    _check(seal, "settings", folder / CONFIG, lambda: _settings_digest(folder, may_change))
    return summary


def check_metrics(folder: Path, digest: str) -> None:
    """Raise if the metrics of a finished run are not those that it ended with."""
    seal = read_object(folder / SUMMARY, "the summary of a run").get(SEAL)
    _check(seal, "metrics", folder / METRICS, lambda: digest)


def _settings_digest(folder: Path, may_change: Sequence[str]) -> str:
    task, settings = read_settings(folder)
    stay = {name: value for name, value in settings.items() if name not in may_change}
    return digest_of([task, stay])


def _check(seal: Any, part: str, path: Path, digest: Any) -> None:
    if seal is None:
        return
    if not isinstance(seal, dict) or seal.get(part) != digest():
        raise UserError(
            f"{path} is not as it was when the run ended: its SHA-256 is not the one in {SUMMARY}; "
            "put the file back, or train the run anew"
        )
