"""Settings of tasks whose discriminator may have several heads, and of the bonus for disagreement.

The heads are classifiers on one hidden state, `irrl.nn.heads`.
"""

from dataclasses import dataclass

from irrl.ensembles import KINDS
from irrl.errors import UserError
from irrl.runs.config import Config, setting

BONUSES = ("none", "disagreement")
MOST_HEADS = 100


@dataclass(frozen=True)
class EnsembleConfig(Config):
    """What such tasks share. The default is one head and no bonus, as in the paper."""

    ensemble_size: int | None = setting(
        None,
        "number of classifiers on the same hidden state, read as their mixture; 2 with a bonus, "
        "1 without if left open",
    )
    bonus: str = setting(
        "none",
        "exploration bonus: none, or disagreement of the classifiers, judged where the reward is",
    )
    bonus_kind: str = setting(
        "log",
        "the score whose disagreement is paid: log (mutual information of label and classifier) or "
        "quadratic (the sum over labels of the classifiers' variance)",
    )
    bonus_weight: float | None = setting(
        None, "weight of the bonus, in the unit that the reward has; 1 if left open"
    )

    def settle_ensemble(self) -> None:
        """Settle what was left open, and raise where it does not go together."""
        if self.reward_fn().needs_ensemble:
            raise UserError(
                f"reward {self.reward} needs an ensemble and a bonus: give reward clipped-log and "
                "bonus disagreement"
            )
        self.require_known(bonus=BONUSES, bonus_kind=KINDS)
        self.fill("ensemble_size", 2 if self.has_bonus else 1)
        if not self.has_bonus and (self.bonus_weight or self.bonus_kind != "log"):
            name = "bonus-weight" if self.bonus_weight else "bonus-kind"
            raise UserError(f"{name} needs a bonus: set bonus to disagreement")
        self.fill("bonus_weight", 1.0 if self.has_bonus else 0.0)
        self.require(
            "ensemble_size", lambda v: 1 <= v <= MOST_HEADS, f"at least 1, at most {MOST_HEADS}"
        )
        self.require("bonus_weight", lambda v: v >= 0, "zero or positive")
        if self.has_bonus and self.ensemble_size == 1:
            raise UserError("the bonus disagreement needs an ensemble-size of 2 or more")

    @property
    def has_bonus(self) -> bool:
        return self.bonus != "none"

    @property
    def heads(self) -> int:
        """Number of classifiers, settled."""
        return self.ensemble_size or 1

    def require_no_oracle(self, oracle: str | None) -> None:
        """Raise if an oracle is to pay for disagreement, of which it has none."""
        if oracle and self.has_bonus:
            raise UserError("bonus excludes oracle: an oracle knows, and pays for no disagreement")
