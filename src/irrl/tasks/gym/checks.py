"""Settings that must fit together, and what is seen of an observation."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from irrl.density_rewards import DENSITY_REWARDS
from irrl.errors import UserError, shown, unknown_name
from irrl.rewards import REWARDS
from irrl.runs.config import flag_name
from irrl.tasks.gym.names import DEEPEST, WIDEST

if TYPE_CHECKING:
    from irrl.tasks.gym.config import GymConfig


def require_engine(config: "GymConfig", agents: Sequence[str]) -> None:
    """Raise where an engine, which has these agents, cannot carry what is asked of it."""
    if config.agent not in agents:
        raise UserError(
            f"engine {config.engine} has no agent {config.agent}: it has {', '.join(agents)}"
        )
    if config.has_replay:
        for name in [n for n, is_set in _of_rollouts(config).items() if is_set]:
            raise UserError(
                f"{name} is for agents that collect rollouts; {config.agent} has a replay buffer"
            )
    if config.engine != "rllib":
        if config.address is not None:
            raise UserError("address is for --engine rllib")
        return
    if config.mode == "regression":
        raise UserError("engine rllib carries labels and skills, not mode regression")
    if config.observe != "raw":
        raise UserError(f"engine rllib shows raw observations, got observe {config.observe}")
    if config.discriminator_schedule != "constant":
        raise UserError("engine rllib learns with a constant discriminator-schedule")
    if config.device != "cpu":
        raise UserError(f"engine rllib learns on the cpu, got device {config.device}")
    if config.action_gain is not None:
        raise UserError("action-gain is for --engine sb3")


def _of_rollouts(config: "GymConfig") -> dict[str, bool]:
    """What only agents without a replay buffer have, and whether it is asked for."""
    return {
        "observe standardised": config.observe == "standardised",
        "action-gain": config.action_gain is not None,
    }


def require_label_settings(config: "GymConfig") -> None:
    """Raise where settings of labels do not fit together."""
    low, high = config.label_low, config.label_high
    if (low is None) != (high is None) or (low is not None and high is not None and low >= high):
        raise UserError(f"label-low must be below label-high, got {low} and {high}")
    if config.epsilon is not None and config.epsilon <= 0:
        raise UserError(f"epsilon must be positive, got {config.epsilon}")
    if config.mode == "regression":
        if config.reward not in DENSITY_REWARDS and config.density == "normal":
            raise UserError(
                f"reward {config.reward} is of classes: take density bins, or one of "
                f"{', '.join(DENSITY_REWARDS)}"
            )
        if config.beta_nll and config.density == "bins":
            raise UserError("beta-nll goes with density normal, not with bins")
        return
    if config.reward in DENSITY_REWARDS and config.reward not in REWARDS:
        raise UserError(f"reward {config.reward} is for labels that are numbers: mode regression")
    for name in ("label_low", "label_moves", "epsilon"):
        if getattr(config, name) is not None:
            raise UserError(f"{flag_name(name)} is for labels that are numbers: mode regression")
    if config.beta_nll:
        raise UserError("beta-nll is for labels that are numbers: mode regression")


def seen_part(sees: str, names: list[str]) -> Any:
    """What the setting ``sees`` says of an observation: None for all, names, or a slice."""
    if sees == "all":
        return None
    wanted = [name.strip() for name in sees.split(",")]
    if names:
        for name in wanted:
            if name not in names:
                raise UserError(unknown_name("part of the observation", name, names))
        return wanted
    first, colon, last = sees.partition(":")
    try:
        return slice(int(first or 0), int(last) if last else None) if colon else _one(int(first))
    except ValueError:
        raise UserError(
            f"sees must be all or numbers of a vector such as 0:2, got {shown(sees)}"
        ) from None


def parse_widths(text: str) -> list[int]:
    """The units of each layer, from what the setting ``widths`` says."""
    try:
        widths = [int(units) for units in text.split(",")]
    except ValueError:
        widths = []
    if not 1 <= len(widths) <= DEEPEST or not 1 <= min(widths) <= max(widths) <= WIDEST:
        raise UserError(
            f"widths must be numbers such as 128,128, at most {DEEPEST} and none above "
            f"{WIDEST}, got {shown(text)}"
        )
    return widths


def _one(number: int) -> slice:
    return slice(number, number + 1)
