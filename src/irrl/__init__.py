"""Internally rewarded reinforcement learning: rewards from a discriminator that is still learning.

A policy acts, a discriminator guesses a label from what it did, and the policy is rewarded for
what can be guessed. `irrl.reward` gives the rewards of the paper by name, and makes one of a
function of your own. They take NumPy, PyTorch and JAX arrays and carry no gradient.

>>> import irrl, numpy as np
>>> reward_fn = irrl.reward("clipped-linear")
>>> log_probs = np.log([[0.75, 0.25], [0.75, 0.25]])  # a discriminator's log_softmax
>>> reward_fn(log_probs, np.array([0, 1])).tolist()   # for the labels it should have guessed
[0.25, 0.0]

Names:
    RewardModel     discriminator and reward for an environment of your own (PyTorch)
    PreferenceModel scores learned from comparisons, and rewards of them (PyTorch)
    Continuous      labels that are numbers, for a reward model
    reward          find a reward by name, or make one
    REWARDS         the named rewards
    Reward          what a reward is
    density_reward  find a reward for labels that are numbers
    DENSITY_REWARDS those by name
    preference      which is better, as a label of two classes
    disagreement    the bonus of an ensemble
    largest_reward  the unit in which rewards can be exchanged

Modules:
    rewards         rewards of log-probabilities and labels
    density_rewards rewards of densities and labels that are numbers
    densities       normal, binned, uniform
    density_noise   what an immature model of such labels does to a reward, in theory
    units           rewards of different size
    bins            continuous labels as classes (HL-Gauss)
    preferences     preferences as classes
    returns         lambda returns, advantages, potential differences
    losses          REINFORCE, PPO, cross-entropy (PyTorch)
    diagnostics     how a discriminator is doing
    noise           what an immature discriminator does to a reward, in theory
    noise_measured  the same, measured beside an oracle
    gradient_noise  what it does to the policy gradient: signal, noise, direction
    divergences     the f-mutual-information family
    errors          the one exception of the command line
    envs            Gymnasium environments

All of these are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irrl import bins as bins
    from irrl import densities as densities
    from irrl import density_noise as density_noise
    from irrl import density_rewards as density_rewards
    from irrl import diagnostics as diagnostics
    from irrl import divergences as divergences
    from irrl import envs as envs
    from irrl import errors as errors
    from irrl import gradient_noise as gradient_noise
    from irrl import losses as losses
    from irrl import noise as noise
    from irrl import noise_measured as noise_measured
    from irrl import preferences as preferences
    from irrl import returns as returns
    from irrl import rewards as rewards
    from irrl import units as units
    from irrl.density_rewards import DENSITY_REWARDS as DENSITY_REWARDS
    from irrl.density_rewards import density_reward as density_reward
    from irrl.preference_model import PreferenceModel as PreferenceModel
    from irrl.preferences import preference as preference
    from irrl.reward_model import Continuous as Continuous
    from irrl.reward_model import RewardModel as RewardModel
    from irrl.rewards import REWARDS as REWARDS
    from irrl.rewards import Reward as Reward
    from irrl.rewards import disagreement as disagreement
    from irrl.rewards import reward as reward
    from irrl.units import largest_reward as largest_reward

    __version__: str

__all__ = [
    "DENSITY_REWARDS",
    "REWARDS",
    "Continuous",
    "PreferenceModel",
    "Reward",
    "RewardModel",
    "density_reward",
    "disagreement",
    "largest_reward",
    "preference",
    "reward",
]

_NAMES = {  # name -> the module it comes from
    "Continuous": "irrl.reward_model",
    "DENSITY_REWARDS": "irrl.density_rewards",
    "PreferenceModel": "irrl.preference_model",
    "REWARDS": "irrl.rewards",
    "Reward": "irrl.rewards",
    "RewardModel": "irrl.reward_model",
    "density_reward": "irrl.density_rewards",
    "disagreement": "irrl.rewards",
    "largest_reward": "irrl.units",
    "preference": "irrl.preferences",
    "reward": "irrl.rewards",
}
_MODULES = (
    "bins", "densities", "density_noise", "density_rewards", "diagnostics", "divergences", "envs",
    "errors", "gradient_noise", "losses", "noise", "noise_measured", "preferences", "returns",
    "rewards", "units",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    # Imported on first use, so that `irrl --help` does not wait for NumPy.
    if name in _NAMES or name in _MODULES:
        try:
            module = import_module(_NAMES.get(name, f"irrl.{name}"))
        except ModuleNotFoundError as error:  # AttributeError: help(irrl) and hasattr go on
            raise AttributeError(f"irrl.{name} needs {error.name}, which is missing") from error
        return getattr(module, name) if name in _NAMES else module
    if name == "__version__":
        from importlib.metadata import version

        return version("irrl")
    raise AttributeError(f"module 'irrl' has no attribute {name!r}")


def __dir__() -> list[str]:
    own = (name for name in globals() if name.startswith("__"))
    return sorted({*own, *_NAMES, *_MODULES, "__version__"})
