"""Exact gradients of skill discovery, beside an enumeration of all episodes."""

import dataclasses
import itertools
import tracemalloc

import numpy as np
import pytest

from irrl.gradient_measured import Arm, make_arms
from irrl.gradient_noise import direction, noise_added, noise_kept, signal_kept, snr
from irrl.rewards import reward
from irrl.tasks import make_config
from irrl.tasks.skills.gradient import Episodes, behaviour, exact_gradients, visits
from irrl.tasks.skills.map import ACTIONS, read_map
from irrl.tasks.skills.tables import initial_tables

MAP = "#####\n#S..#\n##.##\n#####\n"
ARMS = make_arms(("clipped-log", "linear", "accuracy"))
SIZES = {"codes": 3, "horizon": 3, "epsilon": 0.3, "batch_size": 5}


def scene(**settings):
    config = make_config("skills", "smoke", map=MAP, **{**SIZES, **settings})
    room_map = read_map(MAP)
    tables = initial_tables(config, room_map)
    return config, room_map, tables._replace(log_q=4 * tables.log_q)


def found_in(config, room_map, tables, arms=ARMS):
    return exact_gradients(config, room_map, tables, arms, 0, lambda code: None)


def every_episode(policy, next_cell, start, horizon):
    """Chance, last cell, and (time, cell, action) of all episodes of a code."""
    for actions in itertools.product(range(len(ACTIONS)), repeat=horizon):
        cell, chance, steps = start, 1.0, []
        for t, action in enumerate(actions):
            chance *= policy[cell, action]
            steps.append((t, cell, action))
            cell = next_cell[cell * len(ACTIONS) + action]
        yield chance, cell, steps


def rounded(posterior):
    """Log-posteriors in which codes that are equal are equal, as chance in the last bit is none."""
    return np.log(posterior.round(12))


def enumerated(config, room_map, tables, arms):
    """Signal and noise from all gradients of all episodes, one by one."""
    policies = behaviour(config, tables)
    next_cell, start = room_map.next_cell.astype(int), room_map.start
    cells, codes = len(room_map.cells), config.codes
    episodes = [list(every_episode(p, next_cell, start, config.horizon)) for p in policies]
    ends = np.zeros((codes, cells))
    for code, cell in itertools.product(range(codes), range(cells)):
        ends[code, cell] = sum(chance for chance, end, _ in episodes[code] if end == cell)
    online = np.exp(tables.log_q[0].astype(float))
    posteriors = {
        "run": online / online.sum(axis=1, keepdims=True),
        "oracle": (ends / ends.sum(0)).T,
    }
    gradients, chances = [], []
    for code in range(codes):
        rewards = [
            reward(arm.reward)(rounded(posteriors[arm.judge]), np.full(cells, code)) for arm in arms
        ]
        # value of a cell at a time: the mean reward of all episodes that pass there then
        value = {}
        for t, cell in itertools.product(range(config.horizon), range(cells)):
            through = [(p, end) for p, end, steps in episodes[code] if steps[t][1] == cell]
            total = sum(p for p, _ in through)
            if total > 0:
                value[t, cell] = [sum(p * r[end] for p, end in through) / total for r in rewards]
        for chance, end, steps in episodes[code]:
            g = np.zeros((len(arms), codes, cells, len(ACTIONS)))
            for t, cell, action in steps:
                score = np.eye(len(ACTIONS))[action] - policies[code, cell]
                for a, r in enumerate(rewards):
                    g[a, code, cell] += score * (r[end] - value[t, cell][a])
            gradients.append(g.reshape(len(arms), -1))
            chances.append(chance / codes)
    g, p = np.array(gradients), np.array(chances)
    mean = np.einsum("k,kap->ap", p, g)
    signal = mean @ mean.T
    return signal, (np.einsum("k,kap,kbp->ab", p, g, g) - signal) / config.batch_size, ends


@pytest.mark.parametrize("settings", [{}, {"epsilon": 1.0, "horizon": 4, "codes": 2}])
def test_moments_are_those_of_all_episodes(settings):
    config, room_map, tables = scene(**settings)
    found = found_in(config, room_map, tables)
    signal, noise, ends = enumerated(config, room_map, tables, ARMS)
    np.testing.assert_allclose(found.sampled.moments.signal, signal, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found.sampled.moments.noise, noise, rtol=1e-6, atol=1e-12)
    assert found.sampled.without == () and found.batch_size == 5
    np.testing.assert_allclose(np.sort(found.weights), np.sort(ends[ends > 0]), rtol=1e-9)
    assert found.prior == pytest.approx(1 / config.codes)


def episodes_on(name, arms, horizon=12, seed=0):
    """Of a code whose policy is any, on a map of the task."""
    rng, room_map = np.random.default_rng(seed), read_map(name)
    next_cell = room_map.next_cell.reshape(-1, len(ACTIONS)).astype(int)
    policy = rng.dirichlet(np.full(len(ACTIONS), 0.5), size=len(next_cell))
    there = visits(policy, next_cell, room_map.start, horizon)
    return Episodes(policy, next_cell, there, rng.normal(size=(arms, len(next_cell))))


def second_moments_by_matrices(code):
    """The same from powers of the matrix of steps, and products of rewards carried backwards."""
    cells, times = np.arange(len(code.policy)), code.horizon
    step = np.zeros((len(cells), len(cells)))
    np.add.at(step, (cells[:, None], code.next_cell), code.policy)

    def before(at_end):
        return [(np.linalg.matrix_power(step, t) @ at_end)[code.next_cell] for t in range(times)]

    q = [before(r)[::-1] for r in code.rewards]
    v = [[(x * code.policy).sum(axis=1) for x in of_arm] for of_arm in q]
    score = np.eye(len(ACTIONS)) - code.policy[:, None, :]
    products = score @ score.transpose(0, 2, 1)
    found = np.zeros((len(q), len(q)))
    for a, b in itertools.product(range(len(q)), repeat=2):
        both = before(code.rewards[a] * code.rewards[b])[::-1]
        for early, late in itertools.combinations_with_replacement(range(times), 2):
            joint = code.policy[:, :, None] * np.eye(len(ACTIONS))
            if early < late:
                power = np.linalg.matrix_power(step, late - early - 1)
                home = power[code.next_cell, cells[:, None]]
                joint = (code.policy * home)[:, :, None] * code.policy[:, None, :]
            weight = code.there[early][:, None] * (joint * products).sum(axis=1)
            then, now = v[a][early][:, None], v[b][late][:, None]
            term = both[late] - then * q[b][late] - now * q[a][late] + then * now
            found[a, b] += (weight * term).sum()
            found[b, a] += (weight * term).sum() if early < late else 0.0
    return found


@pytest.mark.parametrize("name", ["small", "large"])
def test_second_moments_are_those_by_matrices(name):
    code = episodes_on(name, arms=2, horizon=7)
    np.testing.assert_allclose(code.second_moments(), second_moments_by_matrices(code), rtol=1e-9)


def test_memory_does_not_grow_with_pairs_of_rewards():
    code = episodes_on("large", arms=60)
    tracemalloc.start()
    code.second_moments()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * code.rewards.nbytes * code.horizon * len(ACTIONS)


def test_a_discriminator_that_knows_the_truth_adds_nothing():
    config, room_map, tables = scene()
    _, _, ends = enumerated(config, room_map, tables, ARMS)
    log_q = np.log((ends / ends.sum(axis=0)).T)[None].astype(np.float32)
    found = found_in(config, room_map, tables._replace(log_q=log_q))
    for name in ("clipped-log", "linear", "accuracy"):
        own, oracle = found.row(name, "run"), found.row(name, "oracle")
        moments = found.sampled.moments
        assert signal_kept(moments, own, oracle) == pytest.approx(1.0, abs=1e-5)
        assert noise_kept(moments, own, oracle) == pytest.approx(1.0, abs=1e-5)
        assert noise_added(moments, own, oracle) == pytest.approx(0.0, abs=1e-5)
        assert direction(moments, own, oracle) == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_allclose(found.online, found.oracle, rtol=1e-5)


def test_an_affine_change_of_the_reward_changes_no_ratio():
    config, room_map, tables = scene()
    policy, next_cell = behaviour(config, tables)[0], room_map.next_cell.reshape(-1, 5).astype(int)
    there = visits(policy, next_cell, room_map.start, config.horizon)
    rewards = np.random.default_rng(0).normal(size=(1, len(room_map.cells)))
    both = Episodes(policy, next_cell, there, np.concatenate([rewards, 10 * rewards + 7]))
    mean, second = both.expected_gradients(), both.second_moments()
    np.testing.assert_allclose(mean[1], 10 * mean[0], atol=1e-12)
    np.testing.assert_allclose(second, second[0, 0] * np.array([[1, 10], [10, 100]]), rtol=1e-9)


def test_with_rare_random_actions_the_gradient_is_made_of_contrasts():
    """Of each visit and other action: the reward after it, going on greedily, less that without."""
    config, room_map, tables = scene(epsilon=1e-7)
    policy = behaviour(config, tables)[1]
    next_cell = room_map.next_cell.reshape(-1, 5).astype(int)
    there = visits(policy, next_cell, room_map.start, config.horizon)
    rewards = np.random.default_rng(1).normal(size=len(room_map.cells))
    greedy, contrasts = policy.argmax(axis=-1), np.zeros_like(policy)

    def end_of(other=None):
        cell, visited = room_map.start, []
        for t in range(config.horizon):
            visited.append(cell)
            action = other[1] if other is not None and other[0] == t else greedy[cell]
            cell = next_cell[cell, action]
        return cell, visited

    usual, path = end_of()
    for t, action in itertools.product(range(config.horizon), range(5)):
        if action != greedy[path[t]]:
            contrast = rewards[end_of((t, action))[0]] - rewards[usual]
            contrasts[path[t], action] += contrast
            contrasts[path[t], greedy[path[t]]] -= contrast
    found = Episodes(policy, next_cell, there, rewards[None]).expected_gradients()[0]
    rare = config.epsilon / len(ACTIONS)
    np.testing.assert_allclose(found / rare, contrasts.ravel(), atol=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_in_tables_no_reward_is_far_from_any_other_in_signal_to_noise(seed):
    """Where no cell is passed twice and random actions are rare, a contrast c_a of each action has
    signal c_a² + (sum of c_a)² and noise 2 c_a², whatever the reward.
    """
    corridor = "#######\n#S....#\n#######\n"
    config, room_map = make_config("skills", "smoke", map=corridor, **SIZES), read_map(corridor)
    config = dataclasses.replace(config, epsilon=1e-6)
    next_cell = room_map.next_cell.reshape(-1, 5).astype(int)
    policy = np.full((5, 5), config.epsilon / 5)
    policy[:, ACTIONS.index("right")] += 1.0 - config.epsilon
    there = visits(policy, next_cell, room_map.start, config.horizon)
    rewards = np.random.default_rng(seed).normal(size=(6, 5))
    code = Episodes(policy, next_cell, there, rewards)
    mean = code.expected_gradients()
    signal, second = (mean**2).sum(axis=1), np.diagonal(code.second_moments())
    ratio = signal / second / (config.epsilon / 5)
    assert (ratio > 0.5 - 1e-3).all() and (ratio < 2.5 + 1e-3).all()


def test_twice_the_batch_has_half_the_noise():
    config, room_map, tables = scene()
    row = ARMS.index(Arm("linear", "run"))
    once, twice = (
        snr(found_in(dataclasses.replace(config, batch_size=n), room_map, tables).sampled[0], row)
        for n in (5, 10)
    )
    assert twice == pytest.approx(2 * once)
