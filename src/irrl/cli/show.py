"""The verbs that show finished runs: `irrl figure` and `irrl report`."""

from typing import Any

from irrl.cli.flags import Parser
from irrl.errors import UserError


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
    print(_plot(options))
    return 0


def _list_figures() -> None:
    from irrl.report.figures import all_figures

    for name, entry in all_figures().items():
        print(f"{name}\n    paper: {entry.label}\n    needs: {entry.needs}")


def _plot(options: Any) -> Any:
    from pathlib import Path

    from irrl.analysis.plots import check_format, save_figure
    from irrl.report.figures import Request, find_figure
    from irrl.runs.config import at_least
    from irrl.tasks import sound_runs

    at_least(0, seed=options.seed)
    entry = find_figure(options.name)
    output = options.output or f"{options.name}.png"
    check_format(output)
    if entry.of_runs and not options.runs:
        raise UserError(f"{options.name} needs {entry.needs}; name their folders")
    if options.runs and not entry.of_runs:
        raise UserError(f"{options.name} draws no runs; leave the folders out")
    runs, _ = sound_runs(options.runs, finished=True)
    oracle = Path(options.oracle) if options.oracle else None
    return save_figure(entry.plot(Request(runs, oracle, options.seed)), output, dpi=300)


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
    from irrl.tasks import sound_runs

    runs, left_out = sound_runs(options.runs, finished=True)

    from irrl.report.html import render
    from irrl.report.noise import find_noise, noise_section, sound_noise
    from irrl.report.pages import make_page
    from irrl.report.studies import sorted_into_studies
    from irrl.runs.files import write_atomic

    named = list(dict.fromkeys(map(Path, options.noise)))
    found, damaged = sound_noise([p for p in find_noise(options.runs) if p not in named])
    noise = [*map(noise_section, named), *found]
    page = make_page(sorted_into_studies(runs), noise, [*left_out, *damaged])
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(output, render(page, charting).encode(errors="backslashreplace"))
    print(output)
    return 0


def _charting_library() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ModuleNotFoundError:
        raise UserError("a report needs Plotly: pip install 'irrl[report]'") from None
    return get_plotlyjs()
