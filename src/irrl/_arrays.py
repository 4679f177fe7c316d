"""What the library asks of arrays of any of the three libraries. Not public."""

import sys
from types import ModuleType
from typing import Any

import array_api_compat as api
import numpy as np
from numpy.typing import NDArray

Array = Any


def namespace(**arrays: Array) -> ModuleType:
    """The library that all of these arrays belong to; one that is no array is named."""
    if all(map(is_torch, arrays.values())):
        from irrl import _torch

        return _torch
    for name, x in arrays.items():
        if not is_array(x):
            raise ValueError(
                f"{name} must be a NumPy, PyTorch or JAX array, got {type(x).__name__}"
            )
    try:
        xp: ModuleType = api.array_namespace(*arrays.values())
    except TypeError:
        kinds = ", ".join(f"{name}: {type(x).__name__}" for name, x in arrays.items())
        raise ValueError(f"arrays must be of one library, got {kinds}") from None
    return xp


def is_torch(x: Any) -> bool:
    """Whether something is a tensor of PyTorch; asks nothing that breaks a graph of it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_array(x: Any) -> bool:
    """Whether something is an array of one of the libraries; a masked one hides numbers."""
    return is_torch(x) or (api.is_array_api_obj(x) and not isinstance(x, np.ma.MaskedArray))


def is_floating(xp: ModuleType, x: Array) -> bool:
    """Whether an array holds real floating numbers."""
    return bool(xp.isdtype(x.dtype, "real floating"))


def without_gradient(x: Array) -> Array:
    """The same numbers, as constants."""
    if is_torch(x):
        return x.detach()
    if api.is_jax_array(x):
        from jax.lax import stop_gradient

        return stop_gradient(x)
    return x


def has_values(x: Array) -> bool:
    """Whether values can be looked at: not while JAX traces or torch compiles."""
    if is_torch(x):
        from torch.compiler import is_compiling

        return not is_compiling()
    if api.is_jax_array(x):
        from jax.core import Tracer

        return not isinstance(x, Tracer)
    return True


def to_numpy(x: Any) -> NDArray[Any]:
    """An array of any of the libraries, from any device and without gradient, for NumPy."""
    if is_torch(x):
        x = x.detach().cpu()
        if x.is_floating_point() and x.element_size() < 4:  # NumPy has no bfloat16
            x = x.float()
        return np.asarray(x.numpy())
    return np.asarray(x)
