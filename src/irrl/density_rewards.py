"""Rewards for labels that are numbers: what a policy earns for a density of the label.

As in `irrl.rewards`, what a reward model says of the label, the density ``q(y | trajectory)``, is
compared with the prior ``p(y)``. ``density_reward(name)`` returns a function
``reward_fn(posterior, labels, prior)``:

* ``posterior``: an `irrl.densities.Normal` or `Binned` for labels of shape ``(..., D)``,
* ``labels``: numbers, shape ``(..., D)``,
* ``prior``: a `Normal`, `Uniform` or `Binned` for one label, the same for all.

What D dimensions come to, which are independent under the densities:

* densities multiply: rewards of the ratio q/p take the sum of log-ratios, then their shape;
* ``ball``: the mass of a Euclidean ball has no closed form, so B(y) is the box of all that is
  within epsilon prior standard deviations in each dimension; its mass is a product;
* ``crps``: the sum over dimensions, each in prior standard deviations, so that metres and radians
  can be added. It is a proper score of the margins, which is all that such densities have.

NumPy, PyTorch and JAX arrays work alike. No gradient passes. Results are finite.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType

from irrl._accept import as_numbers
from irrl._arrays import Array, has_values, namespace
from irrl.densities import Binned, Density, Normal, Uniform
from irrl.errors import UserError, unknown_name
from irrl.shapes import LOG_FLOOR, RATIO_LIMIT, clip_at_prior, le_cam_shape

__all__ = ["DENSITY_REWARDS", "DensityReward", "density_reward"]

_Compare = Callable[[ModuleType, Density, Array, Density, float], Array]


@dataclass(frozen=True)
class DensityReward:
    """A reward function of densities. Get one with `density_reward`.

    Attributes:
        name: what `density_reward` finds it by.
        formula: in the posterior q, the prior p and the label y.
        range: the smallest and the largest reward.
        compare: its function of ``(xp, posterior, labels, prior, epsilon)``, before clipping.
        clipped: whether it is zero where it would be below.
        epsilon: for ``ball``, in prior standard deviations.
        validate: whether values are checked on each call.

    Example:
        >>> import numpy as np
        >>> reward_fn = density_reward("clipped-density-log")
        >>> reward_fn.formula
        'max(log q(y) - log p(y), 0)'
        >>> reward_fn(Normal(np.zeros((1, 2)), 0.5), np.zeros((1, 2)), Normal(0, 1)).round(4)
        array([1.3863])
    """

    name: str
    formula: str
    range: str
    compare: _Compare
    clipped: bool = False
    epsilon: float = 0.25
    validate: bool = True

    def of_densities(
        self, xp: ModuleType, posterior: Density, labels: Array, prior: Density
    ) -> Array:
        """Rewards of labels, shape ``(...)``; nothing is checked, gradients pass."""
        rewards = self.compare(xp, posterior, labels, prior, self.epsilon)
        return clip_at_prior(xp, rewards) if self.clipped else rewards

    def __call__(self, posterior: Density, labels: Array, prior: Density) -> Array:
        """Rewards of a batch, shape ``(...)``; they carry no gradient.

        Args:
            posterior: what the reward model says of each label, a `Normal` or a `Binned`.
            labels: the true ones, shape ``(..., D)``.
            prior: their distribution before anything was seen; numbers or arrays.

        Returns:
            An array of the library of ``posterior``.

        Raises:
            ValueError: for an argument of the wrong type, shape or values; for a label to which
                the prior or bins give no mass.
        """
        xp, posterior, labels, prior = _accept(posterior, labels, prior, self.validate)
        return self.of_densities(xp, posterior, labels, prior)


def _accept(
    posterior: Density, labels: Array, prior: Density, validate: bool
) -> tuple[ModuleType, Density, Array, Density]:
    """The library of the arrays, and the arguments of a reward, checked and without gradient."""
    if not isinstance(posterior, Normal | Binned):
        raise ValueError(
            f"posterior must be a Normal or a Binned density, got {type(posterior).__name__}"
        )
    if not isinstance(prior, Normal | Uniform | Binned):
        raise ValueError(
            f"prior must be a Normal, Uniform or Binned density, got {type(prior).__name__}"
        )
    name, like = next(iter(posterior.arrays().items()))
    xp = namespace(**{f"posterior.{name}": like})
    posterior = posterior.accept(xp, "posterior", like, validate)
    labels = as_numbers(xp, "labels", labels, like, validate)
    prior = prior.accept(xp, "prior", like, validate)
    shape = tuple(labels.shape)
    if not shape or posterior.batch_shape() != shape:
        raise ValueError(
            "labels must have shape (..., D), and posterior must be for that shape: got labels "
            f"{shape} and posterior.{name} {tuple(like.shape)}"
        )
    _require_fit("posterior", posterior, shape, shape)
    _require_fit("prior", prior, shape[-1:], shape)
    if validate and has_values(labels):
        if not bool(xp.all(posterior.holds(xp, labels))):
            raise ValueError("labels must lie within posterior.edges")
        if bool(xp.any(prior.log_density(xp, labels) < LOG_FLOOR)):
            raise ValueError("prior gives no mass to one of the labels")
    return xp, posterior, labels, prior


def _require_fit(
    which: str, density: Density, own: tuple[int, ...], labels: tuple[int, ...]
) -> None:
    """Refuse arrays that do not broadcast to what a density is for."""
    for name, x in density.arrays().items():
        found = tuple(x.shape[:-1] if isinstance(density, Binned) else x.shape)
        pairs = zip(reversed(found), reversed(own), strict=False)
        if len(found) > len(own) or any(a not in (1, b) for a, b in pairs):
            raise ValueError(
                f"{which}.{name} does not fit labels of shape {labels}: got {tuple(x.shape)}"
            )


# --- the named rewards ---


def _ball(xp: ModuleType, q: Density, y: Array, p: Density, epsilon: float) -> Array:
    reach = epsilon * p.spread(xp)
    low, high = y - reach, y + reach
    return xp.prod(q.mass(xp, low, high), axis=-1) - xp.prod(p.mass(xp, low, high), axis=-1)


def _crps(xp: ModuleType, q: Density, y: Array, p: Density, epsilon: float) -> Array:
    return xp.sum((p.crps(xp, y) - q.crps(xp, y)) / p.spread(xp), axis=-1)


def _log_ratio(xp: ModuleType, q: Density, y: Array, p: Density, epsilon: float = 0.0) -> Array:
    ratio = xp.sum(q.log_density(xp, y) - p.log_density(xp, y), axis=-1)
    return xp.maximum(ratio, LOG_FLOOR)


def _le_cam(xp: ModuleType, q: Density, y: Array, p: Density, epsilon: float) -> Array:
    return le_cam_shape(xp, _log_ratio(xp, q, y, p), 0.0)


def _total_variation(xp: ModuleType, q: Density, y: Array, p: Density, epsilon: float) -> Array:
    """Before it is clipped, which makes it that of `irrl.shapes.total_variation_shape`."""
    return -xp.expm1(xp.minimum(-_log_ratio(xp, q, y, p), RATIO_LIMIT))


# name -> (function, formula, lower end of the range, upper end)
_COMPARISONS: dict[str, tuple[_Compare, str, str, str]] = {
    "ball": (_ball, "q(B(y)) - p(B(y))", "-p(B)", "1-p(B)"),
    "crps": (_crps, "(CRPS(p, y) - CRPS(q, y)) / std p", "-inf", "CRPS(p, y) / std p"),
    "density-log": (_log_ratio, "log q(y) - log p(y)", "-inf", "inf"),
    "f-le-cam": (_le_cam, "(q-p) / (2q+2p)", "-1/2", "1/2"),
}


def _named_rewards() -> dict[str, DensityReward]:
    rewards = {}
    for name, (compare, formula, low, high) in _COMPARISONS.items():
        rewards[name] = DensityReward(name, formula, f"[{low}, {high}]", compare)
        rewards[f"clipped-{name}"] = DensityReward(
            f"clipped-{name}", f"max({formula}, 0)", f"[0, {high}]", compare, clipped=True
        )
    rewards["f-total-variation"] = DensityReward(
        "f-total-variation", "max(1 - p/q, 0)", "[0, 1]", _total_variation, clipped=True
    )
    return rewards


DENSITY_REWARDS: dict[str, DensityReward] = _named_rewards()
"""The named rewards of densities; `density_reward` finds them."""


def density_reward(
    source: str | DensityReward, *, epsilon: float | None = None, validate: bool = True
) -> DensityReward:
    """Find a reward for continuous labels by name.

    Args:
        source: a name of ``DENSITY_REWARDS``, such as ``"ball"``, or a reward.
        epsilon: for ``ball`` and ``clipped-ball``: half the width of the box around the label, in
            prior standard deviations; 0.25 if not given.
        validate: check the values on each call, as `irrl.reward` does.

    Returns:
        The reward, to be called with ``(posterior, labels, prior)``.

    Raises:
        ValueError: for an unknown name, or an epsilon that is not a positive number.

    Example:
        >>> import numpy as np
        >>> posterior = Normal(mean=np.array([[0.1], [0.9]]), std=np.array([[0.1], [0.1]]))
        >>> labels, prior = np.array([[0.0], [0.0]]), Uniform(-1.0, 1.0)
        >>> density_reward("ball")(posterior, labels, prior).round(3).tolist()
        [0.52, -0.144]
        >>> density_reward("crps")(posterior, labels, prior).round(3).tolist()
        [0.184, -1.172]
    """
    if isinstance(source, str) and source in DENSITY_REWARDS:
        found = DENSITY_REWARDS[source]
    elif isinstance(source, DensityReward):
        found = source
    else:
        raise UserError(unknown_name("reward of densities", source, DENSITY_REWARDS))
    if epsilon is not None:
        if found.compare is not _ball:
            raise UserError(f"epsilon goes with ball, not with {found.name}")
        if not 0.0 < epsilon <= 1e6:
            raise UserError(f"epsilon must be a positive number, got {epsilon}")
        found = replace(found, epsilon=float(epsilon))
    return found if validate else replace(found, validate=False)
