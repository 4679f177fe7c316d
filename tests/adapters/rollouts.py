"""Episodes of scripted environments in Stable-Baselines3, and what they must have been paid."""

import numpy as np
from stable_baselines3.common.vec_env import DummyVecEnv

from tests.adapters.worlds import SCRIPT, Scripted, played

PAYS = ("end", "differences", "steps")


def two(**options):
    return [Scripted(0, **options), Scripted(1, SCRIPT[1:], **options)]


def dummy(envs):
    return DummyVecEnv([lambda env=env: env for env in envs])


def actions_of(env):
    return np.zeros((env.num_envs, *env.action_space.shape), env.action_space.dtype)


def rolled_out(env, steps):
    """Rewards of each environment, episode by episode, and all infos."""
    env.reset()
    paid, infos = [[[]] for _ in range(env.num_envs)], []
    for _ in range(steps):
        _, rewards, dones, info = env.step(actions_of(env))
        infos.append(info)
        for n in range(env.num_envs):
            paid[n][-1].append(rewards[n])
            if dones[n]:
                paid[n].append([])
    return paid, infos


def require_paid(model, envs, paid):
    for env, episodes in zip(envs, paid, strict=True):
        for number, rewards in enumerate(episodes):
            expected = model.rewards(*played(env, number))[: len(rewards)]
            np.testing.assert_allclose(rewards, expected, atol=1e-5)
