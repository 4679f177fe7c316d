"""Environments of somebody's, registered under ids of their own: good ones and broken ones."""

import gymnasium
import numpy as np
from gymnasium import spaces


class Doors(gymnasium.Env):
    """A door is shown; which of two opens is the label. The agent may look behind one of them."""

    observation_space = spaces.Box(0.0, 1.0, (2,), np.float32)
    action_space = spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, told=lambda label: {"label": label}, steps=3, render_mode=None):
        self.told, self.steps, self.render_mode = told, steps, render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.label, self.taken = int(self.np_random.integers(2)), 0
        return np.zeros(2, np.float32), self.told(self.label)

    def step(self, action):
        self.taken += 1
        seen = np.zeros(2, np.float32)
        seen[int(action)] = int(action) == self.label
        return seen, 0.5, self.taken == self.steps, False, self.told(self.label)

    def render(self):
        return np.full((8, 8, 3), 20 * self.taken, np.uint8)


class Silent(Doors):
    """Tells no label."""

    def __init__(self, **options):
        super().__init__(lambda label: {}, **options)


class TooLarge(Doors):
    """Labels that are out of range."""

    def __init__(self, **options):
        super().__init__(lambda label: {"label": label + 7}, **options)


class Half(Doors):
    """Labels that are no whole numbers."""

    def __init__(self, **options):
        super().__init__(lambda label: {"label": label + 0.5}, **options)


class NotANumber(Doors):
    """Shows NaN."""

    def step(self, action):
        return (np.full(2, np.nan, np.float32), *super().step(action)[1:])


class Endless(Doors):
    """Has no end."""

    def step(self, action):
        seen, reward, _, truncated, info = super().step(action)
        return seen, reward, False, truncated, info


class Strange(Doors):
    """Asks for an action that nobody can do."""

    action_space = spaces.Dict({"left": spaces.Discrete(2), "right": spaces.Discrete(2)})


class Broken(gymnasium.Env):
    """Cannot be made."""

    def __init__(self, **options):
        raise RuntimeError("no such robot\nand more")


class Walk(gymnasium.Env):
    """Shows where it stands, through noise; the label is that place, told when it is left."""

    observation_space = spaces.Box(-2.0, 2.0, (2,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, steps=4):
        self.steps = steps

    def _seen(self):
        noise = self.np_random.normal(0.0, 0.1, 2)
        return np.clip(self.place + noise, -2.0, 2.0).astype(np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.taken = self.np_random.uniform(-1, 1, 2), 0
        return self._seen(), {}

    def step(self, action):
        label = self.place.astype(np.float32)
        self.place = np.clip(self.place + 0.1 * action, -1.0, 1.0)
        self.taken += 1
        return self._seen(), 0.5, self.taken == self.steps, False, {"label": label}


for _env in (Walk, Doors, Silent, TooLarge, Half, NotANumber, Endless, Strange, Broken):
    if f"{_env.__name__}-v0" not in gymnasium.registry:
        gymnasium.register(f"{_env.__name__}-v0", entry_point=_env)
