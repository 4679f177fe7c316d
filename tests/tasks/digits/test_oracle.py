"""A frozen discriminator that gives the rewards."""

import shutil

import pytest
import torch

from irrl.errors import UserError
from irrl.tasks.digits.losses import oracle_log_probs, reward_potential
from irrl.tasks.digits.rollout import rollout
from irrl.tasks.digits.train import learn_batch
from tests.helpers.runs import run_in
from tests.tasks.digits.scene import Scene


def test_an_oracle_reads_the_same_glimpses(mnist_cache, digits_run):
    scene = Scene(oracle=str(digits_run))
    oracle = scene.learner.oracle
    found = oracle_log_probs(scene.config, oracle, scene.trajectory)
    own = rollout(oracle, scene.learner.policy, scene.images, scene.numbers.first, 1)
    torch.testing.assert_close(found[0], oracle.log_probs(own.cache.states)[0])
    assert not any(p.requires_grad for p in oracle.parameters())


def test_an_oracle_rewards_and_stays_as_it_is(mnist_cache, digits_run):
    scene = Scene(oracle=str(digits_run))
    before = {n: p.clone() for n, p in scene.learner.oracle.named_parameters()}
    online = {n: p.clone() for n, p in scene.learner.discriminator.named_parameters()}
    learn_batch(scene.config, scene.learner, scene.parts, 0.0)
    assert all((before[n] == p).all() for n, p in scene.learner.oracle.named_parameters())
    assert all((online[n] != p).any() for n, p in scene.learner.discriminator.named_parameters())


@pytest.mark.parametrize("setting", ["glimpse_size", "glimpses", "canvas_size", "scales"])
def test_an_oracle_that_sees_otherwise_is_refused(mnist_cache, digits_run, setting):
    other = {"glimpse_size": 5, "glimpses": 7, "canvas_size": 64, "scales": 2}[setting]
    with pytest.raises(UserError, match=f"cannot judge this run: its {setting.replace('_', '-')}"):
        Scene(oracle=str(digits_run), **{setting: other})


def test_an_oracle_of_another_task_is_refused(mnist_cache, smoke_run):
    with pytest.raises(UserError, match="is a run of skills, not of digits"):
        Scene(oracle=str(smoke_run))


def test_the_policy_learns_from_the_oracle_and_the_discriminator_from_the_label(
    mnist_cache, digits_run
):
    gradients = []
    for oracle in (None, str(digits_run)):
        scene = Scene(oracle=oracle)
        learn_batch(scene.config, scene.learner, scene.parts, 0.0)
        gradients.append([[p.grad for p in model.parameters()] for model in scene.learner[:2]])
    (same, by_online), (still_same, by_oracle) = gradients
    for a, b in zip(same, still_same, strict=True):
        torch.testing.assert_close(a, b)
    assert all((a != b).any() for a, b in zip(by_online, by_oracle, strict=True))


def test_the_rewards_that_are_logged_are_those_of_the_oracle(mnist_cache, digits_run):
    scene = Scene(oracle=str(digits_run), parts=1)
    (ends,) = learn_batch(scene.config, scene.learner, scene.parts, 0.0)
    fresh = Scene(oracle=str(digits_run), parts=1)
    judged_so = oracle_log_probs(fresh.config, fresh.learner.oracle, fresh.trajectory)
    expected = reward_potential(fresh.config, judged_so, fresh.labels)[-1]
    torch.testing.assert_close(ends.rewards, expected)


def test_an_oracle_taught_at_the_end_cannot_judge_each_glimpse(mnist_cache, tmp_path):
    run_in(tmp_path / "late", "digits", supervision="last", epochs=1)
    with pytest.raises(UserError, match="taught after the last glimpse only"):
        Scene(oracle=str(tmp_path / "late"))
    Scene(oracle=str(tmp_path / "late"), credit="final")


def test_an_oracle_must_be_finished(mnist_cache, digits_run, tmp_path):
    folder = shutil.copytree(digits_run, tmp_path / "half")
    (folder / "summary.json").unlink()
    with pytest.raises(UserError, match="is not finished"):
        Scene(oracle=str(folder))
