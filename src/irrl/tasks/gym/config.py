"""Settings for anybody's environment: Stable-Baselines3's agents, our reward model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from irrl.density_rewards import DENSITY_REWARDS
from irrl.ensembles import KINDS
from irrl.errors import UserError, shown
from irrl.runs.config import SCHEDULES, Config, setting
from irrl.runs.reading import parse_json
from irrl.tasks.gym.checks import parse_widths, require_engine, require_label_settings
from irrl.tasks.gym.names import (
    AGENTS,
    BONUSES,
    DENSITIES,
    ENGINES,
    JUDGES,
    MODES,
    OBSERVED,
    OF_REWARD_MODEL,
    OFF_POLICY,
    PAYMENTS,
    WIDEST,
)
from irrl.units import REWARD_UNITS


@dataclass(frozen=True)
class GymConfig(Config):
    """Any Gymnasium environment: an agent of Stable-Baselines3 with a reward model."""

    task: ClassVar[str] = "gym"
    length: ClassVar[str] = "steps"
    testable: ClassVar[tuple[str, ...]] = ("evaluate_episodes", "deterministic")
    may_change: ClassVar[tuple[str, ...]] = ("device", "address", "env_runners")
    most: ClassVar[Mapping[str, int]] = {
        "codes": 65_536,
        "labels": 65_536,
        "bins": 65_536,
        "env_runners": 65_536,
        "envs": 65_536,
        "repeat": 10**6,
        "rollout": 10**6,
        "batch_size": 10**7,
        "buffer_size": 10**8,
        "n_epochs": 10**6,
        "gradient_steps": 10**6,
        "ensemble_size": 1_000,
        "discriminator_width": WIDEST,
        "frequencies": 30,
        "discriminator_batch_size": 10**7,
        "samples_per_episode": 10**6,
        "store": 10**8,
        "evaluate_episodes": 10**7,
    }

    env: str = setting("irrl/PointMass-v0", "id of the environment, or module:id to import it")
    env_options: str = setting("{}", "options of the environment, as JSON")
    max_episode_steps: int | None = setting(None, "steps after which an episode is cut")
    repeat: int = setting(1, "steps of the environment for which each action is taken")
    mode: str = setting(
        "skills",
        "skills: a code is drawn for each episode; labels: the environment has one in its info; "
        "regression: one of numbers",
    )
    codes: int = setting(32, "number of skill codes")
    labels: int | None = setting(
        None,
        "number of labels, or of numbers in one; as the environment says if it does and this is "
        "left open",
    )
    label_low: float | None = setting(None, "lower end of the numbers of a label (regression)")
    label_high: float | None = setting(None, "upper end; both as the environment says")
    label_moves: bool | None = setting(
        None,
        "a label for each step, told with the one after it; as ap_gym does where it is left open",
    )
    density: str = setting("normal", "of labels that are numbers: normal or bins")
    bins: int = setting(32, "of each number")
    reward_unit: str = setting(
        "absolute", "rewards of classes as their formula says (absolute), or divided by the largest"
    )
    epsilon: float | None = setting(
        None, "of ball: half the side of the box, in prior standard deviations (0.25)"
    )
    beta_nll: float = setting(
        0.0,
        "of a normal density: 0 learns by its likelihood, 1 weighs all errors alike (0.5: between)",
    )
    label: str = setting("label", "where info has the label, such as prediction.target")
    sees: str = setting(
        "all", "what is judged: all, names of a dictionary's entries, or numbers of a vector (0:2)"
    )

    last_action: bool = setting(
        False, "show the last action too (environments that ask for predictions)"
    )

    judge: str | None = setting(
        None, "trajectory, state or final; trajectory for labels, final for skills if left open"
    )
    pay: str = setting(
        "end",
        "when rewards are paid: end, differences, steps; environment: its own, for a comparison",
    )
    prior: str = setting("uniform", "of the labels: uniform or counted")
    ensemble_size: int | None = setting(
        None, "number of discriminators; 2 where they must disagree, else 1 if left open"
    )
    bonus: str = setting(
        "disagreement",
        "what a bonus is for: disagreement of an ensemble, or visits (one over the root of those "
        "to the final state)",
    )
    bonus_kind: str = setting("log", "the score whose disagreement is paid: log or quadratic")
    bonus_weight: float = setting(0.0, "weight of the bonus")
    bucket: float | None = setting(
        None, "side of the buckets of visits; a tenth of the range of bounded numbers if left open"
    )
    oracle: str | None = setting(
        None, "folder of a finished run whose frozen discriminator gives the rewards"
    )
    discriminator_width: int = setting(128, "units of the discriminator's layers")
    discriminator_core: str = setting("set", "of a judge of trajectories: set or gru")
    pixels: str = setting("contrast", "how images are seen: contrast, standardised or raw")
    frequencies: int = setting(3, "of Fourier features of small vectors")
    discriminator_learning_rate: float = setting(1e-3, "step size of the discriminator's Adam")
    discriminator_schedule: str = setting("constant", "of that step size: constant or cosine")
    discriminator_batch_size: int | None = setting(
        None,
        "episodes in a batch of the discriminator; 128 for labels, 256 for skills if left open",
    )
    samples_per_episode: int | None = setting(
        None, "episodes learned from for each new one; 8 for labels, 32 for skills if left open"
    )
    store: int | None = setting(
        None, "newest episodes to learn from; 50,000 for labels, 2,048 for skills if left open"
    )
    held_out: float = setting(0.1, "share of episodes that are never learned from")
    warm_up: int = setting(0, "episodes before anything is paid")
    varying_length: bool = setting(False, "allow pay steps where episodes differ in length")

    engine: str = setting(
        "sb3", "sb3: Stable-Baselines3, in this process; rllib: RLlib, on the cores of a cluster"
    )
    address: str | None = setting(
        None, "HOST:PORT of a Ray cluster (rllib); one on this machine is started if left open"
    )
    env_runners: int = setting(1, "processes that act, a core for each (rllib)")
    agent: str = setting(
        "ppo", "; ".join(f"{engine}: {', '.join(its)}" for engine, its in ENGINES.items())
    )
    steps: int = setting(1_000_000, "steps of all environments together")
    envs: int = setting(64, "environments side by side")
    observe: str = setting(
        "raw",
        "what the policy sees: raw; standardised; the discriminator's normalised inputs; or these "
        "and its belief",
    )
    widths: str = setting(
        "128,128", "units of the policy's layers, and of the values'; the first also of an LSTM"
    )
    learning_rate: float = setting(1e-3, "step size of the agent's Adam")
    schedule: str = setting("constant", "of that step size: constant or cosine (falls to zero)")
    discount: float = setting(0.99, "discount factor")
    batch_size: int = setting(400, "transitions in a batch of the agent")
    rollout: int = setting(25, "steps of each environment between two updates")
    lambda_: float = setting(0.95, "lambda of advantages (agents without a replay buffer)")
    n_epochs: int = setting(5, "passes over a rollout (ppo)")
    clip_range: float = setting(0.2, "of PPO")
    entropy_coef: float = setting(0.0, "weight of the entropy (not dqn, td3; 0 for sac: automatic)")
    value_coef: float = setting(
        0.5, "weight of the values' loss; smaller where returns are large (no replay buffer)"
    )
    log_std: float = setting(
        -0.5, "first logarithm of the std of continuous actions (not sac, td3)"
    )
    action_gain: float | None = setting(
        None, "first scale of the policy's last layer (0.01); at 1, codes act apart from the start"
    )
    buffer_size: int = setting(100_000, "transitions of a replay buffer")
    learning_starts: int = setting(5_000, "steps before an agent with a replay buffer learns")
    gradient_steps: int = setting(32, "batches for each rollout (agents with a replay buffer)")

    evaluate_episodes: int = setting(256, "episodes of an evaluation, at least one for each code")
    deterministic: bool = setting(False, "evaluate the likeliest action, not a sampled one")
    evaluate_every: int = setting(50_000, "steps between two rows of metrics.jsonl")
    checkpoint_every: int = setting(
        250_000, "steps between two checkpoints; at each, all environments are made anew"
    )
    device: str = setting("cpu", "cpu, cuda ...; small networks are fastest on a cpu")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_known(
            mode=MODES, agent=AGENTS, pay=PAYMENTS, observe=OBSERVED, schedule=SCHEDULES,
            bonus=BONUSES, density=DENSITIES, reward_unit=REWARD_UNITS, engine=tuple(ENGINES),
            bonus_kind=KINDS, discriminator_schedule=SCHEDULES,
        )  # fmt: skip
        require_engine(self, ENGINES[self.engine])
        require_label_settings(self)
        self.fill("judge", "final" if self.mode == "skills" else "trajectory")
        self.require_known(judge=JUDGES)
        disagrees = self.bonus_weight > 0 and self.bonus == "disagreement"
        self.fill("ensemble_size", 2 if self.needs_ensemble or disagrees else 1)
        self.fill("samples_per_episode", {"state": 2}.get(str(self.judge), self._by_mode(8, 32)))
        self.fill("discriminator_batch_size", self._by_mode(128, 256))
        self.fill("store", self._by_mode(50_000, 2_048))
        self.require(
            "steps envs repeat batch_size rollout n_epochs buffer_size gradient_steps env_runners "
            "evaluate_episodes evaluate_every checkpoint_every ensemble_size discriminator_width "
            "discriminator_batch_size samples_per_episode store",
            lambda v: v >= 1,
            "at least 1",
        )
        self.require(
            "seed frequencies warm_up learning_starts bonus_weight entropy_coef value_coef",
            lambda v: v >= 0,
            "zero or positive",
        )
        self.require("codes", lambda v: v >= 2, "at least 2: a single code tells nothing")
        fewest = 1 if self.mode == "regression" else 2
        self.require("labels", lambda v: v is None or v >= fewest, f"at least {fewest}")
        self.require("bins", lambda v: v >= 2, "at least 2")
        self.require("max_episode_steps", lambda v: v is None or v >= 1, "at least 1")
        self.require("bucket action_gain", lambda v: v is None or v > 0, "positive")
        self.require("learning_rate discriminator_learning_rate", lambda v: v > 0, "positive")
        self.require(
            "discount lambda_ clip_range beta_nll", lambda v: 0 <= v <= 1, "between 0 and 1"
        )
        self.require("held_out", lambda v: 0 <= v < 1, "at least 0 and below 1")
        self.require("batch_size", lambda v: self.has_replay or v > 1, "at least 2")
        if self.has_replay and self.judge == "trajectory":
            raise UserError(
                f"agent {self.agent} has a replay buffer of transitions: judge must be state or "
                "final"
            )
        if self.oracle == "":
            raise UserError("oracle must be the folder of a run, got nothing")
        self.all_env_options()
        self.all_widths()

    def _by_mode(self, labels: int, skills: int) -> int:
        return skills if self.mode == "skills" else labels

    @property
    def needs_ensemble(self) -> bool:
        """Whether the reward is of several discriminators."""
        if self.mode == "regression" and self.reward in DENSITY_REWARDS:
            return False
        return self.reward_fn().needs_ensemble

    @property
    def has_replay(self) -> bool:
        """Whether the agent learns from a replay buffer."""
        return self.agent in OFF_POLICY

    def all_env_options(self) -> dict[str, Any]:
        """The options of the environment."""
        try:
            options = parse_json(self.env_options.encode(errors="replace"))
        except ValueError as error:
            raise UserError(f"env-options must be JSON, such as '{{\"horizon\": 8}}': {error}")  # noqa: B904
        if not isinstance(options, dict):
            raise UserError(f"env-options must be a JSON object, got {shown(self.env_options)}")
        return options

    def all_widths(self) -> list[int]:
        """The units of each layer."""
        return parse_widths(self.widths)

    def reward_model_settings(self) -> dict[str, Any]:
        """What the reward model is made with."""
        found = {theirs: getattr(self, ours) for ours, theirs in OF_REWARD_MODEL.items()}
        return found | {"mode": "skills" if self.mode == "skills" else "labels"}
