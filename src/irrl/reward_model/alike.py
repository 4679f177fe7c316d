"""What two reward models must agree in, for one to pay or to go on in place of the other."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from irrl.errors import UserError
from irrl.reward_model.discriminator import Discriminator
from irrl.reward_model.spaces import Part, said_parts

if TYPE_CHECKING:
    from irrl.reward_model.model import RewardModel


def require_alike(model: "RewardModel", parts: Mapping[str, Part], labels: Any, whose: str) -> None:
    """Raise unless something is for the same observations and labels as a model."""
    if dict(parts) != model.parts:
        raise UserError(
            f"{whose} is of another observation space: {said_parts(parts)}, expected "
            f"{said_parts(model.parts)}"
        )
    if labels != model.labels:
        said = f"{labels} labels" if isinstance(labels, int) else labels
        raise UserError(f"{whose} has {said}, expected {model.labels}")


def accepted_oracle(model: "RewardModel", oracle: "RewardModel") -> Discriminator:
    """The discriminator of another model that can pay in place of this one's, or an error."""
    if not isinstance(oracle, type(model)):
        raise UserError(f"oracle must be a RewardModel, got {type(oracle).__name__}")
    require_alike(model, oracle.parts, oracle.labels, "the oracle")
    if oracle.settings.judge != model.settings.judge:
        raise UserError(
            f"the oracle judges {oracle.settings.judge!r}, this model {model.settings.judge!r}"
        )
    return oracle.discriminator
