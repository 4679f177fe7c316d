"""Skill discovery in environments that are stepped together: codes for all, without a loop."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from irrl.envs.skills import CODE, OBSERVATION, STREAM, accept_codes
from irrl.errors import UserError


class SkillsVector(VectorWrapper):
    """Adds a skill code to the observations of a vector environment.

    ## Description
    `irrl.envs.Skills` for environments that are stepped together, of any autoreset mode: where an
    episode begins, a code is drawn uniformly. From the same seed come the same codes as from
    `irrl.envs.Skills` in each environment of a `gymnasium.vector.SyncVectorEnv`.

    ## Observation Space
    A dictionary: ``observation``, as the environments have it, and ``code``, one-hot.

    ## Action Space
    That of the environments.

    ## Arguments
    ``codes``: how many. ``reset(options={"code": ...})`` sets the codes of episodes that begin: one
    for all, or one for each environment. ``info["label"]`` has the codes, at reset and at every
    step; where an episode ended and the next one began in the same step, that of the next, and
    ``info["final_info"]["label"]`` that of the last.

    Example:
        >>> import gymnasium, irrl.envs
        >>> env = irrl.envs.SkillsVector(gymnasium.make_vec("irrl/Maze-v0", num_envs=3), codes=8)
        >>> observations, info = env.reset(seed=0, options={"code": [5, 1, 5]})
        >>> observations["code"].argmax(axis=1).tolist(), info["label"].tolist()
        ([5, 1, 5], [5, 1, 5])
    """

    def __init__(self, env: VectorEnv, codes: int) -> None:
        if not isinstance(env, VectorEnv):
            raise UserError(
                f"SkillsVector is for vector environments, got {type(env).__name__}: wrap single "
                "ones with irrl.envs.Skills"
            )
        super().__init__(env)
        self.codes = accept_codes(codes)
        self.mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self.code = np.zeros(env.num_envs, np.int64)
        self.single_observation_space = spaces.Dict(
            {
                OBSERVATION: env.single_observation_space,
                CODE: spaces.Box(0.0, 1.0, (self.codes,), np.float32),
            }
        )
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)
        self._chances = [np.random.default_rng() for _ in range(env.num_envs)]
        self._one_hot = np.zeros((env.num_envs, self.codes), np.float32)
        self._over = np.zeros(env.num_envs, bool)  # resets with the next step
        self._set(np.ones(env.num_envs, bool), self.code)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin episodes with codes of their own, in all or those of ``options["reset_mask"]``."""
        options = dict(options or {})
        given = options.pop(CODE, None)
        code = None if given is None else self._accept(given)
        which = np.array(options.get("reset_mask", np.ones(self.num_envs, bool)), bool)
        observations, info = self.env.reset(seed=seed, options=options or None)
        for n, one in enumerate(self._seeds(seed)):
            if one is not None and which[n]:
                self._chances[n] = np.random.default_rng([one, STREAM])
        self._begin(which, code)
        return self._with_code(observations), self._told(info)

    def step(self, actions: Any) -> tuple[dict[str, Any], Any, Any, Any, dict[str, Any]]:
        """A step of the environments."""
        observations, rewards, terminated, truncated, info = self.env.step(actions)
        ended = np.logical_or(terminated, truncated)
        if self.mode == AutoresetMode.SAME_STEP:
            if ended.any():
                info = self._with_ends(info, ended)
                self._begin(ended)
        elif self.mode == AutoresetMode.NEXT_STEP:
            if self._over.any():
                self._begin(self._over)
            self._over = ended
        return self._with_code(observations), rewards, terminated, truncated, self._told(info)

    # --- codes ---

    def _accept(self, code: Any) -> np.ndarray:
        found = np.asarray(code)
        whole = found.dtype.kind in "iu" and found.shape in ((), (self.num_envs,))
        if not whole or (found < 0).any() or (found >= self.codes).any():
            raise UserError(
                f"code must lie in 0..{self.codes - 1}, one for all or for each of "
                f"{self.num_envs}, got {code!r}"
            )
        return np.broadcast_to(found, (self.num_envs,)).astype(np.int64)

    def _seeds(self, seed: Any) -> list[int | None]:
        """A seed for each, as Gymnasium's vector environments count them."""
        if isinstance(seed, int | np.integer):
            return [int(seed) + n for n in range(self.num_envs)]
        return [None] * self.num_envs if seed is None else list(seed)

    def _begin(self, which: np.ndarray, code: np.ndarray | None = None) -> None:
        """New codes where episodes begin: those given, or drawn."""
        if code is None:
            code = self.code.copy()
            for n in np.nonzero(which)[0]:
                code[n] = self._chances[n].integers(self.codes)
        self._set(which, code)

    def _set(self, which: np.ndarray, code: np.ndarray) -> None:
        self.code = np.where(which, code, self.code)
        self._one_hot[which] = 0.0
        self._one_hot[which, self.code[which]] = 1.0
        self._over[which] = False

    # --- what is shown and told ---

    def _with_code(self, observations: Any) -> dict[str, Any]:
        return {OBSERVATION: observations, CODE: self._one_hot.copy()}

    def _told(self, info: dict[str, Any]) -> dict[str, Any]:
        return {**info, "label": self.code.copy(), "_label": np.ones(self.num_envs, bool)}

    def _with_ends(self, info: dict[str, Any], ended: np.ndarray) -> dict[str, Any]:
        """Codes beside last observations and last infos."""
        told = {"label": np.where(ended, self.code, 0), "_label": ended.copy()}
        info = {**info, "final_info": {**info.get("final_info", {}), **told}}
        info["_final_info"] = ended.copy()
        if "final_obs" in info:
            final = np.full(self.num_envs, None, object)
            for n in np.nonzero(ended)[0]:
                last = _row(info["final_obs"], n)
                final[n] = {OBSERVATION: last, CODE: self._one_hot[n].copy()}
            info["final_obs"] = final
        return info


def _row(observations: Any, n: Any) -> Any:
    if isinstance(observations, Mapping):
        return {name: _row(inner, n) for name, inner in observations.items()}
    return observations[n]
