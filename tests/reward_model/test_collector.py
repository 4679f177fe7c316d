import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from irrl.reward_model import Collector
from irrl.rewards import reward
from tests.reward_model.episodes import Plain, Stepwise, small_model

LABELS = 3
PLACES = Dict({"place": Box(-1.0, 1.0, (2,), np.float32), "door": Discrete(3, start=1)})
WAYS = [
    {"judge": judge, "pay": pay, "core": core, "varying_length": pay == "steps"}
    for judge in ("trajectory", "state", "final")
    for pay in ("end", "differences", "steps")
    for core in (("set", "gru") if judge == "trajectory" else ("set",))
    if (judge, pay) != ("final", "steps")
]
OWN = (None, Plain, Stepwise)


class Twin:
    """What the collector does, slowly: lists of observations, each judged as a whole episode."""

    def __init__(self, model, n):
        self.model, self.n = model, n
        self.reward_fn = reward(model.settings.reward)
        self.episodes = [None] * n
        self.told, self.before, self.earned = [None] * n, [0.0] * n, [0.0] * n
        self.whole = []

    def begin(self, i, observation, label):
        self.episodes[i], self.told[i], self.before[i], self.earned[i] = [observation], label, 0, 0

    def potential(self, i):
        log_probs = self.model.log_probs(stacked(self.episodes[i]))[-1]
        found = self.reward_fn(log_probs[None], np.array([self.told[i]]), self.model.log_prior())
        return float(found[0])

    def step(self, i, observation, ended, label):
        """What the action earns."""
        self.episodes[i].append(observation)
        self.told[i] = label if self.told[i] is None else self.told[i]
        paid = 0.0
        if ended or self.model.settings.pay != "end":
            potential = self.potential(i)
            differ = self.model.settings.pay == "differences"
            paid = potential - self.before[i] if differ else potential
            self.before[i] = potential
        if ended:
            self.whole.append((self.episodes[i], self.told[i]))
            self.episodes[i] = None
        return paid


def stacked(observations):
    if isinstance(observations[0], dict):
        return {name: np.stack([o[name] for o in observations]) for name in observations[0]}
    return np.stack(observations)


def stored(model):
    """All episodes that the model has, those held out among them, and their labels."""
    for store in (model.store, model.held_out):
        for n in range(len(store)):
            batch = store.episodes(np.array([n]))
            yield {k: a[: batch.lengths[0], 0] for k, a in batch.observations.items()}, batch.labels


class Shown:
    """Environments as a random generator has them: each observation is there once."""

    def __init__(self, named, n):
        self.rng, self.named, self.n = np.random.default_rng(n), named, n

    def __call__(self):
        seen = self.rng.uniform(-1.0, 1.0, (self.n, 2)).astype(np.float32)
        return {"place": seen, "door": self.rng.integers(1, 4, self.n)} if self.named else seen

    def row(self, seen, i):
        return {k: a[i] for k, a in seen.items()} if self.named else seen[i]


def mask(bits, n):
    return np.array([bool(bits >> i & 1) for i in range(n)])


OPS = st.lists(
    st.tuples(
        st.sampled_from(["step", "step", "step", "step", "step", "begin", "learn"]),
        st.integers(0, 15),  # which
        st.integers(0, 15),  # ended
        st.integers(0, 15),  # who tells its label early
        st.booleans(),  # whether what is known is told again
    ),
    min_size=5,
    max_size=30,
)


# Without shrinking: each example makes a model, and a failure is to show within seconds.
@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    way=st.sampled_from(WAYS),
    own=st.sampled_from(OWN),
    members=st.sampled_from([1, 2]),
    prior=st.sampled_from(["uniform", "counted"]),
    named=st.booleans(),
    track=st.booleans(),
    n=st.integers(1, 4),
    ops=OPS,
)
def test_it_does_what_its_slow_twin_does(way, own, members, prior, named, track, n, ops):
    """No observation is lost, none is paid twice, no label goes to another episode."""
    own = None if named else own
    model = small_model(
        LABELS, PLACES if named else Box(-1.0, 1.0, (2,), np.float32), discriminator=own,
        reward="log", held_out=0.3, ensemble=members, prior=prior, **way,
    )  # fmt: skip
    collector, twin = Collector(model, n, track), Twin(model, n)
    show, labels = Shown(named, n), np.random.default_rng(n).integers(LABELS, size=1000).tolist()
    truth = [None] * n
    handed = []

    def begin(rows, early):
        seen, told = show(), [None] * n
        for i in np.nonzero(rows)[0]:
            truth[i] = labels.pop()
            told[i] = truth[i] if early[i] else None
            twin.begin(i, show.row(seen, i), told[i])
        collector.begin(seen, told, rows)

    for what, which, ends, early, again in ops:
        which, ends, early = (mask(bits, n) for bits in (which, ends, early))
        if what == "learn":
            model.learn()
        elif what == "begin":
            begin(which, early)
        else:
            begin(which & np.array([e is None for e in twin.episodes]), early)
            seen, told, wanted, over = show(), [None] * n, np.zeros(n), []
            for i in np.nonzero(which)[0]:
                now = way["pay"] != "end" or ends[i] or again
                told[i] = truth[i] if now and (again or twin.told[i] is None) else None
                wanted[i] = twin.step(i, show.row(seen, i), bool(ends[i]), told[i])
                over += [i] if ends[i] else []
            paid = collector.step(seen, ends, told, which)
            assert paid.dtype == np.float32 and paid.shape == (n,) and paid.flags.writeable
            np.testing.assert_allclose(paid, wanted, atol=2e-4)
            twin.earned = [
                earned + float(new) for earned, new in zip(twin.earned, paid, strict=True)
            ]
            for i in over:
                if way["pay"] != "steps":  # differences add up to what the end is worth at the end
                    assert twin.earned[i] == pytest.approx(twin.before[i], abs=1e-3)
            handed.append((paid, paid.copy()))
            for i in np.nonzero(which & ~ends)[0] if collector.tracked else ():
                now = model.log_probs(stacked(twin.episodes[i]))[-1]
                np.testing.assert_allclose(collector.log_probs[i], now, atol=1e-4)
    assert all(np.array_equal(one, copy) for one, copy in handed)  # nobody wrote to them later
    assert model.episodes == len(twin.whole) == model.label_counts.sum()
    _same_episodes(model, twin.whole)


def _same_episodes(model, wanted):
    rows = [0, -1] if model.settings.judge == "final" else slice(None)
    key = "place" if "place" in model.parts else "observation"
    found = {tuple(e[key].ravel().tolist()): (e, y) for e, y in stored(model)}
    assert len(found) == len(wanted)
    for observations, label in wanted:
        whole = stacked(observations)
        whole = whole if isinstance(whole, dict) else {"observation": whole}
        kept = {name: array[rows] - (name == "door") for name, array in whole.items()}
        its, its_label = found[tuple(kept[key].ravel().tolist())]
        assert its_label == [label]
        assert all(np.array_equal(its[name], array) for name, array in kept.items())


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way.values())))
def test_without_learning_in_between_it_pays_what_whole_episodes_are_paid(way):
    model = small_model(LABELS, reward="log", **way)
    collector = Collector(model, 2)
    rng = np.random.default_rng(0)
    seen = rng.uniform(-1, 1, (40, 2, 2)).astype(np.float32)  # longer than there is room at first
    collector.begin(seen[0], [2, 1])
    paid = [collector.step(x, np.full(2, t == 38)) for t, x in enumerate(seen[1:])]
    for i, label in enumerate((2, 1)):
        wanted = model.rewards(seen[:, i], label)
        np.testing.assert_allclose(np.stack(paid)[:, i], wanted, atol=1e-4)
    assert np.abs(paid).max() > 1e-3


# --- one at a time ---


def begun(n=2, labels=(0, 1), **options):
    collector = Collector(small_model(**options), n)
    collector.begin(np.zeros((n, 2), np.float32), None if labels is None else list(labels))
    return collector


STEP = np.full((2, 2), 0.5, np.float32)
GO_ON = np.zeros(2, bool)


def state_of(collector):
    running = collector._running
    return running.lengths.tolist(), collector.labels.tolist(), collector.model.episodes


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"observations": STEP * [[1], [np.nan]]}, "'observation' holds NaN .* environment 1"),
        ({"observations": STEP[:1]}, r"'observation' has shape \(1, 2\), expected \(2, 2\)"),
        ({"observations": {"a": STEP}}, "no 'observation', only a"),
        ({"observations": [["a", "b"]] * 2}, "'observation' holds .*, no numbers"),
        ({"labels": [0, 3]}, "label 3 of environment 1 is out of range: 0..2"),
        ({"labels": [-1, None]}, "label -1 of environment 0 is out of range"),
        ({"labels": np.array([-2, 1])}, "label -2 of environment 0 is out of range"),
        ({"labels": np.array([0, 2**64 - 1], np.uint64)}, "of environment 1 is out of range"),
        ({"labels": [0, 1.0]}, "label must be a whole number, got 1.0 of environment 1"),
        ({"labels": [True, 1]}, "label must be a whole number, got True of environment 0"),
        ({"labels": ["a", 1]}, "label must be a whole number, got 'a' of environment 0"),
        ({"labels": [2, 1]}, "label of environment 0 changed within an episode, from 0 to 2"),
        ({"labels": [0, 1, 1]}, r"labels must have shape \(2,\), got \(3,\)"),
        ({"labels": 1}, "labels must have one for each environment, got 1"),
        ({"ended": False}, r"ended must be a mask of shape \(2,\)"),
        ({"ended": None}, r"ended must be a mask of shape \(2,\)"),
        ({"which": [0]}, r"which must be a mask of shape \(2,\), got int64 of shape \(1,\)"),
    ],
)
def test_what_is_refused_is_named_and_changes_nothing(changes, said):
    collector = begun()
    before = state_of(collector)
    with pytest.raises(ValueError, match=said) as caught:
        collector.step(**{"observations": STEP, "ended": GO_ON, **changes})
    assert "\n" not in str(caught.value)
    assert state_of(collector) == before
    collector.step(STEP, ~GO_ON, [0, 1])
    assert collector.model.store.steps + collector.model.held_out.steps == 4


def test_the_culprit_is_the_environment_that_acted():
    collector = begun()
    with pytest.raises(ValueError, match=r"environment 1$"):
        collector.step(STEP * np.nan, GO_ON, which=np.array([False, True]))
    collector.step(STEP * [[np.nan], [1]], GO_ON, which=np.array([False, True]))
    assert collector._running.lengths.tolist() == [1, 2]


def test_a_label_must_be_told_by_the_time_it_is_needed():
    collector = begun(labels=None)
    collector.step(STEP, GO_ON)
    with pytest.raises(ValueError, match="environment 1 told no label at the end of its episode"):
        collector.step(STEP, np.array([False, True]), [0, None])
    collector.step(STEP, np.array([False, True]), [0, 2])
    assert collector.labels.tolist() == [0, 2]
    with pytest.raises(ValueError, match="environment 0 told no label with its first step"):
        begun(labels=None, pay="differences").step(STEP, GO_ON, [None, 1])


def test_a_new_episode_may_have_another_label():
    collector = begun(labels=(0, 1))
    collector.begin(STEP, [2, None], np.array([True, False]))
    assert collector.labels.tolist() == [2, 1]
    collector.begin(STEP)
    assert collector.labels.tolist() == [-1, -1]


def test_a_step_needs_an_episode():
    collector = begun()
    collector.step(STEP, np.array([False, True]))
    with pytest.raises(ValueError, match="environment 1 has no episode under way"):
        collector.step(STEP, GO_ON)
    assert not collector.step(STEP, GO_ON, which=GO_ON).any()  # nobody acted


def test_an_episode_that_never_ends_is_refused():
    collector = begun(max_episode_steps=3)
    for _ in range(3):
        collector.step(STEP, GO_ON)
    with pytest.raises(ValueError, match="environment 0 has no end after 3 steps: give it a time"):
        collector.step(STEP, GO_ON)
    collector.begin(STEP, [0, 1], np.array([True, False]))
    with pytest.raises(ValueError, match="environment 1 has no end"):
        collector.step(STEP, GO_ON)


def test_pay_at_all_steps_is_refused_for_episodes_of_varying_length():
    collector = begun(pay="steps")
    collector.step(STEP, GO_ON)
    collector.step(STEP, np.array([True, False]))
    with pytest.raises(ValueError, match=r"\(2 and 3 steps\) pays for dawdling.*varying_length"):
        collector.step(STEP, ~GO_ON, which=np.array([False, True]))
    assert collector.model.episodes == 1
    allowed = begun(pay="steps", varying_length=True)
    allowed.step(STEP, np.array([True, False]))
    allowed.step(STEP, ~GO_ON, which=np.array([False, True]))
    assert allowed.model.episodes == 2


def test_an_evaluation_is_paid_and_keeps_its_episodes_to_itself():
    model = small_model()
    training, evaluation = Collector(model, 2), Collector(model, 2, hand_over=False)
    paid = []
    for collector in (evaluation, training):
        collector.begin(np.zeros((2, 2), np.float32), [0, 1])
        paid.append(collector.step(STEP, ~GO_ON))
        assert model.episodes == 2 * (collector is training)
    np.testing.assert_array_equal(*paid)


def test_posteriors_are_kept_only_if_asked_for():
    with pytest.raises(ValueError, match="track=True"):
        _ = begun().log_probs
    fresh = Collector(small_model(prior=[0.5, 0.25, 0.25]), 2, track=True)
    np.testing.assert_allclose(np.exp(fresh.log_probs), [[0.5, 0.25, 0.25]] * 2, rtol=1e-6)
    fresh.begin(STEP, which=np.array([True, False]))
    assert np.abs(np.exp(fresh.log_probs[0]) - [0.5, 0.25, 0.25]).max() > 1e-3
    np.testing.assert_allclose(np.exp(fresh.log_probs[1]), [0.5, 0.25, 0.25], rtol=1e-6)


def test_observations_may_be_read_only_views_turned_around():
    plain, odd = begun(pay="steps"), begun(pay="steps")
    turned = np.ascontiguousarray(STEP[::-1, ::-1])[::-1, ::-1]
    turned.flags.writeable = False
    np.testing.assert_array_equal(plain.step(STEP, GO_ON), odd.step(turned, GO_ON))
