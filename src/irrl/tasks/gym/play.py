"""What skills or episodes do: paths in the plane or over time, or the environment's pictures."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.animation import FuncAnimation
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from irrl.envs.maze_map import MazeMap
from irrl.envs.maze_plots import plot_paths_on
from irrl.envs.skills import CODE, Skills
from irrl.errors import UserError
from irrl.runs.run import Run
from irrl.tasks.contract import Played
from irrl.tasks.gym.chance import generators_aside, seed_of
from irrl.tasks.gym.environments import make_one
from irrl.tasks.gym.evaluate import Episode, judge_episodes, play_episodes
from irrl.tasks.gym.learner import Learner, opened
from irrl.tasks.gym.places import place_in

EPISODES_OF_A_SKILL = 4
IN_REPORT = 8
FRAMES_PER_SECOND = 8
LAST_FRAMES = 8  # in which the end stays
WALKED = "0.85"


class Walk(NamedTuple):
    """One episode: its label, what was guessed, and where it went or how it looked."""

    label: int
    guess: int
    places: np.ndarray | None  # (T + 1, 2); of one number, actions taken and that number
    pictures: list[np.ndarray]
    maze: MazeMap | None = None  # in which it went there
    over_time: bool = False  # whether places are of one number


# --- what the contract of a task asks for ---


def play(runs: Sequence[Run], episodes: int, seed: int) -> Played:
    """Episodes of each run; of skills every code, ``episodes`` times at most four."""
    walks = [walks_of(run, episodes, seed) for run in runs]
    return Played(plot_sheet(runs, walks), animate(runs, walks), FRAMES_PER_SECOND)


def report_picture(runs: Sequence[Run]) -> Figure:
    return plot_sheet(runs, [walks_of(run, IN_REPORT, 0) for run in runs])


# --- episodes ---


def walks_of(run: Run, episodes: int, seed: int) -> list[Walk]:
    config = run.config
    learner = opened(config, run.last_checkpoint())
    try:
        if learner.described.can_render and not goes_places(learner):
            return pictured(learner, episodes, seed)
        count = episodes
        if config.mode == "skills":
            count = config.codes * min(episodes, EPISODES_OF_A_SKILL)
        played = play_episodes(config, learner.described, learner.agent, learner.model, count, seed)
        if config.mode == "regression":  # a colour for each episode
            return [Walk(n, n, true_places(e), []) for n, e in enumerate(played)]
        guesses = judge_episodes(learner.model, played).argmax(axis=1)
        maze, over_time = learner.described.maze, find_places(learner) is None
        return [
            Walk(int(e.label[0]), int(guess), places_of(e), [], maze, over_time)
            for e, guess in zip(played, guesses, strict=True)
        ]
    finally:
        learner.close()


def goes_places(learner: Learner) -> bool:
    """Whether what is judged begins with two numbers that can stand for a place, or is one."""
    return find_places(learner) is not None or place_in(learner.model.parts) is not None


def find_places(learner: Learner) -> str | None:
    """The part that is a place: the first vector of two numbers or more."""
    for name, part in learner.model.parts.items():
        if not part.sizes and len(part.shape) == 1 and part.shape[0] >= 2:
            return name
    return None


def places_of(episode: Episode) -> np.ndarray | None:
    if episode.places is not None:
        return episode.places
    for array in episode.path.values():
        if array.ndim == 2 and array.shape[1] >= 2 and array.dtype.kind == "f":
            return array[:, :2]
    return places_over_time(episode)


def places_over_time(episode: Episode) -> np.ndarray | None:
    """How many actions were taken, and where that led, for a place of one number."""
    array = next(iter(episode.path.values()))
    if len(episode.path) > 1 or array.shape[1:] != (1,) or array.dtype.kind != "f":
        return None
    return np.column_stack([np.arange(len(array)), array])


def true_places(episode: Episode) -> np.ndarray | None:
    """Where an episode went: its labels, where these move and are places."""
    moves, is_place = len(episode.label) > 1, episode.label.shape[-1] >= 2
    return episode.label[:, :2] if moves and is_place else places_of(episode)


def pictured(learner: Learner, episodes: int, seed: int) -> list[Walk]:
    """Episodes as their environment draws them, one after the other."""
    config, agent = learner.config, learner.agent
    env = make_one(config, render_mode="rgb_array")
    if config.mode == "skills":
        env = Skills(env, config.codes)
    found = []
    with generators_aside(seed_of(seed, "evaluation"), agent.action_space):
        for number in range(episodes):
            options = {CODE: number % config.codes} if config.mode == "skills" else None
            first = seed_of(seed, "evaluation", number)
            observation, info = env.reset(seed=first, options=options)
            pictures, over, state, begun = [env.render()], False, None, np.ones(1, bool)
            while not over:
                seen = learner.envs.observed(batched(observation))
                actions, state = agent.predict(seen, state, begun, config.deterministic)
                begun = np.zeros(1, bool)
                observation, _, terminated, truncated, info = env.step(actions[0])
                pictures.append(env.render())
                over = terminated or truncated
            label = int(info.get("label", -1))
            found.append(Walk(label, label, None, [np.asarray(p) for p in pictures]))
    env.close()
    return found


def batched(observation: Any) -> Any:
    """One observation with a leading axis."""
    if isinstance(observation, dict):
        return {name: batched(inner) for name, inner in observation.items()}
    return np.asarray(observation)[None]


# --- pictures ---


def colours_of(walks: Sequence[Walk]) -> dict[int, Any]:
    """A colour for each label that occurs."""
    labels = sorted({walk.label for walk in walks})
    wheel = matplotlib.colormaps["turbo"](np.linspace(0.03, 0.97, len(labels)))
    return dict(zip(labels, wheel, strict=True))


def title_of(run: Run, walks: Sequence[Walk]) -> str:
    right = np.mean([walk.label == walk.guess for walk in walks])
    what = "codes" if run.settings["mode"] == "skills" else "labels"
    told = f"{100 * right:.0f} % of {what} told" if walks[0].places is not None else ""
    if run.settings["mode"] == "regression":
        told = f"squared error {run.summary()['squared_error']:.3g}"
    return f"{run.settings['reward']}, seed {run.settings['seed']}\n{told}".strip()


def plot_sheet(runs: Sequence[Run], walks: Sequence[Sequence[Walk]]) -> Figure:
    """A panel of paths for each run; without places, rows of pictures."""
    if all(walk.places is not None for row in walks for walk in row):
        figure = Figure(figsize=(3.3 * len(runs), 3.6), layout="constrained")
        for axes, run, row in zip(figure.subplots(1, len(runs), squeeze=False)[0], runs, walks,
                                  strict=True):  # fmt: skip
            plot_paths(axes, row)
            axes.set_title(title_of(run, row), fontsize=8)
        return figure
    require_pictures(walks)
    columns = max(len(row) for row in walks)
    figure = Figure(figsize=(1.5 * columns, 1.8 * len(runs)), layout="constrained")
    panels = figure.subplots(len(runs), columns, squeeze=False)
    for line, run, row in zip(panels, runs, walks, strict=True):
        for n, axes in enumerate(line):
            axes.set(xticks=[], yticks=[])
            if n < len(row):
                axes.imshow(row[n].pictures[-1])
                axes.set_title(f"{n if row[n].label < 0 else row[n].label}", fontsize=7, pad=2)
        line[0].set_ylabel(run.settings["reward"], fontsize=7)
    return figure


def require_pictures(walks: Sequence[Sequence[Walk]]) -> None:
    if not all(walk.pictures for row in walks for walk in row):
        raise UserError(
            "there is nothing to draw: the environment has no rgb_array pictures, and what is "
            "judged holds no vector of two numbers"
        )


def plot_paths(axes: Axes, walks: Sequence[Walk], steps: int | None = None) -> None:
    """Paths so far, their ends as dots, coloured by label; of a maze its walls, too."""
    if walks[0].maze is not None:
        stop = None if steps is None else steps + 1
        paths = [walk.places[:stop] for walk in walks if walk.places is not None]
        plot_paths_on(axes, walks[0].maze, paths, [walk.label for walk in walks])
        return
    colours = colours_of(walks)
    for walk in walks:
        assert walk.places is not None
        path = walk.places if steps is None else walk.places[: steps + 1]
        axes.plot(*path.T, color=colours[walk.label], linewidth=0.5, alpha=0.5)
        axes.plot(*path[-1], "o", color=colours[walk.label], markersize=3.5,
                  markeredgecolor="black", markeredgewidth=0.3)  # fmt: skip
    every = np.concatenate([walk.places for walk in walks if walk.places is not None])
    low, high = every.min(axis=0), every.max(axis=0)
    margin = 0.05 * np.maximum(high - low, 1e-3)
    axes.set_xlim(low[0] - margin[0], high[0] + margin[0])
    axes.set_ylim(low[1] - margin[1], high[1] + margin[1])
    if walks[0].over_time:
        axes.set_xlabel("actions", fontsize=7)
        axes.set_ylabel("place", fontsize=7)
    else:
        axes.set_aspect("equal", adjustable="box")
    axes.tick_params(labelsize=6)


def animate(runs: Sequence[Run], walks: Sequence[Sequence[Walk]]) -> FuncAnimation:
    """All episodes at the same time."""
    in_places = all(walk.places is not None for row in walks for walk in row)
    columns = len(runs) if in_places else max(len(row) for row in walks)
    rows = 1 if in_places else len(runs)
    size = (3.3, 3.6) if in_places else (1.5, 1.8)
    figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
    FigureCanvasAgg(figure)  # an animation wants a canvas before it is saved
    panels = figure.subplots(rows, columns, squeeze=False)
    longest = max(
        len(walk.pictures if walk.places is None else walk.places) for row in walks for walk in row
    )

    def plot_frame(frame: int) -> list:
        for axes in panels.flat:
            axes.clear()
        if in_places:
            for axes, run, row in zip(panels[0], runs, walks, strict=True):
                plot_paths(axes, row, frame)
                axes.set_title(run.settings["reward"], fontsize=8)
            return []
        for line, row in zip(panels, walks, strict=True):
            for axes, walk in zip(line, row, strict=False):
                axes.set(xticks=[], yticks=[])
                axes.imshow(walk.pictures[min(frame, len(walk.pictures) - 1)])
        return []

    return FuncAnimation(figure, plot_frame, frames=longest + LAST_FRAMES)
