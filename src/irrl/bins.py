"""Continuous labels as bins: a classifier for a reward model that regresses (HL-Gauss).

A reward model gives log-probabilities of bins and learns from soft targets (`hl_gauss`). With
bins as labels (`bin_labels`) and their prior (`bin_log_prior`) every reward of `irrl.rewards`
works as it is; as an `irrl.densities.Binned`, so do those of `irrl.density_rewards`.
"""

from types import ModuleType

from irrl._accept import as_numbers, require_edges
from irrl._arrays import Array, has_values, is_floating, namespace
from irrl._special import normal_mass
from irrl.densities import Density, Normal, Uniform, bin_index


def hl_gauss(
    labels: Array, edges: Array, smoothing: float = 0.75, *, validate: bool = True
) -> Array:
    """Target probabilities of bins: a normal around the label, what is outside cut off.

    The loss is the cross-entropy ``-sum(targets * log_probs)``. It is least where the
    probabilities are the mean of the targets; so the prior for which an uninformed reward model
    earns zero is the mean of the targets over labels, smoothed as they are.

    Args:
        labels: shape ``(...)``, floating, within the edges.
        edges: of B bins, increasing, shape ``(B + 1,)``.
        smoothing: standard deviation of the normal in mean widths of bins.
        validate: check the values, as `irrl.reward` does.

    Returns:
        Probabilities, shape ``(..., B)``.

    Raises:
        ValueError: for an argument of the wrong type, shape or values.

    Example:
        >>> import numpy as np
        >>> hl_gauss(np.array([0.5]), np.array([0.0, 1.0, 2.0])).round(4).tolist()
        [[0.683, 0.317]]
    """
    if not 1e-3 <= smoothing <= 1e3:
        raise ValueError(f"smoothing must lie within 0.001 and 1000, got {smoothing}")
    xp, labels, edges = _accept(labels, edges, validate)
    scale = smoothing * (edges[-1] - edges[0]) / (edges.shape[0] - 1)
    z = (edges - labels[..., None]) / scale
    mass = normal_mass(xp, z[..., :-1], z[..., 1:])
    return mass / xp.sum(mass, axis=-1, keepdims=True)


def bin_labels(labels: Array, edges: Array, *, validate: bool = True) -> Array:
    """The bins that labels lie in, as labels for `irrl.reward`.

    Args:
        labels: shape ``(...)``, floating, within the edges.
        edges: of B bins, increasing, shape ``(B + 1,)``. An edge belongs to the bin above it.
        validate: check the values, as `irrl.reward` does.

    Returns:
        Integers in ``0..B-1``, shape ``(...)``.

    Raises:
        ValueError: for an argument of the wrong type, shape or values.

    Example:
        >>> import numpy as np
        >>> bin_labels(np.array([0.5, 1.0, 2.0]), np.array([0.0, 1.0, 2.0])).tolist()
        [0, 1, 1]
    """
    xp, labels, edges = _accept(labels, edges, validate)
    return bin_index(xp, labels, edges)


def bin_log_prior(prior: Density, edges: Array) -> Array:
    """Log-probabilities of bins under a prior of one dimension, for `irrl.reward`.

    Mass outside of the edges is cut off, and the rest made to sum to one.

    Args:
        prior: a `Normal` or a `Uniform`, of numbers.
        edges: of B bins, increasing, floating, shape ``(B + 1,)``.

    Returns:
        Shape ``(B,)``; minus infinity for a bin without mass.

    Raises:
        ValueError: for an argument of the wrong type, shape or values; for a prior that has no
            mass within the edges.

    Example:
        >>> import numpy as np
        >>> edges = np.array([-1.0, 0.0, 0.5, 1.0])
        >>> np.exp(bin_log_prior(Uniform(-1.0, 1.0), edges)).round(6).tolist()
        [0.5, 0.25, 0.25]
    """
    if not isinstance(prior, Normal | Uniform):
        raise ValueError(f"prior must be a Normal or a Uniform, got {type(prior).__name__}")
    xp = namespace(edges=edges)
    edges = _accept_edges(xp, edges, edges, validate=True)
    prior = prior.accept(xp, "prior", edges, True)
    if prior.batch_shape() not in ((), (1,)):
        raise ValueError(f"prior must be of one dimension, got {prior.batch_shape()}")
    mass = prior.mass(xp, edges[:-1], edges[1:])
    total = xp.sum(mass)
    if has_values(total) and not bool(total > 0.0):
        raise ValueError("prior gives no mass to the bins within edges")
    log_mass = xp.log(xp.maximum(mass, xp.finfo(mass.dtype).smallest_normal)) - xp.log(total)
    return xp.where(mass > 0.0, log_mass, -float("inf"))


def _accept(labels: Array, edges: Array, validate: bool) -> tuple[ModuleType, Array, Array]:
    xp = namespace(labels=labels)
    if not is_floating(xp, labels):
        raise ValueError(f"labels must be floating numbers, got {labels.dtype}")
    edges = _accept_edges(xp, edges, labels, validate)
    labels = as_numbers(xp, "labels", labels, labels, validate)
    if validate and has_values(labels) and has_values(edges):
        whole = Uniform(edges[0], edges[-1])
        if not bool(xp.all(whole.holds(xp, labels))):
            low, high = float(edges[0]), float(edges[-1])
            raise ValueError(f"labels must lie within edges, {low:.6g} to {high:.6g}")
    return xp, labels, edges


def _accept_edges(xp: ModuleType, edges: Array, like: Array, validate: bool) -> Array:
    edges = as_numbers(xp, "edges", edges, like, validate)
    if edges.ndim != 1:
        raise ValueError(f"edges must have shape (B + 1,), got {tuple(edges.shape)}")
    require_edges(xp, "edges", edges, validate=validate)
    return edges
