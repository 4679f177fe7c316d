"""How numbers are shown."""


def shown_number(x: float, beside: float | None = None) -> str:
    """With one decimal; four where it, or the number that it stands beside, is below a tenth."""
    size = abs(x if beside is None else beside)
    return f"{x:.4f}" if 0.0 < size < 0.1 else f"{x:.1f}"
