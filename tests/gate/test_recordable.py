"""Values that are no JSON, on their way in and out: an answer and a record at once, never a crash."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest
from gated import (
    bodies,
    code,
    db_of,
    ends_as,
    everything_stored,
    gate_of,
    holds,
    kinds,
    made,
    read,
    records,
    tree,
)

from capsule.calls import Context, RunStatus, Status, ToolCall
from capsule.canon import Json
from capsule.errors import ToolError
from capsule.gate.recordable import recordable

POLICY = """
rules:
  - {action: allow, tool: [fs.read, fs.write], constraints: {path: {patterns: ["./**", "/**"]}}}
"""
MADE = "rules: [{action: allow, tool: made.tool}]"


def nested(depth: int) -> Any:
    value: Any = "docs/a"
    for _ in range(depth):
        value = [value]
    return value


def within_itself() -> list[Any]:
    value: list[Any] = []
    value += [value, value, value]
    return value


class Odd:
    """Whatever is asked of it fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no equality")

    __hash__ = None  # type: ignore[assignment]


class Lying(Mapping[str, Json]):
    """Another path at every look."""

    def __init__(self, *paths: str) -> None:
        self._paths = [*paths, paths[-1]]

    def __getitem__(self, name: str) -> Json:
        return self._paths.pop(0) if len(self._paths) > 1 else self._paths[0]

    def __iter__(self) -> Iterator[str]:
        return iter(["path"])

    def __len__(self) -> int:
        return 1


ARGUMENTS: dict[str, tuple[Any, int]] = {
    "NaN": ({"path": "docs/a", "offset": float("nan")}, 2002),
    "NaN as a path": ({"path": float("nan")}, 2002),
    "infinity": ({"path": "docs/a", "offset": float("inf")}, 2002),
    "a huge integer": ({"path": "docs/a", "offset": 10**5000}, 2002),
    "an integer that floats round": ({"path": "docs/a", "offset": 2**53}, 2002),
    "a float that is no integer": ({"path": "docs/a", "offset": 1.5}, 2002),
    "a boolean": ({"path": "docs/a", "offset": True}, 2002),
    "a lone surrogate": ({"path": "docs/\udcff"}, 2002),
    "a surrogate in a key": ({"path": "docs/a", "\ud800": 1}, 2002),
    "bytes": ({"path": b"docs/a"}, 2002),
    "an object": ({"path": object()}, 2002),
    "an object that fails": ({"path": Odd()}, 2002),
    "a path object": ({"path": Path("docs/a")}, 2002),
    "a set": ({"path": {"docs/a"}}, 2002),
    "null": ({"path": None}, 2002),
    "a list": ({"path": ["docs/a"]}, 2002),
    "an empty path": ({"path": ""}, 2002),
    "200 levels": ({"path": nested(200)}, 2002),
    "50,000 levels": ({"path": nested(50_000)}, 2002),
    "a value within itself": ({"path": within_itself()}, 2002),
    "a key that is a number": ({1: 2, "path": "docs/a"}, 2002),
    "keys of all kinds": ({None: 1, True: 2, ("a",): 3}, 2002),
    "no mapping but a list": ([["path", "docs/a"]], 2002),
    "no mapping but null": (None, 2002),
    "no mapping but text": ("docs/a", 2002),
    "a megabyte of path": ({"path": "a" * 1_000_000}, 1001),
    "a megabyte of directories": ({"path": "a/" * 500_000}, 1001),
    "a megabyte of key": ({"a" * 1_000_000: 1}, 2002),
    "NUL": ({"path": "docs/a\0.png"}, 1001),
    "a hundred thousand arguments": ({str(number): number for number in range(100_000)}, 2002),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_that_are_no_json_are_a_recorded_failure_at_once(workdir: Path, db: Path, name: str) -> None:
    args, number = ARGUMENTS[name]
    before = tree(workdir)
    with gate_of(workdir, POLICY) as gate:
        begun = time.perf_counter()
        result = gate.call(ToolCall(tool="fs.read", args=args))
        assert time.perf_counter() - begun < 2
        held = gate.held_back_ms(ToolCall(tool="fs.read", args=args))
        fine = gate.call(read("docs/a"))
    assert (code(result), held, fine.ok) == (number, 0, True)
    assert kinds(db) == ["start", "refused", "intent", "outcome", "end"]
    assert bodies(db, "refused")[0]["status"] == ("denied" if number == 1001 else "error")
    assert ends_as(db, gate.run_id) is RunStatus.COMPLETED
    assert tree(workdir) == before


@pytest.mark.parametrize(
    "tool", [5, None, ["fs.read"], {"fs.read": 1}, b"fs.read", object(), "", "fs.read\0", "\udcff", "x" * 1_000_000]
)
def test_a_tool_whose_name_is_no_name_is_a_recorded_failure(workdir: Path, db: Path, tool: Any) -> None:
    with gate_of(workdir, POLICY) as gate:
        result = gate.call(ToolCall(tool=tool, args={"path": "docs/a"}))
    assert code(result) in (2001, 2002)
    assert kinds(db) == ["start", "refused", "end"]


@pytest.mark.parametrize("source", ["root", None, 3, Odd(), b"api"], ids=lambda source: type(source).__name__)
def test_f4_a_source_that_is_none_gets_nothing(workdir: Path, db: Path, source: Any) -> None:
    """The least trusted source is not let through where only it is meant, and no other either."""
    policy = (
        POLICY + "  - {action: allow, tool: fs.list, when: {source: [mcp, api]}, constraints: {path: {pattern: ./**}}}"
    )
    with gate_of(workdir, policy) as gate:
        results = [
            gate.call(ToolCall(tool=tool, args={"path": "docs"}, source=source)) for tool in ("fs.read", "fs.list")
        ]
    assert [code(result) for result in results] == [2002, 2002]
    assert kinds(db) == ["start", "refused", "refused", "end"]


def test_d3_arguments_are_read_once(workdir: Path, db: Path) -> None:
    """What is checked, decided, done and recorded is one reading of what the caller gave."""
    for paths in (
        ("docs/a", "docs/b"),
        ("docs/b", "docs/a"),
        ("docs/a", "docs/a", "docs/b"),
        ("docs/a",) * 3 + ("docs/b",),
    ):
        with gate_of(workdir, POLICY) as gate:
            result = gate.call(ToolCall(tool="fs.read", args=Lying(*paths)))
        assert isinstance(result.output, Mapping)
        (intent,), done = bodies(db, "intent"), result.output["path"]
        assert intent["args"] == {"path": done}
        assert intent["grant"] == {"files": [f"read ./{done}"]}
        assert result.output["content"] == f"text of {str(done)[-1]}"


class Pretender(str):
    """Text that says something else of itself than it is."""

    def encode(self, *arguments: str, **named: str) -> bytes:
        return b"docs/a"

    def __str__(self) -> str:
        return "docs/a"


class Inflated(int):
    def __int__(self) -> int:
        return 2**80

    def __abs__(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("args", "number"),
    [
        ({"path": Pretender("docs/\udcff")}, 2002),
        ({"path": Pretender("secret/b")}, 1001),
        ({"path": "docs/a", "offset": Inflated(2**60)}, 2002),
        ({"path": "docs/a", "offset": Inflated(0)}, None),
    ],
)
def test_d3_what_a_value_says_of_itself_does_not_count(
    workdir: Path, db: Path, args: dict[str, Any], number: int | None
) -> None:
    policy = "rules: [{action: allow, tool: fs.read, constraints: {path: {pattern: ./docs/*}}}]"
    with gate_of(workdir, policy) as gate:
        result = gate.call(ToolCall(tool="fs.read", args=args))
    assert code(result) == number
    assert holds(db)


def test_d3_a_marker_cannot_be_slipped_in_between_two_readings(workdir: Path, db: Path) -> None:
    marked = "docs/⟦redacted:github_token:1⟧"
    for clean in range(1, 6):
        with gate_of(workdir, POLICY) as gate:
            gate.call(ToolCall(tool="fs.write", args={"path": marked, "content": "x"}))
            gate.call(ToolCall(tool="fs.read", args=Lying(*["docs/a"] * clean, marked)))
        assert all("⟦" not in json.dumps(dict(body), ensure_ascii=False) for body in bodies(db, "intent"))


def test_d3_nobody_can_change_arguments_under_a_decision(workdir: Path) -> None:
    """Not the tool, which gets a copy, and not what it hands back to later calls."""
    args: dict[str, Json] = {"value": {"list": [1, 2]}}
    seen: list[Json] = []

    def act(given: Mapping[str, Json], context: Context) -> object:
        inner = given["value"]
        assert isinstance(inner, dict)
        seen.append(json.dumps(given))
        inner["list"] = "changed"
        return given

    with gate_of(workdir, MADE, tool=made(act)) as gate:
        gate.call(ToolCall(tool="made.tool", args=args))
        gate.call(ToolCall(tool="made.tool", args=args))
    assert args == {"value": {"list": [1, 2]}}
    assert seen == ['{"value": {"list": [1, 2]}}'] * 2


def _failing(error: Exception) -> Any:
    def act(args: Mapping[str, Json], context: Context) -> NoReturn:
        raise error

    return act


class NoText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class NoItems(Lying):
    def __getitem__(self, name: str) -> Json:
        raise RuntimeError("no items")


HOSTILE: dict[str, Any] = {
    "an exception with a surrogate": _failing(RuntimeError("\udcff")),
    "an exception without text": _failing(NoText()),
    "an exception of a megabyte": _failing(RuntimeError("x" * 1_000_000)),
    "an error with a surrogate": _failing(ToolError(2003, "\udcff", hint="\ud800")),
    "an error of 200 levels": _failing(ToolError(2003, "m", hint=nested(200))),
    "an object that fails": lambda args, context: {"x": Odd()},
    "a key that fails": lambda args, context: {1: 2, "1": 3},
    "a mapping that fails": lambda args, context: NoItems("a"),
    "a value within itself": lambda args, context: within_itself(),
    "50,000 levels": lambda args, context: nested(50_000),
    "a flag with a surrogate": lambda args, context: context.flag("\udcff"),
    "a flag that is no text": lambda args, context: context.flag(5),
    "a surrogate": lambda args, context: {"\udcff": "\ud800"},
    "bytes": lambda args, context: b"\xff",
    "a set": lambda args, context: {1, 2},
    "NaN": lambda args, context: [float("nan"), float("-inf")],
    "a huge integer": lambda args, context: -(10**5000),
    "another enumeration": lambda args, context: Status.SUCCESS,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_a_tool_gives_or_raises_is_its_recorded_outcome(workdir: Path, db: Path, name: str) -> None:
    with gate_of(workdir, MADE, tool=made(HOSTILE[name])) as gate:
        begun = time.perf_counter()
        result = gate.call(ToolCall(tool="made.tool"))
        assert time.perf_counter() - begun < 2
    assert kinds(db) == ["start", "intent", "outcome", "end"]
    (outcome,) = bodies(db, "outcome")
    assert (outcome["status"], outcome.get("output")) == (result.status, result.output)
    assert ends_as(db, gate.run_id) is RunStatus.COMPLETED
    assert json.loads(json.dumps(result.output)) == result.output


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (2**53 - 1, 2**53 - 1),
        (-(2**53) + 1, -(2**53) + 1),
        (0.1, 0.1),
        (True, True),
        (None, None),
        ([1, (2, 3)], [1, [2, 3]]),
        ({"a": {"b": []}}, {"a": {"b": []}}),
        ("é\x1b\n⟦", "é\x1b\n⟦"),
    ],
)
def test_what_is_json_stays_what_it_is(workdir: Path, db: Path, given: object, left: Json) -> None:
    with gate_of(workdir, MADE, tool=made(lambda args, context: given)) as gate:
        assert gate.call(ToolCall(tool="made.tool")).output == left
    assert bodies(db, "outcome")[0].get("output") == left


@pytest.mark.parametrize("given", [2**53, -(2**53), 10**30, float("nan"), float("inf")], ids=str)
def test_a_number_that_does_not_fit_becomes_text(workdir: Path, db: Path, given: object) -> None:
    with gate_of(workdir, MADE, tool=made(lambda args, context: {"n": given})) as gate:
        output = gate.call(ToolCall(tool="made.tool")).output
    assert isinstance(output, Mapping)
    assert isinstance(output["n"], str)
    assert records(db)[2].body["output"] == output


class _Raising(dict[str, Json]):
    def items(self) -> Any:
        raise RuntimeError("a secret of its own")


class _Odd(dict[str, Json]):
    def items(self) -> Any:
        return [("a", 1, 2)]


class _LiesAboutItself(float):
    def __float__(self) -> float:
        return float("nan")


class _Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        return "\ud800"


class _OfNoName(metaclass=_Nameless):
    pass


@pytest.mark.parametrize("args", [_Raising(a=1), _Odd(a=1), {"path": _OfNoName()}, {_OfNoName(): 1}])
def test_f4_whatever_a_value_does_when_it_is_read_the_call_is_a_record(workdir: Path, args: Any) -> None:
    with gate_of(workdir, POLICY) as gate:
        result = gate.call(ToolCall(tool="fs.read", args=args))
    assert code(result) == 2002
    assert kinds(db_of(workdir)) == ["start", "refused", "end"]
    assert b"a secret of its own" not in everything_stored(db_of(workdir))


def test_a_number_is_what_it_is_and_not_what_it_says() -> None:
    assert recordable({"n": _LiesAboutItself(0.5)}) == {"n": 0.5}
