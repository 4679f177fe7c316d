"""Learning to count through the command line, on scenes really rendered."""

import json
import shutil

import pytest
from PIL import Image

from irrl.cli.main import main
from tests.helpers.bonuses import REFUSED_BONUSES
from tests.helpers.command import failed, failing


def test_a_smoke_run_leaves_everything_behind(counting_run):
    rows = [json.loads(line) for line in (counting_run / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 64, 128, 192, 256]
    for name in (
        "accuracy_percent", "well_founded_percent", "moves", "discriminator_posterior",
        "discriminator_entropy",
        "discriminator_calibration_error", "share_clipped", "reward_mean", "reward_std",
        "train_discriminator_accuracy_percent", "train_moves", "train_reward_mean",
        "train_reward_std", "train_policy_entropy", "train_policy_clip_fraction",
        "train_policy_kl",
    ):  # fmt: skip
        assert name in rows[-1], name
    summary = json.loads((counting_run / "summary.json").read_text())
    assert (
        summary["accuracy_percent"] == rows[-1]["accuracy_percent"] and summary["episodes"] == 256
    )


def test_eval_repeats_the_last_row(irrl, counting_run):
    found = json.loads(irrl("eval", counting_run, "--json").stdout)
    rows = (counting_run / "metrics.jsonl").read_text().splitlines()
    last = json.loads(rows[-1])
    assert found["step"] == 256
    assert all(last[name] == value for name, value in found.items())
    few = json.loads(irrl("eval", counting_run, "--eval-scenes", "2", "--json").stdout)
    assert few["accuracy_percent"] in (0.0, 50.0, 100.0)


def test_play_plots_a_sheet_and_a_film(irrl, counting_run, tmp_path):
    result = irrl("play", counting_run, counting_run, "--episodes", "2", "-o", "walks.png")
    assert result.returncode == 0, result.stderr
    seed, sheet, film = result.stdout.split("\n")[:3]
    assert seed.startswith("seed ") and (sheet, film) == ("walks.png", "walks.gif")
    with Image.open(tmp_path / "walks.gif") as moving:
        assert moving.n_frames >= 2
    again = irrl("play", counting_run, counting_run, "--episodes", "2", "--seed", seed.split()[1],
                 "-o", "again.png")  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again.png").read_bytes() == (tmp_path / "walks.png").read_bytes()
    assert failed(irrl("play", counting_run, "--episodes", "33"), "episodes must be at most 32")


def test_compare_and_plot_with_scripted_baselines(irrl, scenes_folder, counting_run, tmp_path):
    flags = ["--preset", "smoke", "--scenes", scenes_folder]
    result = irrl("compare", "counting", *flags, "--rewards", "clipped-log,accuracy",
                  "--baselines", "stay,sweep", "--seeds", "1", "--workers", "1",
                  "--out", "all")  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "well founded" in result.stdout and (tmp_path / "all" / "comparison.png").exists()
    rows = json.loads((tmp_path / "all" / "comparison.json").read_text())["rewards"]
    assert list(rows) == [
        "clipped-log",
        "accuracy",
        "stay (scripted baseline)",
        "sweep (scripted baseline)",
    ]
    assert rows["stay (scripted baseline)"]["moves"]["values"] == [0.0]
    assert rows["sweep (scripted baseline)"]["moves"]["values"] == [6.0]
    result = irrl("plot", "all", counting_run, "-o", "both.svg")
    assert result.returncode == 0, result.stderr
    text = (tmp_path / "both.svg").read_text()
    assert "stay" in text and "sweep" in text and "clipped-linear" in text
    (tmp_path / "other").mkdir()
    other = ["train", "counting", *flags, "--episodes", "64", "--out", tmp_path / "other" / "run"]
    assert main([str(a) for a in other]) == 0
    assert failed(irrl("plot", "all", "other"), "runs with different episodes do not compare")


def test_scripted_baselines_that_are_not_there(capsys):
    command = ["compare", "counting", "--preset", "smoke", "--baselines"]
    said = failing(capsys, *command, "stand")
    assert "unknown scripted baseline 'stand'" in said and "stay, random, sweep" in said
    skills = failing(capsys, "compare", "skills", "--baselines", "stay")
    assert "skills has no scripted baselines" in skills
    none = failing(capsys, *command, "stay", "--baseline-seeds", "0")
    assert "baseline-seeds must be at least 1" in none


def test_a_report_shows_walks_or_says_why_not(irrl, scenes_folder, counting_run, tmp_path):
    result = irrl("report", counting_run, "-o", "report.html")
    assert result.returncode == 0, result.stderr
    text = (tmp_path / "report.html").read_text()
    assert '<img src="data:image/png;base64,' in text and "Walks around the same scenes" in text
    assert irrl("figure", "case-study", counting_run, "-o", "walks.png").returncode == 0
    assert (tmp_path / "walks.png").stat().st_size > 10_000

    lost = shutil.copytree(counting_run, tmp_path / "lost")
    config = json.loads((lost / "config.json").read_text())
    (lost / "config.json").write_text(json.dumps({**config, "scenes": "gone"}))
    assert irrl("report", lost, "-o", "report.html", "--force").returncode == 0
    assert "No picture: there are no scenes in gone" in (tmp_path / "report.html").read_text()


def test_an_oracle_run(irrl, scenes_folder, counting_run, tmp_path):
    result = irrl("train", "counting", "--preset", "smoke", "--scenes", scenes_folder,
                  "--oracle", counting_run, "--reward", "clipped-log", "--out", "run")  # fmt: skip
    assert result.returncode == 0, result.stderr
    settings = json.loads((tmp_path / "run" / "config.json").read_text())
    assert settings["oracle"] == str(counting_run)


# --- bad input: one clear line, exit code 2, nothing lost ---


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["--behaviour-policy", "run"],
            ["unknown behaviour-policy 'run'", "learned, stay, random, sweep"],
        ),
        (["--encoder", "resnet"], ["unknown encoder 'resnet'", "Did you mean 'resnet18'"]),
        (["--prior", "flat"], ["unknown prior 'flat'", "sampler, uniform"]),
        (["--core", "lstm"], ["unknown core 'lstm'"]),
        *REFUSED_BONUSES,
        (["--bonus", "disagreement", "--behaviour-policy", "stay"], ["would reward nobody"]),
        (["--resolution", "100"], ["resolution must be a divisor of 256"]),
        (["--resolution", "2"], ["resolution 2 is too small"]),
        (["--encoder-widths", "8,x"], ["encoder-widths must be channels with commas"]),
        (["--encoder-widths", "0"], ["encoder-widths must be channels with commas"]),
        (["--encoder-halvings", "0"], ["encoder-halvings must be at least 1"]),
        (["--head-width", "-1"], ["head-width must be zero or positive"]),
        (["--entropy-schedule", "linear"], ["unknown entropy-schedule 'linear'"]),
        (["--max-moves", "0"], ["max-moves must be between 1 and 11"]),
        (["--max-moves", "12"], ["max-moves must be between 1 and 11"]),
        (["--dropout", "1"], ["dropout must be at least 0 and below 1"]),
        (["--discount", "1.5"], ["discount must be between 0 and 1"]),
        (["--clip", "0"], ["clip must be positive"]),
        (["--minibatch-episodes", "65"], ["minibatch-episodes must be at most batch-episodes"]),
        (["--checkpoint-every", "100"], ["checkpoint-every must be a multiple of evaluate-every"]),
        (["--train-scenes", "0"], ["train-scenes must be at least 1"]),
        (["--train-scenes", "65"], ["train-scenes asks for 65 scenes", "has 64"]),
        (["--eval-scenes", "33"], ["eval-scenes asks for 33 scenes", "has 32"]),
        (["--backbone-weights", "x.pth"], ["backbone-weights needs encoder resnet18"]),
        (
            ["--encoder", "resnet18", "--backbone-weights", "x.pth"],
            ["backbone-weights: there is no file x.pth"],
        ),
        (["--device", "toaster"], ["device toaster cannot be used here"]),
        (["--oracle", "nowhere"], ["nowhere is not a run folder"]),
        (["--oracle", ""], ["oracle must be the folder of a run"]),
        (
            ["--oracle", "x", "--behaviour-policy", "stay"],
            ["behaviour-policy stay does not learn"],
        ),
        (["--scenes", ""], ["scenes must be a folder"]),
        (
            ["--scenes", "no such"],
            [
                "there are no scenes in no such",
                "`irrl data scenes --train 64 --eval 32 --seed 0 --out 'no such' --resolution 32`",
            ],
        ),
        (["--resolution", "64"], ["has no train pictures of 64 x 64", "--resolution 64` makes"]),
    ],
)
def test_impossible_settings(scenes_folder, tmp_path, capsys, flags, words):
    where = [] if "--scenes" in flags else ["--scenes", scenes_folder]
    out = tmp_path / "run"
    said = failing(capsys, "train", "counting", "--preset", "smoke", "--out", out, *where, *flags)
    assert all(word in said for word in words), said
    assert not out.exists()


def test_no_network_and_no_weights(irrl, scenes_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("IRRL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    result = irrl("train", "counting", "--preset", "smoke", "--encoder", "resnet18",
                  "--scenes", scenes_folder, "--out", "run")  # fmt: skip
    assert failed(result, "could not be fetched", "by hand: put https://download.pytorch.org")
    assert list(tmp_path.iterdir()) == []


def test_training_that_comes_apart_says_so(scenes_folder, tmp_path, capsys):
    flags = ["--preset", "smoke", "--scenes", scenes_folder, "--learning-rate", "1e30"]
    said = failing(capsys, "train", "counting", *flags, "--out", tmp_path / "run")
    assert "training diverged before step" in said and "lower learning-rate" in said


def test_cut_pictures_are_noticed_before_anything_is_written(scenes_folder, tmp_path, capsys):
    folder = shutil.copytree(scenes_folder, tmp_path / "scenes")
    path = folder / "images-32" / "eval.bin"
    path.write_bytes(path.read_bytes()[:-1])
    flags = ["--preset", "smoke", "--scenes", folder]
    said = failing(capsys, "train", "counting", *flags, "--out", tmp_path / "run")
    assert "cut short" in said and not (tmp_path / "run").exists()


def test_nothing_to_measure(counting_run, capsys):
    said = failing(capsys, "noise", "measure", counting_run, "--oracle", counting_run)
    assert "noise cannot be measured on runs of counting" in said
