"""Settings of skill discovery. The defaults are the authors' set-up, sped up 25 times."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from irrl.ensembles import KINDS
from irrl.errors import UserError
from irrl.rewards import DISDAIN_BONUS_WEIGHT
from irrl.runs.config import Config, setting
from irrl.tasks.skills.map import map_text, read_map

BONUS_WEIGHTS = {"none": 0.0, "disagreement": DISDAIN_BONUS_WEIGHT, "visits": 100.0}
"""The exploration bonuses, and the weight of each if none is given."""

RELATIVE_BONUS_WEIGHTS = {"none": 0.0, "disagreement": 4.0, "visits": 20.0}
"""The same in units of the largest reward: about those of the clipped log with 128 codes."""

AUTHORS_INITIAL_VALUE = 1.0


MOST_NUMBERS = 2**28
MOST_STEPS = 10**7  # in an iteration


@dataclass(frozen=True)
class SkillsConfig(Config):
    """Unsupervised skill discovery in rooms: tabular Q(lambda) and tabular discriminators."""

    task: ClassVar[str] = "skills"
    length: ClassVar[str] = "iterations"
    most: ClassVar[Mapping[str, int]] = {
        "codes": 100_000,
        "horizon": 10_000,
        "batch_size": 100_000,
        "ensemble_size": 1_000,
    }

    map: str = setting("large", "large, small, or the path of a text file ('#' walls, '.' free)")
    codes: int = setting(128, "number of skill codes, sampled uniformly")
    horizon: int = setting(20, "steps in an episode; its last cell stands for the trajectory")
    iterations: int = setting(1_600_000, "updates, each on one batch of episodes")
    batch_size: int = setting(32, "episodes in a batch")
    learning_rate: float = setting(0.1, "SGD step size of the Q tables")
    discriminator_learning_rate: float | None = setting(
        None, "SGD step size of the discriminators; that of the Q tables if left open"
    )
    epsilon: float = setting(0.001, "share of uniformly random actions")
    discount: float = setting(0.99, "discount factor of Q(lambda)")
    lambda_: float = setting(0.7, "lambda of Q(lambda)")
    initial_value: float | None = setting(
        None, "Q tables start uniform in [0, initial value); 1, as the authors', if left open"
    )
    optimism: float | None = setting(
        None,
        "in place of initial-value: its ratio to the largest reward. The bonus is then weighed in "
        "units of that reward, too, so that rewards can be exchanged",
    )
    ensemble_size: int | None = setting(
        None, "number of discriminators; 2 for disdain, 1 for other rewards if left open"
    )
    bonus: str | None = setting(
        None,
        "exploration bonus: none, disagreement (of an ensemble, DISDAIN) or visits (one over the "
        "root of the visits to the final cell); disagreement for disdain, else none if left open",
    )
    bonus_kind: str = setting(
        "log",
        "the score whose disagreement is paid: log (mutual information of code and discriminator, "
        "DISDAIN) or quadratic (the sum over codes of the discriminators' variance)",
    )
    bonus_weight: float | None = setting(
        None,
        "weight of the bonus; 20 for disagreement, 100 for visits if left open; with optimism, in "
        "units of the largest reward, 4 and 20",
    )
    bonus_initial_value: float | None = setting(
        None,
        "the Q table of the bonus starts uniform in [0, this), whatever the unit; as the other "
        "table does if left open. Times the weight it is optimism by itself: 0 leaves the bonus",
    )
    evaluate_every: int = setting(16_000, "iterations between two rows of metrics.jsonl")
    checkpoint_every: int = setting(160_000, "iterations between two checkpoints")

    def __post_init__(self) -> None:
        super().__post_init__()
        needs_ensemble = self.reward_fn().needs_ensemble
        self.fill("discriminator_learning_rate", self.learning_rate)
        self.fill("bonus", "disagreement" if needs_ensemble else "none")
        self.require_known(bonus=tuple(BONUS_WEIGHTS), bonus_kind=KINDS)
        if self.optimism is None:
            self.fill("initial_value", AUTHORS_INITIAL_VALUE)
        elif self.initial_value is not None:
            raise UserError("initial-value and optimism both say where Q tables start: give one")
        weights = BONUS_WEIGHTS if self.optimism is None else RELATIVE_BONUS_WEIGHTS
        self.fill("bonus_weight", weights[str(self.bonus)])
        self.fill("ensemble_size", 2 if self.bonus == "disagreement" else 1)
        self.require("codes", lambda v: v >= 2, "at least 2: a single code tells nothing")
        self.require(
            "horizon iterations batch_size ensemble_size evaluate_every checkpoint_every",
            lambda v: v >= 1,
            "at least 1",
        )
        self.require(
            "seed learning_rate discriminator_learning_rate bonus_weight bonus_initial_value "
            "initial_value optimism",
            lambda v: v is None or v >= 0,
            "zero or positive",
        )
        self.require("epsilon discount lambda_", lambda v: 0 <= v <= 1, "between 0 and 1")
        # A batch raises a logit by no more than this; the compiled exp is good up to 87.
        self.require("discriminator_learning_rate", lambda v: v <= 80, "at most 80")
        if needs_ensemble and self.bonus != "disagreement":
            raise UserError(f"reward {self.reward} goes with the bonus disagreement")
        if self.bonus == "disagreement" and self.ensemble_size == 1:
            raise UserError("the bonus disagreement needs an ensemble-size of 2 or more")
        if self.bonus_kind != "log" and (self.bonus != "disagreement" or needs_ensemble):
            raise UserError(
                f"bonus-kind {self.bonus_kind} needs the bonus disagreement, and another reward "
                "than disdain, whose own is log"
            )
        if self.bonus == "none" and self.bonus_weight:
            raise UserError("bonus-weight needs a bonus: set bonus to disagreement or visits")
        if self.bonus == "none" and self.bonus_initial_value is not None:
            raise UserError(
                "bonus-initial-value needs a bonus: set bonus to disagreement or visits"
            )
        try:
            object.__setattr__(self, "map", map_text(self.map))
            cells = len(read_map(self.map).cells)
        except ValueError as error:
            raise UserError(str(error)) from None
        self._check_memory(cells)

    def _check_memory(self, cells: int) -> None:
        """Raise where tables, or what is sampled at a time, would have more than a gigabyte."""
        assert self.ensemble_size is not None
        steps = self.batch_size * self.horizon
        for name, size, most in (
            ("codes times cells of the map", self.codes * cells, MOST_NUMBERS // 10),
            (
                "ensemble-size times codes times cells of the map",
                self.ensemble_size * self.codes * cells,
                MOST_NUMBERS,
            ),
            ("batch-size times horizon", steps, MOST_STEPS),
            ("batch-size times horizon times epsilon", steps * self.epsilon, MOST_STEPS // 100),
        ):
            if size > most:
                raise UserError(f"{name} must be at most {most}, got {size:g}")
