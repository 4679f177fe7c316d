"""TRL: a reward function for GRPO and RLOO that learns from a judge's comparisons as they train.

    embed = Embedder(frozen_language_model, tokenizer)
    model = irrl.PreferenceModel(embed.space, reward="linear")
    reward = PreferenceReward(model, embed, judge=vader())
    trainer = GRPOTrainer(policy, reward_funcs=reward, callbacks=[reward.callback()], ...)

Completions are paid first, then pairs of them are shown to the judge and the model learns: the
policy's update comes before the model's, as in the loop. Completions of one prompt are compared
with each other only: scores of Bradley and Terry say nothing across prompts. In an evaluation
nothing is asked and nothing is learned. With several processes all completions are gathered, the
first process asks, and all learn the same from all answers, so that their models stay alike.
"""

import itertools
import json
import random as chance
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from irrl.adapters.language import Embed, Judge, text_of
from irrl.errors import UserError
from irrl.preference_model import PreferenceModel
from irrl.preference_model.comparisons import require_answer
from irrl.reward_model.archive import read

FILE = "preference_model.safetensors"  # in a checkpoint of the trainer


class Gathered(NamedTuple):
    """Completions of all processes, in their order."""

    keys: list[str]  # of their prompts
    texts: list[str]
    features: np.ndarray  # (n, size)
    mine: np.ndarray  # (n,), whether they are this process's


# --- the reward function ---


class PreferenceReward:
    """Pays completions for what a preference model thinks of them beside others of their prompt.

    Where the dataset has a column ``references`` (a list of texts for each prompt, such as
    completions of the policy before its training), completions are compared with those; else with
    each other.

    Args:
        model: the preference model, for ``embed.space``.
        embed: features of completions, as `Embedder` gives them.
        judge: takes prompts, first and second completions, and says of each pair 1 where the first
            is better, 0 where the second is, 0.5 where neither is. None: the model stays as it is.
        pairs_per_prompt: how many it is shown of a prompt's completions.
        comparisons: how many it may be asked for in all; None for no end.

    Example:
        >>> from gymnasium.spaces import Box
        >>> embed = lambda prompts, texts: np.array([[len(text)] for text in texts], np.float32)
        >>> reward = PreferenceReward(PreferenceModel(Box(0.0, np.inf, (1,))), embed)
        >>> reward.__name__  # GRPOTrainer(..., reward_funcs=reward, callbacks=[reward.callback()])
        'preference'
    """

    __name__ = "preference"  # by which TRL logs it

    def __init__(
        self,
        model: PreferenceModel,
        embed: Embed,
        judge: Judge | None = None,
        pairs_per_prompt: int = 1,
        comparisons: int | None = None,
    ) -> None:
        if not isinstance(pairs_per_prompt, int) or pairs_per_prompt < 1:
            raise UserError(f"pairs_per_prompt must be at least 1, got {pairs_per_prompt!r}")
        self.model, self.embed, self.judge = model, embed, judge
        self.pairs_per_prompt, self.comparisons = pairs_per_prompt, comparisons
        self.policy: Any = None  # that is being trained, as the callback says
        self.has_callback = False

    def __call__(
        self, prompts: list[Any], completions: list[Any], references: Any = None, **columns: Any
    ) -> list[float]:
        """Rewards of completions; afterwards, in training, the model learns of them."""
        if self.judge is not None and not self.has_callback:
            raise UserError(
                "the trainer has no callback of this reward, and could neither let it learn nor "
                "save it: give it callbacks=[reward.callback()], or leave the judge out"
            )
        found = self._gathered(prompts, completions)
        mine = found.features[found.mine]
        if references is None:
            rewards = self._among(found)[found.mine]
        else:
            rewards = self._against(prompts, mine, references)
        if self.judge is not None and self.policy is not None and self.policy.training:
            learned = self._learn(found)
            for name, value in learned.items() if "log_metric" in columns else ():
                columns["log_metric"](f"preference_model/{name}", value)
        return [float(reward) for reward in rewards]

    def _gathered(self, prompts: list[Any], completions: list[Any]) -> Gathered:
        from accelerate import PartialState
        from accelerate.utils import gather_object

        texts = [text_of(completion) for completion in completions]
        features = self.embed([text_of(prompt) for prompt in prompts], texts)
        me = PartialState().process_index
        own = [(_key(p), t, f, me) for p, t, f in zip(prompts, texts, features, strict=True)]
        keys, all_texts, everyone, whose = zip(*gather_object(own), strict=True)
        return Gathered(list(keys), list(all_texts), np.stack(everyone), np.array(whose) == me)

    def _among(self, found: Gathered) -> np.ndarray:
        """Rewards of all completions beside all others of the same prompt."""
        rewards, keys = np.zeros(len(found.keys)), np.array(found.keys)
        for key in dict.fromkeys(found.keys):
            group = found.features[keys == key]
            if len(group) < 2:
                raise UserError(
                    "there is nothing to compare the only completion of a prompt with: take "
                    "num_generations=2 or more, or a dataset with a column 'references'"
                )
            others = np.stack([np.delete(group, n, axis=0) for n in range(len(group))])
            rewards[keys == key] = self.model.rewards(group, others)
        return rewards

    def _against(self, prompts: list[Any], features: np.ndarray, references: Any) -> np.ndarray:
        """Rewards beside texts that the dataset has for each prompt."""
        many = {len(texts) for texts in references}
        if len(many) != 1 or not min(many):
            raise UserError("the column 'references' must have as many texts for each prompt")
        (count,) = many
        known: dict[str, np.ndarray] = {}
        for prompt, texts in zip(prompts, references, strict=True):
            if (key := _key(prompt)) not in known:
                known[key] = self.embed([text_of(prompt)] * count, [text_of(t) for t in texts])
        return self.model.rewards(features, np.stack([known[_key(p)] for p in prompts]))

    # --- learning ---

    def learn_from(self, prompts: list[Any], completions: list[Any]) -> dict[str, float]:
        """Ask the judge about pairs of completions and learn, outside of a trainer: beforehand."""
        return self._learn(self._gathered(prompts, completions))

    def _learn(self, found: Gathered) -> dict[str, float]:
        pairs = self._pairs(found)
        if self.comparisons is not None:
            pairs = pairs[: max(0, self.comparisons - self.model.comparisons)]
        for (a, b), answer in zip(pairs, self._asked(found, pairs), strict=True):
            self.model.add(found.features[[a]], found.features[[b]], answer)
        learned = self.model.learn()
        return {**learned, **self.model.health()} if learned else {}

    def _pairs(self, found: Gathered) -> list[tuple[int, int]]:
        """Pairs of different completions of one prompt, by their places."""
        random = chance.Random(f"{self.model.settings.seed} {self.model.comparisons}")
        pairs = []
        for key in dict.fromkeys(found.keys):
            rows = [n for n, its in enumerate(found.keys) if its == key]
            apart = [
                (a, b)
                for a, b in itertools.combinations(rows, 2)
                if found.texts[a] != found.texts[b]
                and (found.features[a] != found.features[b]).any()
            ]
            chosen = random.sample(apart, min(self.pairs_per_prompt, len(apart)))
            pairs += [pair if random.random() < 0.5 else pair[::-1] for pair in chosen]
        return pairs

    def _asked(self, found: Gathered, pairs: list[tuple[int, int]]) -> list[float]:
        """Answers of the judge, whom the first process asks for all."""
        if not pairs:
            return []
        if self.judge is None:
            raise UserError("there is no judge to ask: give the reward one")
        judge, prompts = self.judge, [json.loads(found.keys[a]) for a, _ in pairs]
        first, second = ([found.texts[pair[n]] for pair in pairs] for n in (0, 1))
        answers = _once(lambda: [require_answer(x) for x in judge(prompts, first, second)])
        if len(answers) != len(pairs):
            raise UserError(f"the judge gave {len(answers)} answers to {len(pairs)} pairs")
        return answers

    def callback(self, resume_from: str | Path | None = None) -> Any:
        """What tells training from evaluation, and saves with every checkpoint of the trainer.

        Args:
            resume_from: the checkpoint that training goes on from, where it is not one of
                ``output_dir``.
        """
        self.has_callback = True
        return _make_callback(self, None if resume_from is None else Path(resume_from))


def _key(prompt: Any) -> str:
    return json.dumps(prompt)


def _make_callback(reward: PreferenceReward, resume_from: Path | None) -> Any:
    from transformers import TrainerCallback

    class Callback(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            reward.policy = given["model"]
            if state.global_step:
                folder = resume_from or Path(args.output_dir) / f"checkpoint-{state.global_step}"
                reward.model.restore(*read(folder / FILE))

        def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            reward.policy = None

        def on_save(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            if state.is_world_process_zero:
                folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
                reward.model.save(folder / FILE)

    return Callback()


# --- several processes ---


def _once(function: Callable[[], list[float]]) -> list[float]:
    """What the first process makes of it, for all; where that fails, all fail."""
    from accelerate import PartialState
    from accelerate.utils import broadcast_object_list

    found: list[Any] = [None, None]
    if PartialState().is_main_process:
        try:
            found = [function(), None]
        except Exception as error:
            found = [None, error]
    if PartialState().num_processes > 1:
        broadcast_object_list(found)
    if found[1] is not None:
        raise found[1]
    return list(found[0])
