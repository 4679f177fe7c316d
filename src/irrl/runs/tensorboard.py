"""TensorBoard output, derived from the rows of a run."""

import shutil
from typing import Any

from irrl.errors import UserError
from irrl.runs.reading import require_real_folder
from irrl.runs.run import Row, Run


def follow(run: Run) -> None:
    """Mirror the metrics of a run, past and coming, to ``<run>/tensorboard``.

    Past rows are read with the first one that comes: only then is it known which of them a
    resumed run keeps.
    """
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise UserError("TensorBoard output needs: pip install 'irrl[tensorboard]'") from None
    folder = run.folder / "tensorboard"
    require_real_folder(folder)
    writer: Any = None

    def mirror(row: Row) -> None:
        nonlocal writer
        rows = [row]
        if writer is None:
            rows = run.rows()
            shutil.rmtree(folder, ignore_errors=True)
            writer = SummaryWriter(str(folder))
        for each in rows:
            for name, value in each.items():
                if name != "step":
                    writer.add_scalar(name, value, each["step"])
        writer.flush()

    run.listeners.append(mirror)
