"""Internally rewarded reinforcement learning: policies paid by a discriminator still learning.

import irrl
pay = irrl.reward("clipped-linear")
rewards = pay(log_probs, labels)      # NumPy, PyTorch or JAX arrays; carries no gradient
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irrl.rewards import REWARDS as REWARDS
    from irrl.rewards import Reward as Reward
    from irrl.rewards import disagreement as disagreement
    from irrl.rewards import reward as reward

__all__ = ["REWARDS", "Reward", "disagreement", "reward"]


def __getattr__(name: str) -> Any:
    # Imported on first use, so that `irrl --help` does not wait for NumPy.
    if name in __all__:
        from irrl import rewards

        return getattr(rewards, name)
    raise AttributeError(f"module 'irrl' has no attribute {name!r}")
