"""Episodes: from scenes to views, states and actions.

All views of all scenes have been painted, so that walking is a matter of which picture to take.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from irrl.runs.seeding import stream
from irrl.tasks.counting.config import CountingConfig
from irrl.tasks.counting.data import Split
from irrl.tasks.counting.model import ACTIONS, Beliefs, Model
from irrl.tasks.counting.scene import VIEWS

RIGHT, LEFT, STOP = range(ACTIONS)
TURN = np.array([1, -1, 0])  # views by which each action goes on
NO_FRAME = -1


class Draws(NamedTuple):
    """Which scenes episodes are played in, and the random numbers of their actions."""

    scenes: np.ndarray  # (n,)
    coins: np.ndarray  # (moves, n): uniform

    def part(self, first: int, last: int) -> "Draws":
        return Draws(self.scenes[first:last], self.coins[:, first:last])


class Trajectory(NamedTuple):
    """Episodes of up to ``moves`` actions and one view more.

    An action is taken after each view, but after ``moves`` moves an episode ends by itself. What is
    stored after the end of an episode means nothing.
    """

    scenes: np.ndarray  # (n,)
    goals: Tensor  # (n,)
    views: np.ndarray  # (moves + 1, n): from which of the 12 points
    actions: Tensor  # (moves, n)
    log_prob: Tensor  # (moves, n): of these actions, by the policy that took them
    value: Tensor  # (moves, n): what was expected before them
    lengths: Tensor  # (n,): views taken
    log_count: Tensor  # (n, 7): log q(count | all views)
    frame: Tensor  # (moves + 1, n): where in ``seen`` a view is; NO_FRAME after the end
    seen: Tensor  # (views in all, ...): by the half of the encoder that does not learn

    @property
    def acted(self) -> Tensor:
        """(n,): actions taken; a last view without one ends the longest episodes."""
        return self.lengths.clamp(max=len(self.actions))

    @property
    def taken(self) -> Tensor:
        """(moves, n): whether an action was taken."""
        return torch.arange(len(self.actions), device=self.lengths.device)[:, None] < self.acted

    @property
    def ended(self) -> Tensor:
        """(moves, n): whether an action was the last."""
        return (
            torch.arange(len(self.actions), device=self.lengths.device)[:, None] == self.acted - 1
        )


# --- random numbers ---


def draw_batch(config: CountingConfig, done: int, scenes: int) -> Draws:
    """The draws of the batch that begins after so many episodes."""
    count = min(config.batch_episodes, config.episodes - done)
    coins = stream(config.seed, "policy", 0, done).random((config.max_moves, count), np.float32)
    return Draws(scenes_in_turn(config.seed, done, count, scenes), coins)


def scenes_in_turn(seed: int, first: int, count: int, scenes: int) -> np.ndarray:
    """Which scenes episodes ``first``, ... are played in: all in turn, each time in a new order."""
    episodes = np.arange(first, first + count)
    rounds = episodes // scenes
    orders = [
        scene_order(seed, number, scenes)[episodes[rounds == number] % scenes]
        for number in range(rounds[0], rounds[-1] + 1)
    ]
    return np.concatenate(orders)


@lru_cache(maxsize=2)
def scene_order(seed: int, number: int, scenes: int) -> np.ndarray:
    return stream(seed, "data", 3, number).permutation(scenes)


def draw_evaluation(config: CountingConfig, seed: int, scenes: np.ndarray) -> Draws:
    """For an evaluation; only the random walker needs its coins, the same for each evaluation."""
    coins = stream(seed, "evaluation").random((config.max_moves, scenes.max() + 1), np.float32)
    return Draws(scenes, coins[:, scenes])


# --- walking ---


@torch.no_grad()
def rollout(model: Model, split: Split, draws: Draws, greedy: bool = False) -> Trajectory:
    """Episodes of some scenes; the policy's actions are drawn, or with ``greedy`` the likeliest."""
    config, device, count = model.config, model.act.weight.device, len(draws.scenes)
    moves = config.max_moves
    goals = torch.from_numpy(split.goals[draws.scenes]).to(device)
    views = np.zeros((moves + 1, count), np.int64)
    actions = torch.full((moves, count), STOP, device=device)
    log_prob, value = torch.zeros(2, moves, count, device=device)
    lengths = torch.ones(count, dtype=torch.int64, device=device)
    frame = torch.full((moves + 1, count), NO_FRAME, device=device)
    state = torch.zeros(count, config.width, device=device)
    running, frames, seen = np.arange(count), 0, []
    for t in range(moves + 1):
        pictures = torch.from_numpy(split.images[draws.scenes[running], views[t, running]])
        seen.append(model.encoder.see(pictures.to(device)))
        now = torch.from_numpy(running).to(device)
        frame[t, now] = torch.arange(frames, frames + len(now), device=device)
        frames += len(now)
        vectors = model.encoder.look(seen[-1], goals[now], None)
        state[now] = model.remember(vectors, goals[now], state[now])
        if t == moves:
            break
        beliefs = model.beliefs(state[now])
        coins = torch.from_numpy(draws.coins[t, running]).to(device)
        action = choose(config.walker, beliefs, coins, greedy)
        actions[t, now], value[t, now] = action, beliefs.value
        log_prob[t, now] = beliefs.log_policy.gather(1, action[:, None])[:, 0]
        chosen = action.cpu().numpy()
        views[t + 1 :, running] = (views[t, running] + TURN[chosen]) % VIEWS
        running = running[chosen != STOP]
        lengths[torch.from_numpy(running).to(device)] += 1
        if len(running) == 0:
            break
    log_count = model.log_count(state)
    return Trajectory(
        draws.scenes, goals, views, actions, log_prob, value, lengths, log_count, frame,
        torch.cat(seen),
    )  # fmt: skip


def choose(walker: str, beliefs: Beliefs, coins: Tensor, greedy: bool) -> Tensor:
    """An action for each of some episodes, (n,)."""
    if walker == "stay":
        return torch.full_like(coins, STOP, dtype=torch.int64)
    if walker == "sweep":
        return torch.full_like(coins, RIGHT, dtype=torch.int64)
    if walker == "random":
        return (ACTIONS * coins).to(torch.int64)
    if greedy:
        return beliefs.log_policy.argmax(dim=1)
    thresholds = beliefs.log_policy.exp().cumsum(dim=1)[:, :-1]
    return (coins[:, None] >= thresholds).sum(dim=1)


def join(parts: Sequence[Trajectory]) -> Trajectory:
    """Episodes of several parts as one."""
    starts = np.cumsum([0, *(len(part.seen) for part in parts)])
    frames = [
        torch.where(part.frame == NO_FRAME, NO_FRAME, part.frame + int(start))
        for part, start in zip(parts, starts[:-1], strict=True)
    ]
    return Trajectory(
        np.concatenate([part.scenes for part in parts]),
        torch.cat([part.goals for part in parts]),
        np.concatenate([part.views for part in parts], axis=1),
        torch.cat([part.actions for part in parts], dim=1),
        torch.cat([part.log_prob for part in parts], dim=1),
        torch.cat([part.value for part in parts], dim=1),
        torch.cat([part.lengths for part in parts]),
        torch.cat([part.log_count for part in parts]),
        torch.cat(frames, dim=1),
        torch.cat([part.seen for part in parts]),
    )


# --- the same views once more ---


def states_again(
    model: Model, trajectory: Trajectory, chosen: Tensor, chance: torch.Generator | None
) -> Tensor:
    """The states of chosen episodes, (steps, n, width), with their gradient; dropout by chance.

    As many steps as the longest of them has.
    """
    steps = int(trajectory.lengths[chosen].max())
    frame = trajectory.frame[:steps, chosen]
    goals, taken = trajectory.goals[chosen], frame != NO_FRAME
    seen, sought = trajectory.seen[frame[taken]], goals.expand(frame.shape)[taken]
    return model.states(spread(model.encoder.look(seen, sought, chance), frame), goals)


@torch.no_grad()
def oracle_log_count(oracle: Model, split: Split, trajectory: Trajectory) -> Tensor:
    """What a frozen model makes of the same views, after the last of them: (n, 7)."""
    frame = trajectory.frame
    step, episode = (frame != NO_FRAME).nonzero(as_tuple=True)
    step_of, episode_of = step.cpu().numpy(), episode.cpu().numpy()
    views = trajectory.views[step_of, episode_of]
    pictures = torch.from_numpy(split.images[trajectory.scenes[episode_of], views])
    seen = oracle.encoder.see(pictures.to(frame.device))
    vectors = oracle.encoder.look(seen, trajectory.goals[episode], None)
    states = oracle.states(spread(vectors, frame), trajectory.goals)
    return oracle.log_count(last_of(states, trajectory.lengths))


def spread(vectors: Tensor, frame: Tensor) -> Tensor:
    """Vectors of the views that were taken, at their places: (steps, n, width), zero elsewhere."""
    room = vectors.new_zeros(*frame.shape, vectors.shape[1])
    return room.index_put(tuple((frame != NO_FRAME).nonzero(as_tuple=True)), vectors)


def last_of(per_step: Tensor, lengths: Tensor) -> Tensor:
    """The entries of (steps, n, ...) at the last view of each episode."""
    return per_step[lengths - 1, torch.arange(len(lengths), device=per_step.device)]
