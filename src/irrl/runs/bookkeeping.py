"""What a checkpoint knows of its run: settings, metrics, time. By this a resumption is checked."""

from pathlib import Path
from typing import Any

from irrl.errors import UserError, shown
from irrl.runs.checkpoint import Checkpoint
from irrl.runs.config import Config, flag_name
from irrl.runs.files import append
from irrl.runs.folder import CONFIG, METRICS, Settings
from irrl.runs.reading import (
    METRICS_BYTES,
    is_number,
    is_step,
    parse_rows,
    read_plain,
    sha256_of,
)

FALL_BACK = "remove it and the 'last' file beside it to fall back on an earlier one"


def bookkeeping_of(folder: Path, settings: Settings) -> dict[str, Any]:
    """The settings of a run, and its metrics as they are now, which are brought to the disk."""
    metrics = folder / METRICS
    size = append(metrics, b"", sync=True)
    return {
        "settings": settings,
        "metrics_bytes": size,
        "metrics_sha256": sha256_of(metrics, size),
    }


def known_metrics(folder: Path, checkpoint: Checkpoint) -> tuple[int, float]:
    """Bytes of the metrics that a checkpoint knows, and the seconds before it."""
    keep: Any = checkpoint.state.get("metrics_bytes")
    seconds: Any = checkpoint.state.get("seconds")
    if not is_step(keep) or not is_number(seconds) or seconds < 0:
        raise UserError(
            f"damaged checkpoint: step {checkpoint.step} of {folder} does not know its metrics; "
            f"{FALL_BACK}"
        )
    return keep, seconds


def check_known_metrics(folder: Path, checkpoint: Checkpoint, size: int) -> None:
    """Raise if the metrics, of so many bytes, are not those that a checkpoint knows."""
    path, step = folder / METRICS, checkpoint.step
    keep, _ = known_metrics(folder, checkpoint)
    if size < keep:
        raise UserError(
            f"{path} was cut: it holds {size} bytes, its checkpoint at step {step} knows {keep}; "
            "put the file back, or start a new run"
        )
    digest = checkpoint.state.get("metrics_sha256")  # checkpoints of before have none
    if digest is not None and digest != sha256_of(path, keep):
        raise UserError(
            f"{path} was altered: its first {keep} bytes are not those that its checkpoint at "
            f"step {step} knows; put the file back, or start a new run"
        )
    try:
        for row in parse_rows(read_plain(path, METRICS_BYTES)[:keep] if keep else b""):
            if row["step"] > step:
                raise ValueError(f"its row of step {row['step']} is newer than the checkpoint")
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}; put it back, or start a new run") from None


def check_settings(folder: Path, config: Config, checkpoint: Checkpoint) -> None:
    """Raise if a checkpoint was made with other settings than those of ``config.json``."""
    its = checkpoint.state.get("settings")
    if not isinstance(its, dict):
        raise UserError(
            f"damaged checkpoint: step {checkpoint.step} of {folder} does not know its settings; "
            f"{FALL_BACK}"
        )
    for name, value in config.settings().items():
        if name not in config.may_change and name in its and its[name] != value:
            raise UserError(
                f"the checkpoint is of another configuration: its {flag_name(name)} is "
                f"{shown(its[name])}, {folder / CONFIG} says {shown(value)}; put the {CONFIG} of "
                "the run back, or start a new run"
            )
