"""Two heads on the hidden state of digits, and a bonus for their disagreement."""

import json

import pytest
import torch

from irrl.ensembles import disagreement
from irrl.errors import UserError
from irrl.nn.heads import mixture
from irrl.tasks import open_run
from irrl.tasks.digits.gradient import measure_gradient
from irrl.tasks.digits.losses import policy_loss, returns_of, with_bonus
from irrl.tasks.digits.noise import measure_noise
from tests.helpers.runs import content, run_in
from tests.helpers.together import ends_of, smoke_flags, start_by_hand
from tests.tasks.digits.scene import MODELS, Scene, names, touched

BONUS = {"bonus": "disagreement", "bonus_weight": 7.0}


@pytest.fixture(scope="module")
def bonus_run(mnist_cache, tmp_path_factory):
    return run_in(tmp_path_factory.mktemp("bonus") / "run", "digits", **BONUS)


def heads_of(scene):
    return scene.learner.discriminator.head_log_probs(scene.states)


@pytest.mark.parametrize("settings", MODELS)
@pytest.mark.parametrize("kind", ["log", "quadratic"])
def test_the_bonus_is_a_potential_beside_the_reward(mnist_cache, settings, kind):
    scene = Scene(**settings, **BONUS, bonus_kind=kind)
    heads, config = heads_of(scene), scene.config
    assert scene.learner.discriminator.classifier.weight.shape[0] == 20
    gaps = 7.0 * disagreement(heads, kind)
    if config.stops:
        gaps = gaps * config.step_discount ** torch.arange(1, len(gaps) + 1)[:, None]
    paid = with_bonus(config, scene.potential(), heads)
    torch.testing.assert_close(paid, scene.potential() + gaps)
    assert gaps.min() > 0, "heads begin apart"
    expected = torch.zeros(config.glimpses - 1, len(scene.labels))
    both, alone, bonus = (
        returns_of(config, scene.trajectory, x, expected) for x in (paid, scene.potential(), gaps)
    )
    torch.testing.assert_close(both, alone + bonus)


@pytest.mark.parametrize("settings", MODELS)
def test_the_bonus_carries_no_gradient(mnist_cache, settings):
    scene = Scene(**settings, **BONUS)
    paid = with_bonus(scene.config, scene.potential(), heads_of(scene))
    policy_loss(scene.config, scene.learner.policy, scene.trajectory, paid, 0.0).backward()
    assert touched(scene.learner.discriminator) == set()
    assert touched(scene.learner.policy) == names(scene.learner.policy)


def test_without_a_bonus_nothing_is_added(mnist_cache):
    scene = Scene(ensemble_size=2)
    potential = scene.potential()
    assert with_bonus(scene.config, potential, heads_of(scene)) is potential
    torch.testing.assert_close(scene.log_probs.exp(), heads_of(scene).exp().mean(dim=0))


def test_a_run_tells_how_much_heads_disagree(bonus_run):
    rows = bonus_run.rows()
    assert all(row["ensemble_disagreement"] > 0 for row in rows)
    assert rows[-1]["train_bonus_mean"] > 0
    summary = json.loads((bonus_run.folder / "summary.json").read_text())
    assert summary["test_ensemble_disagreement"] > 0


def test_other_verbs_read_the_mixture(mnist_cache, bonus_run, digits_run, irrl):
    found = json.loads(irrl("eval", bonus_run.folder, "--json").stdout)
    assert found["test_accuracy_percent"] == bonus_run.summary()["test_accuracy_percent"]
    played = irrl("play", bonus_run.folder, "--episodes", "2", "--output", "sheet.png")
    assert played.returncode == 0, played.stderr
    assert len(measure_noise(open_run(bonus_run.folder), digits_run, 20, 2)) == 2
    scene = Scene(oracle=str(bonus_run.folder))
    oracle = scene.learner.oracle
    assert oracle.config.heads == 2 and scene.config.heads == 1
    states = torch.zeros(1, oracle.classifier.in_features)
    torch.testing.assert_close(oracle.log_probs(states), mixture(oracle.head_log_probs(states)))


def test_two_processes_do_what_two_threads_do(mnist_cache, tmp_path):
    settings = {"train_images": 257, "epochs": 2, "model": "dt-ram", **BONUS}
    flags = ["train", "digits", *smoke_flags(**settings), "--out"]
    codes, told = ends_of(start_by_hand([*flags, tmp_path / "two"], [*flags, tmp_path / "none"]))
    assert codes == [0, 0], told
    alone = run_in(tmp_path / "alone", "digits", **settings)
    assert content(tmp_path / "two") == content(alone.folder)


def test_the_gradient_of_a_run_with_a_bonus_is_refused(bonus_run, digits_run):
    with pytest.raises(UserError, match="this run has a bonus"):
        measure_gradient(open_run(bonus_run.folder), digits_run, ("linear",), None, 1, print)
