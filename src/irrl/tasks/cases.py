"""Which episodes a case study shows: drawn by chance, among those in which agents differ."""

from collections.abc import Sequence

import numpy as np

from irrl.runs.seeding import stream


def sample_cases(
    answers: Sequence[Sequence[int]], count: int, seed: int, what: str
) -> tuple[list[int], str]:
    """Numbers of the episodes to show, in order, and in words how they were chosen.

    ``answers`` has a row for each agent: what it said of the same episodes. Where no two agents
    differ, or there is one agent, episodes are drawn among all.
    """
    table = np.asarray(answers)
    total = table.shape[1]
    differ = np.flatnonzero((table != table[0]).any(axis=0))
    among = differ if len(differ) else np.arange(total)
    number = min(count, len(among))
    chosen = np.sort(stream(seed, "evaluation").choice(among, number, replace=False)).tolist()
    drawn = f"{number} {what} drawn at random (seed {seed}) among "
    if len(differ):
        return chosen, f"{drawn}the {len(differ)} of {total} on which the agents' answers differ"
    why = ", on none of which the agents' answers differ" if len(table) > 1 else ""
    return chosen, f"{drawn}{total}{why}"
