"""Any environment becomes skill discovery: a code is drawn at reset, for the policy to see."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from irrl.errors import UserError

OBSERVATION, CODE = "observation", "code"
STREAM = 7  # of codes, apart from what an environment draws with the same seed


class Skills(gymnasium.Wrapper, RecordConstructorArgs):
    """Adds a skill code to the observations of an environment.

    ## Description
    At each reset a code is drawn uniformly. A policy that is paid for codes that can be told from
    what it does learns as many skills as it has codes. The reward of the environment is left as
    it is; a reward model takes its place (`irrl.RewardModel`, ``mode="skills"``).

    ## Observation Space
    A dictionary: ``observation``, as the environment has it, and ``code``, one-hot. The
    discriminator judges ``observation`` only: `irrl.adapters` see to that.

    ## Action Space
    That of the environment.

    ## Arguments
    ``codes``: how many. ``reset(options={"code": 3})`` sets the code of an episode.
    ``info["label"]`` is the code, at reset and at every step.

    Example:
        >>> import gymnasium, irrl.envs
        >>> env = irrl.envs.Skills(gymnasium.make("irrl/PointMass-v0"), codes=4)
        >>> observation, info = env.reset(seed=0, options={"code": 2})
        >>> observation["code"].tolist(), info["label"]
        ([0.0, 0.0, 1.0, 0.0], 2)
    """

    def __init__(self, env: gymnasium.Env, codes: int) -> None:
        RecordConstructorArgs.__init__(self, codes=codes)  # with which it can be made again
        gymnasium.Wrapper.__init__(self, env)
        self.codes = accept_codes(codes)
        self.code = 0
        self._chance = np.random.default_rng()
        self.observation_space = spaces.Dict(
            {
                OBSERVATION: env.observation_space,
                CODE: spaces.Box(0.0, 1.0, (self.codes,), np.float32),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin an episode with a code of its own."""
        options = dict(options or {})
        given = options.pop(CODE, None)
        code = None if given is None else self._accept(given)
        observation, info = self.env.reset(seed=seed, options=options or None)
        if seed is not None:
            self._chance = np.random.default_rng([seed, STREAM])
        self.code = int(self._chance.integers(self.codes)) if code is None else code
        return self._with_code(observation), {**info, "label": self.code}

    def _accept(self, code: Any) -> int:
        whole = isinstance(code, int | np.integer) and not isinstance(code, bool)
        if not whole or not 0 <= code < self.codes:
            raise UserError(f"code must lie in 0..{self.codes - 1}, got {code!r}")
        return int(code)

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """A step of the environment."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        told = {**info, "label": self.code}
        return self._with_code(observation), float(reward), terminated, truncated, told

    def _with_code(self, observation: Any) -> dict[str, Any]:
        code = np.zeros(self.codes, np.float32)
        code[self.code] = 1.0
        return {OBSERVATION: observation, CODE: code}


def accept_codes(codes: Any) -> int:
    """How many codes there are; raises where that cannot be."""
    if isinstance(codes, bool) or not isinstance(codes, int | np.integer) or codes < 2:
        raise UserError(f"codes must be a whole number, at least 2, got {codes!r}")
    return int(codes)
