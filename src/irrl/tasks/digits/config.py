"""Settings of hard attention on Cluttered MNIST. The defaults are the authors' set-up (RAM)."""

import math
from dataclasses import dataclass
from typing import ClassVar

from irrl.runs.config import SCHEDULES, Config, setting, share_left
from irrl.errors import UserError
from irrl.rewards import REWARDS

MODELS = ("ram", "dt-ram")
CORES = ("rnn", "gru", "map")
MOVES = ("absolute", "relative", "centred")
CREDITS = ("final", "dense")
SUPERVISIONS = ("last", "all")
PLACEMENTS = ("paper", "uniform")
DIGIT = 28


@dataclass(frozen=True)
class DigitsConfig(Config):
    """Hard attention: a recurrent model looks at a cluttered canvas through small glimpses."""

    task: ClassVar[str] = "digits"
    length: ClassVar[str] = "epochs"
    testable: ClassVar[tuple[str, ...]] = ("placement", "clutter", "clutter_size", "test_images")

    reward: str = setting("clipped-linear", "what the policy is paid; see `irrl rewards`")
    seed: int = setting(0, "root of every random stream")
    model: str = setting("ram", "ram (a fixed number of glimpses) or dt-ram (decides to stop)")
    oracle: str | None = setting(
        None, "folder of a converged run whose frozen discriminator pays in place of the online one"
    )

    canvas_size: int = setting(60, "side of the canvas in pixels")
    clutter: int = setting(4, "pieces of other digits on a canvas")
    clutter_size: int = setting(8, "side of such a piece in pixels")
    placement: str = setting("paper", "where digits go: paper (the authors' bias) or uniform")
    train_images: int = setting(54_000, "canvases in an epoch")
    validation_images: int = setting(6_000, "canvases held out for validation")
    test_images: int = setting(10_000, "canvases with test digits, looked at when a run ends")
    fresh_canvases: bool = setting(False, "draw new training canvases for each epoch")

    steps: int = setting(18, "glimpses of an episode; at most so many for dt-ram")
    glimpse_size: int = setting(4, "side of a glimpse in pixels")
    scales: int = setting(1, "glimpses of doubling size at a place, each pooled to the first")
    glimpse_width: int = setting(128, "units for what was seen, and as many for where")
    width: int = setting(256, "units of the recurrent core")
    locator_width: int = setting(128, "hidden units of the locator")
    baseline_width: int = setting(0, "hidden units of the baseline; 0 for a linear one")
    core: str = setting(
        "rnn", "rnn (rectified, as the authors), gru, or map (waves weighted by what was seen)"
    )
    location_features: int = setting(
        0, "octaves of sines and cosines by which a location is told, besides its coordinates"
    )
    object_centred: bool = setting(
        False, "tell places from the centre of the brightness seen so far, too"
    )
    policy_memory: int = setting(
        0, "units of a memory of the policy's own; without one it reads the core's state only"
    )
    moves: str = setting(
        "absolute",
        "the locator says where to look: on the canvas (absolute), from here (relative), or from "
        "the centre of the brightness seen so far (centred)",
    )
    stride: float = setting(0.5, "longest move from here or from the centre, in half canvases")
    centre_light: float = setting(
        0.0,
        "brightness that holds the centre: with less left, moves start from the middle of the "
        "canvas",
    )
    centre_fade: float = setting(
        1.0, "what a glimpse leaves of the brightness seen before it: how long light holds a centre"
    )
    centre_forgets: bool = setting(
        False,
        "light found while too little is left to hold the centre makes a new one: the old is "
        "forgotten",
    )
    grid: int = setting(
        0,
        "the locator chooses among so many by so many places within a stride; 0: it says the mean "
        "of a Gaussian",
    )
    inhibition: float = setting(
        0.0,
        "what a place of the grid loses in log-probability if a glimpse has shown it; the policy "
        "learns how much, from there on",
    )
    equivariant: bool = setting(
        False,
        "judge every place of the grid by the same question to the policy's memory, besides one of "
        "its own",
    )

    epochs: int = setting(1500, "passes over the training canvases")
    batch_size: int = setting(128, "episodes in an update")
    learning_rate: float = setting(3e-4, "Adam's step size")
    policy_learning_rate: float | None = setting(
        None, "that of the policy; the same as the discriminator's if left open"
    )
    schedule: str = setting("constant", "step sizes over the run: constant or cosine (to zero)")
    location_std: float = setting(0.05, "deviation of sampled locations at the start")
    location_std_end: float | None = setting(None, "and at the end; the same if left open")
    location_std_epochs: float | None = setting(
        None, "epochs in which it goes from one to the other; the whole run if left open"
    )
    policy_warmup_epochs: float = setting(
        0.0, "epochs in which the policy's step size rises from zero, the discriminator ahead"
    )
    credit: str = setting(
        "final", "pay the reward at the end (final), or its gain at each glimpse (dense)"
    )
    discount: float = setting(1.0, "discount of later gains under dense credit")
    lambda_: float = setting(
        1.0, "under dense credit, how far gains count as they came and not as the baseline expects"
    )
    initial_policy: float = setting(
        1.0, "scale of the first weights of the policy's last layer; small: it begins undecided"
    )
    initial_stop: float = setting(0.5, "probability of a stop of dt-ram before it has learned")
    step_discount: float = setting(
        0.99, "what a glimpse leaves of the reward of dt-ram; ram is paid in full"
    )
    supervision: str = setting("last", "classify after the last glimpse only, or after all")
    normalise_advantage: bool = setting(False, "divide advantages by their deviation in a batch")
    policy_weight: float = setting(0.01, "weight of REINFORCE beside the other losses")
    entropy_weight: float = setting(
        0.0,
        "weight, beside REINFORCE, of the entropy of the choice among places; it falls as the step "
        "sizes do",
    )
    leak_reward_gradient: bool = setting(
        False, "let the reward carry a gradient into the discriminator, as the authors' code does"
    )

    evaluate_every: int = setting(1, "epochs between two rows of metrics.jsonl")
    checkpoint_every: int = setting(10, "epochs between two checkpoints")
    parts: int = setting(
        2, "parts of a batch, each worked on by one thread; means over actions are of a part"
    )
    device: str = setting("auto", "auto (a GPU if there is one), cpu, cuda, mps ...")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_single_reward(self.reward)
        self.require_known(
            model=MODELS,
            core=CORES,
            moves=MOVES,
            credit=CREDITS,
            supervision=SUPERVISIONS,
            schedule=SCHEDULES,
            placement=PLACEMENTS,
        )
        self.fill("policy_learning_rate", self.learning_rate)
        self.fill("location_std_end", self.location_std)
        self.fill("location_std_epochs", float(self.epochs))
        self.require(
            "steps glimpse_size scales glimpse_width width locator_width epochs batch_size "
            "train_images validation_images test_images parts evaluate_every checkpoint_every",
            lambda v: v >= 1,
            "at least 1",
        )
        self.require(
            "seed clutter location_features policy_memory grid baseline_width initial_policy "
            "centre_light inhibition learning_rate policy_learning_rate policy_weight "
            "entropy_weight",
            lambda v: v >= 0,
            "zero or positive",
        )
        self.require(
            "discount lambda_ step_discount centre_fade", lambda v: 0 <= v <= 1, "between 0 and 1"
        )
        self.require("initial_stop", lambda v: 0 < v < 1, "strictly between 0 and 1")
        self.require("policy_warmup_epochs", lambda v: v >= 0, "zero or positive")
        self.require(
            "location_std location_std_end location_std_epochs stride",
            lambda v: v > 0,
            "positive",
        )
        self.require("canvas_size", lambda v: v >= DIGIT, f"at least {DIGIT}, the size of a digit")
        self.require(
            "clutter_size",
            lambda v: 1 <= v <= DIGIT,
            f"between 1 and {DIGIT}, the size of the digits it is cut from",
        )
        self.require(
            "batch_size", lambda v: v <= self.train_images, "at most the number of train images"
        )
        reach = self.glimpse_size * 2 ** (self.scales - 1)
        if reach > 2 * self.canvas_size:
            raise UserError(
                f"scales {self.scales} of glimpse-size {self.glimpse_size} make a glimpse of "
                f"{reach} pixels: more than twice the canvas-size {self.canvas_size}"
            )
        if self.credit == "final" and (self.discount < 1 or self.lambda_ < 1):
            raise UserError(
                "discount and lambda below 1 need credit dense: a final reward has no later gain"
            )
        if self.oracle == "":
            raise UserError("oracle must be the folder of a run, got nothing")
        if self.moves == "centred" and not self.object_centred:
            raise UserError("moves centred needs object-centred yes")
        if self.centre_light > 0 and self.moves != "centred":
            raise UserError("centre-light needs moves centred: else no move starts from a centre")
        if self.centre_forgets and self.centre_light == 0:
            raise UserError("centre-forgets needs a centre-light: else no centre is ever let go")
        if self.equivariant and (self.grid == 0 or self.policy_memory == 0):
            raise UserError(
                "equivariant needs a grid and a policy-memory: it asks one of the other"
            )
        if self.inhibition > 0 and (self.grid == 0 or self.policy_memory == 0):
            raise UserError(
                "inhibition needs a grid and a policy-memory: it keeps one from the other"
            )
        if self.entropy_weight > 0 and self.grid == 0:
            raise UserError(
                "entropy-weight needs a grid: a Gaussian's entropy is set by its deviation"
            )
        if self.leak_reward_gradient and self.oracle:
            raise UserError("leak-reward-gradient excludes oracle: an oracle is frozen")
        if self.leak_reward_gradient and REWARDS[self.reward].shape is None:
            raise UserError(f"leak-reward-gradient: reward {self.reward} has no gradient to leak")

    @property
    def stops(self) -> bool:
        """Whether the policy decides when to stop."""
        return self.model == "dt-ram"

    @property
    def updates_per_epoch(self) -> int:
        return math.ceil(self.train_images / self.batch_size)

    def location_std_at(self, epoch: float) -> float:
        """Deviation of sampled locations after so many epochs."""
        assert self.location_std_end is not None and self.location_std_epochs is not None
        share = min(epoch / self.location_std_epochs, 1.0)
        return self.location_std + share * (self.location_std_end - self.location_std)

    def entropy_weight_at(self, epoch: float) -> float:
        return self.entropy_weight * share_left(self.schedule, epoch, self.epochs)

    def step_sizes_at(self, epoch: float) -> tuple[float, float]:
        """Step sizes of discriminator and policy after so many epochs."""
        assert self.policy_learning_rate is not None
        factor = share_left(self.schedule, epoch, self.epochs)
        warm = 1.0 if epoch >= self.policy_warmup_epochs else epoch / self.policy_warmup_epochs
        return factor * self.learning_rate, factor * warm * self.policy_learning_rate
