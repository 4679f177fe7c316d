"""Does a bounded reward, or a judge that goes on answering, keep the gold from falling?

    python experiments/language/sentiment.py OUT --rewards score linear log --seeds 0 1

SmolLM2-135M continues the beginnings of reviews; the judge, and the gold, is vaderSentiment. A
preference model learns from comparisons of the first policy's completions; from then on it is
frozen, or learns on from comparisons of what the policy writes. GRPO of TRL trains the last layers.
Each run writes OUT/REWARD-KIND-SEED.json with a curve: gold, KL from the first policy in nats for a
completion, score; one that is there is left alone. Predictions and cost: predictions.md.
"""

import argparse
import copy
import functools
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}

import numpy as np
import torch
from datasets import Dataset
from transformers import TrainerCallback, set_seed
from trl import GRPOConfig, GRPOTrainer

import irrl
from irrl.adapters.language import Embedder, sentiment, smollm2, vader
from irrl.adapters.trl import PreferenceReward

THINGS = ["film", "hotel", "book", "restaurant", "concert", "phone", "game", "journey"]
BEGINNINGS = [
    "The {} I saw last week was", "My review of this {}: it", "When we tried the {}, we felt",
    "To be honest, the {} turned out",
]  # fmt: skip
PROMPTS = [beginning.format(thing) for beginning in BEGINNINGS for thing in THINGS]
TOKENS, GENERATIONS, REFERENCES = 20, 8, 4


@torch.no_grad()
def sample(policy, tokenizer, prompts: list[str]) -> tuple[torch.Tensor, torch.Tensor, list[str]]:
    """Tokens with their prompts, which of them are the completion's, and the completions."""
    given = tokenizer(prompts, return_tensors="pt", padding=True, padding_side="left")
    ids = policy.generate(
        **given, do_sample=True, max_new_tokens=TOKENS, pad_token_id=tokenizer.pad_token_id
    )
    start = given["input_ids"].shape[1]
    written = ids[:, start:]
    ended = (written == tokenizer.eos_token_id).long().cumsum(dim=1)
    mask = torch.zeros_like(ids, dtype=torch.bool)
    mask[:, start:] = (ended - (written == tokenizer.eos_token_id).long()) == 0
    return ids, mask, tokenizer.batch_decode(written, skip_special_tokens=True)


@torch.no_grad()
def kl(policy, first, ids: torch.Tensor, mask: torch.Tensor, pad: int) -> float:
    """Mean over completions of log policy - log first policy, in nats."""
    there = (ids != pad) | mask
    of = []
    for model in (policy, first):
        logits = model(input_ids=ids, attention_mask=there.long()).logits[:, :-1].float()
        each = torch.log_softmax(logits, dim=-1).gather(-1, ids[:, 1:, None])[..., 0]
        of.append((each * mask[:, 1:]).sum(dim=1))
    return float((of[0] - of[1]).mean())


class Curve(TrainerCallback):
    """Looks at the policy now and then, with chance of its own."""

    def __init__(self, look, every: int) -> None:
        self.look, self.every, self.points = look, every, []

    def on_train_begin(self, args, state, control, **given):
        self.points.append({"step": 0, **self.look(given["model"])})

    def on_step_end(self, args, state, control, **given):
        if state.global_step % self.every == 0:
            self.points.append({"step": state.global_step, **self.look(given["model"])})
            print(self.points[-1], flush=True)


class Beginning(NamedTuple):
    """What all runs of a seed begin with."""

    seed: int
    first: Any  # the first policy, frozen
    tokenizer: Any
    embed: Callable[[list[str], list[str]], np.ndarray]
    space: Any  # of its features
    compared: list[tuple[list[str], list[str]]]  # prompts and completions of each round beforehand
    references: list[list[str]]  # of each prompt


def begin(seed: int, rounds: int) -> Beginning:
    set_seed(seed)
    first, tokenizer = smollm2()
    first.requires_grad_(False).eval()
    features = Embedder(first, tokenizer)
    prompts = [p for p in PROMPTS for _ in range(4)]
    compared = [(prompts, sample(first, tokenizer, prompts)[2]) for _ in range(rounds)]
    written = sample(first, tokenizer, [p for p in PROMPTS for _ in range(REFERENCES)])[2]
    references = np.reshape(written, (-1, REFERENCES)).tolist()
    return Beginning(
        seed, first, tokenizer, remembering(features), features.space, compared, references
    )


def remembering(embed: Embedder) -> Callable[[list[str], list[str]], np.ndarray]:
    """The same features; a list of texts that was seen is not read again."""
    seen = functools.cache(lambda prompts, texts: embed(list(prompts), list(texts)))
    return lambda prompts, texts: seen(tuple(prompts), tuple(texts))


def run(reward_name: str, kind: str, begun: Beginning, options: argparse.Namespace) -> dict:
    before, seed = time.process_time(), begun.seed
    set_seed(seed)
    first, tokenizer, gold = begun.first, begun.tokenizer, sentiment()
    policy = copy.deepcopy(first)
    for layer in policy.model.layers[-options.layers :]:
        layer.requires_grad_(True)
    model = irrl.PreferenceModel(
        begun.space, reward=reward_name, seed=seed, width=64, samples_per_comparison=30,
        weight_decay=1e-4,
    )  # fmt: skip
    reward = PreferenceReward(model, begun.embed, vader(), pairs_per_prompt=2)
    for prompts, texts in begun.compared:
        reward.learn_from(prompts, texts)
    beforehand = model.health()
    if kind == "frozen":
        reward.judge = None

    def look(policy) -> dict[str, float]:
        was_training = policy.training
        policy.eval()
        with torch.random.fork_rng([]):
            torch.manual_seed(1_000 + seed)
            ids, mask, texts = sample(policy, tokenizer, PROMPTS * options.looks)
            found = {
                "gold": float(gold(texts).mean()),
                "kl": kl(policy, first, ids, mask, tokenizer.pad_token_id),
                "score": float(model.scores(begun.embed(PROMPTS * options.looks, texts)).mean()),
            }
        policy.train(was_training)
        return found

    curve = Curve(look, options.every)
    settings = GRPOConfig(
        str(options.out / "trainer"), max_steps=options.steps, num_generations=GENERATIONS,
        per_device_train_batch_size=2 * GENERATIONS, max_completion_length=TOKENS, beta=0.0,
        learning_rate=options.learning_rate, lr_scheduler_type="constant", seed=seed,
        save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True, logging_steps=10,
        gradient_checkpointing=False,  # which would run the frozen layers twice
    )  # fmt: skip
    data = Dataset.from_dict({"prompt": PROMPTS, "references": begun.references})
    trainer = GRPOTrainer(
        policy, reward, args=settings, train_dataset=data, processing_class=tokenizer,
        callbacks=[reward.callback(), curve],
    )  # fmt: skip
    trainer.train()
    return {
        "reward": reward_name, "kind": kind, "seed": seed, "curve": curve.points,
        "comparisons": model.comparisons, "beforehand": beforehand, "health": model.health(),
        "cpu_seconds": round(time.process_time() - before),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--rewards", nargs="+", default=["score", "linear", "log"])
    parser.add_argument("--kinds", nargs="+", default=["frozen", "co-trained"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--steps", type=int, default=48, help="the second half is twice as long")
    parser.add_argument("--every", type=int, default=12)
    parser.add_argument("--before", type=int, default=4, help="rounds of comparisons beforehand")
    parser.add_argument("--looks", type=int, default=2, help="completions of each prompt")
    parser.add_argument("--layers", type=int, default=4, help="that learn, counted from the end")
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    options = parser.parse_args()
    torch.set_num_threads(1)
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    options.out.mkdir(parents=True, exist_ok=True)
    for seed in options.seeds:
        begun = begin(seed, options.before)
        for reward in options.rewards:
            for kind in options.kinds:
                path = options.out / f"{reward}-{kind}-{seed}.json"
                if path.exists():
                    continue
                found = run(reward, kind, begun, options)
                given = {name: v for name, v in vars(options).items() if name != "out"}
                found |= {"settings": given, "commit": head.strip()}
                path.write_text(json.dumps(found, indent=1) + "\n")
                last = found["curve"][-1]
                print(path.stem, json.dumps(last), np.round(found["cpu_seconds"] / 60, 1), "min")


if __name__ == "__main__":
    main()
