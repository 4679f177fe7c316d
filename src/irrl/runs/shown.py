"""How numbers are shown."""


def shown_number(x: float, beside: float | None = None) -> str:
    """With one decimal; two or four where it, or what it stands beside, is below 1 or a tenth."""
    size = abs(x if beside is None else beside)
    decimals = 4 if 0.0 < size < 0.1 else 2 if 0.0 < size < 1.0 else 1
    return f"{x:.{decimals}f}"
