"""Settings of the paper's hard attention on Cluttered MNIST. The defaults are the authors' set-up.

What this package adds to RAM has its settings in `irrl.tasks.digits.extensions.config`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from irrl.errors import UserError
from irrl.runs.config import setting
from irrl.tasks.ensemble import EnsembleConfig

MODELS = ("ram", "dt-ram")
SUPERVISIONS = ("last", "all")
PLACEMENTS = ("paper", "uniform")
DIGIT = 28


WIDEST = 16_384
MOST_PIXELS = 2**35


@dataclass(frozen=True)
class RamConfig(EnsembleConfig):
    """Hard attention: a recurrent model looks at a cluttered canvas through small glimpses."""

    task: ClassVar[str] = "digits"
    length: ClassVar[str] = "epochs"
    most: ClassVar[Mapping[str, int]] = {
        **dict.fromkeys(("train_images", "validation_images", "test_images"), 10_000_000),
        **dict.fromkeys(("glimpse_width", "width", "locator_width"), WIDEST),
        **dict.fromkeys(("policy_memory", "baseline_width"), WIDEST),
        "batch_size": 100_000,
        "canvas_size": 2_000,
        "clutter": 1_000,
        "glimpses": 1_000,
        "glimpse_size": 2_000,
        "grid": 256,
        "location_features": 64,
        "parts": 1_024,
        "scales": 12,
    }
    testable: ClassVar[tuple[str, ...]] = ("placement", "clutter", "clutter_size", "test_images")

    model: str = setting("ram", "ram (a fixed number of glimpses) or dt-ram (decides to stop)")
    oracle: str | None = setting(
        None,
        "folder of a converged run whose frozen discriminator gives the rewards in place of the "
        "online one",
    )

    canvas_size: int = setting(60, "side of the canvas in pixels")
    clutter: int = setting(4, "pieces of other digits on a canvas")
    clutter_size: int = setting(8, "side of such a piece in pixels")
    placement: str = setting("paper", "where digits go: paper (the authors' bias) or uniform")
    train_images: int = setting(54_000, "canvases in an epoch")
    validation_images: int = setting(6_000, "canvases held out for validation")
    test_images: int = setting(10_000, "canvases with test digits, looked at when a run ends")

    glimpses: int = setting(18, "glimpses of an episode; at most so many for dt-ram")
    glimpse_size: int = setting(4, "side of a glimpse in pixels")
    scales: int = setting(1, "glimpses of doubling size at a place, each pooled to the first")
    glimpse_width: int = setting(128, "units for what was seen, and as many for where")
    width: int = setting(256, "units of the recurrent core")
    locator_width: int = setting(128, "hidden units of the locator")

    epochs: int = setting(1500, "passes over the training canvases")
    batch_size: int = setting(128, "episodes in an update")
    learning_rate: float = setting(3e-4, "Adam's step size")
    location_std: float = setting(0.05, "standard deviation of sampled locations")
    step_discount: float = setting(
        0.99, "what a glimpse leaves of the reward of dt-ram; that of ram stays whole"
    )
    supervision: str = setting("last", "classify after the last glimpse only, or after all")
    policy_coef: float = setting(0.01, "weight of REINFORCE beside the other losses")
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
        self.settle_ensemble()
        self.require_known(model=MODELS, supervision=SUPERVISIONS, placement=PLACEMENTS)
        self.require(
            "glimpses glimpse_size scales glimpse_width width locator_width epochs batch_size "
            "train_images validation_images test_images parts evaluate_every checkpoint_every",
            lambda v: v >= 1,
            "at least 1",
        )
        self.require("seed clutter learning_rate policy_coef", lambda v: v >= 0, "zero or positive")
        self.require("step_discount", lambda v: 0 <= v <= 1, "between 0 and 1")
        self.require("location_std", lambda v: v > 0, "positive")
        self.require("canvas_size", lambda v: v >= DIGIT, f"at least {DIGIT}, the size of a digit")
        self.require(
            "clutter_size",
            lambda v: 1 <= v <= DIGIT,
            f"between 1 and {DIGIT}, the size of the digits it is cut from",
        )
        self.require(
            "batch_size", lambda v: v <= self.train_images, "at most the number of train images"
        )
        images = max(self.train_images + self.validation_images, self.test_images)
        if images * self.canvas_size**2 > MOST_PIXELS:
            raise UserError(
                f"{images} images of canvas-size {self.canvas_size} are more than {MOST_PIXELS} "
                "pixels; take fewer or smaller ones"
            )
        check_reach(self.canvas_size, self.glimpse_size, self.scales)
        if self.oracle == "":
            raise UserError("oracle must be the folder of a run, got nothing")
        self.require_no_oracle(self.oracle)
        if self.leak_reward_gradient and self.oracle:
            raise UserError("leak-reward-gradient excludes oracle: an oracle is frozen")
        if self.leak_reward_gradient and self.reward_fn().shape is None:
            raise UserError(f"leak-reward-gradient: reward {self.reward} has no gradient to leak")

    @property
    def stops(self) -> bool:
        """Whether the policy decides when to stop."""
        return self.model == "dt-ram"

    @property
    def pixels(self) -> int:
        """Numbers that a glimpse shows, of all scales."""
        return self.scales * self.glimpse_size**2

    @property
    def updates_per_epoch(self) -> int:
        return math.ceil(self.train_images / self.batch_size)


def check_reach(canvas_size: int, glimpse_size: int, scales: int) -> None:
    """Raise if the widest scale of a glimpse is far larger than the canvas."""
    reach = glimpse_size * 2 ** (scales - 1)
    if reach > 2 * canvas_size:
        raise UserError(
            f"scales {scales} of glimpse-size {glimpse_size} make a glimpse of {reach} pixels: "
            f"more than twice the canvas-size {canvas_size}"
        )
