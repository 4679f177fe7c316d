"""TensorBoard output, derived from the rows of a run."""

import shutil
from typing import Any

from irrl.errors import UserError
from irrl.runs.listeners import Listener, listen
from irrl.runs.reading import require_real_folder
from irrl.runs.run import Row, Run


def follow(run: Run) -> None:
    """Mirror the metrics of a run, past and coming, to ``<run>/tensorboard``."""
    listen(run, tensorboard)


def tensorboard(run: Run) -> Listener:
    """Writes anew what is there with the first row: only then a resumed run knows what it keeps."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise UserError("TensorBoard output needs: pip install 'irrl[tensorboard]'") from None
    folder = run.folder / "tensorboard"
    require_real_folder(folder)
    writer: Any = None

    def mirror(row: Row) -> None:
        nonlocal writer
        if writer is None:
            shutil.rmtree(folder, ignore_errors=True)
            writer = SummaryWriter(str(folder))
        for name, value in row.items():
            if name != "step":
                writer.add_scalar(name, value, row["step"])
        writer.flush()

    return mirror
