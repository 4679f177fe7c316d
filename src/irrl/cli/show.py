"""The verbs that show finished runs: `irrl figure` and `irrl report`."""

import sys
from typing import Any

from irrl.errors import UserError
from irrl.cli.flags import Parser, at_least


def run_figure(parser: Parser, arguments: list[str]) -> int:
    parser.add_argument("name", nargs="?", metavar="NAME", help="which figure; see --list")
    parser.add_argument("runs", nargs="*", metavar="DIR", help="run folders, or folders of runs")
    parser.add_argument("-o", "--output", metavar="FILE", help="PNG, SVG, PDF (default: NAME.png)")
    parser.add_argument("--oracle", metavar="DIR", help="noise: a converged run, the judge")
    parser.option("--seed", default=0, metavar="N", help="case-study: of the choice of cases")
    parser.add_argument("--list", action="store_true", help="all figures, and what each needs")
    options = parser.parse_args(arguments)
    if options.list:
        _list_figures()
        return 0
    if options.name is None:
        raise UserError("which figure? `irrl figure --list` shows them all")
    at_least(options, 0, "seed")
    print(_draw(options))
    return 0


def _list_figures() -> None:
    from irrl.report.figures import FIGURES

    for name, entry in FIGURES.items():
        print(f"{name}\n    paper: {entry.label}\n    needs: {entry.needs}")


def _draw(options: Any) -> Any:
    from pathlib import Path

    from irrl.report.figures import FIGURES, Request
    from irrl.analysis.plots import check_format, save_figure
    from irrl.errors import unknown_name

    if options.name not in FIGURES:
        raise UserError(unknown_name("figure", options.name, FIGURES))
    entry = FIGURES[options.name]
    output = options.output or f"{options.name}.png"
    check_format(output)
    if entry.of_runs and not options.runs:
        raise UserError(f"{options.name} needs {entry.needs}; name their folders")
    if options.runs and not entry.of_runs:
        raise UserError(f"{options.name} draws no runs; leave the folders out")
    runs = finished_runs(options.runs)
    oracle = Path(options.oracle) if options.oracle else None
    return save_figure(entry.draw(Request(runs, oracle, options.seed)), output, dpi=300)


def run_report(parser: Parser, arguments: list[str]) -> int:
    parser.add_argument("runs", nargs="+", metavar="DIR", help="run folders, or folders of runs")
    parser.option("-o", "--output", default="report.html", metavar="FILE", help="the page")
    parser.add_argument(
        "--noise",
        action="append",
        default=[],
        metavar="FILE",
        help="JSON of `irrl noise measure`; those in the folders (*noise.json) are found",
    )
    options = parser.parse_args(arguments)
    from pathlib import Path

    output = Path(options.output)
    if output.suffix not in (".html", ".htm"):
        raise UserError(f"cannot write a report to {output}: its name must end in .html")
    charting = _charting_library()
    runs = finished_runs(options.runs)

    from irrl.runs.checkpoint import write_atomic
    from irrl.report.html import render
    from irrl.report.pages import find_noise, make_page
    from irrl.report.studies import sorted_into_studies

    noise = dict.fromkeys([*map(Path, options.noise), *find_noise(options.runs)])
    page = make_page(sorted_into_studies(runs), list(noise))
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(output, render(page, charting).encode())
    print(output)
    return 0


def _charting_library() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ModuleNotFoundError:
        raise UserError("a report needs Plotly: pip install 'irrl[report]'") from None
    return get_plotlyjs()


def finished_runs(folders: list[str]) -> list[Any]:
    """Finished runs at or below some folders, each of which must have one; others are told."""
    from irrl.runs.run import find_runs
    from irrl.tasks import open_run

    runs = {}
    for folder in folders:
        found = find_runs([folder])
        done = [run for run in found if run.is_finished]
        if not done:
            raise UserError(f"there is no finished run in {folder}; finish one, or leave it out")
        runs.update({run.folder.resolve(): open_run(run.folder) for run in done})
        for run in found:
            if not run.is_finished:
                print(f"irrl: {run.folder} is not finished, left out", file=sys.stderr)
    return list(runs.values())
