"""Labels that are numbers: how they are told and learned, and what is paid for their density."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from irrl import _torch as xp
from irrl.bins import bin_log_prior, hl_gauss
from irrl.densities import Binned, Density, Normal, bin_index
from irrl.density_rewards import DENSITY_REWARDS, density_reward
from irrl.ensembles import disagreement, log_mean_exp
from irrl.errors import UserError, unknown_name
from irrl.reward_model.continuous import Continuous, require_together
from irrl.reward_model.settings import Settings
from irrl.rewards import REWARDS
from irrl.shapes import LOG_FLOOR

NARROWEST, WIDEST = -8.0, 3.0  # log of a standard deviation, in those of the prior

Pay = Callable[[Tensor, Tensor], Tensor]


class Numbers:
    """Continuous labels, as vectors of D numbers.

    A belief is a row of numbers. Of a normal density it has D means and D standard deviations, of
    bins D times B log-probabilities.

    Args:
        labels: what they are.
        settings: of the reward model.
    """

    counts_size = 1
    if_it_moves = ": say moves=True where there is one for each step"

    def __init__(self, labels: Continuous, settings: Settings) -> None:
        require_together(labels, settings)
        self.labels, self.size, self.moves = labels, labels.size, labels.moves
        self.is_binned = labels.density == "bins"
        self.bonus_kind, self.beta = settings.bonus_kind, settings.beta_nll
        self.outputs = self.size * labels.bins if self.is_binned else 2 * self.size
        like = np.zeros(self.size, np.float32)
        self.prior_density = labels.prior.accept(np, "prior", like, True)
        self.mean = self.prior_density.centre(np)
        self.std = self.prior_density.spread(np)
        self.low, self.high = labels.ends()
        share = np.linspace(0.0, 1.0, labels.bins + 1, dtype=np.float32)
        self.edges = self.low[:, None] + share * (self.high - self.low)[:, None]
        self.log_prior_of_bins = np.stack([self._bin_prior(d) for d in range(self.size)])
        self.pay = self._find_pay(settings)

    def __str__(self) -> str:
        moving = " that move" if self.moves else ""
        return f"continuous labels of shape {self.labels.shape}{moving}"

    def _bin_prior(self, dimension: int) -> np.ndarray:
        prior = self.prior_density
        one = type(prior)(*(array[dimension] for array in prior.arrays().values()))
        return np.maximum(bin_log_prior(one, self.edges[dimension]), LOG_FLOOR)

    def _find_pay(self, settings: Settings) -> Pay:
        name = settings.reward
        if settings.reward_unit != "absolute":
            raise UserError("reward_unit is for classes, got continuous labels")
        if name in DENSITY_REWARDS:
            reward_fn = density_reward(name, epsilon=settings.epsilon, validate=False)
            prior = self.prior_density

            def pay(beliefs: Tensor, labels: Tensor) -> Tensor:
                return reward_fn(self.density(self.mixed(beliefs)), labels, prior)

            return pay
        if settings.epsilon is not None:
            raise UserError(f"epsilon goes with ball, not with {name}")
        if not self.is_binned:
            if name in REWARDS:
                raise UserError(
                    f"reward {name!r} is of classes: with continuous labels take density='bins', "
                    f"or one of {', '.join(DENSITY_REWARDS)}"
                )
            raise UserError(unknown_name("reward of densities", name, DENSITY_REWARDS))
        return self._pay_for_bins(settings)

    def _pay_for_bins(self, settings: Settings) -> Pay:
        """A reward of classes: that of the bin a label lies in, a mean over dimensions."""
        reward_fn = settings.reward_fn(validate=False)

        def pay(beliefs: Tensor, labels: Tensor) -> Tensor:
            index = bin_index(xp, labels, torch.from_numpy(self.edges).to(labels.device)).long()
            members = self._bins(beliefs)
            each = [
                reward_fn(
                    members[..., d, :].contiguous(),
                    index[..., d],
                    torch.from_numpy(self.log_prior_of_bins[d]).to(beliefs.device),
                    ensemble=True,
                )
                for d in range(self.size)
            ]
            return torch.stack(each).mean(dim=0)

        return pay

    # --- labels ---

    def nothing(self, *shape: int) -> np.ndarray:
        """Labels that are not known."""
        return np.full((*shape, self.size), np.nan, np.float32)

    def is_told(self, labels: np.ndarray) -> np.ndarray:
        """Which are."""
        return ~np.isnan(labels).any(axis=-1)

    def read(self, labels: Any) -> np.ndarray:
        """Labels of environments, shape ``(n, D)``, NaN for None."""
        if isinstance(labels, np.ndarray) and labels.dtype == np.float32:
            return labels.reshape(len(labels), -1)
        if not isinstance(labels, list | tuple) and np.ndim(labels) == 0:
            raise UserError(f"labels must have one for each environment, got {labels!r}")
        found = self.nothing(len(labels))
        for n, label in enumerate(labels):
            if label is not None:
                found[n] = self._checked(label, f" of environment {n}")
        return found

    def plain(self, values: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Values as labels at once, the usual case and the fast one; None if they may be wrong."""
        plain = values.dtype.kind == "f" and values.shape[1:] == self.labels.shape
        if not plain or not np.isfinite(values[rows]).all():
            return None
        return values.reshape(len(values), -1).astype(np.float32)

    def _checked(self, label: Any, whose: str = "") -> np.ndarray:
        try:
            value = np.asarray(label)
        except ValueError:  # of rows that differ in length
            value = np.array(None)
        if value.dtype.kind not in "iuf" or value.size != self.size:
            raise UserError(
                f"label must have {self.size} numbers (shape {self.labels.shape}), got "
                f"{label!r}{whose}"
            )
        if not np.isfinite(value).all():
            raise UserError(f"label must be finite, got {label!r}{whose}")
        return value.ravel().astype(np.float32)

    def require(self, labels: np.ndarray, rows: np.ndarray) -> None:
        """Raise unless labels of some environments lie where the prior has any mass."""
        wrong = rows & ~self._can_be(labels)
        if wrong.any():
            culprit = int(wrong.argmax())
            raise UserError(self._said_wrong(labels[culprit], f" of environment {culprit}"))

    def _can_be(self, labels: np.ndarray) -> np.ndarray:
        """Which labels ``(..., D)`` are finite, likely at all, and within bins where there are."""
        known = np.isfinite(labels)
        safe = np.where(known, labels, self.mean)
        possible = known & (self.prior_density.log_density(np, safe) >= LOG_FLOOR)
        if self.is_binned:
            slack = 1e-6 * (self.high - self.low)
            possible &= (safe >= self.low - slack) & (safe <= self.high + slack)
        return possible.all(axis=-1)

    def _said_wrong(self, label: np.ndarray, whose: str = "") -> str:
        said = np.array2string(label, precision=6)
        if self.is_binned:
            ends = f"{self.low.tolist()} to {self.high.tolist()}"
            return f"label {said}{whose} lies outside of its bins, {ends}: give a wider prior"
        return f"label {said}{whose} has no mass under the prior: give a wider one"

    def accept(self, labels: Any) -> np.ndarray:
        """Labels of whole episodes, or of all steps, shape ``(n, D)``, or an error."""
        labels = np.asarray(labels)
        if labels.dtype.kind not in "iuf" or labels.ndim < 1:
            raise UserError(f"label must hold numbers, got {labels.dtype}")
        if labels.ndim != 2 or labels.shape[1] != self.size:
            raise UserError(
                f"label must have {self.size} numbers (shape {self.labels.shape}), got shape "
                f"{labels.shape[1:]}"
            )
        possible = self._can_be(labels)
        if not possible.all():
            raise UserError(self._said_wrong(labels[possible.argmin()]))
        return labels.astype(np.float32, copy=False)

    def one(self, label: Any) -> np.ndarray:
        """The label of one episode, shape ``(1, D)``; where it moves those of all actions."""
        if not self.moves:
            return self.accept(self._checked(label)[None])
        labels = np.asarray(label)
        if labels.dtype.kind not in "iuf" or labels.shape[1:] != self.labels.shape:
            raise UserError(
                "label must have one for each action where labels move, shape "
                f"{('T', *self.labels.shape)}, got {labels.shape}"
            )
        return self.accept(labels.reshape(len(labels), -1))

    def counts(self, labels: np.ndarray, episodes: int) -> np.ndarray:
        """How many episodes there are: continuous labels have no frequencies."""
        return np.array([episodes])

    # --- beliefs ---

    def normalised(self, raw: Tensor) -> Tensor:
        """Beliefs from what a network gives: numbers in prior standard deviations, or logits."""
        if self.is_binned:
            return torch.log_softmax(self._bins(raw.float()), dim=-1).flatten(-2)
        mean, std = (torch.from_numpy(a).to(raw.device) for a in (self.mean, self.std))
        centre, log_std = raw.float().chunk(2, dim=-1)
        return torch.cat([mean + std * centre, std * log_std.clamp(NARROWEST, WIDEST).exp()], -1)

    def _bins(self, beliefs: Tensor) -> Tensor:
        return beliefs.unflatten(-1, (self.size, self.labels.bins))

    def density(self, belief: Tensor) -> Density:
        """What a belief, shape ``(..., P)``, says of labels ``(..., D)``."""
        if self.is_binned:
            return Binned(self._bins(belief), torch.from_numpy(self.edges).to(belief.device))
        mean, std = belief.chunk(2, dim=-1)
        return Normal(mean, std)

    def losses(self, beliefs: Tensor, labels: Tensor) -> Tensor:
        """Of beliefs ``(N, T, B, P)``, shape ``(N, T, B)``: sums over dimensions.

        Negative log-likelihoods in prior standard deviations, weighted; of bins cross-entropies.
        """
        labels = labels.expand(*beliefs.shape[:-1], self.size)
        if self.is_binned:
            low, high = (torch.from_numpy(a).to(labels.device) for a in (self.low, self.high))
            share = ((labels - low) / (high - low)).clamp(0.0, 1.0)
            edges = torch.linspace(0.0, 1.0, self.labels.bins + 1, device=labels.device)
            targets = hl_gauss(share, edges, self.labels.smoothing, validate=False)
            return -(targets * self._bins(beliefs)).sum(dim=(-1, -2))
        std = torch.from_numpy(self.std).to(labels.device)
        density = self.density(beliefs)
        weights = (density.spread(xp).detach() / std) ** (2.0 * self.beta)
        return -(weights * (density.log_density(xp, labels) + std.log())).sum(dim=-1)

    def mixed(self, beliefs: Tensor) -> Tensor:
        """One belief of an ensemble's ``(N, ..., P)``: of normals that with their moments."""
        if len(beliefs) == 1:
            return beliefs[0]
        if self.is_binned:
            return log_mean_exp(xp, beliefs)
        means, stds = beliefs.chunk(2, dim=-1)
        variance = (stds**2).mean(dim=0) + means.var(dim=0, unbiased=False)
        return torch.cat([means.mean(dim=0), variance.sqrt()], dim=-1)

    def mixture(self, beliefs: Tensor) -> np.ndarray:
        """The same as an array."""
        return self.mixed(beliefs).cpu().numpy()

    def prior(self, counts: np.ndarray) -> np.ndarray:
        """What is believed before anything was seen, shape ``(P,)``."""
        if self.is_binned:
            return self.log_prior_of_bins.ravel()
        return np.concatenate([self.mean, self.std])

    def rewards(self, beliefs: Tensor, labels: Tensor, counts: np.ndarray) -> Tensor:
        """Rewards ``(n,)`` of members' beliefs ``(N, n, P)``."""
        return self.pay(beliefs, labels)

    def disagreement(self, beliefs: Tensor) -> Tensor:
        """How much members disagree: the Jensen gap of the entropy, shape ``(n,)``.

        Of normals that of the normal with their moments, a sum over dimensions; of bins a mean.
        """
        if self.is_binned:
            gaps = disagreement(self._bins(beliefs), self.bonus_kind, validate=False)
            return gaps.mean(dim=-1)
        _, stds = beliefs.chunk(2, dim=-1)
        _, std = self.mixed(beliefs).chunk(2, dim=-1)
        return (std.log() - stds.log().mean(dim=0)).sum(dim=-1).clamp(min=0.0)

    def predictions(self, beliefs: np.ndarray) -> np.ndarray:
        """What an environment that asks is told: means, shape ``(n, *shape)``."""
        means = self.density(torch.from_numpy(beliefs)).centre(xp).numpy()
        return means.reshape(*beliefs.shape[:-1], *self.labels.shape)

    def squared_errors(self, beliefs: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Of means, in prior variances, a mean over dimensions: the best blind guess has 1."""
        means = self.density(torch.from_numpy(beliefs)).centre(xp).numpy()
        return np.mean(((means - labels) / self.std) ** 2, axis=-1)

    def shown(self, beliefs: np.ndarray) -> np.ndarray:
        """What a policy sees of beliefs: means and log standard deviations, in those of the prior.

        Shape ``(n, 2D)``.
        """
        density = self.density(torch.from_numpy(beliefs))
        centre, spread = density.centre(xp).numpy(), density.spread(xp).numpy()
        return np.concatenate([(centre - self.mean) / self.std, np.log(spread / self.std)], axis=-1)
