"""The command line under hostile circumstances: races, signals, names, want of memory."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from irrl.cli import main as cli
from irrl.cli.main import main
from irrl.errors import UserError
from irrl.runs.config import MOST, Config
from irrl.tasks import begin, make_config, train
from irrl.tasks.skills.train import STEPS_AT_ONCE
from tests.fuzz.mutations import reseal
from tests.helpers.command import failed, failing

COMMAND = [sys.executable, "-m", "irrl"]


# --- several at once ---


def test_of_several_that_train_in_one_new_folder_one_wins_and_the_others_say_the_same(tmp_path):
    def start(seed):
        flags = ["--preset", "smoke", "--seed", str(seed), "--out", "run"]
        return subprocess.Popen(
            [*COMMAND, "train", "skills", *flags],
            cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    processes = [start(seed) for seed in range(3)]
    told = [process.communicate()[1] for process in processes]
    codes = [process.returncode for process in processes]
    assert sorted(codes) == [0, 2, 2], told
    winner = codes.index(0)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["seed"] == winner
    for code, said in zip(codes, told, strict=True):
        if code:
            assert said.startswith("irrl: error: run already holds ") and said.count("\n") == 1


def test_two_that_pass_the_check_at_the_same_time_do_not_both_begin(tmp_path, monkeypatch):
    from irrl.runs import run

    monkeypatch.setattr(run, "check_new", lambda folder: None)  # both have looked; neither wrote
    begin(tmp_path / "run", make_config("skills", "smoke", seed=1))
    with pytest.raises(UserError, match="already holds an unfinished run"):
        begin(tmp_path / "run", make_config("skills", "smoke", seed=2))
    assert json.loads((tmp_path / "run" / "config.json").read_text())["seed"] == 1


# --- signals ---


def test_two_interrupts_are_told_in_one_line(tmp_path):
    flags = ["--preset", "smoke", "--iterations", "100000000", "--out", "run"]
    process = subprocess.Popen(
        [*COMMAND, "train", "skills", *flags], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "run" / "config.json").exists():
        time.sleep(0.01)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in told
    assert len([line for line in told.splitlines() if "stopped" in line]) == 1


def test_the_second_signal_ends_at_once(monkeypatch, capsys):
    """Also where the first is being handled: what ends in order may take its time."""
    ended = []
    monkeypatch.setattr(os, "_exit", lambda code: ended.append(code))

    def stubborn(parser, arguments):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
        return 0

    monkeypatch.setitem(cli.VERBS, "presets", ("", stubborn))
    main(["presets"])
    assert ended == [130] and capsys.readouterr().err.count("irrl: stopped") == 1


def test_a_long_horizon_leaves_the_compiled_loop_now_and_then(monkeypatch, tmp_path):
    from irrl.tasks.skills import train as skills

    calls, learn = [], skills._learn

    def counted(*arguments):
        calls.append(arguments[9] - arguments[8])
        return learn(*arguments)

    monkeypatch.setattr(skills, "_learn", counted)
    settings = {"horizon": 5000, "iterations": 200, "evaluate_every": 200, "epsilon": 0.0}
    train(*begin(tmp_path / "a", make_config("skills", "smoke", **settings)))
    assert sum(calls) == 200 and max(calls) * 32 * 5000 <= STEPS_AT_ONCE
    monkeypatch.setattr(skills, "STEPS_AT_ONCE", 10**12)
    train(*begin(tmp_path / "b", make_config("skills", "smoke", **settings)))
    metrics = [(tmp_path / name / "metrics.jsonl").read_bytes() for name in "ab"]
    assert metrics[0] == metrics[1]


# --- streams that are closed or full ---


@pytest.mark.parametrize("streams", [">&-", ">&- 2>&-", "2>&- <&-"])
def test_a_closed_stream_is_nobody_to_talk_to(streams):
    words = ["sh", "-c", f'exec "$@" {streams}', "sh", *COMMAND]
    for arguments, code in ((["rewards"], 0), (["nonsense"], 2)):
        done = subprocess.run([*words, *arguments], capture_output=True, text=True)
        assert done.returncode == code and "Traceback" not in done.stderr, done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_work_goes_on_where_nothing_more_can_be_told(tmp_path):
    with open("/dev/full", "w") as full:
        words = [*COMMAND, "train", "skills", "--preset", "smoke", "--out", "run"]
        assert subprocess.run(words, cwd=tmp_path, stderr=full).returncode == 0
        assert (tmp_path / "run" / "summary.json").exists()
        assert subprocess.run([*COMMAND, "nonsense"], stderr=full).returncode == 2


# --- limits ---


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "irrl: error: not enough memory\n"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: 8\nmore"),
            "not enough memory: ",
        ),
        (OSError(28, "No space left on device"), "No space left on device"),
        (UserError("a name\nof two lines"), "a name of two lines\n"),
    ],
)
def test_errors_are_one_line(monkeypatch, capsys, error, words):
    def fail(parser, arguments):
        raise error

    monkeypatch.setitem(cli.VERBS, "presets", ("", fail))
    assert main(["presets"]) == 2
    told = capsys.readouterr().err
    assert words in told and told.count("\n") == 1


@pytest.mark.parametrize(
    ("task", "flags", "words"),
    [
        ("skills", ["--horizon", "9" * 40], "horizon must be at most 10000"),
        ("skills", ["--seed", str(2**63)], "seed must be at most 9223372036854775807"),
        ("skills", ["--iterations", str(10**13)], f"iterations must be at most {MOST}"),
        ("skills", ["--learning-rate", "1e40"], "learning-rate must be at most 1e+30"),
        ("skills", ["--batch-size", "50000", "--horizon", "5000"], "batch-size times horizon"),
        ("skills", ["--codes", "100000", "--map", "large", "--ensemble-size", "900",
                    "--bonus", "disagreement"], "times cells of the map"),
        ("digits", ["--scales", str(10**9)], "scales must be at most 12"),
        ("digits", ["--canvas-size", "2000", "--train-images", "9000000"], "more than"),
        ("counting", ["--encoder-widths", "9" * 30], "encoder-widths must be"),
        ("counting", ["--width", str(10**6)], "width must be at most"),
        ("gym", ["--envs", str(10**9)], "envs must be at most 65536"),
        ("gym", ["--codes", "9" * 40], "codes must be at most 65536"),
        ("gym", ["--widths", "128,1000000000"], "at most 64 and none above 65536"),
        ("gym", ["--widths", "1," * 5000 + "1"], "widths must be numbers"),
        ("gym", ["--env-options", '{"a":' * 5000], "env-options must be JSON"),
        ("gym", ["--env-options", '{"a": NaN}'], "NaN is not a finite number"),
    ],
)  # fmt: skip
def test_settings_have_upper_bounds(capsys, tmp_path, task, flags, words):
    out = tmp_path / "run"
    assert words in failing(capsys, "train", task, "--preset", "smoke", "--out", out, *flags)
    assert not out.exists()


def test_text_with_a_zero_is_refused():
    with pytest.raises(UserError, match="none of them zero"):
        make_config("digits", "smoke", oracle="a\0b")
    assert Config.most == {}


def test_a_grid_of_a_hundred_million_runs_is_refused_at_once(capsys, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text('task = "skills"\n[grid]\nseed = "0..100000000"\n')
    assert "makes 100000001 runs" in failing(capsys, "sweep", plan, "--dry-run")
    assert main(["sweep", "skills", "--codes", "2..900", "--seed", "0..900", "--dry-run"]) == 2
    assert "the grid makes" in capsys.readouterr().err
    assert "seeds must be at most" in failing(capsys, "compare", "skills", "--seeds", 10**8)


def test_a_run_that_never_began_leaves_nothing(tmp_path, monkeypatch):
    from irrl.tasks.skills import train as skills

    def fail(*arguments):
        raise MemoryError

    monkeypatch.setattr(skills, "observe", fail)
    with pytest.raises(MemoryError):
        train(*begin(tmp_path / "run", make_config("skills", "smoke")))
    assert not list(tmp_path.iterdir())


# --- names ---


def test_folders_may_have_any_name(smoke_run, tmp_path):
    folder = tmp_path / os.fsdecode(b"[red]x[y] a$b$c_d caf\xe9 \xff {0} two\nlines")
    shutil.copytree(smoke_run, folder / "run")
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}

    def irrl(*arguments):
        words = [*COMMAND, *map(os.fsencode, arguments)]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=environment)

    out = tmp_path / "report.html"
    for arguments in (("eval", folder / "run"), ("plot", folder, "-o", folder / "plot.png"),
                      ("report", folder, "-o", out)):  # fmt: skip
        done = irrl(*arguments)
        assert done.returncode == 0 and not done.stderr, done.stderr
    assert (folder / "plot.png").stat().st_size > 5000 and out.stat().st_size > 100_000
    assert failed(irrl("eval", folder), "is not a run folder")


def test_bars_take_names_for_what_they_are(monkeypatch):
    from io import StringIO

    from rich.console import Console

    from irrl.runs import progress

    shown = StringIO()
    monkeypatch.setattr(
        progress, "Console", lambda **options: Console(file=shown, force_terminal=True, width=120)
    )
    with progress.Bars() as bars:
        bars.update("[red]run[/blue]", 1, 2)
    assert "[red]run[/blue]" in shown.getvalue()


# --- what is drawn ---


def test_runs_of_several_tasks_are_told(smoke_run, digits_run, capsys, tmp_path):
    said = failing(capsys, "plot", smoke_run, digits_run, "-o", tmp_path / "f.png")
    assert "runs of different tasks do not compare: digits, skills" in said


def test_a_sweep_tells_of_a_finished_run_that_was_altered(smoke_run, tmp_path, capsys):
    run = shutil.copytree(smoke_run, tmp_path / "clipped-linear" / "seed-0")
    command = ["sweep", "skills", "--preset", "smoke", "--seed", "0", "--out", str(tmp_path)]
    assert main(command) == 0
    capsys.readouterr()
    rows = (run / "metrics.jsonl").read_text()
    (run / "metrics.jsonl").write_text(rows.replace("1", "2", 1))
    assert "metrics.jsonl" in failing(capsys, *command)


def test_a_report_says_what_it_leaves_out(smoke_run, tmp_path, capsys):
    for n in range(2):
        shutil.copytree(smoke_run, tmp_path / "runs" / str(n))
    (tmp_path / "runs" / "1" / "metrics.jsonl").write_bytes(b'{"step": "x"}\n')
    (tmp_path / "runs" / "noise.json").write_text("[")
    assert main(["report", str(tmp_path / "runs"), "-o", str(tmp_path / "report.html")]) == 0
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2 and all(line.startswith("irrl: left out: ") for line in told)
    page = (tmp_path / "report.html").read_text()
    assert page.count("<li>Left out: ") == 2


def test_no_picture_but_a_picture_gets_into_a_report(smoke_run, tmp_path):
    from irrl.report.noise import noise_section

    record = {"command": "irrl noise measure", "runs": {}}
    (tmp_path / "noise.json").write_text(json.dumps(record))
    (tmp_path / "secret").write_text("precious")
    (tmp_path / "noise.png").symlink_to(tmp_path / "secret")
    (picture,) = noise_section(tmp_path / "noise.json")[2]
    assert picture.uri is None and "is a link" in picture.note
    (tmp_path / "noise.png").unlink()
    (tmp_path / "noise.png").write_text("precious")
    (picture,) = noise_section(tmp_path / "noise.json")[2]
    assert picture.uri is None and "is not a PNG" in picture.note


def test_a_picture_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    from irrl.analysis import plots

    path = plots.save_figure(Figure(), tmp_path / "figure.png")
    before = path.read_bytes()

    def fail(self, file, **options):
        file.write(b"half")
        raise OSError("no room")

    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(OSError, match="no room"):
        plots.save_figure(Figure(), path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_a_finished_run_whose_last_checkpoint_is_said_to_be_an_old_one(capsys, smoke_run, tmp_path):
    run = shutil.copytree(smoke_run, tmp_path / "run")
    first = sorted((run / "checkpoints").glob("0*"))[0].name
    (run / "checkpoints" / "last").write_text(f"{first}\n")
    told = failing(capsys, "eval", run)
    assert "names step 0, but the run is finished and has a checkpoint of step 2000" in told
    (run / "checkpoints" / "last").unlink()
    assert main(["eval", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["step"] == 2000


def test_a_damaged_oracle_is_told_before_anything_is_measured(capsys, digits_run, tmp_path):
    oracle = shutil.copytree(digits_run, tmp_path / "oracle")
    (oracle / "summary.json").write_bytes(bytes(200))
    told = failing(capsys, "noise", "gradient", digits_run, "--oracle", oracle, "--episodes", 256,
                   "--checkpoints", 1, "-o", tmp_path / "g.png")  # fmt: skip
    assert "summary.json" in told


def test_a_row_from_after_the_checkpoint_that_knows_it(capsys, smoke_run, tmp_path):
    run = shutil.copytree(smoke_run, tmp_path / "run")
    (run / "summary.json").unlink()
    shutil.rmtree(run / "checkpoints" / "000000002000")
    (run / "checkpoints" / "last").write_text("000000001000\n")
    kept = json.loads((run / "checkpoints" / "000000001000" / "state.json").read_text())["state"]
    content = (run / "metrics.jsonl").read_bytes()
    known = content[: kept["metrics_bytes"]]
    assert b'"step": 1000,' in known
    forged = known.replace(b'"step": 1000,', b'"step": 1500,') + content[len(known) :]
    (run / "metrics.jsonl").write_bytes(forged)
    reseal(run)
    assert "its row of step 1500 is newer than the checkpoint" in failing(capsys, "resume", run)
    assert (run / "metrics.jsonl").read_bytes() == forged
