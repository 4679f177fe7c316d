"""What stands beside a number: its range, and the authors' number of the same training."""

from functools import cache
from typing import Any

from numpy.typing import ArrayLike
from study import Study

from irrl.analysis.authors import Beside, beside_authors, verdict_on
from irrl.analysis.compare import Curves, is_reward, label_of
from irrl.analysis.ranges import range_in
from irrl.analysis.stats import Estimate, mean_estimate
from irrl.cli.flags import Parser
from irrl.cli.sweep import jobs_to_compare
from irrl.runs.run import Run
from irrl.tasks import find_task, task_of


@cache
def configs(flags: str) -> dict[str, Any]:
    """The configuration of the first seed of each reward of a study."""
    jobs, _ = jobs_to_compare(Parser(prog="irrl compare"), flags.split())
    found: dict[str, Any] = {}
    for job in jobs:
        found.setdefault(label_of(Run(job.folder, job.config)), job.config)
    return found


def estimate_of(study: Study, label: str, metric: str, values: ArrayLike) -> Estimate:
    """Mean over seeds, in the range that the metric has in the study."""
    config = configs(study.flags)[label]
    return mean_estimate(values).within(*range_in(task_of(config), config, metric))


def authors_columns(study: Study, curves: dict[str, Curves]) -> dict[str, dict[str, str]]:
    """Columns more: title -> reward -> cell. None where the authors have nothing of that length."""
    theirs: dict[str, str] = {}
    verdicts: dict[str, str] = {}
    for label, (steps, values) in curves.items():
        found = authors_of(study, label, float(steps[-1]))
        if found is None:
            continue
        config, metric = configs(study.flags)[label], study.columns.metrics[0]
        bounds = range_in(task_of(config), config, metric)
        theirs[label] = found.text
        verdicts[label] = verdict_on(found, steps, values, bounds)
    title = f"authors' {study.columns.titles[0]}"
    title, theirs = with_common_length(title, theirs)
    columns = {title: theirs, "beside them": verdicts}
    return {title: cells for title, cells in columns.items() if set(cells.values()) - {"-"}}


def authors_of(study: Study, label: str, last: float) -> Beside | None:
    """Their number beside a reward of a study that ends after so many steps."""
    config = configs(study.flags)[label]
    settings = config.settings()
    if not is_reward(label) or settings.get("oracle"):
        return None
    return beside_authors(find_task(study.task), label, settings, last)


def with_common_length(title: str, cells: dict[str, str]) -> tuple[str, dict[str, str]]:
    """A length that all cells have goes into the title."""
    lengths = {cell.partition(" at ")[2] for cell in cells.values()}
    if len(lengths) != 1 or ";" in (length := lengths.pop()):
        return title, cells
    return f"{title} at {length}", {k: cell.partition(" at ")[0] for k, cell in cells.items()}
