"""A scene from all viewpoints, to see what the task looks like."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from irrl.runs.seeding import stream
from irrl.tasks.counting.render import Renderer, project
from irrl.tasks.counting.scene import (
    GOALS,
    NONE,
    VIEWS,
    Scene,
    corners_of,
    is_seen,
    sample_scene,
)

ROWS, COLUMNS = 3, 4
PICTURE = 512  # pixels of each view
SHOW = 2  # which part of the data stream; those before are the splits of a dataset
MARK = "#FFEB3B"


def plot_scene(seed: int) -> Figure:
    """The first scene with a cube hidden on purpose; goal cubes that a view hides are marked."""
    with Renderer() as renderer:
        scene = scene_with_hidden_cube(seed, renderer)
        renderer.place(scene)
        visible = np.stack([renderer.visible_pixels(view) for view in range(VIEWS)])
    with Renderer(PICTURE) as renderer:
        renderer.place(scene)
        pictures = [renderer.render(view) for view in range(VIEWS)]
    seen = is_seen(visible[:, : len(scene.kinds)], scene.kinds)
    hidden = ~seen & (scene.kinds == scene.goal)
    figure = Figure(figsize=(2.4 * COLUMNS, 2.62 * ROWS), layout="constrained")
    panels = figure.subplots(ROWS, COLUMNS)
    for view, axes in enumerate(panels.flat):
        axes.imshow(pictures[view])
        axes.set(xticks=[], yticks=[])
        left = scene.label - hidden[view].sum()
        axes.set_title(f"view {view}: {left} of {scene.label} to be seen", fontsize=8, pad=3)
        corners = project(corners_of(scene), view, PICTURE)[hidden[view]]
        for n, box in enumerate(sorted(corners, key=lambda box: box[:, 1].min())):
            mark_hidden(axes, box, label_above=n == 0)
    figure.suptitle(
        f"How many {GOALS[scene.goal]}s? {scene.label}. Turning right goes to the next view, "
        f"30° a turn (seed {seed})",
        fontsize=10,
    )
    return figure


def scene_with_hidden_cube(seed: int, renderer: Renderer) -> Scene:
    rng = stream(seed, "data", SHOW)
    scene = sample_scene(rng, renderer.visible)
    while scene.hidden == NONE:
        scene = sample_scene(rng, renderer.visible)
    return scene


def mark_hidden(axes: Axes, corners: np.ndarray, label_above: bool) -> None:
    """A dashed box around the corners of a cube, (8, 2), as if it could be seen."""
    (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
    axes.add_patch(
        Rectangle((left, top), right - left, bottom - top, fill=False, ec=MARK, lw=1.4, ls="--")
    )
    place = (0.5 * (left + right), top - 6 if label_above else bottom + 6)
    axes.text(
        *place, "hidden", color=MARK, fontsize=7, ha="center", va="bottom" if label_above else "top"
    )
