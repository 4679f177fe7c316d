"""The verbs that show runs: `irrl play`, `irrl plot`, `irrl figure` and `irrl report`."""

from pathlib import Path
from typing import Any

from irrl.cli.flags import Parser
from irrl.cli.outputs import add_force, check_free, check_picture
from irrl.cli.tables import add_json, print_json
from irrl.errors import UserError


def run_play(parser: Parser, arguments: list[str]) -> int:
    parser.add_argument("runs", nargs="+", metavar="DIR", help="run folders, shown side by side")
    parser.option("--episodes", default=8, metavar="N", help="of each run, drawn at random")
    parser.add_argument("--seed", type=int, metavar="N", help="of that choice (default: any; told)")
    parser.option("-o", "--output", default="play.png", metavar="FILE", help="PNG; a GIF beside it")
    add_force(parser)
    options = parser.parse_args(arguments)
    import secrets

    from irrl.analysis.plots import save_figure
    from irrl.runs.config import at_least, at_most
    from irrl.tasks import one_task, open_run

    at_least(1, episodes=options.episodes)
    at_most(10_000, episodes=options.episodes)
    check_picture(options.output, options.force, ".gif")
    runs = [open_run(folder) for folder in options.runs]
    task = one_task(runs)
    if task.play is None:
        raise UserError(f"{task.name} has nothing to play")
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    at_least(0, seed=seed)
    played = task.play(runs, options.episodes, seed)
    print(f"seed {seed}\n{save_figure(played.sheet, options.output)}")
    if played.animation is not None:
        from matplotlib.animation import PillowWriter

        from irrl.runs.files import written_beside

        moving = Path(options.output).with_suffix(".gif")
        with written_beside(moving) as temporary:
            writer = PillowWriter(fps=played.frames_per_second)
            played.animation.save(temporary, writer=writer, dpi=80)
        print(moving)
    return 0


def run_plot(parser: Parser, arguments: list[str]) -> int:
    parser.add_argument("runs", nargs="+", metavar="DIR", help="run folders, or folders of runs")
    parser.option(
        "-o",
        "--output",
        default="comparison.png",
        metavar="FILE",
        help="PNG, SVG or PDF, of the primary metric; the others go beside it",
    )
    add_force(parser)
    options = parser.parse_args(arguments)
    from irrl.analysis.comparison_plots import comparison_files, save_comparison_figures
    from irrl.tasks import one_task, sound_runs

    check_picture(options.output, options.force)
    runs, _ = sound_runs(options.runs)
    check_free(comparison_files(options.output, one_task(runs)).values(), options.force)
    print(*save_comparison_figures(runs, options.output), sep="\n")
    return 0


def run_figure(parser: Parser, arguments: list[str]) -> int:
    parser.add_argument("name", nargs="?", metavar="NAME", help="which figure; see --list")
    parser.add_argument("runs", nargs="*", metavar="DIR", help="run folders, or folders of runs")
    parser.add_argument("-o", "--output", metavar="FILE", help="PNG, SVG, PDF (default: NAME.png)")
    parser.add_argument("--oracle", metavar="DIR", help="noise: a converged run, the judge")
    parser.option("--seed", default=0, metavar="N", help="case-study: of the choice of cases")
    parser.add_argument("--list", action="store_true", help="all figures, and what each needs")
    add_json(parser, "list: print JSON")
    add_force(parser)
    options = parser.parse_args(arguments)
    if options.list:
        _list_figures(options.json)
        return 0
    if options.json:
        raise UserError("--json goes with --list: a figure is a picture")
    if options.name is None:
        raise UserError("which figure? `irrl figure --list` shows them all")
    print(_plot_figure(options))
    return 0


def _list_figures(as_json: bool) -> None:
    from irrl.report.figures import all_figures

    keys = ("shows", "paper", "needs")
    listed = {name: dict(zip(keys, entry, strict=False)) for name, entry in all_figures().items()}
    if as_json:
        print_json(listed)
        return
    for name, entry in listed.items():
        print(name, *(f"    {key}: {text}" for key, text in entry.items()), sep="\n")


def _plot_figure(options: Any) -> Path:
    from irrl.analysis.plots import save_figure
    from irrl.report.figures import Request, find_figure
    from irrl.runs.config import at_least
    from irrl.tasks import sound_runs

    at_least(0, seed=options.seed)
    entry = find_figure(options.name)
    output = options.output or f"{options.name}.png"
    check_picture(output, options.force)
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
    add_force(parser)
    options = parser.parse_args(arguments)
    output = Path(options.output)
    if output.suffix not in (".html", ".htm"):
        raise UserError(f"cannot write a report to {output}: its name must end in .html")
    check_free([output], options.force)
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
