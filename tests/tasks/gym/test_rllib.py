"""Runs on a cluster of this machine: the same folder as on one machine, stopped and resumed."""

import json
import subprocess
import sys

import pytest

from irrl.cli.main import main
from irrl.runs.checkpoint import Checkpoint
from irrl.tasks import make_config, open_run
from irrl.tasks.gym.evaluate import play_episodes
from irrl.tasks.gym.learner import opened
from tests.helpers.command import failing
from tests.helpers.runs import run_in, stopped_after
from tests.tasks.gym import own

RLLIB = {"engine": "rllib", "steps": 1_600, "evaluate_every": 400, "checkpoint_every": 400}
DOORS = {"env": f"{own.__name__}:Doors-v0", "mode": "labels", "labels": 2}


def flags_of(settings):
    return [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]


def test_a_run_of_the_command_line_is_stopped_resumed_and_looked_at(tmp_path, capsys, local_ray):
    folder, here = tmp_path / "run", tmp_path / "here"
    stopped_after(3, folder, "gym", **RLLIB)  # at step 800; the checkpoint before is at 400
    assert main(["resume", str(folder)]) == 0
    run, like = open_run(folder), run_in(here, "gym", **{**RLLIB, "engine": "sb3"})
    assert [row["step"] for row in run.rows()] == [0, 400, 800, 1_200, 1_600]
    assert [set(row) for row in run.rows()] == [set(row) for row in like.rows()]
    assert set(run.summary()) == set(like.summary())
    assert run.summary()["steps"] == 1_600 and run.summary()["cpu_seconds"] > 0
    assert run.provenance()["resumed"][0]["step"] == 400
    for name in ("checkpoints", "rllib"):
        steps = sorted(int(path.name) for path in (folder / name).iterdir() if path.is_dir())
        assert steps == [1_200, 1_600]
    capsys.readouterr()
    assert main(["eval", str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["n_skills"] == pytest.approx(run.rows()[-1]["n_skills"])
    picture = tmp_path / "play.png"
    assert main(["play", str(folder), "--seed", "0", "-o", str(picture)]) == 0
    assert picture.is_file()


def test_an_asynchronous_recurrent_agent_learns_from_a_judge_of_trajectories(tmp_path, local_ray):
    settings = {**DOORS, "agent": "recurrent-appo", "pay": "differences", "schedule": "cosine"}
    run = run_in(tmp_path / "run", "gym", **{**RLLIB, **settings, "steps": 800})
    assert run.is_finished and run.rows()[-1]["step"] >= 800
    assert run.rows()[-1]["discriminator_batches"] >= 1
    learner = opened(run.config, run.last_checkpoint())
    played = play_episodes(run.config, learner.described, learner.agent, learner.model, 4)
    learner.close()
    assert len(played) == 4


def test_a_checkpoint_of_rllib_that_was_altered_is_not_loaded(tmp_path):
    from irrl.tasks.gym.rllib_learner import THEIRS, digest_of_folder, theirs_of

    path = tmp_path / THEIRS / f"{400:012d}" / "learner"
    path.mkdir(parents=True)
    (path / "state.pkl").write_bytes(b"all")
    checkpoint = Checkpoint(400, {}, {"rllib_sha256": digest_of_folder(path.parent)})
    assert theirs_of(tmp_path, checkpoint) == path.parent
    (path / "state.pkl").write_bytes(b"other")
    with pytest.raises(ValueError, match="missing or altered"):
        theirs_of(tmp_path, checkpoint)


# --- what is refused, in one line ---


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"agent": "sac"}, "engine rllib has no agent sac"),
        ({"engine": "sb3", "agent": "appo"}, "engine sb3 has no agent appo"),
        ({"engine": "sb3", "address": "127.0.0.1:1"}, "address is for --engine rllib"),
        ({"engine": "rlib"}, "Did you mean 'rllib'"),
        ({"observe": "inputs"}, "raw observations"),
        ({"device": "cuda"}, "learns on the cpu"),
        ({"env_runners": 0}, "env-runners must be at least 1"),
        ({"env": "ap_gym:CircleSquare-v0", "mode": "labels"}, "asks for predictions"),
        ({"address": "nowhere"}, "address must be HOST:PORT"),
        ({"address": "127.0.0.1:1"}, "no Ray cluster answers at 127.0.0.1:1"),
    ],
)
def test_settings_that_cannot_be_leave_nothing_behind(tmp_path, capsys, settings, words):
    flags = flags_of({**RLLIB, **settings})
    out = tmp_path / "run"
    said = failing(capsys, "train", "gym", "--preset", "smoke", *flags, "--out", out)
    assert words in said and not out.exists()


def test_more_runners_than_a_cluster_has(tmp_path, capsys, local_ray):
    flags = flags_of({**RLLIB, "env_runners": 99})
    out = tmp_path / "run"
    said = failing(capsys, "train", "gym", "--preset", "smoke", *flags, "--out", out)
    assert "env-runners 99 needs as many free cores" in said and not out.exists()


@pytest.mark.parametrize(
    ("missing", "words"), [("ray", "needs Ray"), ("ray.rllib", "without RLlib")]
)
def test_without_ray_or_its_rllib(tmp_path, capsys, monkeypatch, missing, words):
    monkeypatch.setitem(sys.modules, missing, None)
    flags = flags_of(RLLIB)
    said = failing(capsys, "train", "gym", "--preset", "smoke", *flags, "--out", tmp_path / "run")
    assert words in said and "irrl[rllib]" in said


def test_a_version_that_does_not_fit(tmp_path, capsys, monkeypatch):
    import ray

    monkeypatch.setattr(ray, "__version__", "2.9.3")
    flags = flags_of(RLLIB)
    said = failing(capsys, "train", "gym", "--preset", "smoke", *flags, "--out", tmp_path / "run")
    assert "needs ray >=2.60,<2.61, found 2.9.3" in said


def test_a_run_may_go_on_elsewhere():
    config = make_config("gym", "smoke", **RLLIB)
    assert {"address", "env_runners"} <= set(config.may_change)


# --- a node dies ---

KILLED = """
import os, sys
from pathlib import Path
from irrl.runs.ray_cluster import import_rllib
ray = import_rllib(None)
from ray.cluster_utils import Cluster
node = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 10**8}
cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
second = cluster.add_node(**node)
ray.init(cluster.address, log_to_driver=False)
from irrl.tasks import begin, make_config, train
config = make_config("gym", "smoke", engine="rllib", agent=sys.argv[1], env_runners=2, steps=8_000)
run, prepared = begin(Path(sys.argv[2]), config)
nodes = {prepared.algorithm.env_runner_group.num_healthy_remote_workers()}
def kill(row):
    if 2_000 <= row["step"] and len(cluster.list_all_nodes()) == 2:
        cluster.remove_node(second, allow_graceful=False)
run.listeners.append(kill)
summary = train(run, prepared)
print("runners", nodes, "nodes", len(cluster.list_all_nodes()), "steps", summary["steps"])
ray.shutdown(); cluster.shutdown()
"""


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["ppo", "appo"])
def test_training_goes_on_when_a_node_is_killed(tmp_path, agent):
    result = subprocess.run(
        [sys.executable, "-c", KILLED, agent, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert "runners {2} nodes 1 steps 8" in result.stdout
    assert open_run(tmp_path / "run").is_finished
