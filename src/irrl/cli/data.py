"""The verbs of `irrl data`: what tasks learn from, made or fetched, and pictures of it."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from irrl.cli.flags import Parser, at_least


def run_data(parser: Parser, arguments: list[str]) -> int:
    kinds = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, (summary, add_options, _) in DATA.items():
        add_options(kinds.add_parser(name, help=summary, description=summary))
    options = parser.parse_args(arguments)
    return DATA[options.what][2](options)


def _mnist_options(parser: Parser) -> None:
    parser.add_argument(
        "--from", dest="source", metavar="DIR", help="folder with the four files, .gz or not"
    )


def _mnist(options: Any) -> int:
    from irrl.runs.progress import Bars
    from irrl.tasks.digits.mnist import fetch_mnist

    with Bars() as bars:
        folder, origin = fetch_mnist(options.source, bars.update)
    print(f"MNIST is in {folder} ({origin})")
    return 0


def _show_options(parser: Parser) -> None:
    parser.option("--seed", default=0, metavar="N", help="seed of the samples")
    parser.option("--placement", default="paper", metavar="NAME", help="paper or uniform")
    parser.option("--canvas-size", default=60, metavar="N", help="side of the canvas")
    parser.option("--clutter", default=4, metavar="N", help="pieces of other digits")
    parser.option("--clutter-size", default=8, metavar="N", help="side of such a piece")
    parser.option("-o", "--output", default="digits.png", metavar="FILE", help="PNG, SVG or PDF")


def _show(options: Any) -> int:
    from irrl.analysis.plots import save_figure
    from irrl.tasks.digits.show import sample_sheet

    names = ("seed", "placement", "canvas_size", "clutter", "clutter_size")
    settings = {name: getattr(options, name) for name in names}
    print(save_figure(sample_sheet(settings), options.output))
    return 0


def _scenes_options(parser: Parser) -> None:
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for all of it")
    parser.option("--train", default=100_000, metavar="N", help="scenes to train on")
    parser.option("--eval", default=1_000, metavar="N", help="scenes to evaluate on")
    parser.option("--seed", default=0, metavar="N", help="seed of the scenes")
    parser.add_argument(
        "--resolution",
        type=int,
        metavar="N",
        help="also paint all views, N x N pixels; N divides 256 (default: no pictures)",
    )
    parser.option("--workers", default=os.cpu_count() or 1, metavar="N", help="processes at a time")


def _scenes(options: Any) -> int:
    at_least(options, 1, "train", "eval", "workers")
    at_least(options, 0, "seed")
    from irrl.runs.progress import Bars
    from irrl.tasks.counting import dataset, images
    from irrl.tasks.counting.render import Painter, check_resolution

    folder, plan = Path(options.out), dataset.Plan(options.seed, options.train, options.eval)
    if options.resolution is not None:
        check_resolution(options.resolution)
    dataset.check_plan(folder, plan)
    needed = images.bytes_needed(folder, plan, options.resolution)
    free = dataset.check_disk(folder, needed)
    Painter().close()  # where nothing can be drawn, nothing is written
    try:
        print(f"up to {dataset.in_words(needed)} of disk needed, {dataset.in_words(free)} free")
        with Bars() as bars:
            dataset.make_scenes(folder, plan, options.workers, bars.update)
            if options.resolution is not None:
                images.make_images(folder, options.resolution, options.workers, bars.update)
    except KeyboardInterrupt:
        go_on = plan.command(folder, options.resolution)
        print(f"\nirrl: stopped; go on with {go_on}", file=sys.stderr)
        return 130
    print(folder)
    return 0


def _show_scenes_options(parser: Parser) -> None:
    parser.option("--seed", default=0, metavar="N", help="seed of the scene")
    parser.option("-o", "--output", default="scene.png", metavar="FILE", help="PNG, SVG or PDF")


def _show_scenes(options: Any) -> int:
    at_least(options, 0, "seed")
    from irrl.analysis.plots import check_format, save_figure
    from irrl.tasks.counting.show import scene_sheet

    check_format(options.output)
    print(save_figure(scene_sheet(options.seed), options.output))
    return 0


DATA: dict[str, tuple[str, Callable[[Parser], None], Callable[[Any], int]]] = {
    "mnist": ("fetch MNIST", _mnist_options, _mnist),
    "show": ("draw samples of cluttered digits", _show_options, _show),
    "scenes": ("make scenes of object counting, and pictures of them", _scenes_options, _scenes),
    "show-scenes": (
        "draw a scene of object counting from all views",
        _show_scenes_options,
        _show_scenes,
    ),
}
