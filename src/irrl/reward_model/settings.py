"""Settings of a reward model: checked when they are made, kept as JSON."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from irrl.density_rewards import DENSITY_REWARDS
from irrl.ensembles import KINDS
from irrl.errors import UserError, unknown_name
from irrl.reward_model.networks import CORES
from irrl.reward_model.normalise import PIXELS
from irrl.rewards import REWARDS, Reward
from irrl.rewards import reward as find_reward
from irrl.units import REWARD_UNITS, require_unit

MODES = ("labels", "skills")
JUDGES = ("trajectory", "state", "final")
PAYMENTS = ("end", "differences", "steps", "environment")
PRIORS = ("uniform", "counted")
BONUSES = ("disagreement", "visits")

DEFAULTS: dict[str, dict[str, Any]] = {
    # The label is the environment's: what an episode says of it does not depend on the policy
    # that looked, and all past episodes serve.
    "labels": {"judge": "trajectory", "store": 50_000, "samples_per_episode": 8, "batch_size": 128},
    # The label is the policy's: what an episode says of it holds for the present policy only.
    "skills": {"judge": "final", "store": 2_048, "samples_per_episode": 32, "batch_size": 256},
}


@dataclass(frozen=True)
class Settings:
    """How a reward model judges, pays and learns.

    Attributes:
        mode: ``"labels"``, set by the environment, or ``"skills"``, drawn for the policy. It
            decides what is left open below.
        judge: what the discriminator reads: the whole ``"trajectory"`` (default for labels), each
            ``"state"``, or the ``"final"`` one (default for skills).
        pay: at the ``"end"``, as ``"differences"`` of the reward from step to step, whose sum is
            the end's, or at all ``"steps"``, as DIAYN does; ``"environment"`` leaves paying to it,
            for a comparison: the discriminator learns and only watches.
        reward: a name of `irrl.REWARDS`, or ``"module:function"``; for continuous labels one of
            `irrl.DENSITY_REWARDS`, ``"ball"`` if none is given.
        reward_unit: rewards of classes ``"absolute"``, as their formula says, or divided by the
            ``"largest"`` of them, so that a bonus, a cost or a range of values means the same for
            each reward.
        epsilon: for ``"ball"``: half the side of the box around a label, in prior standard
            deviations; 0.25 if left open.
        beta_nll: of a normal density: losses are weighted by the predicted variance to this power
            (Seitzer et al. 2022). 0 is the likelihood, by which what is known well already counts
            most; 1 weighs errors as a squared error does, 0.5 lies between.
        prior: of labels that are classes: ``"uniform"``, ``"counted"``, or a probability for each.
        ensemble: number of discriminators, read as their mixture; 2 for ``"disdain"``.
        bonus: weight of what is added to any reward, for exploration.
        bonus_for: ``"disagreement"`` of the ensemble, or ``"visits"``: one over the root of how
            often what is judged was there before; an end for the judge ``"final"``.
        bonus_kind: of disagreement: that of the ``"log"`` score, DISDAIN's, or the ``"quadratic"``
            one, the sum over labels of the variance over discriminators; see `irrl.disagreement`.
        bucket: side of the buckets in which visits are counted, in units of the observation; a
            tenth of the range of a bounded number if left open.
        width: units of the default discriminator's layers.
        core: of the default discriminator of trajectories: ``"set"`` or ``"gru"``.
        pixels: how the default discriminator sees images: ``"contrast"``, ``"standardised"`` or
            ``"raw"``.
        frequencies: of Fourier features of small vectors, for the default discriminator.
        normalise: whether a discriminator of one's own is shown normalised observations.
        learning_rate: of Adam.
        batch_size: episodes in a batch; states for the judge ``"state"``.
        samples_per_episode: how many episodes are learned from for each new one; for the judge
            ``"state"``, how many states for each new state.
        store: how many of the newest episodes are kept to learn from.
        held_out: share of episodes that are never learned from, by which overfitting shows.
        warm_up: episodes before anything is paid.
        varying_length: allows paying at all steps where episodes differ in length: a reward that
            is never negative then pays for dawdling.
        max_episode_steps: an episode that is longer never ends, and is refused.
        seed: of the first weights and of all batches.
        device: of PyTorch.

    Example:
        >>> settings = Settings(mode="skills", reward="disdain")
        >>> settings.judge, settings.ensemble, settings.store
        ('final', 2, 2048)
    """

    mode: str = "labels"
    judge: str | None = None
    pay: str = "end"
    reward: str = "clipped-linear"
    reward_unit: str = "absolute"
    epsilon: float | None = None
    beta_nll: float = 0.0
    prior: str | tuple[float, ...] = "uniform"
    ensemble: int | None = None
    bonus: float = 0.0
    bonus_for: str = "disagreement"
    bonus_kind: str = "log"
    bucket: float | None = None
    width: int = 128
    core: str = "set"
    pixels: str = "contrast"
    frequencies: int = 3
    normalise: bool = True
    learning_rate: float = 1e-3
    batch_size: int | None = None
    samples_per_episode: int | None = None
    store: int | None = None
    held_out: float = 0.1
    warm_up: int = 0
    varying_length: bool = False
    max_episode_steps: int = 10_000
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        """Settle what was left open, then check."""
        self._require_known(mode=MODES)
        if not isinstance(self.reward, str):
            raise UserError(
                "reward must be a name, or 'module:function' for one of your own, got "
                f"{type(self.reward).__name__}"
            )
        if self.judge == "state":
            self._fill("samples_per_episode", 2)
        for name, value in DEFAULTS[self.mode].items():
            self._fill(name, value)
        self._require_known(
            judge=JUDGES, pay=PAYMENTS, core=CORES, pixels=PIXELS, bonus_for=BONUSES,
            reward_unit=REWARD_UNITS, bonus_kind=KINDS,
        )  # fmt: skip
        self._require("bonus", lambda v: 0 <= v < np.inf, "zero or positive")
        self._fill("ensemble", 2 if self._must_disagree else 1)
        self._require(
            "ensemble width batch_size samples_per_episode store max_episode_steps",
            lambda v: isinstance(v, int) and v >= 1,
            "a whole number, at least 1",
        )
        self._require(
            "frequencies warm_up seed",
            lambda v: isinstance(v, int) and 0 <= v < 2**63,
            "a whole number, zero or more",
        )
        if self.bucket is not None:
            self._require("bucket", lambda v: 0 < v < np.inf, "positive")
        if self.epsilon is not None:
            self._require("epsilon", lambda v: 0 < v <= 1e6, "a positive number")
        self._require("beta_nll", lambda v: 0 <= v <= 1, "between 0 and 1")
        self._require("learning_rate", lambda v: 0 < v < np.inf, "positive")
        self._require("held_out", lambda v: 0 <= v < 1, "at least 0 and below 1")
        for name in ("normalise", "varying_length"):
            if not isinstance(getattr(self, name), bool):
                raise UserError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if self.reward_unit != "absolute":
            if self.is_of_densities:
                raise UserError(f"reward_unit is for classes: reward {self.reward!r} is of numbers")
            require_unit(self.reward_unit, self.reward_fn())
        if isinstance(self.prior, str):
            self._require_known(prior=PRIORS)
        else:
            object.__setattr__(self, "prior", _probabilities(self.prior))
        if self.judge == "final" and self.pay == "steps":
            raise UserError(
                "pay 'steps' does not go with judge 'final', which learns final states only: take "
                "judge 'state', or pay 'end' or 'differences'"
            )
        if self.bonus_kind != "log" and (not self.bonus or self.bonus_for != "disagreement"):
            raise UserError(f"bonus_kind {self.bonus_kind!r} needs a bonus for 'disagreement'")
        if self.ensemble == 1 and self._must_disagree:
            raise UserError("ensemble must be 2 or more: one discriminator cannot disagree")
        if self.counts_visits and self.judge == "trajectory":
            raise UserError(
                "bonus_for 'visits' counts states: take judge 'final' or 'state', or the bonus for "
                "'disagreement'"
            )

    @property
    def counts_visits(self) -> bool:
        """Whether there is a bonus for what was rarely there before."""
        return self.bonus > 0 and self.bonus_for == "visits"

    @property
    def _must_disagree(self) -> bool:
        needs_ensemble = not self.is_of_densities and self.reward_fn().needs_ensemble
        return needs_ensemble or bool(self.bonus and not self.counts_visits)

    @property
    def is_of_densities(self) -> bool:
        """Whether the reward is for continuous labels only."""
        return self.reward in DENSITY_REWARDS and self.reward not in REWARDS

    @property
    def ends_are_final(self) -> bool:
        """Whether nothing is to be expected after an end: where it was paid for all there was."""
        return self.pay in ("end", "differences")

    def reward_fn(self, validate: bool = True) -> Reward:
        """The reward of that name."""
        return find_reward(self.reward, validate=validate)

    def to_json(self) -> dict[str, Any]:
        """All settings by name."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Settings":
        """Settings of names and values; an unknown name is an error."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name in record:
            if name not in known:
                raise UserError(unknown_name("setting of a reward model", name, known))
        return cls(**record)

    def _fill(self, name: str, value: Any) -> None:
        if getattr(self, name) is None:
            object.__setattr__(self, name, value)

    def _require_known(self, **known: tuple[str, ...]) -> None:
        for name, names in known.items():
            if getattr(self, name) not in names:
                raise UserError(unknown_name(name, getattr(self, name), names))

    def _require(self, names: str, holds: Any, expected: str) -> None:
        for name in names.split():
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not holds(value):
                raise UserError(f"{name} must be {expected}, got {value!r}")


def _probabilities(prior: Any) -> tuple[float, ...]:
    try:
        found = np.asarray(prior, float)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.ndim != 1 or not (found > 0).all() or abs(found.sum() - 1.0) > 1e-4:
        raise UserError("prior must have a positive probability for each label, with sum 1")
    return tuple(map(float, found))
