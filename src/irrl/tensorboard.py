"""TensorBoard output, derived from the rows of a run."""

import shutil
from typing import Any

from irrl.errors import UserError
from irrl.run import Run


def follow(run: Run) -> None:
    """Mirror the metrics of a run, past and coming, to ``<run>/tensorboard``."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise UserError("TensorBoard output needs: pip install 'irrl[tensorboard]'") from None
    folder = run.folder / "tensorboard"
    shutil.rmtree(folder, ignore_errors=True)
    writer = SummaryWriter(str(folder))

    def mirror(row: dict[str, Any]) -> None:
        for name, value in row.items():
            if name != "step":
                writer.add_scalar(name, value, row["step"])
        writer.flush()

    for row in run.rows():
        mirror(row)
    run.listeners.append(mirror)
