"""Pieces of episodes on their way through RLlib: marked by env runners, judged apart from codes.

`irrl.adapters.rllib` puts all this in its places; nobody else needs it.
"""

from typing import Any

import numpy as np
from gymnasium import spaces
from ray.rllib.connectors.connector_v2 import ConnectorV2

from irrl.adapters.common import See
from irrl.adapters.rllib_rows import CUT, END, STEP, Rows, to_columns, unflattened
from irrl.envs.perceive import look_up
from irrl.envs.skills import CODE, OBSERVATION
from irrl.reward_model.classes import NOT_TOLD, as_labels
from irrl.reward_model.spaces import Part, to_parts

OURS = "irrl"  # what pieces of episodes and a learner's configuration call what is ours
BEGUN = "irrl_begun"


# --- on env runners ---


def seed_apart(*, env_runner: Any, **_: Any) -> None:
    """Seeds of their own for the environments of each runner.

    RLlib counts seeds from the runner's number on: neighbours would draw the same labels.

    Args:
        env_runner: that has made its environments.
        **_: what callbacks are told besides.
    """
    if env_runner.config.seed is not None:
        key = np.random.SeedSequence([env_runner.config.seed, env_runner.worker_index or 0])
        env_runner._seed = int(key.generate_state(1)[0]) // 2


def note_beginning(*, episode: Any, env_runner: Any, **_: Any) -> None:
    """Keep what an episode showed first: it may be cut before it ends.

    Args:
        episode: that begins.
        env_runner: that plays it.
        **_: what callbacks are told besides.
    """
    begun = vars(env_runner).setdefault(BEGUN, {})
    begun[episode.id_] = {"first": episode.get_observations(0), "infos": episode.get_infos(0)}


def mark_ends(label: str, final: bool, *, samples: Any, env_runner: Any, **_: Any) -> None:
    """Say of each piece of an episode whether it is the last one, its label, its beginning.

    RLlib's learner marks every piece as truncated: it could not tell an end from a cut.

    Args:
        label: where an info has it.
        final: whether an end by a time limit is a termination.
        samples: pieces of episodes.
        env_runner: that played them.
        **_: what callbacks are told besides.
    """
    begun = vars(env_runner).setdefault(BEGUN, {})
    for piece in samples:
        known = begun.get(piece.id_, {})
        told = (look_up(info, label) for info in reversed(list(piece.get_infos())))
        found = next((x for x in told if x is not None), known.get("label"))
        if found is None:
            found = look_up(known.get("infos") or {}, label)
        known["label"] = found
        ended = piece.is_done
        piece.custom_data[OURS] = {"ended": ended, "label": found, "first": known.get("first")}
        if ended:
            begun.pop(piece.id_, None)
        if final and piece.is_truncated:
            piece.is_terminated, piece.is_truncated = True, False
    if env_runner.config.batch_mode == "complete_episodes":
        begun.clear()  # what is under way will be dropped
        env_runner._seed = None  # with which RLlib would begin each batch anew, label for label


# --- what is judged ---


def make_see(see: See | None, flattened: spaces.Space[Any] | None) -> See:
    """What of RLlib's observations is judged.

    Args:
        see: of observations as the environment has them; if left out all but a skill's code.
        flattened: their space, where they were made vectors.

    Returns:
        A function of observations with a leading axis.
    """
    see = see or _without_code
    if flattened is None:
        return see
    return lambda vectors: see(unflattened(flattened, vectors))


def _without_code(observations: Any) -> Any:
    of_skills = isinstance(observations, dict) and set(observations) == {OBSERVATION, CODE}
    return observations[OBSERVATION] if of_skills else observations


class AddJudged(ConnectorV2):
    """Adds to a batch what is judged, apart from what the policy sees: the code stays outside.

    It comes after the piece that appends the artificial time step.

    Args:
        parts: of what is judged.
        see: what of observations that is.
        first: whether the first observation of each episode goes with it.
    """

    def __init__(self, parts: dict[str, Part], see: See, first: bool) -> None:
        super().__init__()
        self.parts, self.see, self.first = parts, see, first

    def __call__(self, *, batch: dict[str, Any], episodes: list[Any], **_: Any) -> dict[str, Any]:
        """Add the columns."""
        for piece in self.single_agent_episode_iterator(episodes, agents_that_stepped_only=False):
            n = len(piece)
            for name, array in to_columns(self.rows_of(piece, n)).items():
                self.add_n_batch_items(batch, name, array, n, piece)
        return batch

    def rows_of(self, piece: Any, n: int) -> Rows:
        """Rows of one piece, whose last time step is artificial."""
        known = piece.custom_data[OURS]
        kinds = np.full(n, STEP, np.int8)
        kinds[-1] = END if known["ended"] else CUT
        times = piece.t_started + np.arange(n)
        label = NOT_TOLD if known["label"] is None else as_labels([known["label"]])[0]
        seen = self._judged(piece.get_observations(slice(0, n)), n)
        first = self._judged(_one(known["first"]), 1) if self.first else {}
        repeated = {name: np.repeat(array, n, axis=0) for name, array in first.items()}
        return Rows(kinds, times, np.full(n, label), seen, repeated)

    def _judged(self, observations: Any, n: int) -> dict[str, np.ndarray]:
        return to_parts(self.parts, self.see(observations), (n,), axis="step")


def _one(observation: Any) -> Any:
    """One observation with a leading axis."""
    if isinstance(observation, dict):
        return {name: _one(inner) for name, inner in observation.items()}
    return np.asarray(observation)[None]
