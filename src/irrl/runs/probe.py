"""Questions that are asked in a process of their own: what answers may crash, or hang."""

import subprocess
import sys

SECONDS = 120


def probe(code: str) -> str:
    """What some Python prints; raises a RuntimeError with the last line it complains with."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"no answer within {SECONDS} seconds") from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise RuntimeError(said[-1] if said else f"ended with code {done.returncode}")
    return done.stdout.strip()
