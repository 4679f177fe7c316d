"""ResNet-18 up to its second stage, frozen; parameters are named as torchvision names them.

The weights come from a file the user names, or from torchvision's own, fetched once.
"""

import hashlib
import http.client
from pathlib import Path

import torch
from safetensors.torch import load as load_safetensors
from torch import Tensor, nn
from torch.nn import functional

from irrl.errors import UserError
from irrl.nn.cache import cache_folder, read_url
from irrl.runs.files import write_atomic

URL = "https://download.pytorch.org/models/resnet18-f37072fd.pth"
FILE = "resnet18-f37072fd.pth"
SHA256_BEGINS = "f37072fd"
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's pictures
CHANNELS = 128  # that come out, at an eighth of the resolution


class FrozenNorm(nn.Module):
    """Batch normalisation as in evaluation."""

    weight: Tensor
    bias: Tensor
    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        for name in ("weight", "running_var"):
            self.register_buffer(name, torch.ones(channels))
        for name in ("bias", "running_mean"):
            self.register_buffer(name, torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        return functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, training=False
        )


class Block(nn.Module):
    """Two convolutions, added to what came in."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = FrozenNorm(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = FrozenNorm(channels)
        self.downsample = None
        if stride > 1:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), FrozenNorm(channels)
            )

    def forward(self, x: Tensor) -> Tensor:
        inner = functional.relu(self.bn1(self.conv1(x)))
        direct = x if self.downsample is None else self.downsample(x)
        return functional.relu(self.bn2(self.conv2(inner)) + direct)


class ResNet18(nn.Module):
    """(n, 3, side, side) in [0, 1] -> (n, 128, side / 8, side / 8): conv3 of the ResNet paper."""

    mean: Tensor
    std: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = FrozenNorm(64)
        self.layer1 = nn.Sequential(Block(64, 64, 1), Block(64, 64, 1))
        self.layer2 = nn.Sequential(Block(64, CHANNELS, 2), Block(CHANNELS, CHANNELS, 1))
        for name, values in (("mean", MEAN), ("std", STD)):
            self.register_buffer(name, torch.tensor(values)[:, None, None], persistent=False)
        self.requires_grad_(False)

    @torch.no_grad()
    def forward(self, pictures: Tensor) -> Tensor:
        x = functional.relu(self.bn1(self.conv1((pictures - self.mean) / self.std)))
        return self.layer2(self.layer1(functional.max_pool2d(x, 3, 2, 1)))


# --- weights ---


def load_weights(backbone: ResNet18, file: str | None) -> None:
    """Fill a backbone from a file, or from torchvision's own if none is named."""
    path = Path(file) if file is not None else fetched_weights()
    tensors = read_weights(path)
    for name, tensor in backbone.state_dict().items():
        found = tensors.get(name)
        if found is None:
            raise UserError(
                f"{path} is not of ResNet-18 as torchvision saves it: it has no layer {name}"
            )
        if found.layout != torch.strided or not torch.isfinite(found).all():
            raise UserError(f"{path} is damaged: {name} must be a dense tensor of finite numbers")
        if found.shape != tensor.shape:
            raise UserError(
                f"{path} is not of ResNet-18: {name} has shape {tuple(found.shape)}, expected "
                f"{tuple(tensor.shape)}"
            )
        tensor.copy_(found)


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors in a file, .safetensors or what torch.save writes; no code of it is run."""
    check_file(path)
    try:
        if path.suffix == ".safetensors":
            return load_safetensors(path.read_bytes())
        content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # whatever an unpickler makes of damaged bytes; it runs no code
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path} holds no weights, or is damaged: {reason}") from None
    if not isinstance(content, dict) or not all(isinstance(t, Tensor) for t in content.values()):
        raise UserError(f"{path} holds no weights: expected tensors by name")
    return content


def check_file(path: Path) -> None:
    if not path.is_file():
        raise UserError(f"backbone-weights: there is no file {path}")


def fetched_weights() -> Path:
    """Torchvision's file in the cache folder, fetched the first time."""
    path = cache_folder("backbones") / FILE
    by_hand = f"by hand: put {URL} at {path}, or name a file with --backbone-weights"
    if path.is_file():
        if not _is_genuine(path.read_bytes()):
            raise UserError(f"{path} is damaged: its SHA-256 is wrong; remove it and try again")
        return path
    try:
        content = read_url(URL, FILE)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise UserError(
            f"the weights of ResNet-18 could not be fetched ({error}); {by_hand}"
        ) from None
    if not _is_genuine(content):
        raise UserError(f"{URL} came with a wrong SHA-256; {by_hand}")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, content)
    return path


def _is_genuine(content: bytes) -> bool:
    return hashlib.sha256(content).hexdigest().startswith(SHA256_BEGINS)
