"""Episodes against a slow twin that obeys the rules of the Gymnasium environment."""

import numpy as np
import pytest
import torch

from irrl.errors import UserError
from irrl.tasks import make_config
from irrl.tasks.counting.data import load_split
from irrl.tasks.counting.env import MOVES, ROTATE_LEFT, ROTATE_RIGHT
from irrl.tasks.counting.env import STOP as ENV_STOP
from irrl.tasks.counting.evaluate import saw_all_goals
from irrl.tasks.counting.model import initial_model
from irrl.tasks.counting.rollout import (
    LEFT,
    NO_FRAME,
    RIGHT,
    STOP,
    join,
    oracle_log_count,
    rollout,
    sample_batch,
    sample_evaluation,
    scenes_in_turn,
    states_of,
)
from irrl.tasks.counting.scene import is_seen

CPU = torch.device("cpu")


def config_of(scenes_folder, **settings):
    settings = {"initial_policy": 1.0, **settings}
    return make_config("counting", "smoke", scenes=str(scenes_folder), **settings)


def walk(config, greedy=False, count=24):
    model, split = initial_model(config, CPU), load_split(config, "train")
    inputs = sample_batch(config, 0, len(split)).part(0, count)
    return model, split, inputs, rollout(model, split, inputs, greedy)


def one_episode(model, split, scene, uniforms, greedy):
    """Step by step, as the environment does it: 30 degrees a turn, six turns at most."""
    config = model.config
    view = moves = 0
    state = torch.zeros(1, config.width)
    views, actions, log_probs, values = [0], [], [], []
    while True:
        picture = torch.from_numpy(np.array(split.images[scene, view]))[None]
        goal = torch.tensor([split.goals[scene]])
        vector = model.encoder.encode(model.encoder.frozen_features(picture), goal, None)
        state = model.next_state(vector, goal, state)
        if moves == MOVES:
            break
        outputs = model.outputs(state)
        policy = outputs.log_policy[0].exp()
        if config.behaviour_policy == "learned":
            heap = 0.0
            for action in range(3):
                heap += policy[action].item()
                if uniforms[moves] < heap:
                    break
            action = int(policy.argmax()) if greedy else action
        else:
            action = {
                "stay": ENV_STOP,
                "sweep": ROTATE_RIGHT,
                "random": int(3 * uniforms[moves]),
            }[config.behaviour_policy]
        actions.append(action)
        log_probs.append(policy[action].log().item())
        values.append(outputs.value.item())
        if action == ENV_STOP:
            break
        view = (view + (1 if action == ROTATE_RIGHT else -1)) % 12
        moves += 1
        views.append(view)
    return views, actions, log_probs, values, model.log_count(state)[0].tolist()


@pytest.mark.parametrize("behaviour_policy", ["learned", "stay", "random", "sweep"])
@pytest.mark.parametrize("greedy", [False, True])
def test_batches_walk_as_single_episodes_do(scenes_folder, behaviour_policy, greedy):
    model, split, inputs, found = walk(
        config_of(scenes_folder, behaviour_policy=behaviour_policy), greedy
    )
    for n, scene in enumerate(inputs.scenes):
        with torch.no_grad():
            episode = one_episode(model, split, scene, inputs.uniforms[:, n], greedy)
        views, actions, log_probs, values, log_count = episode
        length, acted = int(found.lengths[n]), int(found.acted[n])
        assert found.views[:length, n].tolist() == views
        assert found.actions[:acted, n].tolist() == actions
        assert found.log_prob[:acted, n].tolist() == pytest.approx(log_probs, abs=1e-4)
        assert found.value[:acted, n].tolist() == pytest.approx(values, abs=1e-4)
        assert found.log_count[n].tolist() == pytest.approx(log_count, abs=1e-4)
        assert found.taken[:, n].sum() == acted == len(actions)
        assert found.ended[:, n].nonzero().tolist() == [[acted - 1]]
        frames = found.frame[:, n]
        assert (frames[length:] == NO_FRAME).all()
        for view, frame in zip(views, frames.tolist(), strict=False):
            picture = torch.from_numpy(np.array(split.images[scene, view]))[None]
            assert (found.features[frame] == model.encoder.frozen_features(picture)[0]).all()


def test_actions_are_those_of_the_environment():
    assert (RIGHT, LEFT, STOP) == (ROTATE_RIGHT, ROTATE_LEFT, ENV_STOP)


def test_scripted_baselines_walk_as_named(scenes_folder):
    stay = walk(config_of(scenes_folder, behaviour_policy="stay"))[-1]
    assert (stay.lengths == 1).all() and (stay.views[0] == 0).all()
    sweep = walk(config_of(scenes_folder, behaviour_policy="sweep"))[-1]
    assert (sweep.lengths == 7).all() and (sweep.views == np.arange(7)[:, None]).all()
    random = walk(
        config_of(scenes_folder, behaviour_policy="random", batch_episodes=256), count=256
    )[-1]
    first = torch.bincount(random.actions[0], minlength=3) / 256
    assert (first - 1 / 3).abs().max() < 0.1  # three standard deviations
    assert 1.4 < (random.lengths - 1).float().mean() < 2.2  # the mean is 1.82


def test_parts_join_to_the_whole(scenes_folder):
    config = config_of(scenes_folder)
    model, split, inputs, whole = walk(config)
    parts = [rollout(model, split, inputs.part(a, b)) for a, b in ((0, 7), (7, 8), (8, 24))]
    joined = join(parts)
    for name in ("goals", "actions", "lengths"):
        assert (getattr(joined, name) == getattr(whole, name)).all()
    assert (joined.views == whole.views).all() and (joined.scenes == whole.scenes).all()
    there = whole.frame != NO_FRAME
    assert ((joined.frame != NO_FRAME) == there).all()
    assert (joined.features[joined.frame[there]] == whole.features[whole.frame[there]]).all()
    torch.testing.assert_close(joined.log_count, whole.log_count)


def test_the_same_views_once_more_give_the_same_states(scenes_folder):
    model, _, _, found = walk(config_of(scenes_folder))
    chosen = torch.tensor([5, 3, 20])
    states = states_of(model, found, chosen, None)
    assert len(states) == found.lengths[chosen].max() and states.requires_grad
    outputs = model.outputs(states)
    for n, episode in enumerate(chosen.tolist()):
        acted, length = int(found.acted[episode]), int(found.lengths[episode])
        log_prob = outputs.log_policy[range(acted), n, found.actions[:acted, episode]]
        torch.testing.assert_close(log_prob, found.log_prob[:acted, episode])
        torch.testing.assert_close(outputs.value[:acted, n], found.value[:acted, episode])
        torch.testing.assert_close(outputs.log_count[length - 1, n], found.log_count[episode])


def test_a_model_as_its_own_oracle_says_what_it_said(scenes_folder):
    model, split, _, found = walk(config_of(scenes_folder))
    torch.testing.assert_close(oracle_log_count(model, split, found), found.log_count)


def test_all_scenes_have_their_turn():
    order = scenes_in_turn(0, 0, 30, 10)
    rounds = order.reshape(3, 10)
    assert (np.sort(rounds, axis=1) == np.arange(10)).all()
    assert (rounds[0] != rounds[1]).any()
    assert (scenes_in_turn(0, 7, 16, 10) == order[7:23]).all()
    assert (scenes_in_turn(1, 0, 30, 10) != order).any()


def test_inputs_depend_on_where_they_are_and_nothing_else(scenes_folder):
    config = config_of(scenes_folder)
    one, other = sample_batch(config, 64, 64), sample_batch(config, 128, 64)
    assert (sample_batch(config, 64, 64).uniforms == one.uniforms).all()
    assert (one.uniforms != other.uniforms).any()
    assert len(sample_batch(config, config.episodes - 5, 64).scenes) == 5
    some = sample_evaluation(config, 0, np.array([1, 4]))
    assert some.uniforms.shape == (6, 2)


def test_what_was_seen(scenes_folder):
    """Against a loop over views and cubes."""
    _, split, inputs, found = walk(config_of(scenes_folder))
    founded = saw_all_goals(split.scenes, found)
    for n, number in enumerate(inputs.scenes):
        scene = split.scenes.scene(number)
        views = found.views[: int(found.lengths[n]), n]
        seen = [
            any(is_seen(split.scenes.visible[number, view, cube], scene.goal) for view in views)
            for cube in range(len(scene.kinds))
            if scene.kinds[cube] == scene.goal
        ]
        assert founded[n] == all(seen)
    assert founded[split.labels[inputs.scenes] == 0].all()
    assert 0 < founded.mean() < 1


def test_more_scenes_than_there_are(scenes_folder):
    with pytest.raises(UserError, match=r"train-scenes asks for 65 scenes, .* has 64"):
        load_split(config_of(scenes_folder, train_scenes=65), "train")
    assert len(load_split(config_of(scenes_folder, train_scenes=10), "train")) == 10
