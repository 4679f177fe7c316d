"""Every reward of the paper, once: what a policy earns for a discriminator's posterior.

A reward compares the posterior ``q(y | trajectory)`` of the true label with its prior ``p(y)``.
``reward(name)`` returns a function ``reward_fn(log_probs, labels, log_prior=None)``:

* ``log_probs``: log-probabilities, shape ``(..., K)``,
* ``labels``: integers in ``0..K-1``, shape ``(...)``,
* ``log_prior``: shape ``(K,)``, uniform if not given.

With ``ensemble=True``, ``log_probs`` has a leading axis, ``(N, ..., K)``, and is read as the
mixture of its N members. ``reward(g)`` makes a reward of a function of one's own.

NumPy, PyTorch and JAX arrays work alike. No gradient passes through a reward. Results are finite:
a log-probability below ``LOG_FLOOR`` counts as that, and ratios saturate at ``exp(±RATIO_LIMIT)``.

Adding a named reward is one function in `irrl.shapes` and one entry in ``_POSTERIOR_SHAPES``.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from types import ModuleType
from typing import Any

from irrl import shapes
from irrl._accept import accept
from irrl._arrays import Array, without_gradient
from irrl._own import callable_g, check_g, import_g, name_of
from irrl.ensembles import disagreement, log_mean_exp, mutual_information
from irrl.errors import UserError, unknown_name
from irrl.shapes import LOG_FLOOR, RATIO_LIMIT, G, Shape, clip_at_prior, g_shape, power_shape

__all__ = [
    "DISDAIN_BONUS_WEIGHT",
    "LOG_FLOOR",
    "RATIO_LIMIT",
    "REWARDS",
    "Reward",
    "Shape",
    "clip_at_prior",
    "disagreement",
    "g_shape",
    "log_mean_exp",
    "power_shape",
    "reward",
]

DISDAIN_BONUS_WEIGHT = 20.0
"""Weight of the bonus of ``disdain``."""

_CLIPPED = "clipped-"


@dataclass(frozen=True)
class Reward:
    """A reward function. Get one with `reward`; call it with log-probabilities and labels.

    Attributes:
        name: what `reward` finds it by.
        formula: in q, the posterior of the label, and p, its prior.
        range: the smallest and the largest reward, as formulas in p.
        shape: its function of ``(xp, log_q, log_p)``, before clipping. None for ``accuracy``,
            which looks at the most probable label.
        clipped: whether it is zero below the prior.
        bonus_weight: weight of the disagreement of an ensemble, for ``disdain``.
        validate: whether values are checked on each call.
        g: the function of the probability that it was made of, if it is one's own.

    Example:
        >>> import numpy as np
        >>> reward_fn = reward("clipped-linear")
        >>> reward_fn.formula
        'max(q - p, 0)'
        >>> reward_fn(np.log([[0.75, 0.25], [0.75, 0.25]]), np.array([0, 1])).tolist()
        [0.25, 0.0]
    """

    name: str
    formula: str
    range: str
    shape: Shape | None = None
    clipped: bool = False
    bonus_weight: float = 0.0
    validate: bool = True
    g: G | None = None

    @property
    def needs_ensemble(self) -> bool:
        """Whether ``log_probs`` must have a leading ensemble axis."""
        return self.bonus_weight > 0

    @property
    def of_posterior_alone(self) -> bool:
        """Whether it is a function of the label's posterior and prior and of nothing else."""
        return self.shape is not None and not self.needs_ensemble

    @property
    def has_kink(self) -> bool:
        """Whether the slope jumps at the prior."""
        return self.clipped or self.shape is shapes.total_variation_shape

    def of_log_posterior(self, xp: ModuleType, log_q: Array, log_p: Array) -> Array:
        """Rewards of labels by their log-posteriors; nothing is checked, gradients pass.

        Args:
            xp: the library of the arrays.
            log_q: log-posteriors of the labels, any shape.
            log_p: log-priors, the same shape.

        Returns:
            Rewards of that shape; those of ``disdain`` without the bonus.

        Example:
            >>> import numpy as np
            >>> float(reward("linear").of_log_posterior(np, np.log(0.75), np.log(0.25)))
            0.5
        """
        if self.shape is None:
            raise ValueError(f"reward {self.name!r} is not a function of the label's posterior")
        rewards = self.shape(xp, xp.maximum(log_q, LOG_FLOOR), log_p)
        return clip_at_prior(xp, rewards) if self.clipped else rewards

    def __call__(
        self,
        log_probs: Array,
        labels: Array,
        log_prior: Array | None = None,
        *,
        ensemble: bool = False,
    ) -> Array:
        """Rewards of a batch, of the shape of ``labels``; they carry no gradient.

        Args:
            log_probs: log-probabilities, shape ``(*labels.shape, K)``; of an ensemble,
                ``(N, *labels.shape, K)``.
            labels: integers in ``0..K-1``.
            log_prior: shape ``(K,)``; uniform if not given.
            ensemble: whether ``log_probs`` has a leading ensemble axis. Its members are then
                mixed. ``disdain`` always reads one.

        Returns:
            An array of the library of ``log_probs``.

        Raises:
            ValueError: for an argument of the wrong type, shape or values.
        """
        ensemble, validate = ensemble or self.needs_ensemble, self.validate
        accepted = accept(log_probs, labels, log_prior, ensemble=ensemble, validate=validate)
        xp, log_probs, labels, log_prior, known = accepted
        mixture = log_mean_exp(xp, log_probs) if ensemble else log_probs
        if self.shape is None:
            right = xp.argmax(mixture, axis=-1) == labels
            return xp.astype(right if known is None else right & known, mixture.dtype)
        log_q = xp.take_along_axis(mixture, labels[..., None], axis=-1)[..., 0]
        if log_prior is None:
            log_p = xp.zeros_like(log_q) - math.log(mixture.shape[-1])
        else:
            log_p = xp.reshape(xp.take(log_prior, xp.reshape(labels, (-1,)), axis=0), labels.shape)
        rewards = self.of_log_posterior(xp, log_q, log_p)
        if self.needs_ensemble:
            rewards = rewards + self.bonus_weight * mutual_information(xp, log_probs, mixture)
        if known is not None:
            rewards = xp.where(known, rewards, xp.zeros_like(rewards))
        return rewards if self.g is None else without_gradient(rewards)  # g may have parameters

    def __reduce__(self) -> tuple[Any, ...]:
        """Shapes of the library and functions that can be imported are pickled by name."""
        fields: dict[str, Any] = {**vars(self)}
        if self.name in REWARDS and REWARDS[self.name].shape is self.shape:
            fields["shape"] = None
        if self.g is not None:
            source = self.name.removeprefix(_CLIPPED)
            fields |= {"shape": None, "g": source if ":" in source else self.g}
        return _restore, (fields,)


def _restore(fields: dict[str, Any]) -> Reward:
    g = fields["g"]
    if g is not None:
        g = import_g(g) if isinstance(g, str) else g
        return Reward(**{**fields, "g": g, "shape": _shape_of(g)})
    if fields["shape"] is None and fields["name"] in REWARDS:
        fields = {**fields, "shape": REWARDS[fields["name"]].shape}
    return Reward(**fields)


# --- the named rewards ---

# name -> (shape, formula, lower end of the range, upper end)
_POSTERIOR_SHAPES: dict[str, tuple[Shape, str, str, str]] = {
    "log": (shapes.log_shape, "log q - log p", "-inf", "-log p"),
    "root-4": (power_shape(1 / 4), "q^(1/4) - p^(1/4)", "-p^(1/4)", "1-p^(1/4)"),
    "root-2": (power_shape(1 / 2), "q^(1/2) - p^(1/2)", "-p^(1/2)", "1-p^(1/2)"),
    "log1p": (shapes.log1p_shape, "log(1+q) - log(1+p)", "-log(1+p)", "log(2/(1+p))"),
    "linear": (shapes.linear_shape, "q - p", "-p", "1-p"),
    "exp": (shapes.exp_shape, "exp q - exp p", "1-exp p", "e-exp p"),
    "power-2": (power_shape(2), "q^2 - p^2", "-p^2", "1-p^2"),
    "power-3": (power_shape(3), "q^3 - p^3", "-p^3", "1-p^3"),
    "power-4": (power_shape(4), "q^4 - p^4", "-p^4", "1-p^4"),
    "power-6": (power_shape(6), "q^6 - p^6", "-p^6", "1-p^6"),
    "f-kl": (shapes.log_shape, "log(q/p)", "-inf", "-log p"),
    "f-chi2": (shapes.chi2_shape, "q/p - 1", "-1", "1/p-1"),
    "f-total-variation": (shapes.total_variation_shape, "max(1 - p/q, 0)", "0", "1-p"),
    "f-hellinger": (shapes.hellinger_shape, "2 - 2 (p/q)^(1/2)", "-inf", "2-2p^(1/2)"),
    "f-le-cam": (shapes.le_cam_shape, "(q-p) / (2q+2p)", "-1/2", "(1-p)/(2+2p)"),
    "f-jensen-shannon": (
        shapes.jensen_shannon_shape,
        "log(2q/(q+p)) + (p/q) log(2p/(q+p)) + (1-p/q) log 2",
        "-inf",
        "2log2-(1+p)log(1+p)+p log p",
    ),
    "f-reverse-kl": (shapes.reverse_kl_shape, "(p/q) log(p/q)", "-1/e", "inf"),
}


def _named_rewards() -> dict[str, Reward]:
    rewards = {"accuracy": Reward("accuracy", "1 if argmax q = y else 0", "{0, 1}")}
    for name, (shape, formula, low, high) in _POSTERIOR_SHAPES.items():
        rewards[name] = Reward(name, formula, f"[{low}, {high}]", shape)
        if name in ("f-total-variation", "f-reverse-kl"):
            continue  # the one is clipped already, the other does not increase with q
        rewards[_CLIPPED + name] = Reward(
            _CLIPPED + name, f"max({formula}, 0)", f"[0, {high}]", shape, clipped=True
        )
    rewards["disdain"] = Reward(
        "disdain",
        "max(log q - log p, 0) + w (H[mean_i q_i] - mean_i H[q_i])",
        "[0, -log p + w log N]",
        shapes.log_shape,
        clipped=True,
        bonus_weight=DISDAIN_BONUS_WEIGHT,
    )
    return rewards


REWARDS: dict[str, Reward] = _named_rewards()
"""The named rewards; `reward` finds them, and those of one's own as well."""


def reward(
    source: str | G | Reward, *, clipped: bool | None = None, validate: bool = True
) -> Reward:
    """Find a reward by name, or make one of a function g of the probability.

    A reward of one's own is ``g(q) - g(p)``, or ``max(g(q) - g(p), 0)`` if it is clipped. Its g
    must increase and be finite above zero; it is checked once, on a grid. At zero it may be
    minus infinity, like a logarithm: a probability below ``exp(-87)`` counts as that. It is
    called with arrays of the library that the reward is called with.

    Args:
        source: a name of ``REWARDS``, such as ``"clipped-linear"``; a function of one's own, as
            ``"module:function"`` or ``"clipped-module:function"``; that function itself.
        clipped: for a function: whether the reward is zero below the prior. A name says so itself.
        validate: check the values on each call (NaN, sums, ranges). Switch it off in a hot loop
            or on an accelerator, where looking costs a synchronisation. Shapes and types are
            always checked; under ``jax.jit`` and ``torch.compile`` only those can be. Unchecked,
            a label out of range, such as -100, earns nothing; NaN and bad sums pass through.

    Returns:
        The reward, to be called with ``(log_probs, labels, log_prior=None, *, ensemble=False)``.

    Raises:
        ValueError: for an unknown name, a function that cannot be imported or is no such g.

    Example:
        >>> import numpy as np
        >>> log_probs, labels = np.log([[0.64, 0.36]]), np.array([1])
        >>> reward("linear")(log_probs, labels).round(6).tolist()
        [-0.14]
        >>> reward(lambda q: q**2, clipped=True)(log_probs, labels).tolist()
        [0.0]
        >>> reward("clipped-numpy:sqrt")(log_probs, 0 * labels).round(6).tolist()
        [0.092893]
    """
    if clipped is not None and (isinstance(source, (str, Reward)) or not callable(source)):
        raise UserError("clipped goes with a function; the name of a reward says so itself")
    if isinstance(source, Reward):
        found = source
    elif isinstance(source, str) and source not in REWARDS and ":" in source:
        plain = source.removeprefix(_CLIPPED)
        found = _own(import_g(plain), source, plain != source)
    elif callable(source):
        g = callable_g(source, "g")
        found = _own(g, (_CLIPPED if clipped else "") + name_of(g), bool(clipped))
    elif isinstance(source, str) and source in REWARDS:
        found = REWARDS[source]
    else:
        raise UserError(unknown_name("reward", source, REWARDS))
    return found if validate else replace(found, validate=False)


@lru_cache(maxsize=256)
def _own(g: G, name: str, clipped: bool) -> Reward:
    low, high = check_g(g, name)
    formula = "max(g(q) - g(p), 0)" if clipped else "g(q) - g(p)"
    bottom = "0" if clipped else "-inf" if low == -math.inf else f"{low:.4g}-g(p)"
    return Reward(name, formula, f"[{bottom}, {high:.4g}-g(p)]", _shape_of(g), clipped, g=g)


_shape_of = lru_cache(maxsize=256)(g_shape)  # one object for one g, so that rewards compare equal
