"""The command line as a user has it: in a process of its own, or in this one."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def irrl_command(*arguments, cwd=None, **options):
    """Run `irrl` as a user would, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "irrl", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )


def failed(result, *words):
    """One clear line on stderr, exit code 2."""
    assert result.returncode == 2, result
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("irrl: error: ")
    for word in words:
        assert word in lines[0], lines[0]
    return True


def failing(capsys, *arguments):
    """What the command says, in this process: it is quicker."""
    from irrl.cli.main import main

    code = main([str(a) for a in arguments])
    lines = capsys.readouterr().err.strip().splitlines()
    assert code == 2 and len(lines) == 1 and lines[0].startswith("irrl: error: "), lines
    return lines[0]
