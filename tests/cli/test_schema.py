"""`capsule schema`"""

from __future__ import annotations

from pathlib import Path

import pytest
from typed import Typed

from capsule.calls import BUILTIN
from capsule.documents import load_file, schema


@pytest.mark.parametrize(("kind", "file"), [("plan", "plan.yaml"), ("policy", "policy.yaml")])
def test_a_schema_describes_its_documents(capsule: Typed, project: Path, kind: str, file: str) -> None:
    (project / "plan.yaml").write_text("steps: [{tool: fs.read, args: {path: a}}]\n")
    printed = capsule("schema", kind).json
    document = load_file(project / file, kind=kind)
    assert schema.problems(document.value, printed) == []
    assert schema.problems({"stepz": [], "rulez": []}, printed) != []


def test_the_arguments_of_every_tool_have_a_schema(capsule: Typed) -> None:
    assert capsule("schema", "tools").json["properties"] == {tool.name: tool.args_schema for tool in BUILTIN.values()}


def test_the_floor_is_data(capsule: Typed) -> None:
    floor = capsule("schema", "floor").json
    assert ".ssh" in floor["never_written"]["names"]
    assert "Makefile" in floor["runs_later"]["names"]
    assert "10.0.0.0/8" in floor["addresses"]["not_public"]


def test_another_kind_is_not_there(capsule: Typed) -> None:
    ran = capsule("schema", "pack")
    assert ran.code == 2
    assert "'pack' is not one of 'plan', 'policy', 'report', 'tools', 'floor'" in ran.err
