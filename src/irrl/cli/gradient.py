"""`irrl noise gradient`: how far one batch's policy gradient can be trusted, reward by reward."""

from pathlib import Path
from typing import Any

from irrl.cli.flags import reward_names
from irrl.cli.outputs import check_picture
from irrl.cli.tables import print_json, print_table
from irrl.errors import UserError

REWARDS = "clipped-linear,clipped-root-2,clipped-log,linear,log,accuracy"


def run_gradient(options: Any) -> int:
    from irrl.analysis.gradient import gradient_rows, plot_gradients, to_json
    from irrl.analysis.noise import oracle_record
    from irrl.analysis.plots import save_figure
    from irrl.runs.files import to_json_bytes, write_atomic
    from irrl.runs.progress import Bars
    from irrl.runs.provenance import provenance
    from irrl.tasks import one_task, open_run

    output = options.output or "gradient.png"
    names = single_rewards(reward_names(options.rewards or REWARDS))
    check_picture(output, options.force, ".json")
    if not options.runs:
        raise UserError("noise gradient needs a run")
    runs = [open_run(folder) for folder in options.runs]
    task = one_task(runs)
    if task.measure_gradient is None:
        raise UserError(f"gradients cannot be measured on runs of {task.name}")
    oracle = None if options.oracle is None else Path(options.oracle)
    made = provenance()
    about = {"command": made["command"], "commit": made["commit"]}
    if oracle is not None:
        about["oracle"] = oracle_record(open_run(oracle), task)
    groups, record = {}, {}
    with Bars() as bars:
        for run in runs:

            def tell(done: int, total: int, name: str = str(run.folder)) -> None:
                bars.update(name, done, total)

            found = task.measure_gradient(
                run, oracle, names, options.episodes, options.checkpoints, tell
            )
            rows = gradient_rows(found, names)
            trained_on = run.settings["reward"]
            groups[trained_on if trained_on not in groups else str(run.folder)] = rows
            record[str(run.folder)] = {
                "batch_size": found[0].batch_size,
                "batches": found[0].batches,
                "rewards": [to_json(row) for row in rows],
            }
            if not options.json:
                _print_rows(str(run.folder), rows)
    picture = save_figure(plot_gradients(groups, task.config.length), output)
    content = {**about, "runs": record}
    write_atomic(picture.with_suffix(".json"), to_json_bytes(content))
    if options.json:
        print_json(content)
    else:
        print(f"figure: {picture}\ntable:  {picture.with_suffix('.json')}")
    return 0


def single_rewards(names: list[str]) -> list[str]:
    """The same, if one discriminator can judge by each."""
    from irrl.rewards import reward

    for name in names:
        if reward(name).needs_ensemble:
            raise UserError(f"{name} needs an ensemble: one discriminator cannot tell its gradient")
    return names


def _print_rows(folder: str, rows: list[dict[str, Any]]) -> None:
    from irrl.analysis.gradient import AGREEMENT, PARTS, table

    title = f"{folder}: one batch beside the oracle's gradient of its own reward, of the "
    print_table(*table(rows, AGREEMENT), f"{title}information and of the accuracy")
    print_table(*table(rows, PARTS), "without sampling noise; what is kept of signal and noise")
