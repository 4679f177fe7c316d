"""A reward model that learns from comparisons: which of two is better (PyTorch)."""

from irrl.preference_model.model import PreferenceModel
from irrl.preference_model.settings import PreferenceSettings

__all__ = ["PreferenceModel", "PreferenceSettings"]
