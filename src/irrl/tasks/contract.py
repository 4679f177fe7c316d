"""The contract of a task: all that verbs, sweeps, figures and the report ask of one.

A task is a `Task`, which a package offers under the entry-point group ``irrl.tasks``:

    [project.entry-points."irrl.tasks"]
    mine = "my_package.task:TASK"

It needs a configuration class, presets, a primary metric and three functions (`prepare`, `train`,
`evaluate`); the rest is there for figures, reports and data. This module and whatever a task's own
module imports at once must be light: heavy libraries come in with `imported`.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from irrl.errors import UserError
from irrl.runs.checkpoint import Checkpoint
from irrl.runs.config import Config
from irrl.runs.run import Run
from irrl.tasks.published import Published

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.figure import Figure

    from irrl.gradient_measured import MeasuredGradients
    from irrl.noise_measured import Posteriors

MeasureGradient = Callable[
    [Run, Path | None, Sequence[str], int | None, int, Callable[[int, int], None]],
    "list[MeasuredGradients]",
]
Settings = Mapping[str, Any]
Metrics = dict[str, Any]
DEFAULT_PRESET = "fast"


class Preset(NamedTuple):
    """Named settings: what they are for, and what they change.

    Example:
        >>> Preset("a second: does everything run?", {"updates": 80}).settings
        {'updates': 80}
    """

    description: str
    settings: dict[str, Any]


class Metric(NamedTuple):
    """A number of a run: its name in ``metrics.jsonl``, what figures call it, and its range.

    Example:
        >>> Metric("accuracy_percent", "labels told (%)", "%", high=100.0, threshold=80.0).high
        100.0
    """

    name: str
    title: str
    unit: str = ""
    low: float | None = 0.0
    high: float | None = None
    higher_is_better: bool = True
    threshold: float | None = None  # how fast a run gets there is part of its table


# --- what others report ---


class Peer(NamedTuple):
    """What others publish for the same environment: with what, after how long, and where."""

    method: str
    length: str
    text: str
    source: str


def no_peers(settings: Settings) -> Sequence[Peer]:
    """Nobody has published anything for it."""
    return ()


def their_pace(settings: Settings) -> float:
    """A step of ours is one of theirs."""
    return 1.0


# --- pictures and data ---


class NamedFigure(NamedTuple):
    """A figure of the paper that only this task can draw, from finished runs."""

    paper: str  # its number and label there
    needs: str
    plot: "Callable[[Sequence[Run], int], Figure]"  # runs, seed of what is drawn by chance
    shows: str = ""


class EpisodePicture(NamedTuple):
    """What policies do, for the report."""

    title: str
    description: str
    plot: "Callable[[Sequence[Run]], Figure]"
    is_quick: bool = False  # then `irrl compare` draws it, too, beside the curves


class Played(NamedTuple):
    """Episodes as a sheet and, if they move, as an animation."""

    sheet: "Figure"
    animation: "FuncAnimation | None" = None
    frames_per_second: int = 4


class DataVerb(NamedTuple):
    """A verb below `irrl data`: what tasks learn from, made or fetched, or pictures of it.

    ``run`` returns what to print, or a figure, which is saved as the option ``--output`` says.
    """

    summary: str
    add_options: Callable[[ArgumentParser], None]
    run: "Callable[[Namespace], str | Figure]"


class Requirement(NamedTuple):
    """Something beside Python packages that a task needs; `irrl doctor` says whether it is there.

    ``look`` returns what was found, and raises where there is nothing.
    """

    name: str
    purpose: str
    install: str  # the line that brings it
    look: Callable[[], str]


# --- the contract ---


def nothing_to_check(config: Any) -> None:
    """For tasks that need nothing but their configuration."""


def no_limits(config: Any) -> dict[str, float]:
    """No metric has a largest value but by its name."""
    return {}


def one_panel(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """All runs in one panel that needs no title."""
    return {"": list(runs)}


@dataclass(frozen=True)
class Task:
    """One task. ``name`` is what the command line calls it, and what a run folder says.

    Args:
        config: its settings, a frozen dataclass derived from `irrl.runs.config.Config`.
        presets: by name; `fast` is what is trained if none is named.
        primary: the metric that tells how good a run is.
        primary_of: the same for variants that have another one.
        prepare: (config, checkpoint or None) -> what `train` needs: data, device, learner, and the
            step it stands at. Raises `UserError` where training cannot begin; writes nothing.
        train: (run, what was prepared) -> summary. Logs by `run.log`, saves by `run.save`.
        evaluate: (config, checkpoint) -> metrics. Changes nothing.
        check: cheap: raises where `prepare` would for want of data, device or oracle.
        panels: metrics that are drawn over training beside the primary one.
        panels_by: the same for variants that have others.
        columns: numbers of the summary that tables show beside the primary metric.
        optional: those of them that only some runs have, such as what an environment tells itself.
        comparable: settings in which runs must agree to be compared.
        variant_by: the setting that tells variants of the task apart, such as its model.
        titles: of studies in a report, by variant (by the task's name if it has none).
        panels_of: (runs) -> title -> runs that belong in a panel of their own.
        scripted_baselines: name -> settings of a run whose behaviour is not learned.
        published: the authors' numbers, by variant.
        peers: (settings) -> what others publish for the same environment, whatever their method.
        as_published: settings that must be those of the preset `paper` for these to apply.
        recipe: those that must be so, too, for a verdict beside them.
        pace: (settings) -> how much training a step is, in steps of the authors' numbers.
        ceiling: (config) -> the best value of the primary metric there can be, drawn as a line.
        limits: (config) -> the largest values of metrics; no interval or band goes beyond.
        paper_labels: figure -> its number and label in the paper.
        figures: figures that only this task can draw.
        picture: what policies do, for the report.
        play: (runs, number of episodes, seed) -> episodes to look at.
        measure_noise: (run, folder of an oracle, episodes, checkpoints) -> posteriors by both.
        measure_gradient: (run, folder of an oracle or None, names of rewards, episodes or None,
            checkpoints, progress) -> moments of its policy gradients; progress is told (done, all).
        data: verbs below `irrl data`.
        requirements: what it needs beside Python packages, for `irrl doctor`.
        terms: its own words -> what they mean, for the glossary of a report.

    Example:
        >>> task = Task("doors", Config, {"fast": Preset("a second", {})},
        ...     Metric("accuracy_percent", "labels told (%)", "%", 0.0, 100.0),
        ...     prepare=lambda config, checkpoint: None,
        ...     train=lambda run, prepared: run.finish({"accuracy_percent": 100.0}),
        ...     evaluate=lambda config, checkpoint: {"accuracy_percent": 100.0})
        >>> task.all_columns()
        ('accuracy_percent', 'seconds')
    """

    name: str
    config: type[Config]
    presets: Mapping[str, Preset]
    primary: Metric
    prepare: Callable[[Any, Checkpoint | None], Any]
    train: Callable[[Run, Any], Metrics]
    evaluate: Callable[[Any, Checkpoint], Metrics]
    check: Callable[[Any], None] = nothing_to_check
    panels: tuple[Metric, ...] = ()
    columns: tuple[str, ...] = ("seconds",)
    optional: tuple[str, ...] = ()
    comparable: tuple[str, ...] = ()
    variant_by: str = ""
    primary_of: Mapping[str, Metric] = field(default_factory=dict)
    panels_by: Mapping[str, tuple[Metric, ...]] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    panels_of: Callable[[Sequence[Run]], dict[str, list[Run]]] = one_panel
    scripted_baselines: Mapping[str, Settings] = field(default_factory=dict)
    published: Mapping[str, Published] = field(default_factory=dict)
    as_published: tuple[str, ...] = ()
    recipe: tuple[str, ...] = ()
    pace: Callable[[Settings], float] = their_pace
    peers: Callable[[Settings], Sequence[Peer]] = no_peers
    ceiling: Callable[[Any], float] | None = None
    limits: Callable[[Any], Mapping[str, float]] = no_limits
    paper_labels: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, NamedFigure] = field(default_factory=dict)
    picture: EpisodePicture | None = None
    play: Callable[[Sequence[Run], int, int], Played] | None = None
    measure_noise: "Callable[[Run, Path, int, int], list[Posteriors]] | None" = None
    measure_gradient: MeasureGradient | None = None
    data: Mapping[str, DataVerb] = field(default_factory=dict)
    requirements: tuple[Requirement, ...] = ()
    terms: Mapping[str, str] = field(default_factory=dict)

    def variant(self, settings: Settings) -> str:
        """Which variant of the task a run is; the task's name if it has none."""
        return str(settings[self.variant_by]) if self.variant_by else self.name

    def for_variant(self, settings: Settings) -> "Task":
        """The task as the variant of some settings has it: with its own primary metric."""
        variant = self.variant(settings)
        return replace(
            self,
            primary=self.primary_of.get(variant, self.primary),
            panels=self.panels_by.get(variant, self.panels),
        )

    def title(self, variant: str) -> str:
        """Of its studies in a report."""
        return self.titles.get(variant, variant)

    def baseline_of(self, settings: Settings) -> str | None:
        """The scripted baseline that a run is, None if its behaviour was learned."""
        for name, its in self.scripted_baselines.items():
            if all(settings.get(key) == value for key, value in its.items()):
                return name
        return None

    def all_panels(self) -> dict[str, Metric]:
        """What is drawn over training, the primary metric first."""
        return {metric.name: metric for metric in (self.primary, *self.panels)}

    def all_columns(self) -> tuple[str, ...]:
        """What a comparison reports, the primary metric first."""
        return tuple(dict.fromkeys((self.primary.name, *self.columns)))


# --- what comes in when it is used ---


def imported(module: str, name: str, install: str = "") -> Callable[..., Any]:
    """A function of a module that is imported when it is first called.

    ``install`` is what brings the libraries that the module needs, such as ``irrl[torch]``.
    """

    def call(*arguments: Any, **options: Any) -> Any:
        try:
            function = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            if not install or error.name is None or module.startswith(error.name):
                raise
            raise UserError(f"this needs {error.name}: pip install '{install}'") from None
        return function(*arguments, **options)

    call.__name__ = call.__qualname__ = name
    return call
