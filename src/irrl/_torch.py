"""PyTorch as the array API has it, in one graph under ``torch.compile``. Not public.

`array_api_compat` asks for the type of a Python number beside a tensor by ``torch.result_type``,
which breaks the graph; for the two functions that get such numbers, clamping does without.
"""

from typing import Any

import array_api_compat.torch as compat
import torch
from array_api_compat.torch import *  # noqa: F403


def maximum(a: Any, b: Any) -> Any:
    """The larger of two tensors, or of a tensor and a number."""
    return compat.maximum(a, b) if torch.is_tensor(b) else torch.clamp(a, min=b)


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two tensors, or of a tensor and a number."""
    return compat.minimum(a, b) if torch.is_tensor(b) else torch.clamp(a, max=b)


def __getattr__(name: str) -> Any:
    return getattr(compat, name)
