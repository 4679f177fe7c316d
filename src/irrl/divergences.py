"""The f-mutual-information family (Appendix A.2, Table 1), derived from each f.

For convex f with f(1) = 0 the f-mutual information of a label y and a trajectory is

    I_f = D_f(p(y, t) || p(y) p(t)) = E_{p(y) p(t)} f(x),   x = p(y | t) / p(y).

Written as an expectation over the joint it is E_{p(y, t)} F(x) with F(x) = f(x) / x, so F(q / p)
is a reward. Adding c (x - 1) to f changes F, not D_f: there is a whole line of rewards for each
divergence. The choice c = f(0) is special:

* it gives f(0) = 0, so cells where the joint is zero contribute nothing, and the expectation
  over the joint is the divergence for *every* joint, not only for strictly positive ones;
* the chord slope F(x) = (f(x) - f(0)) / x + f(0) of a convex f is non-decreasing, so the
  reward grows with the posterior, as the paper asks of g.

`irrl.rewards` holds these F in closed, numerically safe form under the names ``f-...``.
The reverse KL divergence has f(0) = infinity: no such choice exists, and its F is not monotone.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from irrl.errors import unknown_name

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Divergence:
    """A convex f with f(1) = 0, on ratios x > 0, and its limit at 0.

    Attributes:
        name: its name in ``DIVERGENCES``; ``"f-" + name`` is that of its reward.
        formula: as Table 1 prints it.
        f: the function.
        f_at_zero: its limit at 0.

    Example:
        >>> float(DIVERGENCES["chi2"].integrand(3.0))
        2.0
    """

    name: str
    formula: str
    f: Callable[[Floats], Floats]
    f_at_zero: float

    def integrand(self, ratio: ArrayLike) -> Floats:
        """F(x) for x > 0, with f shifted to f(0) = 0 where f(0) is finite."""
        x = _ratios(ratio)
        shift = self.f_at_zero if np.isfinite(self.f_at_zero) else 0.0
        return (self.f(x) + shift * (x - 1.0)) / x

    def printed_integrand(self, ratio: ArrayLike) -> Floats:
        """F(x) = f(x) / x for f exactly as printed in Table 1."""
        x = _ratios(ratio)
        return self.f(x) / x


DIVERGENCES: dict[str, Divergence] = {
    d.name: d
    for d in (
        Divergence("kl", "x log x", lambda x: x * np.log(x), 0.0),
        Divergence("chi2", "(x-1)^2", lambda x: (x - 1.0) ** 2, 1.0),
        Divergence("total-variation", "|x-1| / 2", lambda x: 0.5 * np.abs(x - 1.0), 0.5),
        Divergence("hellinger", "(1-sqrt x)^2", lambda x: (1.0 - np.sqrt(x)) ** 2, 1.0),
        Divergence("le-cam", "(1-x) / (2x+2)", lambda x: (1.0 - x) / (2.0 * x + 2.0), 0.5),
        Divergence(
            "jensen-shannon",
            "x log(2x/(x+1)) + log(2/(x+1))",
            lambda x: x * np.log(2.0 * x / (x + 1.0)) + np.log(2.0 / (x + 1.0)),
            float(np.log(2.0)),
        ),
        Divergence("reverse-kl", "-log x", lambda x: -np.log(x), np.inf),
    )
}
"""The divergences of Table 1 by name."""


def f_mutual_information(joint: ArrayLike, name: str) -> float:
    """I_f of a joint table, directly: the sum of p(y) p(t) f(p(y, t) / (p(y) p(t))).

    Args:
        joint: probabilities that sum to 1, of trajectories and labels, shape ``(t, y)``.
        name: a name of ``DIVERGENCES``.

    Returns:
        The divergence of the joint from the product of its margins.

    Example:
        >>> round(f_mutual_information([[0.5, 0.0], [0.0, 0.5]], "kl"), 4)
        0.6931
    """
    if name not in DIVERGENCES:
        raise ValueError(unknown_name("divergence", name, DIVERGENCES))
    table, product = _joint_and_product(joint)
    divergence = DIVERGENCES[name]
    present = product > 0
    empty = present & (table == 0)
    full = present & (table > 0)
    total = float(np.sum(product[full] * divergence.f(table[full] / product[full])))
    return total + (float(np.sum(product[empty])) * divergence.f_at_zero if empty.any() else 0.0)


def expected_reward(joint: ArrayLike, integrand: Callable[[Floats], Floats]) -> float:
    """E over the joint of ``integrand(p(y | t) / p(y))``.

    Args:
        joint: probabilities that sum to 1, of trajectories and labels, shape ``(t, y)``.
        integrand: a function of the ratio of posterior and prior.

    Returns:
        What a reward of that ratio comes to in the mean.

    Example:
        >>> expected_reward([[0.5, 0.0], [0.0, 0.5]], DIVERGENCES["chi2"].integrand)
        1.0
    """
    table, product = _joint_and_product(joint)
    full = table > 0
    return float(np.sum(table[full] * integrand(table[full] / product[full])))


def _ratios(ratio: ArrayLike) -> Floats:
    x = np.asarray(ratio, dtype=float)
    if not np.all(x > 0.0):
        raise ValueError("ratios must be positive")
    return x


def _joint_and_product(joint: ArrayLike) -> tuple[Floats, Floats]:
    table = np.asarray(joint, dtype=float)
    if table.ndim != 2:
        raise ValueError(f"joint must be a table of two axes, got shape {table.shape}")
    if np.isnan(table).any() or (table < 0).any() or not np.isclose(table.sum(), 1.0):
        raise ValueError("joint must hold probabilities that sum to 1")
    return table, table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
