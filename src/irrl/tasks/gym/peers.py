"""What others publish for environments that are not ours."""

from irrl.tasks.contract import Peer, Settings

APPLE = "https://arxiv.org/abs/2505.06182"

CIRCLE_SQUARE = (
    Peer("CrossQ, transformer", "250k steps", "96.7", APPLE),
    Peer("SAC, transformer", "250k steps", "94.7", APPLE),
    Peer("HAM (REINFORCE)", "250k steps", "54.1", APPLE),
    Peer("CrossQ, transformer", "1M steps", "99.1", APPLE),
    Peer("SAC, transformer", "1M steps", "98.2", APPLE),
    Peer("CrossQ-LSTM / SAC-LSTM", "1M steps", "81.5 / 77.8 (± 15)", APPLE),
    Peer("PPO, transformer", "10M steps", "78.6 ± 4.8", APPLE),
    Peer("HAM (REINFORCE)", "10M steps", "51.8", APPLE),
    Peer("random / fixed grid", "1M steps", "69.6 / 73.3", APPLE),
)
"""Final accuracy on CircleSquare-v0 of ap_gym, in per cent, on training episodes."""


def peers(settings: Settings) -> tuple[Peer, ...]:
    """Rows that stand beside a run with these settings."""
    return CIRCLE_SQUARE if str(settings["env"]).endswith(":CircleSquare-v0") else ()
