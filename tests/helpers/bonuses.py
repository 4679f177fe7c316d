"""What tasks with several heads refuse of a bonus: flags, and words of the line that says so."""

REFUSED_BONUSES = [
    (["--reward", "disdain"], ["needs an ensemble", "bonus disagreement"]),
    (["--bonus", "visits"], ["unknown bonus 'visits'", "disagreement"]),
    (["--bonus", "disagreement", "--ensemble-size", "1"], ["ensemble-size of 2 or more"]),
    (["--bonus", "disagreement", "--bonus-weight", "-1"], ["bonus-weight", "zero or positive"]),
    (["--bonus", "disagreement", "--bonus-kind", "linear"], ["bonus-kind", "quadratic"]),
    (["--bonus-kind", "quadratic"], ["bonus-kind needs a bonus"]),
    (["--bonus-weight", "2"], ["bonus-weight needs a bonus"]),
    (["--ensemble-size", "0"], ["ensemble-size", "at least 1"]),
    (["--bonus", "disagreement", "--oracle", "nowhere"], ["bonus excludes oracle"]),
]
