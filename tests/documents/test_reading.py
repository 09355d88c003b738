from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from capsule.documents import MAX_BYTES, load_file, read_text
from capsule.errors import PlanError

AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def refusal(path: Path) -> str:
    with pytest.raises(PlanError) as refused:
        load_file(path, kind="plan")
    assert refused.value.code == 3001
    return refused.value.message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: 1\nb: \xff", "2:4: found the byte 0xff, which is not UTF-8"),
        ("é: ".encode() + b"\xe9\n", "1:4: found the byte 0xe9, which is not UTF-8"),
        (b"a: \xed\xa0\x80", "1:4: found the byte 0xed, which is not UTF-8"),
        (b"a: \xc0\x80", "1:4: found the byte 0xc0, which is not UTF-8"),
        (b"\x7fELF\x02\x01\x01\x00", "1:8: found a NUL byte, allowed: text"),
        (b"\n\x00\xff", "2:1: found a NUL byte, allowed: text"),
        ("a: 1".encode("utf-16"), "1:1: found UTF-16, allowed: UTF-8"),
        (
            b"#\n" * (MAX_BYTES // 2) + b"#",
            "524289:1: too large: found more than 1,048,576 bytes (1 MiB), which is all",
        ),
    ],
)
def test_bytes_that_are_no_text(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "plan.yaml"
    path.write_bytes(data)
    assert refusal(path).startswith(f"{path}:{message}")


@pytest.mark.parametrize("data", [b"a: 1", b"\xef\xbb\xbfa: 1", b"#" * (MAX_BYTES - 5) + b"\na: 1"])
def test_bytes_that_are(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "plan.yaml"
    path.write_bytes(data)
    assert load_file(path, kind="plan").value == {"a": 1}


def test_places_after_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_bytes(b"\xef\xbb\xbf*")
    assert refusal(path).startswith(f"{path}:1:1: found '*'")


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    pipe, directory, door = tmp_path / "pipe", tmp_path / "directory", tmp_path / "door"
    os.mkfifo(pipe)
    directory.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(door))
        assert refusal(pipe) == f"{pipe}: cannot read this plan: it is a pipe"
        assert refusal(directory) == f"{directory}: cannot read this plan: it is a directory"
        assert refusal(door) == f"{door}: cannot read this plan: it is a socket"
        assert refusal(Path("/dev/zero")) == "/dev/zero: cannot read this plan: it is a device"


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    missing, loop, beneath, long = tmp_path / "x", tmp_path / "loop", tmp_path / "file" / "x", tmp_path / ("x" * 5000)
    loop.symlink_to(loop)
    beneath.parent.write_text("a: 1")
    assert refusal(missing) == f"{missing}: cannot read this plan: there is no such file"
    assert refusal(loop) == f"{loop}: cannot read this plan: it is a loop of links"
    assert refusal(beneath) == f"{beneath}: cannot read this plan: a part of its path is not a directory"
    assert refusal(long) == f"{long}: cannot read this plan: its name is too long"
    assert refusal(Path("a\0b")) == "a\\x00b: cannot read this plan: its name is not one that a file can have"


@pytest.mark.skipif(AS_ROOT, reason="nothing is closed to root")
def test_a_file_that_is_closed_to_us(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("a: 1")
    path.chmod(0)
    assert refusal(path) == f"{path}: cannot read this plan: its permissions forbid it"


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff\x1b.yaml")
    assert (
        refusal(path).encode() == f"{tmp_path}/\\udcff\\x1b.yaml: cannot read this plan: there is no such file".encode()
    )


def test_a_link_to_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("a: 1")
    (tmp_path / "link").symlink_to("real")
    assert read_text(tmp_path / "link", kind="plan") == "a: 1"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_a_file_that_does_not_say_how_long_it_is() -> None:
    assert "NUL byte" in refusal(Path("/proc/self/cmdline"))


HOSTILE = """
import resource, sys, time
from capsule.documents import MAX_BYTES as M, check, load_text
from capsule.errors import PlanError
DOCUMENTS = {
    "yaml": [
        "[" * M, "{a: " * (M // 4), "- " * (M // 2), "a: " * (M // 3), "? " * (M // 2), ":" * M, "," * M, '"' * M,
        "[" + "a," * (M // 2 - 1) + "]", "[" + "[]," * (M // 3 - 1) + "]", "[" + "{}," * (M // 3 - 1) + "]",
        "x" * M, "'" + "x" * (M - 2) + "'", "x " * (M // 2), "x\\n" * (M // 2), "-\\n" * (M // 2),
        "|\\n" + "\\n" * (M - 2), "*a " * (M // 3), "!" * M, "&a " * (M // 3), "#\\n" * (M // 2), "%a\\n" * (M // 3),
        "{" + ",".join(f"k{i}" for i in range(150_000)) + "}", "".join(f"k{i}:\\n" for i in range(110_000)),
        "a: &a [x,x]\\n" + "".join(f"b{i}: &b{i} [*a,*a]\\n" for i in range(40_000)),
        "".join(f"%TAG !a{i}! b\\n" for i in range(50_000)), "---\\n" * (M // 4), "a: 0." + "9" * (M - 5),
        "a: " + "9" * (M - 3), "a: 0x" + "f" * (M - 5), "".join(" " * i + "a:\\n" for i in range(1_000)),
    ],
    "json": [
        "[" * M, '{"a":' * (M // 5), "[" + "0," * (M // 2 - 2) + "0]", "[" + "{}," * (M // 3 - 1) + "{}]", '"' * M,
        '["' + '\\\\"' * (M // 2 - 1), "9" * M, "1e" + "9" * (M - 2), '"' + "x" * (M - 2) + '"', "-" * M,
        "{" + ",".join(f'"{i}":1' for i in range(80_000)) + ',"0":2}', "[" + '"\\\\ud800",' * (M // 9 - 1) + "1]",
    ],
}
schema = {"type": "object", "properties": {}, "additionalProperties": False}
load_text("a: 1", kind="plan")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for form, texts in DOCUMENTS.items():
    for text in texts:
        began = time.process_time()
        try:
            check(load_text(text, kind="plan", format=form), schema)
        except PlanError as error:
            assert error.code == 3001
            assert len(error.message) < 1000
        else:
            sys.exit(f"{text[:20]} was taken")
        took = time.process_time() - began
        if took > 5:
            sys.exit(f"{text[:20]} took {took} s")
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
if grown > 100:
    sys.exit(f"{grown} MiB")
"""


def test_the_largest_hostile_documents_cost_little() -> None:
    """None takes a second; the limit leaves room for slow machines and for coverage, and none for a square."""
    done = subprocess.run([sys.executable, "-c", HOSTILE], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
