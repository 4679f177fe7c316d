"""Words of a report are explained where they stand first, and in a glossary of those it has."""

from irrl.report.glossary import TERMS, explained, glossary, used_in
from irrl.tasks.registry import all_tasks


def test_a_word_is_explained_once_whatever_its_case():
    text = explained("Seeds: 3 seeds of linear & log", {"seed": "a <number>", "log": "..."})
    first = '<abbr title="a &lt;number&gt;" tabindex="0">Seed</abbr>s: 3 seeds of linear &amp; '
    assert text == first + '<abbr title="..." tabindex="0">log</abbr>'


def test_parts_of_words_are_left_alone_and_the_longest_wins():
    terms = {"log": "a", "mean": "b", "interquartile mean": "c"}
    assert explained("clipped-log1p, log1p, meaning", terms) == "clipped-log1p, log1p, meaning"
    assert explained("interquartile mean", terms).count("<abbr") == 1


def test_only_the_words_of_a_page_are_in_its_glossary():
    used = used_in("by an oracle, 3 seeds", TERMS)
    assert set(used) == {"oracle", "seed"}
    assert glossary(used).index("oracle") < glossary(used).index("seed")
    assert used_in("nothing of it", TERMS) == {}


def test_every_explanation_is_a_short_sentence():
    terms = TERMS | {k: v for task in all_tasks().values() for k, v in task.terms.items()}
    assert len(terms) > 25 and all(20 < len(text) < 170 for text in terms.values())
