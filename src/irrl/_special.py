"""The normal distribution on arrays of any of the three libraries. Not public."""

import math
from types import ModuleType

import array_api_compat as api
import numpy as np

from irrl._arrays import Array

_ERFC = np.frompyfunc(math.erfc, 1, 1)


def erfc(x: Array) -> Array:
    """The complementary error function. NumPy has none of its own: it calls that of `math`."""
    if api.is_torch_array(x):
        from torch.special import erfc as of_torch

        return of_torch(x)
    if api.is_jax_array(x):
        from jax.scipy.special import erfc as of_jax

        return of_jax(x)
    x = np.asarray(x)
    return np.asarray(_ERFC(x.astype(float)), dtype=x.dtype)


def normal_mass(xp: ModuleType, low: Array, high: Array) -> Array:
    """Mass of the standard normal between two numbers, to full precision in both tails too."""
    right = low > -high  # take the mirror image of what lies right of the centre
    near, far = xp.where(right, low, -high), xp.where(right, high, -low)
    root = math.sqrt(0.5)
    return 0.5 * (erfc(near * root) - erfc(far * root))


def normal_density(xp: ModuleType, z: Array) -> Array:
    """Density of the standard normal."""
    return xp.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
