import hashlib
import itertools

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from irrl.errors import UserError
from irrl.tasks import make_config
from irrl.tasks.counting import resnet
from irrl.tasks.counting.model import (
    CUBES_FROM_TO,
    Model,
    as_floats,
    dropout,
    initial_model,
)
from irrl.tasks.counting.render import project
from irrl.tasks.counting.resnet import ResNet18, fetched_weights, load_weights
from irrl.tasks.counting.scene import KINDS, MARGIN, TABLE_RADIUS, Scene, corners_of, radii_of
from tests.tasks.counting.samples import torchvision_weights

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def weights_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "resnet18.pth"
    torch.save(torchvision_weights(), path)
    return path


# --- the paper's network ---


def test_the_paper_network_has_the_papers_shapes(weights_file):
    config = make_config("counting", "paper", backbone_weights=str(weights_file))
    model = initial_model(config, CPU)
    pictures = torch.randint(0, 256, (2, 256, 256, 3), dtype=torch.uint8)
    features, goals = model.encoder.frozen_features(pictures), torch.tensor([0, 3])
    assert features.shape == (2, 128, 32, 32)  # conv3 of ResNet-18
    views = model.encoder.encode(features, goals, None)
    assert views.shape == (2, 256)
    assert model.goal.weight.shape == (4, 10)
    assert isinstance(model.core, torch.nn.RNNCell) and model.core.weight_ih.shape == (256, 266)
    states = model.states(views[None], goals)
    outputs = model.outputs(states)
    assert [tuple(x.shape) for x in outputs] == [(1, 2, 3), (1, 2), (1, 2, 7)]
    torch.testing.assert_close(outputs.log_policy.exp().sum(-1), torch.ones(1, 2))


def test_the_backbone_learns_nothing(weights_file):
    config = make_config("counting", "paper", backbone_weights=str(weights_file), resolution=32)
    model = initial_model(config, CPU)
    names = {name for name, p in model.named_parameters() if p.requires_grad}
    assert not any("backbone" in name for name in names)
    assert {"encoder.conv1.weight", "encoder.conv2.weight", "goal.weight"} <= names
    features = model.encoder.frozen_features(torch.zeros(1, 32, 32, 3, dtype=torch.uint8))
    assert not features.requires_grad
    assert model.encoder.encode(features, torch.tensor([0]), None).requires_grad


def slow_resnet(tensors, x):
    """The same in double precision, layer by layer from the names in the file."""
    t = {name: tensor.double() for name, tensor in tensors.items()}

    def norm(x, name):
        shape = (1, -1, 1, 1)
        mean, var = t[f"{name}.running_mean"].view(shape), t[f"{name}.running_var"].view(shape)
        return (x - mean) / (var + 1e-5).sqrt() * t[f"{name}.weight"].view(shape) + t[
            f"{name}.bias"
        ].view(shape)

    def conv(x, name, stride, padding):
        return torch.nn.functional.conv2d(x, t[f"{name}.weight"], None, stride, padding)

    x = (x.double() - torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)) / torch.tensor(
        [0.229, 0.224, 0.225]
    ).view(3, 1, 1)
    x = torch.nn.functional.max_pool2d(norm(conv(x, "conv1", 2, 3), "bn1").relu(), 3, 2, 1)
    for block in ("layer1.0", "layer1.1", "layer2.0", "layer2.1"):
        stride = 2 if block == "layer2.0" else 1
        inner = norm(conv(x, f"{block}.conv1", stride, 1), f"{block}.bn1").relu()
        inner = norm(conv(inner, f"{block}.conv2", 1, 1), f"{block}.bn2")
        if f"{block}.downsample.0.weight" in t:
            x = norm(conv(x, f"{block}.downsample.0", 2, 0), f"{block}.downsample.1")
        x = (inner + x).relu()
    return x


def test_the_backbone_is_resnet_18(weights_file):
    backbone = ResNet18()
    load_weights(backbone, str(weights_file))
    pictures = as_floats(torch.randint(0, 256, (2, 64, 64, 3), dtype=torch.uint8))
    wanted = slow_resnet(torchvision_weights(), pictures).float()
    torch.testing.assert_close(backbone.train()(pictures), wanted, rtol=1e-3, atol=1e-4)


def test_weights_as_safetensors(weights_file, tmp_path):
    save_file(torchvision_weights(), tmp_path / "resnet18.safetensors")
    one, other = ResNet18(), ResNet18()
    load_weights(one, str(weights_file))
    load_weights(other, str(tmp_path / "resnet18.safetensors"))
    for name, tensor in one.state_dict().items():
        torch.testing.assert_close(tensor, other.state_dict()[name])


# --- weights that are not there, or wrong ---


def test_missing_and_misshapen_layers(tmp_path):
    tensors = torchvision_weights()
    missing = {n: t for n, t in tensors.items() if n != "layer2.1.conv2.weight"}
    torch.save(missing, tmp_path / "missing.pth")
    with pytest.raises(UserError, match=r"has no layer layer2\.1\.conv2\.weight"):
        load_weights(ResNet18(), str(tmp_path / "missing.pth"))
    torch.save({**tensors, "conv1.weight": torch.zeros(64, 1, 7, 7)}, tmp_path / "grey.pth")
    with pytest.raises(UserError, match=r"conv1\.weight has shape \(64, 1, 7, 7\), expected"):
        load_weights(ResNet18(), str(tmp_path / "grey.pth"))


def test_files_that_hold_no_weights(tmp_path):
    with pytest.raises(UserError, match="there is no file"):
        load_weights(ResNet18(), str(tmp_path / "nowhere.pth"))
    for name in ("text.pth", "text.safetensors"):
        (tmp_path / name).write_text("no weights at all")
        with pytest.raises(UserError, match="holds no weights, or is damaged"):
            load_weights(ResNet18(), str(tmp_path / name))
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(UserError, match="expected tensors by name"):
        load_weights(ResNet18(), str(tmp_path / "list.pth"))
    torch.save({"conv1.weight": print}, tmp_path / "code.pth")
    with pytest.raises(UserError, match="holds no weights, or is damaged"):
        load_weights(ResNet18(), str(tmp_path / "code.pth"))


def test_weights_are_fetched_once_and_verified(weights_file, tmp_path, monkeypatch):
    content = weights_file.read_bytes()
    asked = []

    def read_url(url, name):
        asked.append(url)
        return content

    monkeypatch.setenv("IRRL_CACHE", str(tmp_path))
    monkeypatch.setattr(resnet, "read_url", read_url)
    with pytest.raises(UserError, match="came with a wrong SHA-256"):
        fetched_weights()
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(resnet, "SHA256_BEGINS", hashlib.sha256(content).hexdigest()[:8])
    path = fetched_weights()
    assert path == fetched_weights() == tmp_path / "backbones" / "resnet18-f37072fd.pth"
    assert asked == ["https://download.pytorch.org/models/resnet18-f37072fd.pth"] * 2
    load_weights(ResNet18(), None)
    path.write_bytes(content[:-1])
    with pytest.raises(UserError, match=r"is damaged.*remove it"):
        fetched_weights()


def test_no_network_says_what_to_put_where(tmp_path, monkeypatch):
    def read_url(url, name):
        raise OSError("nobody there")

    monkeypatch.setenv("IRRL_CACHE", str(tmp_path))
    monkeypatch.setattr(resnet, "read_url", read_url)
    with pytest.raises(UserError, match=r"nobody there.*by hand: put https.* at .*backbones"):
        load_weights(ResNet18(), None)


# --- parts of it ---


def test_the_small_encoder_looks_for_the_goal_where_cubes_can_be():
    model = initial_model(make_config("counting", "smoke"), CPU)
    pictures = torch.zeros(3, 32, 32, 3, dtype=torch.uint8)
    pictures[1, 12:16, 8:12] = 200
    pictures[2, :7] = pictures[2, 25:] = 200  # above and below the table
    features = model.encoder.frozen_features(pictures)
    assert features.shape == (3, 18, 32, 3)
    first, second = (model.encoder.encode(features, torch.full((3,), n), None) for n in (0, 3))
    assert (first[0] != first[1]).any() and (first[1] != second[1]).any()
    assert (first[0] == first[2]).all()


def test_the_small_encoder_knows_near_from_far():
    """A pattern gives one vector at the front of the table, and another at its back."""
    model = initial_model(make_config("counting", "smoke"), CPU)
    pictures = torch.zeros(2, 32, 32, 3, dtype=torch.uint8)
    pictures[0, 10:14, 8:12] = pictures[1, 18:22, 8:12] = 200
    goals = torch.tensor([0, 0])
    near, far = model.encoder.encode(model.encoder.frozen_features(pictures), goals, None)
    assert (near - far).abs().max() > 1e-3


def test_all_cubes_lie_in_the_rows_that_are_looked_at():
    """Those of each kind that are as far to the edge of the table as cubes may be."""
    for kind, turn in itertools.product(range(len(KINDS)), np.linspace(0.0, 2 * np.pi, 24)):
        reach = TABLE_RADIUS - MARGIN - radii_of(np.array([kind]))[0]
        place = np.float32([[reach * np.cos(turn), reach * np.sin(turn)]])
        for angle in np.linspace(0.0, np.pi / 2, 7):
            scene = Scene(0, np.array([kind]), place, np.float32([angle]), -1)
            rows = project(corners_of(scene), 0, 1)[..., 1]
            assert CUBES_FROM_TO[0] < rows.min() and rows.max() < CUBES_FROM_TO[1]


def test_the_policy_may_be_told_the_answer_but_does_not_change_it():
    model = initial_model(make_config("counting", "smoke", head_width=5), CPU)
    states = torch.randn(4, 32, requires_grad=True)
    outputs = model.outputs(states)
    assert outputs.log_policy.shape == (4, 3) and outputs.value.shape == (4,)
    learned = (outputs.log_policy[:, 0] + outputs.value).sum()
    of_count, of_states = torch.autograd.grad(
        learned, [model.count.weight, states], allow_unused=True
    )
    assert of_count is None and of_states.abs().max() > 0
    before = outputs.log_policy
    with torch.no_grad():
        model.count.bias[2] += 5.0
    assert (model.outputs(states).log_policy != before).any()


def test_features_are_left_out_by_chance_and_only_then():
    ones = torch.ones(200, 50)
    assert dropout(ones, 0.3, None) is ones
    first, again = (dropout(ones, 0.3, torch.Generator().manual_seed(5)) for _ in range(2))
    assert (first == again).all()
    assert first.unique().tolist() == pytest.approx([0.0, 1 / 0.7])
    assert first.mean().item() == pytest.approx(1.0, abs=0.05)


def test_the_first_weights_are_the_usual_ones_and_come_from_the_seed():
    config = make_config("counting", "smoke", initial_policy=0.01)
    model, same = initial_model(config, CPU), initial_model(config, CPU)
    for name, parameter in model.named_parameters():
        assert (parameter == same.get_parameter(name)).all(), name
    other = initial_model(make_config("counting", "smoke", seed=1), CPU)
    assert (other.count.weight != model.count.weight).all()
    bounds = {"encoder.convolutions.1.weight": 8 * 9 / 6, "core.weight_ih": 32, "count.bias": 32}
    for name, inputs in bounds.items():
        largest = model.get_parameter(name).abs().max().item()
        assert 0.7 * inputs**-0.5 < largest <= inputs**-0.5
    assert model.policy.weight.abs().max() <= 0.01 * 32**-0.5


@pytest.mark.parametrize("core", ["rnn", "gru"])
def test_states_are_those_of_one_step_after_another(core):
    model = Model(make_config("counting", "smoke", core=core))
    views, goals = torch.randn(4, 5, 32), torch.tensor([0, 1, 2, 3, 0])
    states = model.states(views, goals)
    state = torch.zeros(5, 32)
    for t in range(4):
        state = model.next_state(views[t], goals, state)
        torch.testing.assert_close(states[t], state)


def test_pictures_become_numbers():
    picture = np.zeros((1, 2, 4, 3), np.uint8)
    picture[0, 1, 2] = (255, 51, 0)
    numbers = as_floats(torch.from_numpy(picture))
    assert numbers.shape == (1, 3, 2, 4)
    assert numbers[0, :, 1, 2].tolist() == pytest.approx([1.0, 0.2, 0.0])
