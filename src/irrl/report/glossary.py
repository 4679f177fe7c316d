"""Words of a report: explained where they stand, and once more at its end."""

import re
from collections.abc import Mapping
from html import escape

TERMS = {
    "reward": "what the policy is paid: a function of what the discriminator believes",
    "discriminator": "the network, or table, that tells the label from the trajectory; it learns "
    "beside the policy, and its posterior is the only reward",
    "posterior": "q(y | trajectory): how likely the discriminator holds the label y after it has "
    "seen the trajectory",
    "prior": "p(y): how likely a label is before anything was seen",
    "linear": "the reward q - p; the paper's choice is clipped-linear, max(q - p, 0)",
    "log": "the reward log q - log p; clipped-log is max(log q - log p, 0)",
    "accuracy": "how often the likeliest label is the right one; as a reward: 1 if it is, else 0",
    "clipped": "where a reward would be negative it is zero",
    "oracle": "a converged run whose discriminator takes the place of the one in training, to pay "
    "or to judge",
    "scripted baseline": "a run whose behaviour is not learned; it only learns to answer",
    "authors": "what the authors of the paper report, mostly read off their figures, with the "
    "training it belongs to",
    "agrees": "our mean after the same training lies in the range that the authors' number stands "
    "for",
    "within the spread": "our mean lies outside, but our interval, or a seed, reaches that range",
    "by then": "our curve where it has had as much training as the authors' number",
    "set-up": "the nearest preset of the task, and what differs from it",
    "seed": "the number from which all chance of a run follows; seeds of one reward differ in "
    "nothing else",
    "95 % interval": "of the mean over seeds, by Student's t; no interval leaves the range of its "
    "quantity",
    "interquartile mean": "the mean of the middle half of the seeds; believe its bootstrap "
    "interval from about ten seeds",
    "area": "the mean height of the learning curve: who learns sooner has more",
    "permutation test": "how often a split of all seeds by chance favours the one as much; with "
    "three seeds a side it cannot get below 1/20",
    "second order": "the paper's expansion of bias and std of a reward in moments of the noise, "
    "Eq. 5 and 6",
    "skewness": "which side of the mean has the longer tail; zero for symmetric noise",
    "p(zero mean)": "p value of the paper's hypothesis that the noise has zero mean",
    "p(symmetric)": "p value of its hypothesis that the noise is symmetric about zero",
    "bias": "the mean of reward by the discriminator less reward by the oracle",
}
"""General words; those of a task come from the task."""


def explained(text: str, terms: Mapping[str, str], told: set[str] | None = None) -> str:
    """Text as HTML, in which the words of a glossary say what they mean when pointed at.

    Each is marked once: ``told`` remembers which were.
    """
    told = set() if told is None else told
    known = {term.lower(): meaning for term, meaning in terms.items()}
    parts, end = [], 0
    for match in _words(terms).finditer(text) if terms else ():
        word = match[0].lower()
        if word in told:
            continue
        told.add(word)
        parts += [escape(text[end : match.start()]), abbreviation(match[0], known[word])]
        end = match.end()
    return "".join([*parts, escape(text[end:])])


def used_in(text: str, terms: Mapping[str, str]) -> dict[str, str]:
    """Those of some words that stand in a text."""
    found = {match[0].lower() for match in _words(terms).finditer(text)}
    return {term: meaning for term, meaning in terms.items() if term.lower() in found}


def _words(terms: Mapping[str, str]) -> re.Pattern[str]:
    """Words of a glossary, the longest first, also with an s at their end."""
    pattern = "|".join(re.escape(term) for term in sorted(terms, key=len, reverse=True))
    return re.compile(rf"(?<![\w-])({pattern})(?=s?(?![\w-]))", re.IGNORECASE)


def abbreviation(word: str, meaning: str) -> str:
    return f'<abbr title="{escape(meaning)}" tabindex="0">{escape(word)}</abbr>'


def glossary(terms: Mapping[str, str]) -> str:
    """All words of a page, in order of the alphabet."""
    items = "".join(
        f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>"
        for term, meaning in sorted(terms.items(), key=lambda item: item[0].lower())
    )
    return f'<section id="glossary"><h2>Glossary</h2><dl>{items}</dl></section>'
