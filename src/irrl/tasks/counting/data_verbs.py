"""What `irrl data` does for object counting: scenes made, with their pictures, and one shown.

Loaded with the task, so what takes time to import is imported when it is used.
"""

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irrl.runs.config import at_least
from irrl.tasks.contract import DataVerb

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _option(parser: ArgumentParser, *flags: str, default: Any, metavar: str, help: str) -> None:
    """An option that says its default; its type is that of the default."""
    said = f"{help} (default: %(default)s)"
    parser.add_argument(*flags, default=default, type=type(default), metavar=metavar, help=said)


def add_scenes_options(parser: ArgumentParser) -> None:
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for all of it")
    _option(parser, "--train", default=100_000, metavar="N", help="scenes to train on")
    _option(parser, "--eval", default=1_000, metavar="N", help="scenes to evaluate on")
    _option(parser, "--seed", default=0, metavar="N", help="seed of the scenes")
    parser.add_argument(
        "--resolution",
        type=int,
        metavar="N",
        help="also render all views, N x N pixels; N divides 256 (default: no pictures)",
    )
    _option(
        parser, "--workers", default=os.cpu_count() or 1, metavar="N", help="processes at a time"
    )


def make_scenes_and_images(options: Namespace) -> str:
    """Make what is missing of a folder of scenes; returns the folder."""
    at_least(1, train=options.train, eval=options.eval, workers=options.workers)
    at_least(0, seed=options.seed)
    from irrl.runs.progress import Bars
    from irrl.tasks.counting.dataset import Plan
    from irrl.tasks.counting.disk import bytes_needed, check_disk, in_words
    from irrl.tasks.counting.generate import check_plan, make_scenes
    from irrl.tasks.counting.images import make_images
    from irrl.tasks.counting.render import Renderer, check_resolution

    folder, plan = Path(options.out), Plan(options.seed, options.train, options.eval)
    if options.resolution is not None:
        check_resolution(options.resolution)
    check_plan(folder, plan)
    needed = bytes_needed(folder, plan, options.resolution)
    free = check_disk(folder, needed)
    Renderer().close()  # where nothing can be rendered, nothing is written
    try:
        print(f"up to {in_words(needed)} of disk needed, {in_words(free)} free")
        with Bars() as bars:
            make_scenes(folder, plan, options.workers, bars.update)
            if options.resolution is not None:
                make_images(folder, options.resolution, options.workers, bars.update)
    except KeyboardInterrupt:
        command = plan.command(folder, options.resolution)
        raise KeyboardInterrupt(f"go on with {command}") from None
    return str(folder)


def add_show_options(parser: ArgumentParser) -> None:
    _option(parser, "--seed", default=0, metavar="N", help="seed of the scene")
    _option(parser, "-o", "--output", default="scene.png", metavar="FILE", help="PNG, SVG or PDF")


def show_scene(options: Namespace) -> "Figure":
    at_least(0, seed=options.seed)
    from irrl.tasks.counting.show import plot_scene

    return plot_scene(options.seed)


DATA_VERBS = {
    "scenes": DataVerb(
        "make scenes of object counting, and pictures of them",
        add_scenes_options,
        make_scenes_and_images,
    ),
    "show-scenes": DataVerb(
        "plot a scene of object counting from all views", add_show_options, show_scene
    ),
}
