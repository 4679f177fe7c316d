import doctest
from itertools import pairwise

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete

import irrl
from irrl.preference_model import PreferenceModel, comparisons, health, model, settings
from irrl.preference_model.scorer import Scorer
from irrl.preferences import preference
from irrl.reward_model.store import Batch
from tests.helpers.command import REPOSITORY

SPACE = Box(-1.0, 1.0, (2,))
ONE = torch.nn.Linear(2, 1)
QUICK = {"width": 16, "samples_per_comparison": 30, "batch_size": 32, "references": 8}


def segment(random, steps=5):
    return random.uniform(-1.0, 1.0, (steps, 2)).astype(np.float32)


def worth(things):
    return float(things[:, 0].sum())  # what the judge likes


def taught(count=120, errors=0.0, **options):
    """A model that learned from so many comparisons, and its source of segments."""
    found = PreferenceModel(SPACE, **{**QUICK, **options})
    random = np.random.default_rng(7)
    for _ in range(count):
        first, second = segment(random), segment(random)
        better = float(worth(first) > worth(second))
        found.add(first, second, 1.0 - better if random.random() < errors else better)
    found.learn()
    return found, random


@pytest.mark.parametrize("module", [model, health])
def test_examples_run(module):
    tried = doctest.testmod(module)
    assert tried.failed == 0 and tried.attempted > 0


def test_it_learns_what_the_judge_likes():
    found, random = taught(count=300)
    pairs = [(segment(random), segment(random)) for _ in range(200)]
    right = [
        (found.scores(a).sum() > found.scores(b).sum()) == (worth(a) > worth(b)) for a, b in pairs
    ]
    assert np.mean(right) > 0.85
    steps = segment(random, 200)
    assert np.corrcoef(found.rewards(steps), steps[:, 0])[0, 1] > 0.8


def test_errors_of_the_judge_are_outvoted():
    found, random = taught(count=300, errors=0.2, judge_error=0.4)
    steps = segment(random, 200)
    assert np.corrcoef(found.rewards(steps), steps[:, 0])[0, 1] > 0.6


def test_every_reward_is_paid_on_the_two_label_posterior():
    """`linear` is PAR less 1/2, `log` is LSC plus log 2, `score` what is usually paid."""
    by = {
        "linear": lambda ahead: 1 / (1 + np.exp(-ahead)) - 0.5,
        "f-chi2": lambda ahead: np.tanh(ahead / 2),
        "log": lambda ahead: np.log(1 / (1 + np.exp(-ahead))) + np.log(2.0),
        "score": lambda ahead: ahead,
    }
    for name, formula in by.items():
        found, random = taught(count=20, reward=name)
        steps, other = segment(random, 6), segment(random, 6)
        ahead = found.scores(steps) - found.scores(other)
        got = found.rewards(steps, references=other[:, None])
        np.testing.assert_allclose(got, formula(ahead), atol=1e-5)


def test_stored_references_are_a_mean_of_probabilities():
    found, random = taught(count=20)
    steps = segment(random, 4)
    theirs = np.tile(found.reference_scores(), (4, 1))
    assert theirs.shape == (4, 8)
    expected = preference(found.scores(steps), theirs)
    np.testing.assert_allclose(found.log_preferences(steps), expected, atol=1e-5)
    np.testing.assert_allclose(found.rewards(steps), np.exp(expected[:, 1]) - 0.5, atol=1e-5)


@pytest.mark.parametrize("name", irrl.REWARDS)
def test_any_reward_of_the_library_pays(name):
    found, random = taught(count=4, reward=name)
    assert np.isfinite(found.rewards(segment(random, 3))).all()
    assert found.settings.ensemble == (2 if irrl.REWARDS[name].needs_ensemble else 1)


def test_segments_of_any_length_and_padding_does_not_count():
    scorer = Scorer(model.as_parts(SPACE), settings.PreferenceSettings(width=8))
    seen = {"observation": np.random.default_rng(0).normal(size=(4, 2, 2)).astype(np.float32)}
    whole = scorer.of_segments(Batch(seen, np.array([4, 2]), np.zeros(2, int)))
    seen["observation"][2:, 1] = 99.0
    again = scorer.of_segments(Batch(seen, np.array([4, 2]), np.zeros(2, int)))
    torch.testing.assert_close(whole, again)


def test_the_loss_is_that_of_bradley_and_terry():
    for error in (0.0, 0.2):
        found = PreferenceModel(SPACE, judge_error=error, held_out=0.0, **QUICK)
        random = np.random.default_rng(0)
        first, second, third = (segment(random, n) for n in (3, 4, 5))
        found.add(first, second, 1)
        found.add(second, third, 0.5)
        scores = [found.scores(s).sum() for s in (first, second, third)]
        wins = [error / 2 + (1 - error) / (1 + np.exp(b - a)) for a, b in pairwise(scores)]
        expected = [-np.log(wins[0]), -(np.log(wins[1]) + np.log(1 - wins[1])) / 2]
        got = found.scorer.learn(found.store.pairs(np.array([0, 1])))
        assert got == pytest.approx(np.mean(expected), abs=1e-5)


def test_actions_and_dictionaries_are_scored():
    space = Dict({"observation": Dict({"place": SPACE}), "action": Discrete(3)})
    found = PreferenceModel(space, **QUICK)
    random = np.random.default_rng(0)
    steps = [
        {"observation": {"place": segment(random)}, "action": random.integers(3, size=5)}
        for _ in range(2)
    ]
    found.add(*steps, better=0)
    found.learn()
    assert found.rewards(steps[0]).shape == (5,)


def test_a_network_of_ones_own():
    found, random = taught(count=30, network=lambda: torch.nn.Linear(2, 1), ensemble=2)
    assert found.rewards(segment(random, 3)).shape == (3,)


def test_comparisons_are_kept_and_some_are_held_out():
    found, _ = taught(count=200, store=50, held_out=0.25)
    assert len(found.store) == 50 and 25 < len(found.held_out) < 75
    assert found.comparisons == 200 and found.new == 0
    assert found.learn() == {}  # nothing is new


def test_health_tells_a_model_that_knows_from_one_that_does_not():
    knows, _ = taught(count=300, held_out=0.3)
    told = knows.health()
    assert told["preference_accuracy_percent"] > 80 and told["preference_log_loss"] < 0.6
    assert 0 <= told["preference_calibration_error"] <= 1 and told["score_std"] > 0
    assert told["comparisons"] == 300 and told["train_preference_accuracy_percent"] > 80
    guesses, _ = taught(count=300, held_out=0.3, errors=0.5)
    told = guesses.health()
    assert told["preference_accuracy_percent"] < 70 and told["preference_log_loss"] > 0.6
    assert PreferenceModel(SPACE).health() == {}


def test_drift_counts_a_move_of_all_scores():
    assert health.drift_of(np.zeros(0), np.zeros(0)) == 0.0
    found, random = taught(count=50)
    assert found.updates == 1
    for _ in range(50):
        found.add(segment(random), segment(random), 1)
    assert found.learn()["score_drift"] > 0


# --- what is refused ---


def bad(**given):
    random = np.random.default_rng(0)
    found = PreferenceModel(SPACE)
    pair = {"first": segment(random), "second": segment(random), "better": 1, **given}
    with pytest.raises(ValueError) as error:
        found.add(**pair)
    assert found.comparisons == len(found.store) == len(found.held_out) == 0
    return str(error.value)


def test_bad_comparisons_are_named_and_nothing_is_kept():
    same = np.zeros((3, 2), np.float32)
    assert "must compare two different things" in bad(first=same, second=same.copy())
    for better in (None, "first", 2, 0.3, float("nan"), [1]):
        said = bad(better=better)
        assert said.startswith("better must be 1 where") and "\n" not in said
    assert "holds NaN" in bad(second=np.full((3, 2), np.nan))
    assert "has shape (3, 4), expected (3, 2)" in bad(first=np.zeros((3, 4)))
    assert "got none" in bad(first=np.zeros((0, 2)))


def test_rewards_need_references():
    found = PreferenceModel(SPACE)
    with pytest.raises(ValueError, match="no references to compare with: add comparisons"):
        found.rewards(np.zeros((3, 2)))
    for none in (np.zeros((3, 0, 2)), np.zeros(3)):
        with pytest.raises(ValueError, match="references must hold at least one for each step"):
            found.rewards(np.zeros((3, 2)), none)
    with pytest.raises(ValueError, match=r"shape \(4, 1, 2\), expected \(3, 1, 2\)"):
        found.rewards(np.zeros((3, 2)), np.zeros((4, 1, 2)))
    assert found.rewards(np.zeros((3, 2)), np.zeros((3, 1, 2))).tolist() == [0.0, 0.0, 0.0]


def test_scores_that_are_no_numbers_are_refused():
    found, random = taught(count=5)
    with torch.no_grad():
        next(found.scorer.members.parameters()).fill_(float("nan"))
    with pytest.raises(ValueError, match="scores are not finite"):
        found.rewards(segment(random))
    found.add(segment(random), segment(random), 1)
    with pytest.raises(ValueError, match=r"scores (are not finite|diverged)"):
        found.learn()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward": "liner"}, "unknown reward 'liner'. Did you mean 'linear'"),
        ({"reward": None}, "unknown reward None"),
        ({"reward": "disdain", "ensemble": 1}, "ensemble must be 2 or more"),
        ({"references": 0}, "references must be a whole number, at least 1"),
        ({"judge_error": 1.0}, "judge_error must be at least 0 and below 1"),
        ({"held_out": -0.1}, "held_out must be"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"pixels": "large"}, "unknown pixels 'large'"),
        ({"normalise": 1}, "normalise must be True or False"),
        ({"widht": 3}, "unknown setting of a preference model 'widht'. Did you mean 'width'"),
        ({"network": torch.nn.Linear(2, 1)}, "network must be a function that makes"),
        ({"network": lambda: 3}, "network must be a function that makes"),
        ({"network": lambda: torch.nn.Linear(2, 3)}, r"got \(2, 3, 3\) where \(2, 3, 1\)"),
        ({"network": lambda: torch.nn.Linear(5, 1)}, "network cannot read observations"),
        ({"network": torch.nn.Identity}, r"got \(2, 3, 2\) where"),
        ({"network": lambda: ONE, "ensemble": 2}, "network makes the same module again and again"),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        PreferenceModel(SPACE, **options)


def test_a_network_of_ones_own_is_shown_numbers_whether_normalised_or_not():
    seen = []

    class Net(torch.nn.Linear):
        def forward(self, x):
            seen.append(x.dtype)
            return super().forward(x.flatten(2))

    for normalise in (True, False):
        pictures = Box(0, 255, (2, 2), np.uint8)
        PreferenceModel(pictures, lambda: Net(4, 1), normalise=normalise)
    assert seen == [torch.float32] * 2


def test_a_network_can_be_made_where_no_gradients_are_taken():
    with torch.no_grad():
        made = PreferenceModel(SPACE, lambda: torch.nn.Linear(2, 1), **QUICK)
    assert made.scorer.is_own


def test_a_comparison_store_refuses_what_it_never_wrote():
    store = comparisons.ComparisonStore(model.as_parts(SPACE), 10)
    random = np.random.default_rng(0)
    store.add({"observation": segment(random)}, {"observation": segment(random)}, 1.0)
    arrays = store.to_arrays()
    arrays["labels"] = np.array([2, 2])
    with pytest.raises(ValueError, match="their answers do not fit"):
        store.restore(arrays)


def test_the_first_lines_of_the_documentation_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (REPOSITORY / "docs" / "preferences.md").read_text()
    exec(text.split("```python\n")[1].split("```")[0], {})
    assert (tmp_path / "preferences.safetensors").is_file()
