"""Actions that last: each is taken for several steps of an environment."""

from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from irrl.errors import UserError


class Repeat(gymnasium.Wrapper, RecordConstructorArgs):
    """Takes each action for several steps of an environment, or until its episode ends.

    ## Description
    Independent noise of many short actions adds up to little; of a few that last it goes further,
    and an episode has fewer decisions to be credited for. Environments of MuJoCo have
    ``frame_skip`` for this, which is faster. A limit of steps that lies inside counts the steps of
    the environment.

    ## Observation Space
    That of the environment, after the last of the steps.

    ## Action Space
    That of the environment.

    ## Arguments
    ``repeat``: steps for which an action is taken. Rewards of these are added up; ``info`` is that
    of the last.

    Example:
        >>> import gymnasium, irrl.envs
        >>> env = irrl.envs.Repeat(gymnasium.make("irrl/PointMass-v0"), repeat=5)
        >>> _ = env.reset(seed=0)
        >>> [env.step(env.action_space.sample())[3] for _ in range(5)]
        [False, False, False, False, True]
    """

    def __init__(self, env: gymnasium.Env, repeat: int) -> None:
        whole = isinstance(repeat, int | np.integer) and not isinstance(repeat, bool)
        if not whole or repeat < 1:
            raise UserError(f"repeat must be a whole number, at least 1, got {repeat!r}")
        RecordConstructorArgs.__init__(self, repeat=repeat)
        gymnasium.Wrapper.__init__(self, env)
        self.repeat = int(repeat)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """So many steps of the environment."""
        earned = 0.0
        for _ in range(self.repeat):
            observation, reward, terminated, truncated, info = self.env.step(action)
            earned += float(reward)
            if terminated or truncated:
                break
        return observation, earned, terminated, truncated, info
