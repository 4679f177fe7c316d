"""Environments that follow a script: each observation says of what environment, episode, step and
label it is, so that any mix-up shows. And a reward model that remembers what it was given."""

from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from irrl.reward_model import RewardModel

LABELS = 3
BOX = spaces.Box(-1.0, 100.0, (4,), np.float32)
CONTINUOUS = spaces.Box(-1.0, 1.0, (2,), np.float32)


class Scene(NamedTuple):
    """One episode of a script."""

    steps: int
    is_truncated: bool
    label: int


SCRIPT = (Scene(3, True, 1), Scene(1, False, 0), Scene(5, True, 2), Scene(2, False, 1))


class Scripted(gymnasium.Env):
    """Plays its scenes again and again, whatever is done."""

    metadata = {"render_modes": []}  # noqa: RUF012
    render_mode = None

    def __init__(
        self,
        number: int = 0,
        script: tuple[Scene, ...] = SCRIPT,
        named: bool = False,
        tells: str = "always",  # or "reset", "steps", "end", "never"
        action_space: spaces.Space | None = None,
    ) -> None:
        self.number, self.script, self.named, self.tells = number, script, named, tells
        inside = {"place": BOX, "camera": spaces.Box(0, 255, (2, 2), np.uint8)}
        self.observation_space = spaces.Dict(inside) if named else BOX
        self.action_space = action_space or spaces.Discrete(3)
        self.episode, self.taken = -1, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.taken = self.episode + 1, 0
        return self._observation(), self._info("always", "reset")

    def step(self, action):
        self.taken += 1
        over = self.taken == self.scene.steps
        truncated = over and self.scene.is_truncated
        info = self._info("always", "steps", *(["end"] if over else []))
        return self._observation(), 1.0, over and not truncated, truncated, info

    @property
    def scene(self) -> Scene:
        return self.script[self.episode % len(self.script)]

    def _info(self, *when: str) -> dict[str, Any]:
        if self.tells not in when:
            return {}
        return {"label": self.scene.label, "deep": {"label": self.scene.label}}

    def _observation(self) -> Any:
        return observation(self.number, self.episode, self.taken, self.scene.label, self.named)


def observation(number: int, episode: int, taken: int, label: int, named: bool) -> Any:
    place = np.array([number, episode, taken, label], np.float32)
    if not named:
        return place
    return {"place": place, "camera": np.full((2, 2), 10 * taken + label, np.uint8)}


def played(env: Scripted, episode: int) -> tuple[dict[str, np.ndarray], int]:
    """All of an episode as it must have been: arrays by part, and the label."""
    steps, _, label = env.script[episode % len(env.script)]
    seen = [observation(env.number, episode, t, label, env.named) for t in range(steps + 1)]
    if not env.named:
        return {"observation": np.stack(seen)}, label
    return {name: np.stack([one[name] for one in seen]) for name in seen[0]}, label


class Remembering(RewardModel):
    """Keeps episodes as they are handed over, and what it pays for them at that moment."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.given: list[tuple[dict[str, np.ndarray], int]] = []
        self.worth: list[float] = []

    def add_many(self, observations, lengths, labels):
        ends = np.cumsum(lengths)
        for start, end, label in zip(ends - lengths, ends, labels, strict=True):
            whole = {name: array[start:end].copy() for name, array in observations.items()}
            self.given.append((whole, int(label)))
            self.worth.append(float(self.rewards(whole, int(label)).sum()))
        super().add_many(observations, lengths, labels)


def model_for(env: Any = BOX, **options: Any) -> Remembering:
    """A small one, whose rewards are hardly ever zero."""
    space = env if isinstance(env, spaces.Space) else env.observation_space
    options = {"judge": "state", "reward": "linear", "width": 8, "frequencies": 1} | options
    if options.get("pay") == "steps":
        options["varying_length"] = True
    return Remembering(space, LABELS, **options)


def require_played(model: Remembering, envs: list[Scripted], counts: list[int]) -> None:
    """What was handed over is what happened, in its order, and all of it."""
    by_env: list[list[Any]] = [[] for _ in envs]
    for seen, label in model.given:
        place = seen["place"] if "place" in seen else seen["observation"]
        by_env[int(place[0, 0])].append((seen, label))
    assert [len(found) for found in by_env] == counts
    for env, found in zip(envs, by_env, strict=True):
        for episode, (seen, label) in enumerate(found):
            expected, expected_label = played(env, episode)
            assert label == expected_label
            assert set(seen) == set(expected)
            for name, array in expected.items():
                np.testing.assert_array_equal(seen[name], array)


def episodes_within(env: Scripted, steps: int, between: int = 0) -> int:
    """How many episodes end within some steps, with some steps between two episodes."""
    ended = 0
    while True:
        steps -= env.script[ended % len(env.script)].steps
        if steps < 0:
            return ended
        ended += 1
        steps -= between
