"""How many cases there were, how they ended, and what went wrong."""

import traceback
from collections import Counter
from pathlib import Path

from tests.fuzz.bench import attempt
from tests.fuzz.oracle import BreachError


class Tally:
    """Of cases that were looked at: by bench, by verb and exit code, and those that went wrong."""

    def __init__(self):
        self.ran, self.codes, self.wrong = {}, Counter(), {}

    def look(self, name, bench, case):
        """Try a case on a bench; the first of each kind that goes wrong is shown."""
        self.ran.setdefault(name, Counter())[case[0]] += 1
        try:
            self.codes[case[0], attempt(bench, *case)] += 1
        except Exception as error:
            kind = f"{name}: {signature(error)}"
            if kind not in self.wrong:
                print(f"{kind}\n    {case}\n    {str(error)[:300]}", flush=True)
            self.wrong.setdefault(kind, []).append(case)

    def to_json(self):
        verbs = {}
        for (verb, code), count in sorted(self.codes.items()):
            verbs.setdefault(verb, {})[f"exit {code}"] = count
        return {
            "cases": sum(map(Counter.total, self.ran.values())),
            "wrong": sum(map(len, self.wrong.values())),
            "kinds_wrong": {kind: len(found) for kind, found in self.wrong.items()},
            "benches": {name: counts.total() for name, counts in self.ran.items()},
            "verbs": verbs,
            "verbs_of_benches": {n: dict(sorted(c.items())) for n, c in self.ran.items()},
        }

    def text(self):
        found = self.to_json()
        kinds = sorted(found["kinds_wrong"].items(), key=lambda item: -item[1])
        return "\n".join(
            [
                f"{found['cases']} cases: {found['benches']}",
                f"by verb: {found['verbs']}",
                f"{found['wrong']} went wrong, in {len(kinds)} ways",
                *(f"  {count:5d}  {kind}" for kind, count in kinds),
            ]
        )


def signature(error):
    """What tells one kind of failure from another."""
    if isinstance(error, BreachError):
        return f"BreachError: {str(error)[:60]}"
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(where.filename).name}, {where.name}"
