"""Settings of what this package adds to the paper's RAM. By default nothing is added.

The preset `fast` adds most of it; docs/method.md says what each is good for.
"""

from dataclasses import dataclass

from irrl.errors import UserError
from irrl.runs.config import SCHEDULES, setting, share_left
from irrl.tasks.digits.config import RamConfig
from irrl.units import REWARD_UNITS, require_unit

CORES = ("rnn", "gru", "map")
MOVES = ("absolute", "relative", "centred")
CREDITS = ("final", "dense")
NORMALISATIONS = ("none", "scale", "standardise")


@dataclass(frozen=True)
class DigitsConfig(RamConfig):
    """Hard attention: a model looks at a cluttered canvas through small glimpses.

    All settings: those of the paper, and those of what is added to it.
    """

    # what the models see, remember and choose among
    core: str = setting(
        "rnn", "rnn (rectified, as the authors), gru, or map (a Fourier map of what was seen where)"
    )
    location_features: int = setting(
        0, "octaves of sines and cosines by which a location is told, besides its coordinates"
    )
    object_centred: bool = setting(
        False, "tell places from the centre of the brightness seen so far, too"
    )
    policy_memory: int = setting(
        0,
        "units of a Fourier map of the policy's own; without one it reads the core's state only",
    )
    baseline_width: int = setting(0, "hidden units of the baseline; 0 for a linear one")
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
        "score every place of the grid by the same query to the policy's map, besides one of its "
        "own",
    )
    initial_policy: float = setting(
        1.0, "scale of the first weights of the policy's last layer; small: it begins undecided"
    )
    initial_stop: float = setting(0.5, "probability of a stop of dt-ram before it has learned")

    # how they are trained
    fresh_canvases: bool = setting(False, "sample new training canvases for each epoch")
    policy_learning_rate: float | None = setting(
        None, "that of the policy; the same as the discriminator's if left open"
    )
    schedule: str = setting("constant", "step sizes over the run: constant or cosine (to zero)")
    location_std_end: float | None = setting(
        None, "standard deviation of sampled locations at the end; the same if left open"
    )
    policy_warmup_epochs: float = setting(
        0.0, "epochs in which the policy's step size rises from zero, the discriminator ahead"
    )
    credit: str = setting(
        "final",
        "the whole reward at the end (final), or what each glimpse adds to it (dense)",
    )
    discount: float = setting(1.0, "discount of later rewards under dense credit")
    lambda_: float = setting(
        1.0,
        "under dense credit, how far rewards count as they came and not as the baseline expects",
    )
    normalise_advantage: str = setting(
        "none",
        "advantages of a part of a batch: as they are (none), divided by their standard deviation "
        "(scale), or of mean zero, too (standardise)",
    )
    reward_unit: str = setting(
        "absolute",
        "rewards as their formula says (absolute), or divided by the largest, so that the baseline "
        "learns the same numbers for all (largest)",
    )
    entropy_coef: float = setting(
        0.0,
        "weight, beside REINFORCE, of the entropy of the choice among places; it falls as the step "
        "sizes do",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_known(
            core=CORES,
            moves=MOVES,
            credit=CREDITS,
            schedule=SCHEDULES,
            normalise_advantage=NORMALISATIONS,
            reward_unit=REWARD_UNITS,
        )
        require_unit(self.reward_unit, self.reward_fn())
        self.fill("policy_learning_rate", self.learning_rate)
        self.fill("location_std_end", self.location_std)
        self.require(
            "location_features policy_memory grid baseline_width initial_policy centre_light "
            "inhibition policy_learning_rate policy_warmup_epochs entropy_coef",
            lambda v: v >= 0,
            "zero or positive",
        )
        self.require("discount lambda_ centre_fade", lambda v: 0 <= v <= 1, "between 0 and 1")
        self.require("initial_stop", lambda v: 0 < v < 1, "strictly between 0 and 1")
        self.require("location_std_end stride", lambda v: v > 0, "positive")
        if self.credit == "final" and (self.discount < 1 or self.lambda_ < 1):
            raise UserError(
                "discount and lambda below 1 need credit dense: nothing follows a final reward"
            )
        if self.moves == "centred" and not self.object_centred:
            raise UserError("moves centred needs object-centred yes")
        if self.centre_light > 0 and self.moves != "centred":
            raise UserError("centre-light needs moves centred: else no move starts from a centre")
        if self.centre_forgets and self.centre_light == 0:
            raise UserError("centre-forgets needs a centre-light: else no centre is ever let go")
        for name in ("equivariant", "inhibition"):
            if getattr(self, name) and (self.grid == 0 or self.policy_memory == 0):
                raise UserError(
                    f"{name} needs a grid and a policy-memory: it scores places by what was seen"
                )
        if self.entropy_coef > 0 and self.grid == 0:
            raise UserError(
                "entropy-coef needs a grid: a Gaussian's entropy is set by its standard deviation"
            )

    @property
    def extends_policy(self) -> bool:
        """Whether the policy is another one than the paper's."""
        added = self.policy_memory or self.grid or self.baseline_width
        return bool(added) or self.moves != "absolute"

    def location_std_at(self, epoch: float) -> float:
        """Standard deviation of sampled locations after so many epochs."""
        assert self.location_std_end is not None
        share = min(epoch / self.epochs, 1.0)
        return self.location_std + share * (self.location_std_end - self.location_std)

    def entropy_coef_at(self, epoch: float) -> float:
        return self.entropy_coef * share_left(self.schedule, epoch, self.epochs)

    def step_sizes_at(self, epoch: float) -> tuple[float, float]:
        """Step sizes of discriminator and policy after so many epochs."""
        assert self.policy_learning_rate is not None
        factor = share_left(self.schedule, epoch, self.epochs)
        warm = 1.0 if epoch >= self.policy_warmup_epochs else epoch / self.policy_warmup_epochs
        return factor * self.learning_rate, factor * warm * self.policy_learning_rate
