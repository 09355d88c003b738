from __future__ import annotations

import os
from base64 import b64decode, b64encode
from hashlib import sha256
from pathlib import Path
from typing import cast

import pytest
from granted import Granted, everything, grant
from hypothesis import given
from hypothesis import strategies as st

from capsule.calls import BUILTIN
from capsule.canon import Json, canonical
from capsule.effects import Anchors, Visible
from capsule.errors import ToolError
from capsule.tools import Registry


def hexdigest(data: bytes) -> str:
    return sha256(data).hexdigest()


def called(
    anchors: Anchors,
    tool: str,
    args: dict[str, Json],
    *,
    cap: int = 10_000,
    flags: list[str] | None = None,
    visible: Visible = everything,
) -> dict[str, Json]:
    """The output of a tool with its defaults filled in, as the gate does it."""
    found = Registry.built_in().get(tool)
    granted = Granted(
        anchors=anchors,
        grants={"path": grant(str(args["path"]))},
        cap=cap,
        visible=visible,
        flags=[] if flags is None else flags,
    )
    output = found.run({**found.definition.defaults, **args}, granted)
    assert canonical(output)
    return cast("dict[str, Json]", output)


def read(anchors: Anchors, args: dict[str, Json], *, cap: int = 10_000) -> dict[str, Json]:
    return called(anchors, "fs.read", {"path": "./file", **args}, cap=cap)


def test_text_with_nuls_is_no_text_unless_it_is_asked_for(workdir: Path, anchors: Anchors) -> None:
    """UTF-16 without its mark, or behind it, would pass for UTF-8."""
    data = "text".encode("utf-16")
    (workdir / "file").write_bytes(data)
    assert read(anchors, {"offset": 2})["content"] == b64encode(data[2:]).decode()
    assert read(anchors, {"offset": 2})["encoding"] == "base64"
    assert read(anchors, {"offset": 2, "encoding": "utf-8"})["content"] == "t\0e\0x\0t\0"


def test_read_has_exactly_this_output(workdir: Path, anchors: Anchors) -> None:
    (workdir / "file").write_bytes(b"hello")
    assert read(anchors, {}) == {
        "path": "./file",
        "content": "hello",
        "encoding": "utf-8",
        "size": 5,
        "sha256": hexdigest(b"hello"),
        "truncated": False,
        "next_offset": None,
    }


EURO = "a€b".encode()  # 61 e2 82 ac 62


@pytest.mark.parametrize(
    ("data", "args", "cap", "expected"),
    [
        (b"", {}, 100, ("", "utf-8", False, None)),
        (b"hello", {"offset": 2}, 100, ("llo", "utf-8", False, None)),
        (b"hello", {"offset": 2, "length": 2}, 100, ("ll", "utf-8", False, 4)),
        (b"hello", {"length": 0}, 100, ("", "utf-8", False, 0)),
        (b"hello", {"offset": 5}, 100, ("", "utf-8", False, None)),
        (b"hello", {"offset": 50}, 100, ("", "utf-8", False, None)),
        (b"hello", {}, 2, ("he", "utf-8", True, 2)),
        (b"hello", {"length": 4}, 2, ("he", "utf-8", True, 2)),
        (b"hello", {"offset": 2}, 3, ("llo", "utf-8", False, None)),
        (b"hello", {"length": 99}, 100, ("hello", "utf-8", False, None)),
        (b"hello", {"encoding": "base64"}, 100, ("aGVsbG8=", "base64", False, None)),
        (b"hello", {"offset": 1.0, "length": 2.0}, 100, ("el", "utf-8", False, 3)),
        (b"\xff\xfe", {}, 100, ("//4=", "base64", False, None)),
        (b"\xef\xbb\xbfhi", {}, 100, ("\ufeffhi", "utf-8", False, None)),
        (EURO, {}, 100, ("a€b", "utf-8", False, None)),
        (EURO, {"length": 2}, 100, ("a", "utf-8", False, 1)),
        (EURO, {"length": 3}, 100, ("a", "utf-8", False, 1)),
        (EURO, {"length": 4}, 100, ("a€", "utf-8", False, 4)),
        (EURO, {"length": 3, "encoding": "base64"}, 100, ("YeKC", "base64", False, 3)),
        (EURO, {}, 3, ("a", "utf-8", True, 1)),
        (EURO, {"offset": 1, "length": 2}, 100, ("4oI=", "base64", False, 3)),  # no text, but it gets on
        (EURO, {"offset": 2}, 100, ("gqxi", "base64", False, None)),
        (EURO[:3], {}, 100, ("YeKC", "base64", False, None)),  # cut by the end of the file: no text
    ],
)
def test_ranges_and_encodings(
    workdir: Path,
    anchors: Anchors,
    data: bytes,
    args: dict[str, Json],
    cap: int,
    expected: tuple[str, str, bool, int | None],
) -> None:
    (workdir / "file").write_bytes(data)
    output = read(anchors, args, cap=cap)
    assert tuple(output[key] for key in ("content", "encoding", "truncated", "next_offset")) == expected
    assert output["size"] == len(data)


@pytest.mark.parametrize(
    ("data", "args", "found"),
    [
        (b"ab\xffc", {}, "byte 2 "),
        (EURO, {"offset": 2}, "byte 2 "),
        (EURO[:3], {}, "byte 1 "),
        (EURO, {"offset": 1, "length": 2}, "only character"),
    ],
)
def test_what_must_be_text_and_is_not_fails(
    workdir: Path, anchors: Anchors, data: bytes, args: dict[str, Json], found: str
) -> None:
    (workdir / "file").write_bytes(data)
    with pytest.raises(ToolError, match=f"./file is not text: .*{found}") as caught:
        read(anchors, {"encoding": "utf-8", **args})
    assert caught.value.code == 2003
    assert "base64" in (caught.value.hint or "")


def test_a_second_name_is_flagged(workdir: Path, anchors: Anchors) -> None:
    (workdir / "file").touch()
    flags: list[str] = []
    called(anchors, "fs.read", {"path": "file"}, flags=flags)
    assert flags == []
    os.link(workdir / "file", workdir / "other")
    called(anchors, "fs.read", {"path": "file"}, flags=flags)
    assert flags == ["hard_link"]


@given(
    text=st.text(st.sampled_from("aé€😀\n"), max_size=20),
    length=st.integers(1, 9),
    cap=st.integers(4, 9),
    by=st.booleans(),
)
def test_following_next_offset_reads_every_byte_once(
    tmp_path_factory: pytest.TempPathFactory, text: str, length: int, cap: int, *, by: bool
) -> None:
    workdir = tmp_path_factory.mktemp("ws")
    data = text.encode()
    (workdir / "file").write_bytes(data)
    found = b""
    offset: int | None = 0
    with Anchors.open(workdir) as anchors:
        while offset is not None:
            output = read(anchors, {"offset": offset, "length": length if by else None}, cap=cap)
            content = str(output["content"])
            piece = b64decode(content) if output["encoding"] == "base64" else content.encode()
            assert output["sha256"] == hexdigest(piece)
            found += piece
            offset = cast("int | None", output["next_offset"])
    assert found == data


def test_list_has_exactly_this_output(workdir: Path, anchors: Anchors) -> None:
    (workdir / "docs/sub").mkdir(parents=True)
    (workdir / "docs/a.md").write_bytes(b"hello")
    (workdir / "docs/link").symlink_to("a.md")
    assert called(anchors, "fs.list", {"path": "docs"}) == {
        "path": "docs",
        "entries": [
            {"path": "a.md", "type": "file", "size": 5},
            {"path": "link", "type": "symlink", "size": None},
            {"path": "sub", "type": "directory", "size": None},
        ],
        "truncated": False,
        "next_offset": None,
        "skipped_names": 0,
    }


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"limit": 2}, (["a", "b"], True, 2)),
        ({"limit": 2, "offset": 2}, (["c", "d"], False, None)),
        ({"limit": 4}, (["a", "b", "c", "d"], False, None)),
        ({"offset": 9}, ([], False, None)),
        ({"pattern": "[bc]"}, (["b", "c"], False, None)),
    ],
)
def test_pages(
    workdir: Path, anchors: Anchors, args: dict[str, Json], expected: tuple[list[str], bool, int | None]
) -> None:
    for name in "abcd":
        (workdir / name).touch()
    output = called(anchors, "fs.list", {"path": ".", **args})
    entries = cast("list[dict[str, Json]]", output["entries"])
    assert ([entry["path"] for entry in entries], output["truncated"], output["next_offset"]) == expected


def test_what_is_hidden_is_not_listed(workdir: Path, anchors: Anchors) -> None:
    for name in ("shown", "hidden"):
        (workdir / name).touch()
    output = called(anchors, "fs.list", {"path": "."}, visible=lambda path: path[-1] == "shown")
    assert output["entries"] == [{"path": "shown", "type": "file", "size": 0}]


def write(anchors: Anchors, content: str, **args: Json) -> dict[str, Json]:
    return called(anchors, "fs.write", {"path": "./file", "content": content, **args})


def test_write_has_exactly_this_output(workdir: Path, anchors: Anchors) -> None:
    assert write(anchors, "é") == {
        "path": "./file",
        "bytes_written": 2,
        "created": True,
        "sha256": hexdigest("é".encode()),
    }
    assert (workdir / "file").read_text() == "é"


def test_appending_tells_of_the_new_bytes(workdir: Path, anchors: Anchors) -> None:
    (workdir / "file").write_bytes(b"old ")
    output = write(anchors, b64encode(b"\xff").decode(), encoding="base64", mode="append")
    assert output == {"path": "./file", "bytes_written": 1, "created": False, "sha256": hexdigest(b"\xff")}
    assert (workdir / "file").read_bytes() == b"old \xff"


def test_directories_are_made_when_asked(workdir: Path, anchors: Anchors) -> None:
    called(anchors, "fs.write", {"path": "a/b", "content": "x", "create_dirs": True})
    assert (workdir / "a/b").read_text() == "x"


@pytest.mark.parametrize(
    ("content", "encoding"),
    [("aGk", "base64"), ("a Gk=", "base64"), ("é", "base64"), ("_-8=", "base64"), ("\ud800", "utf-8")],
)
def test_content_that_cannot_be_bytes_is_not_valid(
    workdir: Path, anchors: Anchors, content: str, encoding: str
) -> None:
    with pytest.raises(ToolError, match="content") as caught:
        write(anchors, content, encoding=encoding)
    assert (caught.value.code, caught.value.kind) == (2002, "validation_error")
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("fs.read", {"path": "given"}),
        ("fs.list", {"path": "."}),
        ("fs.write", {"path": "new", "content": "x"}),
    ],
)
def test_a_tool_gives_what_its_definition_says(tmp_path: Path, tool: str, args: dict[str, Json]) -> None:
    (tmp_path / "given").write_text("x")
    with Anchors.open(tmp_path) as anchors:
        assert tuple(called(anchors, tool, args)) == BUILTIN[tool].output
