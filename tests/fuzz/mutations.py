"""What can happen to a run folder: files cut, altered, exchanged for links, or hostile in content.

A mutation is drawn by Hypothesis as a few small numbers, so that a failing case shrinks to the
simplest of its kind. Altered content may be *resealed*: its digests are made right again, so that
it is the checks behind them that must hold.
"""

import hashlib
import json
import os
import shutil
from typing import NamedTuple

from hypothesis import strategies as st

HOSTILE = (
    None, True, -1, 0, 1, 0.5, -0.0, 1e308, "", "x", "NaN", "\ud800", "a\x00b", "../../etc", [], {},
    [None], [[]], {"a": []}, 10**40, -(10**40), 10**400, 2**63, 10**9, float("nan"), float("inf"),
    "x" * 5000, list(range(2000)), ["deep"],
)  # fmt: skip
DTYPES = ("F8_E4M3", "F8_E5M2", "BF16", "F4", "F16", "F64", "I8", "U64", "BOOL", "C64", "X", "")
KINDS = (
    "value", "value", "value", "row", "row", "header", "floats", "bytes", "bytes", "cut", "zeros",
    "gone", "kind", "last",
)  # fmt: skip
OTHER_KINDS = ("link", "hard link", "dangling", "fifo", "folder", "big")


class Mutation(NamedTuple):
    kind: str
    place: int
    value: int
    resealed: bool


mutations = st.builds(
    Mutation,
    st.sampled_from(KINDS),
    st.integers(0, 100_000),
    st.integers(0, 100_000),
    st.booleans(),
)


def mutate(folder, mutation, decoy):
    """Do it to a folder; ``decoy`` is a file outside that nothing may change."""
    kind, place, value, resealed = mutation
    files = files_of(folder)
    if kind == "value":
        files = [p for p in files if p.suffix == ".json"]
    elif kind == "row":
        files = [folder / "metrics.jsonl"]
    elif kind in ("header", "floats"):
        files = [p for p in files if p.suffix == ".safetensors"]
    elif kind == "last":
        files = [folder / "checkpoints" / "last"]
    path = files[place % len(files)]
    place //= len(files)
    content = path.read_bytes()
    if kind == "kind":
        exchange(path, OTHER_KINDS[value % len(OTHER_KINDS)], decoy)
    elif kind == "gone":
        path.unlink()
    else:
        path.write_bytes(ALTERED[kind](content, place, value))
    if resealed:
        reseal(folder)


def files_of(folder):
    """The files of a run; of its checkpoints those of the first and the last."""
    found = sorted(p for p in folder.rglob("*") if p.is_file())
    steps = sorted({p.parent for p in found if p.name == "state.json"})
    return [p for p in found if p.parent not in steps[1:-1]]


def exchange(path, kind, decoy):
    """Put something else than a plain file of its own in the place of a file."""
    content = path.read_bytes()
    path.unlink()
    if kind == "link":
        path.symlink_to(decoy)
    elif kind == "hard link":
        os.link(decoy, path)
    elif kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(content)
        os.truncate(path, 1 << 40)  # of nothing but holes


# --- content ---


def with_value(content, place, value):
    """JSON with one of its values exchanged, taken out, or joined by another."""
    record = json.loads(content)
    path = paths_in(record)[place % len(paths_in(record))]
    holder = record
    for key in path[:-1]:
        holder = holder[key]
    hostile = HOSTILE[value % len(HOSTILE)]
    deed = value // len(HOSTILE) % 4
    if not path:
        record = hostile
    elif deed == 0:
        del holder[path[-1]]
    elif deed == 1 and isinstance(holder, dict):
        holder["new"] = hostile
    else:
        holder[path[-1]] = hostile
    return dumped(record)


def paths_in(value, before=()):
    """The way to each value of a JSON record."""
    found = [before]
    items = value.items() if isinstance(value, dict) else enumerate(value[:3])
    for key, inner in items:
        if isinstance(inner, dict | list):
            found += paths_in(inner, (*before, key))
        else:
            found.append((*before, key))
    return found


def dumped(record):
    """JSON as others might write it: with NaN, and as deep as one likes."""
    text = json.dumps(record)
    depth = 5000 if '"deep"' in text else 0
    return text.replace('"deep"', "[" * depth + "]" * depth).encode()


def with_row(content, place, value):
    """Metrics with one row altered, twice there, taken out, or in another place."""
    lines = content.splitlines(keepends=True)
    n = place % len(lines)
    deed = value % 6
    if deed == 0:
        lines.insert(n, lines[n])
    elif deed == 1:
        del lines[n]
    elif deed == 2:
        lines[n], lines[0] = lines[0], lines[n]
    else:
        row = json.loads(lines[n])
        key = list(row)[place // len(lines) % len(row)] if deed > 3 else "step"
        row[key] = HOSTILE[value // 6 % len(HOSTILE)]
        lines[n] = dumped(row) + b"\n"
    return b"".join(lines)


def with_header(content, place, value):
    """Arrays of which one has another type or shape."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    names = [name for name in header if name != "__metadata__"]
    entry = header[names[place % len(names)]]
    if value % 3 == 0:
        entry["dtype"] = DTYPES[value // 3 % len(DTYPES)]
    elif value % 3 == 1:
        entry["shape"] = [[], [0], [1], [-1], [10**18], [2**63], "x", None][value // 3 % 8]
    else:
        header[f"new {value}"] = header.pop(names[place % len(names)])
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


def with_floats(content, place, value):
    """Arrays with four bytes that are NaN, infinite, negative, large, or of another number."""
    size = 8 + int.from_bytes(content[:8], "little")
    at = size + 4 * (place % ((len(content) - size) // 4))
    four = (
        b"\x00\x00\xc0\x7f", b"\x00\x00\x80\x7f", b"\xff\xff\xff\xff", b"\x01\x02\x03\x04",
        b"\x00\x00\x80\xbf", b"\x99\x76\x96\x7e",
    )  # fmt: skip
    return content[:at] + four[value % len(four)] + content[at + 4 :]


def with_byte(content, place, value):
    at = place % max(len(content), 1)
    return content[:at] + bytes([value % 256]) + content[at + 1 :]


ALTERED = {
    "value": with_value,
    "row": with_row,
    "header": with_header,
    "floats": with_floats,
    "bytes": with_byte,
    "cut": lambda content, place, value: content[: place % max(len(content), 1)],
    "zeros": lambda content, place, value: (
        content[: len(content) // 2] + bytes(len(content) - len(content) // 2)
    ),
    "last": lambda content, place, value: (
        b"", b"000000000000\n", b"../../..\n", b"\xff\n", b"9" * 100_000, b"\n" * 70,
    )[value % 6],
}  # fmt: skip


# --- digests ---


def digest_of(value):
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def reseal(folder):
    """Make the digests right that a folder of this form has; what cannot be read stays."""
    metrics = folder / "metrics.jsonl"
    known = metrics.read_bytes() if metrics.is_file() and metrics.stat().st_size < 1 << 20 else b""
    for path in sorted((folder / "checkpoints").glob("*/state.json")):
        record = read(path)
        arrays = path.with_name("arrays.safetensors")
        if not isinstance(record, dict):
            continue
        if arrays.is_file() and arrays.stat().st_size < 1 << 30:
            content = arrays.read_bytes()
            record["arrays_sha256"] = hashlib.sha256(content).hexdigest()
            if "arrays_bytes" in record:
                record["arrays_bytes"] = len(content)
        state = record.get("state")
        if isinstance(state, dict) and isinstance(state.get("metrics_bytes"), int):
            kept = known[: max(state["metrics_bytes"], 0)]
            state["metrics_sha256"] = hashlib.sha256(kept).hexdigest()
        if "sha256" in record:
            del record["sha256"]
            record["sha256"] = digest_of(record)
        path.write_bytes(json.dumps(record).encode())
    path = folder / "summary.json"
    summary, config = read(path), read(folder / "config.json")
    if isinstance(summary, dict) and summary.pop("sha256", None) and isinstance(config, dict):
        task, changeable = config.pop("task", None), ("device", "scenes", "backbone_weights")
        settings = {k: v for k, v in config.items() if k not in changeable}
        seal = {
            "metrics": hashlib.sha256(known).hexdigest(),
            "settings": digest_of([task, settings]),
            "summary": digest_of(summary),
        }
        path.write_bytes(json.dumps({**summary, "sha256": seal}).encode())


def read(path):
    try:
        if not path.is_file() or path.stat().st_size > 1 << 20:
            return None
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def copy_of(source, target):
    shutil.rmtree(target, ignore_errors=True)
    return shutil.copytree(source, target)
