"""Settings of object counting. The defaults are the authors' set-up, with the PPO of BabyAI."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from irrl.errors import UserError, shown
from irrl.runs.config import SCHEDULES, setting, share_left
from irrl.tasks.counting.scene import RESOLUTION, VIEWS
from irrl.tasks.ensemble import EnsembleConfig
from irrl.units import REWARD_UNITS, require_unit

PRIORS = ("sampler", "uniform")
SCRIPTED = ("stay", "random", "sweep")
BEHAVIOUR_POLICIES = ("learned", *SCRIPTED)
ENCODERS = ("small", "resnet18")
CORES = ("rnn", "gru")
SUPERVISIONS = ("last", "all")
NORMALISATIONS = ("none", "scale", "standardise")


WIDEST = 16_384


@dataclass(frozen=True)
class CountingConfig(EnsembleConfig):
    """Object counting: walk around a table until you can tell how many cubes of a kind lie on it.

    What makes the agent stop is the discount, as in the paper: each move leaves 0.99 of the reward.
    A cost per move would have to be weighed anew for each reward, since their ranges differ, while
    a discount takes the same share of all. It is there, `--move-cost`, for studies of its own.
    """

    task: ClassVar[str] = "counting"
    length: ClassVar[str] = "episodes"
    most: ClassVar[Mapping[str, int]] = {
        **dict.fromkeys(("embedding", "width", "head_width"), WIDEST),
        **dict.fromkeys(("batch_episodes", "minibatch_episodes"), 100_000),
        "encoder_halvings": 16,
        "n_epochs": 10_000,
        "parts": 1_024,
    }
    testable: ClassVar[tuple[str, ...]] = ("scenes", "eval_scenes")
    may_change: ClassVar[tuple[str, ...]] = ("device", "scenes", "backbone_weights")

    oracle: str | None = setting(
        None,
        "folder of a converged run whose frozen model is the discriminator of the reward, in place "
        "of the one that learns",
    )

    scenes: str = setting("scenes", "folder made by `irrl data scenes`")
    train_scenes: int | None = setting(None, "train on the first so many; all if left open")
    eval_scenes: int | None = setting(None, "evaluate on the first so many; all if left open")
    resolution: int = setting(256, "side of the pictures; they must have been rendered so")
    prior: str = setting(
        "sampler", "p(count) in the reward: sampler (as scenes are sampled) or uniform"
    )
    reward_unit: str = setting(
        "absolute",
        "rewards as their formula says (absolute), or divided by the largest, so that value-coef, "
        "the clipping of values and move-cost mean the same for all (largest)",
    )
    behaviour_policy: str = setting(
        "learned",
        "learned, or a scripted baseline: stay (stops at once), random (right, left or stop, each "
        "with probability 1/3), sweep (always right, as far as it goes)",
    )
    max_moves: int = setting(6, "moves after which an episode ends by itself")

    encoder: str = setting(
        "resnet18", "resnet18 (frozen up to its second stage, then two convolutions) or small"
    )
    encoder_widths: str = setting("16,32,64,64", "channels of the small encoder's convolutions")
    encoder_halvings: int = setting(3, "how many of them, the first, halve the picture")
    backbone_weights: str | None = setting(
        None, "file with the weights of resnet18, .pth or .safetensors; fetched if left open"
    )
    dropout: float = setting(0.18, "share of the encoder's inner features left out in learning")
    embedding: int = setting(10, "numbers by which the goal is told")
    core: str = setting("rnn", "rnn or gru")
    width: int = setting(256, "units of the recurrent core, and numbers that describe a view")
    head_width: int = setting(
        0,
        "units of a layer before the policy and value heads, which is also told the answer so far; "
        "0: no such layer",
    )
    initial_policy: float = setting(
        1.0, "scale of the first weights of the policy head; small: it begins undecided"
    )

    episodes: int = setting(2_000_000, "episodes of the run")
    batch_episodes: int = setting(40, "episodes between two rounds of updates")
    n_epochs: int = setting(10, "passes of PPO over these episodes")
    minibatch_episodes: int = setting(40, "episodes in an update")
    learning_rate: float = setting(1e-4, "Adam's learning rate")
    adam_epsilon: float = setting(1e-5, "Adam's epsilon")
    schedule: str = setting("constant", "learning rate over the run: constant or cosine (to zero)")
    discount: float = setting(0.99, "what a move leaves of the reward")
    final_discount: float | None = setting(
        None,
        "the same at the end of the run, approached evenly: first learn to count, then to hurry; "
        "as at the beginning if left open",
    )
    lambda_: float = setting(0.99, "lambda of generalised advantage estimation (GAE)")
    clip: float = setting(0.2, "how far an update may change the probability of an action")
    entropy_coef: float = setting(0.01, "coefficient of the policy's entropy")
    entropy_schedule: str = setting("constant", "that coefficient over the run: constant or cosine")
    value_coef: float = setting(0.5, "coefficient of the value head's loss")
    max_grad_norm: float = setting(0.5, "longest gradient; longer ones are shortened to it")
    move_cost: float = setting(0.0, "taken from the reward for each move, beside the discount")
    supervision: str = setting("last", "answer after the last view only, or after all")
    normalise_advantage: str = setting(
        "none",
        "advantages of a batch: none (as they are), scale (to standard deviation 1) or standardise "
        "(to mean 0 as well)",
    )

    evaluate_every: int = setting(20_000, "episodes between two rows of metrics.jsonl")
    checkpoint_every: int = setting(
        100_000, "episodes between two checkpoints; a multiple of evaluate-every"
    )
    parts: int = setting(2, "parts of a minibatch, each worked on by one thread")
    device: str = setting("auto", "auto (a GPU if there is one), cpu, cuda, mps ...")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.settle_ensemble()
        self.require_known(
            prior=PRIORS,
            behaviour_policy=BEHAVIOUR_POLICIES,
            encoder=ENCODERS,
            core=CORES,
            supervision=SUPERVISIONS,
            schedule=SCHEDULES,
            entropy_schedule=SCHEDULES,
            normalise_advantage=NORMALISATIONS,
            reward_unit=REWARD_UNITS,
        )
        self.require(
            "encoder_halvings embedding width episodes batch_episodes n_epochs "
            "minibatch_episodes evaluate_every checkpoint_every parts",
            lambda v: v >= 1,
            "at least 1",
        )
        self.require(
            "train_scenes eval_scenes", lambda v: v is None or v >= 1, "at least 1, or left open"
        )
        self.require(
            "seed head_width learning_rate entropy_coef value_coef move_cost initial_policy",
            lambda v: v >= 0,
            "zero or positive",
        )
        self.require("adam_epsilon max_grad_norm clip", lambda v: v > 0, "positive")
        self.require("discount lambda_", lambda v: 0 <= v <= 1, "between 0 and 1")
        self.require(
            "final_discount", lambda v: v is None or 0 <= v <= 1, "between 0 and 1, or left open"
        )
        self.require("dropout", lambda v: 0 <= v < 1, "at least 0 and below 1")
        self.require("max_moves", lambda v: 1 <= v < VIEWS, f"between 1 and {VIEWS - 1}")
        self.require(
            "resolution",
            lambda v: v >= 1 and RESOLUTION % v == 0,
            f"a divisor of {RESOLUTION}, such as 64",
        )
        self.require(
            "minibatch_episodes", lambda v: v <= self.batch_episodes, "at most batch-episodes"
        )
        self.require(
            "checkpoint_every",
            lambda v: v % self.evaluate_every == 0,
            f"a multiple of evaluate-every ({self.evaluate_every})",
        )
        require_unit(self.reward_unit, self.reward_fn())
        self._check_encoder()
        if self.scenes == "":
            raise UserError("scenes must be a folder made by `irrl data scenes`, got nothing")
        if self.oracle == "":
            raise UserError("oracle must be the folder of a run, got nothing")
        self.require_no_oracle(self.oracle)
        for name, there in (("an oracle", self.oracle), ("a bonus", self.has_bonus)):
            if there and not self.learns_policy:
                raise UserError(
                    f"behaviour-policy {self.behaviour_policy} does not learn: {name} would reward "
                    "nobody"
                )

    def _check_encoder(self) -> None:
        if self.backbone_weights is not None and self.encoder != "resnet18":
            raise UserError("backbone-weights needs encoder resnet18")
        try:
            widths = self.small_widths
        except ValueError:
            widths = ()
        if not 1 <= len(widths) <= 16 or min(widths) < 1 or max(widths) > WIDEST:
            raise UserError(
                "encoder-widths must be channels with commas between, such as 32,64,128, at most "
                f"16 of them and {WIDEST} each, got {shown(self.encoder_widths)}"
            )
        smallest = 8 if self.encoder == "resnet18" else 2 ** min(len(widths), self.encoder_halvings)
        if self.resolution < smallest:
            raise UserError(
                f"resolution {self.resolution} is too small: this encoder halves it to nothing; "
                f"at least {smallest}"
            )

    @property
    def small_widths(self) -> tuple[int, ...]:
        """Channels of the small encoder's convolutions."""
        return tuple(int(width) for width in self.encoder_widths.split(","))

    @property
    def learns_policy(self) -> bool:
        return self.behaviour_policy == "learned"

    def learning_rate_at(self, episode: int) -> float:
        """Adam's learning rate after so many episodes."""
        return self.learning_rate * share_left(self.schedule, episode, self.episodes)

    def entropy_coef_at(self, episode: int) -> float:
        """Coefficient of the policy's entropy after so many episodes."""
        return self.entropy_coef * share_left(self.entropy_schedule, episode, self.episodes)

    def discount_at(self, episode: int) -> float:
        """What a move leaves of the reward after so many episodes."""
        final = self.discount if self.final_discount is None else self.final_discount
        return self.discount + (final - self.discount) * episode / self.episodes
