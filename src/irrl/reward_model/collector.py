"""Episodes of parallel environments as they come in, step by step: collected, judged and paid."""

from collections.abc import Callable
from typing import Any

import numpy as np

from irrl.errors import UserError
from irrl.reward_model.classes import Classes
from irrl.reward_model.labels import Told
from irrl.reward_model.model import RewardModel
from irrl.reward_model.payment import is_paid, payments
from irrl.reward_model.posteriors import Posteriors
from irrl.reward_model.running import Running, one_after_the_other
from irrl.reward_model.spaces import Parts, to_parts

Take = Callable[[Parts, np.ndarray, np.ndarray], None]


class Collector:
    """What n environments have shown of their running episodes, and what is paid for it.

    Two calls are all there is. `begin` takes the first observations of episodes; `step` takes what
    one action of each led to, gives the rewards, and hands whole episodes to the reward model. An
    observation belongs to the episode it ends, not to the one that follows: adapters see to that.

    Args:
        model: the reward model; its discriminator may learn at any time between two calls.
        num_envs: how many environments there are.
        track: keep `beliefs` up to date after every step, whatever the model pays for.
        hand_over: give whole episodes to the model, to learn from; False for an evaluation.

    Example:
        >>> import numpy as np
        >>> from gymnasium.spaces import Box
        >>> model = RewardModel(Box(-1.0, 1.0, (2,)), labels=4, mode="skills")
        >>> collector = Collector(model, num_envs=2)
        >>> collector.begin(np.zeros((2, 2), np.float32), labels=[0, 3])
        >>> collector.step(np.ones((2, 2), np.float32), ended=[False, True]).shape
        (2,)
        >>> model.episodes
        1
    """

    def __init__(
        self, model: RewardModel, num_envs: int, track: bool = False, hand_over: bool = True
    ) -> None:
        self.model, self.num_envs = model, num_envs
        self.take: Take = model.add_many if hand_over else _leave  # what whole episodes go to
        self.pay = model.settings.pay
        self.tracked = track or self.pay in ("differences", "steps")
        keeps_all = model.settings.judge != "final"
        moving = model.kind.nothing(0) if model.kind.moves else None
        self._running = Running(
            model.parts, num_envs, keeps_all, model.settings.max_episode_steps, moving
        )
        self._posteriors = Posteriors(model, self._running)
        self._told = Told(num_envs, model.kind)
        self._before = np.zeros(num_envs)  # potential that was paid for
        self._usual_length: int | None = None

    @property
    def beliefs(self) -> np.ndarray:
        """What is believed of the labels, given all of each running episode: ``(n, P)``.

        Log-probabilities of classes, or the numbers of a density, as `RewardModel.kind` has them.
        Where an episode has ended and none has begun, those of its end.
        """
        if not self.tracked:
            raise UserError("this collector keeps no posteriors: make it with track=True")
        found = self._posteriors.of_all()
        if found is None:
            return np.tile(self.model.log_prior(), (self.num_envs, 1))
        return self.model.kind.mixture(found)

    @property
    def log_probs(self) -> np.ndarray:
        """The same, for labels that are classes: log-probabilities, shape ``(n, labels)``."""
        if not isinstance(self.model.kind, Classes):
            raise UserError("continuous labels have no log_probs: see beliefs and predictions")
        return self.beliefs

    @property
    def predictions(self) -> np.ndarray:
        """What environments that ask are told: logits of classes, means of numbers."""
        return self.model.kind.predictions(self.beliefs)

    @property
    def labels(self) -> np.ndarray:
        """Labels of the running episodes; -1, or NaN of numbers, where none was told yet."""
        return self._told.values.copy()

    # --- the two calls ---

    def begin(self, observations: Any, labels: Any = None, which: Any = None) -> None:
        """Episodes begin. Where one was under way, it is dropped: it has no end.

        Args:
            observations: of all environments, ``(n, ...)``; others than ``which`` are not read.
            labels: of all environments; None for one that is not told yet, or -1 in an array (NaN
                of numbers). Not read where labels move: the first is told with the first step.
            which: of the environments, as a mask; all if left out.
        """
        begins = self._mask("which", which)
        if not begins.any():
            return
        parts = to_parts(self.model.parts, observations, (self.num_envs,), begins)
        labels = None if self.model.kind.moves else labels
        self._told.values = self._told.after(labels, begins, begins=True)
        self._running.lengths[begins] = 0
        self._before[begins] = 0.0
        self._running.write(parts, begins)
        if self.tracked:
            self._posteriors.read(parts, begins, begins=True)

    def step(
        self, observations: Any, ended: Any, labels: Any = None, which: Any = None
    ) -> np.ndarray:
        """One more action of each environment. What is refused leaves everything as it was.

        Args:
            observations: what it led to, ``(n, ...)``; where an episode ends, its last one.
            ended: whether it does, terminated or truncated.
            labels: as they are told, None for one that is not, or -1 in an array (NaN of numbers).
                Where they move, of the observations before these.
            which: environments that took an action, as a mask; all if left out.

        Returns:
            Rewards, float32 of shape ``(n,)``, zero where no action was taken.
        """
        acted = self._mask("which", which)
        ended = self._mask("ended", np.asarray(ended)) & acted
        rewards = np.zeros(self.num_envs, np.float32)
        if not acted.any():
            return rewards
        self._running.require_begun(acted)
        self._running.require_room(acted)
        parts = to_parts(self.model.parts, observations, (self.num_envs,), acted)
        told = self._told.after(labels, acted)
        paid = is_paid(self.pay, acted, ended)
        self._require_told(told, acted if self.model.kind.moves else paid | ended)
        if self.pay == "steps" and not self.model.settings.varying_length:
            self._require_one_length(self._running.lengths[ended])
        self._told.values = told
        if self.model.kind.moves:  # what was seen before the action is what has a label
            self._running.label(told, acted)
            if paid.any():
                rewards[paid] = self._paid(paid, ended)
            self._take_in(parts, acted & ~ended)
        else:
            self._take_in(parts, acted)
            if paid.any():
                rewards[paid] = self._paid(paid, ended)
        if ended.any():
            self._hand_over(ended)
        return rewards

    def _take_in(self, parts: Parts, rows: np.ndarray) -> None:
        if rows.any():
            self._running.write(parts, rows)
            if self.tracked:
                self._posteriors.read(parts, rows)

    def _paid(self, paid: np.ndarray, ended: np.ndarray) -> np.ndarray:
        labels = self._told.values
        if self.tracked:
            beliefs = self._posteriors.of(paid)
        else:
            beliefs = self.model.judge.judge(self._running.batch(paid, labels))
        seen = {name: array[paid] for name, array in self._running.newest().items()}
        potential = self.model.potential(beliefs, labels[paid], seen)
        due = payments(self.pay, potential, self._before[paid], ended[paid])
        self._before[paid] = potential
        return due

    def _hand_over(self, ended: np.ndarray) -> None:
        """Whole episodes go to the model; their environments have none until they begin anew."""
        batch = self._running.batch(ended, self._told.values)
        seen, labels = one_after_the_other(batch, self.model.kind.moves)
        self.take(seen, batch.lengths, labels)
        self._running.lengths[ended] = 0

    # --- what is refused ---

    def _require_one_length(self, lengths: np.ndarray) -> None:
        usual = self._usual_length
        for length in map(int, lengths):
            usual = usual or length
            if length != usual:
                raise UserError(
                    f"pay 'steps' where episodes differ in length ({usual} and {length} steps) "
                    "pays for dawdling: take pay 'differences' or 'end', or say "
                    "varying_length=True"
                )
        self._usual_length = usual

    def _require_told(self, told: np.ndarray, rows: np.ndarray) -> None:
        moves = self.model.kind.moves
        missing = rows & ~self.model.kind.is_told(told)
        if missing.any():
            when = "at the end of its episode"
            if moves or self.pay in ("differences", "steps"):
                when = "with a step" if moves else "with its first step"
            raise UserError(f"environment {int(missing.argmax())} told no label {when}")

    def _mask(self, name: str, given: Any) -> np.ndarray:
        if given is None:
            return np.ones(self.num_envs, bool)
        mask = np.asarray(given)
        if mask.dtype != bool or mask.shape != (self.num_envs,):
            raise UserError(
                f"{name} must be a mask of shape ({self.num_envs},), got {mask.dtype} of shape "
                f"{mask.shape}"
            )
        return mask


def _leave(observations: Parts, lengths: np.ndarray, labels: np.ndarray) -> None:
    """Let episodes go."""
