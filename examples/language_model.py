"""A language model learns to be friendly: TRL's GRPO, paid by comparisons of a judge.

A judge (vaderSentiment) says which of two continuations is friendlier; the preference model learns
that from features of a frozen copy. Without `--model smollm2` the language model is a tiny one that
knows few words. Needs `pip install 'irrl[rlhf]'`.

python examples/language_model.py [STEPS] [--model smollm2]
"""

import copy
import os
import sys

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
from trl import GRPOConfig, GRPOTrainer

import irrl
from irrl.adapters.language import Embedder, sentiment, smollm2, vader
from irrl.adapters.trl import PreferenceReward

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 200
PROMPTS = ["the film was", "it was a", "the day was", "and it was", "the film and the day was"]


def tiny():
    words = ["<pad>", "<end>", "good", "bad", *sorted(set(" ".join(PROMPTS).split()))]
    known = Tokenizer(models.WordLevel({w: n for n, w in enumerate(words)}, unk_token="<end>"))
    known.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    config = LlamaConfig(vocab_size=len(words), hidden_size=32, intermediate_size=64,
                         num_hidden_layers=2, num_attention_heads=2)  # fmt: skip
    special = {"pad_token": "<pad>", "eos_token": "<end>", "unk_token": "<end>"}
    set_seed(0)
    return LlamaForCausalLM(config), PreTrainedTokenizerFast(tokenizer_object=known, **special)


policy, tokenizer = smollm2() if "smollm2" in sys.argv else tiny()
embed = Embedder(copy.deepcopy(policy).requires_grad_(False), tokenizer)
model = irrl.PreferenceModel(embed.space, reward="linear")
reward = PreferenceReward(model, embed, judge=vader(), pairs_per_prompt=2)
said, friendly = [], sentiment()


def gold(completions, **_):
    """What the judge would say, for us to see: it has no weight in the reward."""
    said.append(float(friendly(completions).mean()))
    return [0.0] * len(completions)


settings = GRPOConfig("language_model", max_steps=STEPS, per_device_train_batch_size=16,
                      num_generations=8, max_completion_length=12, learning_rate=1e-3, seed=0,
                      beta=0.0, logging_steps=50, save_steps=STEPS, report_to="none",
                      reward_weights=[1.0, 0.0], use_cpu=True, disable_tqdm=True)  # fmt: skip
GRPOTrainer(policy, [reward, gold], args=settings, processing_class=tokenizer,
            train_dataset=Dataset.from_dict({"prompt": PROMPTS * 100}),
            callbacks=[reward.callback()]).train()  # fmt: skip
print(f"sentiment {said[0]:.2f} at first, {said[-1]:.2f} at last, {model.comparisons} comparisons")
