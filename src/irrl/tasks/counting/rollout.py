"""Episodes: from scenes to views, hidden states and actions.

All views of all scenes have been rendered, so that a move is a matter of which picture to take.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from irrl.losses import at_last_step, steps_taken
from irrl.nn.heads import mixture
from irrl.nn.parallel import part_edges
from irrl.runs.seeding import stream
from irrl.tasks.counting.config import CountingConfig
from irrl.tasks.counting.data import Split
from irrl.tasks.counting.model import ACTIONS, Model, Outputs
from irrl.tasks.counting.scene import VIEWS

RIGHT, LEFT, STOP = range(ACTIONS)
TURN = np.array([1, -1, 0])  # views by which each action goes on
NO_FRAME = -1


class EpisodeInputs(NamedTuple):
    """Which scenes episodes are played in, and the random numbers of their actions."""

    scenes: np.ndarray  # (n,)
    uniforms: np.ndarray  # (moves, n): from 0 to 1

    def part(self, first: int, last: int) -> "EpisodeInputs":
        return EpisodeInputs(self.scenes[first:last], self.uniforms[:, first:last])

    def cut(self, parts: int) -> list["EpisodeInputs"]:
        return [self.part(first, last) for first, last in part_edges(len(self.scenes), parts)]


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
    value: Tensor  # (moves, n): by the value head, before them
    lengths: Tensor  # (n,): views taken
    head_log_counts: Tensor  # (heads, n, 7): log q(count | all views) by each head
    frame: Tensor  # (moves + 1, n): which of ``features`` a view has; NO_FRAME after the end
    features: Tensor  # (views in all, ...): by the half of the encoder that does not learn

    @property
    def log_count(self) -> Tensor:
        """(n, 7): log q(count | all views) by all heads together."""
        return mixture(self.head_log_counts)

    @property
    def acted(self) -> Tensor:
        """(n,): actions taken; a last view without one ends the longest episodes."""
        return self.lengths.clamp(max=len(self.actions))

    @property
    def taken(self) -> Tensor:
        """(moves, n): whether an action was taken."""
        return steps_taken(len(self.actions), self.acted)

    @property
    def ended(self) -> Tensor:
        """(moves, n): whether an action was the last."""
        steps = torch.arange(len(self.actions), device=self.lengths.device)
        return steps[:, None] == self.acted - 1


# --- what chance decides ---


def sample_batch(config: CountingConfig, done: int, scenes: int) -> EpisodeInputs:
    """Of the batch that begins after so many episodes; ``scenes`` are all there are."""
    count = min(config.batch_episodes, config.episodes - done)
    uniforms = stream(config.seed, "policy", 0, done).random((config.max_moves, count), np.float32)
    return EpisodeInputs(scenes_in_turn(config.seed, done, count, scenes), uniforms)


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


def sample_evaluation(config: CountingConfig, seed: int, scenes: np.ndarray) -> EpisodeInputs:
    """Of an evaluation: only the random baseline needs the numbers, always the same ones."""
    uniforms = stream(seed, "evaluation").random((config.max_moves, scenes.max() + 1), np.float32)
    return EpisodeInputs(scenes, uniforms[:, scenes])


# --- playing ---


@torch.no_grad()
def rollout(model: Model, split: Split, inputs: EpisodeInputs, greedy: bool = False) -> Trajectory:
    """Episodes of some scenes; actions are sampled, or with ``greedy`` the policy's likeliest."""
    config, device, count = model.config, model.device, len(inputs.scenes)
    moves = config.max_moves
    goals = torch.from_numpy(split.goals[inputs.scenes]).to(device)
    views = np.zeros((moves + 1, count), np.int64)
    actions = torch.full((moves, count), STOP, device=device)
    log_prob, value = torch.zeros(2, moves, count, device=device)
    lengths = torch.ones(count, dtype=torch.int64, device=device)
    frame = torch.full((moves + 1, count), NO_FRAME, device=device)
    state = torch.zeros(count, config.width, device=device)
    running, frames, features = np.arange(count), 0, []
    for t in range(moves + 1):
        pictures = torch.from_numpy(split.images[inputs.scenes[running], views[t, running]])
        features.append(model.encoder.frozen_features(pictures.to(device)))
        now = torch.from_numpy(running).to(device)
        frame[t, now] = torch.arange(frames, frames + len(now), device=device)
        frames += len(now)
        encoded = model.encoder.encode(features[-1], goals[now], None)
        state[now] = model.next_state(encoded, goals[now], state[now])
        if t == moves:
            break
        outputs = model.outputs(state[now])
        uniforms = torch.from_numpy(inputs.uniforms[t, running]).to(device)
        action = sample_actions(config.behaviour_policy, outputs, uniforms, greedy)
        actions[t, now], value[t, now] = action, outputs.value
        log_prob[t, now] = outputs.log_policy.gather(1, action[:, None])[:, 0]
        chosen = action.cpu().numpy()
        views[t + 1 :, running] = (views[t, running] + TURN[chosen]) % VIEWS
        running = running[chosen != STOP]
        lengths[torch.from_numpy(running).to(device)] += 1
        if len(running) == 0:
            break
    return Trajectory(
        inputs.scenes, goals, views, actions, log_prob, value, lengths,
        model.head_log_counts(state), frame, torch.cat(features),
    )  # fmt: skip


def sample_actions(
    behaviour_policy: str, outputs: Outputs, uniforms: Tensor, greedy: bool
) -> Tensor:
    """An action for each of some episodes, (n,)."""
    if behaviour_policy == "stay":
        return torch.full_like(uniforms, STOP, dtype=torch.int64)
    if behaviour_policy == "sweep":
        return torch.full_like(uniforms, RIGHT, dtype=torch.int64)
    if behaviour_policy == "random":
        return (ACTIONS * uniforms).to(torch.int64)
    if greedy:
        return outputs.log_policy.argmax(dim=1)
    thresholds = outputs.log_policy.exp().cumsum(dim=1)[:, :-1]
    return (uniforms[:, None] >= thresholds).sum(dim=1)


def join(parts: Sequence[Trajectory]) -> Trajectory:
    """Episodes of several parts as one."""
    starts = np.cumsum([0, *(len(part.features) for part in parts)])
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
        torch.cat([part.head_log_counts for part in parts], dim=1),
        torch.cat(frames, dim=1),
        torch.cat([part.features for part in parts]),
    )


# --- the same views once more ---


def states_of(
    model: Model, trajectory: Trajectory, chosen: Tensor, generator: torch.Generator | None
) -> Tensor:
    """The hidden states of chosen episodes, (steps, n, width), with their gradient.

    As many steps as the longest of them has; dropout by the generator.
    """
    steps = int(trajectory.lengths[chosen].max())
    frame = trajectory.frame[:steps, chosen]
    goals, taken = trajectory.goals[chosen], frame != NO_FRAME
    features = trajectory.features[frame[taken]]
    encoded = model.encoder.encode(features, goals.expand(frame.shape)[taken], generator)
    return model.states(at_their_steps(encoded, frame), goals)


@torch.no_grad()
def oracle_log_count(oracle: Model, split: Split, trajectory: Trajectory) -> Tensor:
    """What a frozen model makes of the same views, after the last of them: (n, 7)."""
    frame = trajectory.frame
    step, episode = (frame != NO_FRAME).nonzero(as_tuple=True)
    step_of, episode_of = step.cpu().numpy(), episode.cpu().numpy()
    views = trajectory.views[step_of, episode_of]
    pictures = torch.from_numpy(split.images[trajectory.scenes[episode_of], views])
    features = oracle.encoder.frozen_features(pictures.to(frame.device))
    encoded = oracle.encoder.encode(features, trajectory.goals[episode], None)
    states = oracle.states(at_their_steps(encoded, frame), trajectory.goals)
    return oracle.log_count(at_last_step(states, trajectory.lengths))


def at_their_steps(encoded: Tensor, frame: Tensor) -> Tensor:
    """Vectors of the views that were taken, at their places: (steps, n, width), zero elsewhere."""
    room = encoded.new_zeros(*frame.shape, encoded.shape[1])
    return room.index_put(tuple((frame != NO_FRAME).nonzero(as_tuple=True)), encoded)
