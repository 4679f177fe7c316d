"""The internal reward model: episodes, discriminator, reward function, diagnostics (PyTorch)."""

from irrl.reward_model.collector import Collector
from irrl.reward_model.continuous import Continuous
from irrl.reward_model.model import RewardModel
from irrl.reward_model.settings import Settings

__all__ = ["Collector", "Continuous", "RewardModel", "Settings"]
