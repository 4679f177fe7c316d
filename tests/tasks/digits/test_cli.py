"""The whole of digits through the command line, on real MNIST digits."""

import json
import shutil

import pytest
from PIL import Image

from tests.helpers.bonuses import REFUSED_BONUSES
from tests.helpers.command import failed


def settings_of(folder):
    return json.loads((folder / "config.json").read_text())


def test_a_smoke_run_leaves_everything_behind(digits_run):
    rows = [json.loads(line) for line in (digits_run / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 1, 2, 3, 4]
    for name in (
        "accuracy_percent", "glimpses", "share_on_digit", "discriminator_posterior",
        "discriminator_entropy", "discriminator_calibration_error", "share_clipped",
        "reward_mean", "reward_std", "train_discriminator_accuracy_percent", "train_glimpses",
        "train_reward_mean",
    ):  # fmt: skip
        assert name in rows[-1], name
    summary = json.loads((digits_run / "summary.json").read_text())
    assert summary["accuracy_percent"] == rows[-1]["accuracy_percent"]
    assert summary["test_accuracy_percent"] > 0 and summary["test_glimpses"] == 6


def test_eval_looks_at_the_test_digits(irrl, digits_run):
    result = irrl("eval", digits_run, "--json")
    summary = json.loads((digits_run / "summary.json").read_text())
    found = json.loads(result.stdout)
    assert found["step"] == 4
    assert found["test_accuracy_percent"] == summary["test_accuracy_percent"]


def test_eval_on_other_canvases_than_those_of_the_training(irrl, digits_run):
    found = {
        clutter: json.loads(irrl("eval", "--clutter", clutter, digits_run, "--json").stdout)
        for clutter in ("4", "40")
    }
    usual = json.loads(irrl("eval", digits_run, "--json").stdout)
    assert found["4"] == usual
    assert found["40"] != usual
    assert failed(irrl("eval", digits_run, "--placement", "random"), "placement", "uniform")
    assert failed(irrl("eval", digits_run, "--width", "3"), "--width")


def test_stop_and_resume(irrl, digits_run, tmp_path):
    shutil.copytree(digits_run, tmp_path / "run")
    for name in ("summary.json",):
        (tmp_path / "run" / name).unlink()
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "000000000004")
    (tmp_path / "run" / "checkpoints" / "last").write_text("000000000002\n")
    result = irrl("resume", "run")
    assert result.returncode == 0, result.stderr
    for name in ("metrics.jsonl", "checkpoints/000000000004/arrays.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (digits_run / name).read_bytes()


def test_play_draws_a_sheet_and_a_film(irrl, digits_run, tmp_path):
    result = irrl("play", digits_run, digits_run, "--episodes", "3", "-o", "paths.png")
    assert result.returncode == 0, result.stderr
    seed, sheet, film = result.stdout.split("\n")[:3]
    assert seed.startswith("seed ") and (sheet, film) == ("paths.png", "paths.gif")
    with Image.open(tmp_path / "paths.gif") as moving:
        assert moving.n_frames >= 6
        moving.seek(0)
        first = moving.convert("RGB").tobytes()
        moving.seek(5)
        assert moving.convert("RGB").tobytes() != first
    again = irrl("play", digits_run, digits_run, "--episodes", "3", "--seed", seed.split()[1],
                 "-o", "again.png")  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again.png").read_bytes() == (tmp_path / "paths.png").read_bytes()


def test_an_oracle_run_and_the_noise_beside_it(irrl, digits_run, tmp_path):
    result = irrl("train", "digits", "--preset", "smoke", "--oracle", digits_run,
                  "--reward", "clipped-log", "--out", "run")  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert settings_of(tmp_path / "run")["oracle"] == str(digits_run)

    result = irrl("noise", "measure", "run", "--oracle", digits_run, "--episodes", "100",
                  "--checkpoints", "3", "-o", "noise.png")  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "p(symmetric)" in result.stdout and "2nd order" in result.stdout
    table = json.loads((tmp_path / "noise.json").read_text())
    judge = json.loads((digits_run / "summary.json").read_text())
    for name in ("accuracy_percent", "test_accuracy_percent"):
        assert table["oracle"][name] == judge[name]
    said = " ".join(result.stdout.split())
    assert f"test accuracy {judge['test_accuracy_percent']:.1f} %" in said
    (found,) = table["runs"].values()
    assert [row["step"] for row in found["delta"]] == [0, 2, 4]
    assert all(row["samples"] == 100 for row in found["delta"])
    linear = [r for r in found["rewards"] if r["reward"] == "linear"]
    for row, delta in zip(linear, found["delta"], strict=True):
        assert row["bias"] == pytest.approx(delta["mean"], abs=1e-9)
        assert row["predicted_bias"] == pytest.approx(delta["mean"], abs=1e-6)
    assert (tmp_path / "noise.png").stat().st_size > 10_000


def test_a_run_measured_by_itself_has_no_noise(irrl, digits_run, tmp_path):
    result = irrl("noise", "measure", digits_run, "--oracle", digits_run, "--episodes", "50",
                  "--checkpoints", "1000", "-o", "noise.png")  # fmt: skip
    assert result.returncode == 0, result.stderr
    (found,) = json.loads((tmp_path / "noise.json").read_text())["runs"].values()
    assert found["delta"][-1]["mean"] == found["delta"][-1]["std"] == 0.0


def test_compare_and_plot(irrl, digits_run, tmp_path):
    flags = ["--preset", "smoke", "--rewards", "clipped-linear,accuracy", "--epochs", "1"]
    result = irrl("compare", "digits", *flags, "--seeds", "2", "--out", "all")
    assert result.returncode == 0, result.stderr
    assert "accuracy" in result.stdout and (tmp_path / "all" / "comparison.png").exists()
    again = irrl("compare", "digits", *flags, "--seeds", "2", "--out", "all")
    assert again.returncode == 0
    result = irrl(
        "compare", "digits", *flags, "--seeds", "1", "--out", "judged", "--oracle", digits_run
    )
    assert result.returncode == 0, result.stderr
    result = irrl("plot", "all", "judged", "-o", "both.svg")
    assert result.returncode == 0, result.stderr
    assert "clipped-linear (oracle)" in (tmp_path / "both.svg").read_text()


def test_samples_are_drawn(irrl, mnist_cache, tmp_path):
    result = irrl("data", "show", "--placement", "uniform", "--canvas-size", "80", "-o", "s.png")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "s.png").stat().st_size > 10_000


# --- bad input: one clear line, exit code 2, nothing lost ---


def test_no_mnist(irrl, tmp_path, monkeypatch):
    monkeypatch.setenv("IRRL_CACHE", str(tmp_path / "nothing"))
    result = irrl("train", "digits", "--preset", "smoke", "--out", "run")
    assert failed(result, "no MNIST in", "irrl data mnist", "--from FOLDER")
    result = irrl("data", "mnist", "--from", "elsewhere")
    assert failed(result, "elsewhere is not a folder")
    result = irrl("data", "mnist", "--from", ".")
    assert failed(result, "has no train-images-idx3-ubyte")


def test_mnist_is_fetched_from_a_folder(irrl, mnist_cache, tmp_path, monkeypatch):
    monkeypatch.setenv("IRRL_CACHE", str(tmp_path / "cache"))
    result = irrl("data", "mnist", "--from", mnist_cache)
    assert result.returncode == 0, result.stderr
    assert sorted(p.name for p in (tmp_path / "cache" / "mnist").iterdir()) == sorted(
        p.name for p in mnist_cache.iterdir()
    )
    assert "already" in irrl("data", "mnist").stdout


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--canvas-size", "20"], ["canvas-size must be at least 28"]),
        (["--glimpses", "0"], ["glimpses must be at least 1"]),
        (["--glimpse-size", "0"], ["glimpse-size must be at least 1"]),
        (["--clutter-size", "30"], ["clutter-size must be between 1 and 28"]),
        (["--device", "cuda"], ["device cuda cannot be used here"]),
        (["--device", "toaster"], ["device toaster cannot be used here"]),
        (["--model", "cram"], ["unknown model 'cram'", "ram, dt-ram"]),
        *REFUSED_BONUSES,
        (["--scales", "9"], ["more than twice the canvas-size"]),
        (["--discount", "0.5", "--credit", "final"], ["below 1 need credit dense"]),
        (["--batch-size", "1000"], ["at most the number of train images"]),
        (["--fresh-canvases", "perhaps"], ["expected yes or no"]),
        (["--oracle", "nowhere"], ["nowhere is not a run folder"]),
        (["--oracle", ""], ["oracle must be the folder of a run"]),
        (["--moves", "centred", "--object-centred", "no"], ["needs object-centred yes"]),
        (["--centre-light", "1"], ["centre-light needs moves centred"]),
        (["--centre-forgets", "yes"], ["centre-forgets needs a centre-light"]),
        (["--equivariant", "yes"], ["equivariant needs a grid and a policy-memory"]),
        (["--inhibition", "1"], ["inhibition needs a grid and a policy-memory"]),
        (["--inhibition", "-1"], ["inhibition must be zero or positive"]),
        (["--entropy-coef", "1"], ["entropy-coef needs a grid"]),
        (["--normalise-advantage", "yes"], ["unknown normalise-advantage", "standardise"]),
        (["--width", "1000000000000"], ["width must be at most 16384"]),
        (["--device", "meta"], ["device meta cannot be used here"]),
    ],
)
def test_impossible_settings(irrl, mnist_cache, tmp_path, flags, words):
    result = irrl("train", "digits", "--preset", "smoke", "--out", "run", *flags)
    if "--device" in flags and "cuda" in flags:
        torch = pytest.importorskip("torch")
        if torch.cuda.is_available():
            return
    assert failed(result, *words)
    assert not (tmp_path / "run").exists()


def test_training_that_comes_apart_says_so(irrl, mnist_cache):
    result = irrl("train", "digits", "--preset", "smoke", "--learning-rate", "1e30", "--out", "run")
    assert failed(result, "training diverged before step 1", "lower learning-rate")


def test_damaged_mnist_is_noticed_before_anything_is_written(
    irrl, mnist_cache, tmp_path, monkeypatch
):
    shutil.copytree(mnist_cache, tmp_path / "cache" / "mnist")
    path = tmp_path / "cache" / "mnist" / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-1])
    monkeypatch.setenv("IRRL_CACHE", str(tmp_path / "cache"))
    result = irrl("train", "digits", "--preset", "smoke", "--out", "run")
    assert failed(result, "train-images-idx3-ubyte is damaged", "irrl data mnist")
    assert not (tmp_path / "run").exists()


def test_an_oracle_of_another_kind(irrl, digits_run, smoke_run, tmp_path):
    train = ["train", "digits", "--preset", "smoke", "--out", "run", "--oracle"]
    assert failed(irrl(*train, smoke_run), "is a run of skills, not of digits")
    assert not (tmp_path / "run").exists()
    assert failed(irrl(*train, digits_run, "--glimpse-size", "6"), "its glimpse-size is 4")
    result = irrl("noise", "measure", smoke_run, "--oracle", digits_run)
    assert failed(result, "noise cannot be measured on runs of skills")
    result = irrl("noise", "measure", digits_run)
    assert failed(result, "--oracle")


def test_play_needs_something_to_play(irrl, smoke_run, digits_run):
    assert failed(irrl("play", digits_run, smoke_run), "different tasks")
    assert failed(irrl("play", digits_run, "-o", "play.txt"), "must end in .png")
    measure = ["noise", "measure", digits_run, "--oracle", digits_run, "-o", "noise.txt"]
    assert failed(irrl(*measure), "must end in .png")
