"""What a discriminator believes of running episodes, kept up to date step by step."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from irrl.reward_model.model import RewardModel
from irrl.reward_model.running import Running
from irrl.reward_model.spaces import Parts


class Posteriors:
    """What is believed of the labels of each running episode, by each member of an ensemble.

    A discriminator that reads steps goes on from its state; when it has learned, it reads all
    running episodes again from their beginnings, since its old states are those of another one.
    """

    def __init__(self, model: RewardModel, running: Running) -> None:
        self.model, self.running = model, running
        self.num_envs = len(running.lengths)
        self._states: list[Any] | None = None
        self._beliefs: Tensor | None = None  # (N, n, P)
        self._read_with = -1  # revision of the model that they are of

    def read(self, parts: Parts, rows: np.ndarray, begins: bool = False) -> None:
        """Take in what was just written: one more observation of some environments."""
        if self._beliefs is None or self._read_with != self.model.revision:
            self._read_anew()
        elif self.model.settings.judge != "trajectory":
            self._keep(self._of_states(parts), rows)
        elif not self.model.judge.reads_steps:
            self._keep(self._of_whole_episodes(rows), rows)
        else:
            if begins:
                blank = self.model.judge.initial_states(self.num_envs)
                self._states = _where(rows, blank, self._states or blank)
            self._read_step(parts, rows)

    def of_all(self) -> Tensor | None:
        """Shape ``(N, n, P)``, by the discriminator as it is now; None before the first episode."""
        if self._beliefs is not None and self._read_with != self.model.revision:
            self._read_anew()
        return self._beliefs

    def of(self, rows: np.ndarray) -> Tensor:
        """Those of some environments, which have just been read."""
        beliefs = self.of_all()
        assert beliefs is not None
        return beliefs if rows.all() else beliefs[:, torch.from_numpy(rows).to(beliefs.device)]

    def _read_anew(self) -> None:
        self._read_with = self.model.revision
        under_way = self.running.lengths > 0
        if not under_way.any():
            return
        if self.model.settings.judge != "trajectory":
            self._keep(self._of_states(self.running.newest()), under_way)
        elif not self.model.judge.reads_steps:
            self._keep(self._of_whole_episodes(under_way), under_way)
        else:
            self._states = self.model.judge.initial_states(self.num_envs)
            for t in range(int(self.running.lengths.max())):
                self._read_step(self.running.at(t), self.running.lengths > t)

    @torch.no_grad()
    def _of_states(self, parts: Parts) -> Tensor:
        judge = self.model.judge
        found: Tensor = judge(judge.to_tensors({n: a[None] for n, a in parts.items()}))
        return found[:, 0]

    def _of_whole_episodes(self, rows: np.ndarray) -> Tensor:
        found = self.model.judge.judge(self.running.batch(rows, np.zeros(len(rows), np.int64)))
        new = found.new_zeros(len(found), self.num_envs, found.shape[-1])
        new[:, torch.from_numpy(rows).to(new.device)] = found
        return new

    def _read_step(self, parts: Parts, rows: np.ndarray) -> None:
        before = self._states or self.model.judge.initial_states(self.num_envs)
        new, states = self.model.judge.step(parts, before)
        self._states = _where(rows, states, before)
        self._keep(new, rows)

    def _keep(self, new: Tensor, rows: np.ndarray) -> None:
        if rows.all():
            self._beliefs = new
            return
        prior = torch.from_numpy(self.model.log_prior()).to(new.device)
        old = prior if self._beliefs is None else self._beliefs
        mask = torch.from_numpy(rows).to(new.device)
        self._beliefs = torch.where(mask[None, :, None], new, old)


def _where(rows: np.ndarray, new: Sequence[Any], old: Sequence[Any]) -> list[Any]:
    """States of members, those of some environments replaced; batches are their first axis."""
    if rows.all():
        return list(new)

    def pick(a: Tensor, b: Tensor) -> Tensor:
        mask = torch.from_numpy(rows).to(a.device)
        return torch.where(mask.reshape(-1, *(1 for _ in a.shape[1:])), a, b)

    return list(pytree.tree_map(pick, list(new), list(old)))
