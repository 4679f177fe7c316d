"""What is looked at before a run begins, and how often MNIST is read for it."""

import pytest
import torch

from irrl.errors import UserError
from irrl.runs.checkpoint import Checkpoint
from irrl.tasks import make_config
from irrl.tasks.digits import mnist
from irrl.tasks.digits.learner import to_checkpoint
from irrl.tasks.digits.train import check, prepare


@pytest.fixture
def read(monkeypatch):
    """The names of the files whose content was looked at."""
    names = []

    def is_genuine(name, content, genuine=mnist.is_genuine):
        names.append(name)
        return genuine(name, content)

    monkeypatch.setattr(mnist, "is_genuine", is_genuine)
    return names


def test_a_check_reads_no_digits(mnist_cache, read):
    check(make_config("digits", "smoke"))
    assert read == []


def test_a_check_wants_mnist_a_device_and_an_oracle_that_can_judge(
    mnist_cache, digits_run, tmp_path, monkeypatch
):
    with pytest.raises(UserError, match="device toaster cannot be used here"):
        check(make_config("digits", "smoke", device="toaster"))
    with pytest.raises(UserError, match="its glimpses is 6, here it is 7"):
        check(make_config("digits", "smoke", oracle=str(digits_run), glimpses=7))
    monkeypatch.setenv("IRRL_CACHE", str(tmp_path / "nothing"))
    with pytest.raises(UserError, match="no MNIST in"):
        check(make_config("digits", "smoke"))


def test_preparing_reads_each_file_once(mnist_cache, read):
    prepare(make_config("digits", "smoke"), None)
    assert sorted(read) == sorted(mnist.FILES)


def test_a_checkpoint_is_gone_on_with(mnist_cache):
    config = make_config("digits", "smoke")
    new = prepare(config, None)
    assert (new.epoch, new.is_new) == (0, True)
    again = prepare(config, Checkpoint(3, *to_checkpoint(new.learner)))
    assert (again.epoch, again.is_new) == (3, False)
    for a, b in zip(new.learner.parameters(), again.learner.parameters(), strict=True):
        assert torch.equal(a, b)
