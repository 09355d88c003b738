"""Class F: who is obeyed. Nothing that lies in a workdir, no agent about its own policy, and no mistake as a yes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path
from sysconfig import get_path

import pytest
from gated import (
    Quiet,
    bodies,
    code,
    db_of,
    dumped,
    gate_of,
    grown,
    holds,
    kinds,
    newest,
    plan_of,
    ran,
    read,
    step_of,
    tree,
    write,
)
from journals import mounted

from capsule.approval import allow_all
from capsule.calls import RunStatus, Source, ToolCall
from capsule.canon import Json
from capsule.errors import PlanError
from capsule.gate import Gate, Opening, assemble
from capsule.plans import Plan, run_plan
from capsule.policy import Policy
from capsule.settings import Settings

ASKING = """
rules:
  - {action: allow, tool: fs.read, constraints: {path: {pattern: "./docs/**"}}}
  - {action: ask, tool: fs.write, constraints: {path: {pattern: "./out/*"}}}
"""
WIDE = (
    'rules: [{action: allow, tool: "fs.*", constraints: {paths: {patterns: ["/**", "~/**", "./**"], hidden: allow}}}]'
)

PWN = "import pathlib\npathlib.Path(__file__).with_name('PWNED').touch()\n"

PLANTED = {
    ".capsule__config.toml": 'approve = "all"\ndb = "planted.db"\n',
    "config.toml": 'approve = "all"\n',
    "capsule.toml": 'approve = "all"\n',
    "pyproject.toml": '[tool.capsule]\napprove = "all"\npolicy = "policy.yaml"\n',
    ".env": "CAPSULE_APPROVE=all\nCAPSULE_DB=planted.db\nCAPSULE_HOME=.capsule\nPYTHONPATH=.\n",
    ".envrc": "export CAPSULE_APPROVE=all\n",
    "policy.yaml": WIDE,
    "policy.json": WIDE,
    ".capsule__policy.yaml": WIDE,
    "plan.yaml": "steps: [{tool: fs.write, args: {path: out/planted, content: x}}]",
    ".git__config": "[core]\nfsmonitor = touch PWNED\n",
    "pytest.ini": "",
    **dict.fromkeys(
        [
            "sitecustomize.py", "usercustomize.py", "typer.py", "yaml.py", "re2.py", "ada_url.py", "json.py",
            "click.py", "capsule__init__.py", "capsule.py", "readline.py", "rich.py", "encodings.py",
        ],
        PWN,
    ),
}  # fmt: skip


@pytest.fixture
def base(workdir: Path) -> Path:
    grown(workdir, docs__a="text of a", out__old="old")
    grown(workdir.parent, **{"asking.yaml": ASKING})
    steps = (step_of("fs.read", {"path": "docs/a"}), step_of("fs.write", {"path": "out/new", "content": "x"}))
    dumped(workdir.parent / "plan.json", plan_of(*steps))
    return workdir.parent


def _script() -> Path:
    return Path(get_path("scripts")) / "capsule"


def test_f1_what_is_planted_in_a_workdir_is_not_obeyed(base: Path, workdir: Path, isolated_home: Path) -> None:
    """The installed command, started in a directory that holds every kind of trap; an ask stays an ask."""
    if not _script().exists():
        pytest.skip("the command is not installed")
    grown(workdir, **PLANTED)
    before = tree(workdir)
    done = subprocess.run(
        [_script(), "run", base / "plan.json", "--policy", base / "asking.yaml"],
        cwd=workdir,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 3, done.stderr
    assert tree(workdir) == before
    db = isolated_home / ".capsule/runs.db"
    assert kinds(db) == ["start", "intent", "outcome", "question", "answer", "refused", "end"]
    assert bodies(db, "start")[0]["workdir"] == str(workdir)


@pytest.mark.parametrize(
    ("environment", "number"),
    [
        ({"CAPSULE_HOME": "."}, 2),
        ({"CAPSULE_HOME": ".capsule"}, 2),
        ({"HOME": ".", "CAPSULE_HOME": ""}, 2),
        ({"CAPSULE_APPROVE": "al"}, 2),
        ({"CAPSULE_APPROVE": "ALL"}, 2),
        ({"CAPSULE_DEBUG": "perhaps"}, 2),
        ({"CAPSULE_APPROVE": ""}, 3),
        ({"CAPSULE_APPROVE": "deny"}, 3),
        ({"CAPSULE_APPROVE": "all"}, 0),
        ({"CAPSULE_APPROVE": "all", "CAPSULE_POLICY": "policy.yaml", "CAPSULE_ALLOW": "1"}, 0),
    ],
)
def test_f1_only_the_users_own_environment_is(
    base: Path, workdir: Path, environment: dict[str, str], number: int
) -> None:
    grown(workdir, **{name: text for name, text in PLANTED.items() if "capsule" in name})
    done = ran("run", base / "plan.json", "--policy", base / "asking.yaml", cwd=workdir, env=environment)
    assert done.code == number, done.err
    assert (workdir / "out/new").exists() is (number == 0)
    assert not (workdir / "planted.db").exists()


def test_f1_a_bad_config_is_refused_before_anything_runs(base: Path, workdir: Path, isolated_home: Path) -> None:
    for text in ('approve = "al"', 'aprove = "all"', "approve = true", "approve =", '[tool]\napprove = "all"', "\0"):
        grown(isolated_home, **{".capsule__config.toml": text})
        done = ran("run", base / "plan.json", "--policy", base / "asking.yaml", cwd=workdir)
        assert (text, done.code) == (text, 2)
        assert b"config.toml" in done.err
        assert not (isolated_home / ".capsule/runs.db").exists()
        assert not (workdir / "out/new").exists()


MODES = ("create", "overwrite", "append")

OWN = {
    "the policy": "policy.yaml",
    "the policy by its whole path": "{ws}/policy.yaml",
    "the policy by a way around": "docs/../policy.yaml",
    "the policy by a link": "to-policy",
    "the policy through a linked directory": "around/policy.yaml",
    "the policy as it is linked to": "linked-policy.yaml",
    "what the linked policy leads to": "real/policy.yaml",
    "the plan": "plan.json",
    "the plan by a link": "to-plan",
    "the key": "~/.capsule/key",
    "the settings": "~/.capsule/config.toml",
    "the settings by their whole path": "{home}/.capsule/config.toml",
    "the home": "~/.capsule/anything",
    "the packs": "~/.capsule/packs/x/pack.yaml",
    "the home by a link": "to-home/config.toml",
    "the journal": "{db}",
    "the journal's log": "{db}-wal",
    "the journal's memory": "{db}-shm",
    "the journal's reserve": "{db}-reserve",
    "the journal's locks": "{db}-locks/x",
}


@pytest.fixture
def own(base: Path, workdir: Path, isolated_home: Path) -> Path:
    """The policy, the plan and the journal in use lie in the workdir, the policy also behind a link."""
    grown(workdir, **{"policy.yaml": WIDE, "real__policy.yaml": WIDE})
    writes = [
        step_of("fs.write", {"path": "{{ item }}", "content": "EVIL", "mode": "overwrite"}, foreach=["plan.json"])
    ]
    dumped(workdir / "plan.json", plan_of(*writes))
    for name, target in {
        "to-policy": "policy.yaml", "to-plan": "plan.json", "around": ".", "linked-policy.yaml": "real/policy.yaml",
        "to-home": str(isolated_home / ".capsule"),
    }.items():  # fmt: skip
        (workdir / name).symlink_to(target)
    return workdir


def _opening(own: Path, policy: str) -> Opening:
    return Opening(
        settings=Settings.load(os.environ),
        policies=[Policy.load(own / policy)],
        workdir=own,
        db=own / "journal/runs.db",
        approver=allow_all,
        in_use=(own / "plan.json",),
    )


@pytest.mark.parametrize("name", OWN)
def test_f2_no_tool_changes_what_it_is_ruled_by(own: Path, isolated_home: Path, name: str) -> None:
    policy = "linked-policy.yaml" if "linked" in name and "directory" not in name else "policy.yaml"
    db = own / "journal/runs.db"
    path = OWN[name].format(ws=own, home=isolated_home, db=db)
    with Gate(assemble(_opening(own, policy))) as gate:
        before = tree(own / "journal") | _beside_the_journal(own)
        results = [gate.call(write(path, "EVIL", mode=mode, create_dirs=True)) for mode in MODES]
        results += [gate.call(write(path, "EVIL", source=Source.AGENT, mode="overwrite"))]
    assert {code(result) for result in results} == {1001}
    after = _beside_the_journal(own)
    assert {name: held for name, held in before.items() if name in after} == after
    assert b"EVIL" not in b"".join(held for held in tree(isolated_home).values() if isinstance(held, bytes))
    assert Policy.load(own / policy).digest == Policy.parse(WIDE).digest
    assert holds(db)


def _beside_the_journal(own: Path) -> dict[str, bytes | str | None]:
    return {name: held for name, held in tree(own).items() if not name.startswith("journal")}


def test_f2_a_plan_that_rewrites_its_own_rules(own: Path) -> None:
    """With a yes to everything: through the runner, which knows plan and policy."""
    before = _beside_the_journal(own)
    opening = _opening(own, "policy.yaml")
    targets: list[Json] = ["policy.yaml", "plan.json", "to-policy", "to-plan", "around/policy.yaml", "~/.capsule/key"]
    step = step_of(
        "fs.write",
        {"path": "{{ item }}", "content": "EVIL", "mode": "overwrite"},
        foreach=targets,
        continue_on_error=True,
    )
    dumped(own / "plan.json", plan_of(step))
    before = _beside_the_journal(own)
    outcome = run_plan(Plan.load(own / "plan.json"), {}, opening, watcher=Quiet())
    assert (outcome.status, outcome.denied) == (RunStatus.COMPLETED, len(targets))
    assert _beside_the_journal(own) == before


def test_f2_nor_does_another_name_of_the_same_file(own: Path) -> None:
    (own / "docs/hard").hardlink_to(own / "policy.yaml")
    with Gate(assemble(_opening(own, "policy.yaml"))) as gate:
        for mode in ("append", "overwrite"):
            assert code(gate.call(write("docs/hard", "EVIL", mode=mode))) == 1001
    assert (own / "policy.yaml").read_text() == WIDE


def test_f2_what_a_rule_spells_and_says_is_protected_is_written_by_its_own_name(own: Path) -> None:
    spelled = WIDE.replace(
        "rules: [",
        'rules: [{action: allow, tool: fs.write, constraints: {path: {pattern: "./policy.yaml", protected: allow}}}, ',
    )
    (own / "policy.yaml").write_text(spelled)
    with Gate(assemble(_opening(own, "policy.yaml"))) as gate:
        assert gate.call(write("policy.yaml", "rules: []", mode="overwrite")).ok
    assert (own / "policy.yaml").read_text() == "rules: []"


def test_f2_nor_after_the_process_has_moved(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own)
    policy = Policy.load("policy.yaml")
    monkeypatch.chdir(own / "docs")
    with Gate.open(policy=policy, workdir="..", db=own / "journal/runs.db") as gate:
        assert code(gate.call(write("policy.yaml", "EVIL", mode="overwrite"))) == 1001
    assert (own / "policy.yaml").read_text() == WIDE


@pytest.mark.parametrize("kept", ["key", "config.toml"])
def test_f2_no_name_of_capsules_own_files_is_read_or_copied(own: Path, isolated_home: Path, kept: str) -> None:
    grown(isolated_home, **{".capsule__config.toml": 'approve = "ask"'})
    with Gate(assemble(_opening(own, "policy.yaml"))) as gate:
        (own / "docs/hard").hardlink_to(isolated_home / ".capsule" / kept)
        before = (own / "docs/hard").read_bytes()
        for mode in ("append", "overwrite", "create"):
            assert code(gate.call(write("docs/hard", "more", mode=mode))) == 1001
        assert code(gate.call(read("docs/hard", encoding="base64"))) == 1001
    assert (own / "docs/hard").read_bytes() == before


def test_what_is_kept_stands_in_no_deep_paths_way(own: Path) -> None:
    deep = "docs/" + "d/" * 1500 + "file"
    with Gate(assemble(_opening(own, "policy.yaml"))) as gate:
        assert gate.call(write(deep, create_dirs=True)).ok
        assert gate.call(read(deep)).ok
    subprocess.run(["rm", "-r", own / "docs/d"], check=True)  # what cleans up after tests recurses


def test_f2_nor_does_a_mount_of_the_same_directory(own: Path, isolated_home: Path) -> None:
    home = isolated_home / ".capsule"
    (home / "packs").mkdir(parents=True, mode=0o700)
    places = {"docs/home": home, "docs/rules": own, "docs/above": isolated_home, "docs/packs": home / "packs"}
    with ExitStack() as mounts:
        gate = mounts.enter_context(Gate(assemble(_opening(own, "policy.yaml"))))
        for name, source in places.items():
            (own / name).mkdir()
            mounts.enter_context(mounted(own / name, "--bind", str(source)))
        key = (home / "key").read_bytes()
        assert code(gate.call(read("docs/home/key", encoding="base64"))) == 1001
        assert code(gate.call(read("docs/above/.capsule/key", encoding="base64"))) == 1001
        for name in (
            "docs/home/key",
            "docs/home/config.toml",
            "docs/home/packs/mine",
            "docs/home/packs/new/mine",
            "docs/home/runs.db-journal/mine",
            "docs/home/new/deep/mine",
            "docs/packs/mine",
            "docs/above/.capsule/new",
            "docs/rules/policy.yaml",
            "docs/rules/journal/runs.db",
            "docs/rules/journal/runs.db-journal",
        ):
            for mode in ("create", "overwrite", "append"):
                assert code(gate.call(write(name, "EVIL", mode=mode, create_dirs=True))) == 1001, (name, mode)
        assert gate.call(write("docs/rules/docs/fine", "fine")).ok
    assert (own / "policy.yaml").read_text() == WIDE
    assert (home / "key").read_bytes() == key
    assert sorted(path.name for path in home.rglob("*")) == ["key", "packs"]


@pytest.mark.parametrize(
    "name", ["the key", "the settings", "the journal", "the journal's log", "the journal's reserve"]
)
def test_f2_nor_does_any_read_the_secrets_of_capsule(own: Path, isolated_home: Path, name: str) -> None:
    grown(isolated_home, **{".capsule__config.toml": 'approve = "ask"'})
    path = OWN[name].format(ws=own, home=isolated_home, db=own / "journal/runs.db")
    with Gate(assemble(_opening(own, "policy.yaml"))) as gate:
        for encoding in ("auto", "base64"):
            result = gate.call(read(path, encoding=encoding))
            assert (code(result), result.output) == (1001, None)
        assert code(gate.call(ToolCall(tool="fs.list", args={"path": path}))) == 1001
        listed = gate.call(ToolCall(tool="fs.list", args={"path": "~/.capsule"})).output
        beside = gate.call(ToolCall(tool="fs.list", args={"path": "journal"})).output
    assert "config.toml" not in str(listed)
    assert "key" not in str(listed)
    assert "runs.db" not in str(beside)


def test_f2_protected_allow_opens_what_it_spells_and_never_the_key(own: Path, isolated_home: Path) -> None:
    patterns = ["~/.capsule/key", "~/.capsule/config.toml", "./journal/runs.db", "~/.capsule/notes"]
    text = (
        "rules: [{action: allow, tool: [fs.read, fs.write], constraints: {paths: {patterns: "
        f"[{', '.join(patterns)}], protected: allow, hidden: allow}}}}}}]"
    )
    (own / "policy.yaml").write_text(text)
    with Gate(assemble(_opening(own, "policy.yaml"))) as gate:
        codes = [code(gate.call(write(pattern, "EVIL", mode="overwrite"))) for pattern in patterns]
        codes += [code(gate.call(read(pattern))) for pattern in patterns[:3]]
    assert codes == [1001, 1001, 1001, None, 1001, 1001, 1001]


MISTAKES: dict[str, str] = {
    "an unknown key": "ruels: []\n" + WIDE,
    "an unknown key of a rule": WIDE.replace("action:", "acton: allow, action:"),
    "an unknown key of a constraint": WIDE.replace("hidden: allow", "hiden: allow"),
    "an unknown action": WIDE.replace("action: allow", "action: permit"),
    "an unknown value": WIDE.replace("hidden: allow", "hidden: yes"),
    "an argument of no tool": WIDE.replace("paths:", "pahts:"),
    "an allow of everything": 'rules: [{action: allow, tool: "*"}]',
    "an allow without its argument": "rules: [{action: allow, tool: fs.read, constraints: {max_bytes: 5}}]",
    "an example that does not hold": WIDE.replace("}]", ", examples: {no_match: [{path: ./x}]}}]"),
    "a test that does not hold": WIDE + "\ntests: [{tool: fs.read, args: {path: ./x}, expect: deny}]",
    "no mapping": "- " + WIDE,
    "no rules but text": "rules: all",
    "nothing": "",
    "two documents": WIDE + "\n---\n" + WIDE,
}


@pytest.mark.parametrize("name", MISTAKES)
def test_f4_a_policy_with_a_mistake_is_refused_whole(base: Path, workdir: Path, name: str) -> None:
    (base / "bad.yaml").write_text(MISTAKES[name])
    with pytest.raises(PlanError) as raised:
        Gate.open(policy=base / "bad.yaml", workdir=workdir, db=db_of(workdir))
    assert raised.value.code == 3001
    assert "bad.yaml:" in raised.value.message
    assert not db_of(workdir).exists()


def test_f4_through_the_command_line(base: Path, workdir: Path) -> None:
    (base / "asking.yaml").write_text(MISTAKES["an unknown key of a constraint"])
    done = ran("run", base / "plan.json", "--policy", base / "asking.yaml", "--db", db_of(workdir), cwd=workdir)
    assert done.code == 2
    assert b"asking.yaml:1:" in done.err
    assert b"did you mean 'hidden'" in done.err
    assert not db_of(workdir).exists()


def test_f4_without_a_terminal_nobody_says_yes(base: Path, workdir: Path) -> None:
    for mode, number in (("ask", 3), ("deny", 3), ("reads", 3), ("all", 0)):
        done = ran(
            "run", base / "plan.json", "--policy", base / "asking.yaml", "--db", db_of(workdir), "--approve", mode,
            cwd=workdir,
        )  # fmt: skip
        assert (mode, done.code) == (mode, number)
        assert (workdir / "out/new").exists() is (number == 0)
        (answer,) = bodies(db_of(workdir), "answer")
        assert answer["approved"] is (number == 0)


RULES = [
    "{id: b-allow, action: allow, tool: fs.read, constraints: {path: {pattern: ./docs/**}, max_bytes: 4}}",
    "{id: a-allow, action: allow, tool: fs.*, constraints: {path: {pattern: ./**}, max_bytes: 6}}",
    "{id: d-deny, action: deny, tool: '*', constraints: {paths: {pattern: ./docs/no}}}",
    "{id: c-deny, action: deny, tool: '*', constraints: {paths: {pattern: '**/no'}}}",
    "{id: ask, action: ask, tool: fs.read, constraints: {path: {pattern: ./docs/asked}}}",
]


def test_f5_order_decides_nothing(base: Path, workdir: Path) -> None:
    answers = set()
    for order in permutations(RULES):
        policy = Policy.parse("rules:\n" + "".join(f"  - {rule}\n" for rule in order))
        decisions = [policy.decide(read(path)) for path in ("docs/a", "docs/no", "docs/asked", "out/x", "/etc/passwd")]
        answers.add(str([(decision.effect, decision.rule, decision.code, decision.grant) for decision in decisions]))
    assert len(answers) == 1
    decided = [(decision.effect.value, decision.rule) for decision in decisions]
    assert decided == [("allow", "a-allow"), ("deny", "c-deny"), ("ask", "ask"), ("allow", "a-allow"), ("deny", None)]


def test_f5_the_first_rule_that_matches_is_not_the_one_that_holds(base: Path, workdir: Path) -> None:
    allow = '{action: allow, tool: fs.write, constraints: {path: {pattern: "./out/*"}}}'
    deny = '{action: deny, tool: fs.write, constraints: {path: {pattern: "./out/old"}}}'
    for rules in ([allow, deny], [deny, allow], [allow.replace("./out/*", "./**"), deny, allow]):
        with gate_of(workdir, f"rules: [{', '.join(rules)}]") as gate:
            assert code(gate.call(write("out/old", "EVIL", mode="overwrite"))) == 1001
    assert (workdir / "out/old").read_text() == "old"


EMPTY = {
    "no rules": "rules: []",
    "nothing but a default": "default_action: deny",
    "a default to ask without rules": "default_action: ask\nrules: []",
    "no patterns": "rules: [{action: allow, tool: fs.read, constraints: {path: {patterns: []}}}]",
    "no tools": "rules: [{action: allow, tool: [], constraints: {path: {pattern: ./**}}}]",
    "an empty tool": 'rules: [{action: allow, tool: "", constraints: {path: {pattern: ./**}}}]',
    "an empty pattern": 'rules: [{action: allow, tool: fs.read, constraints: {path: {pattern: ""}}}]',
    "empty braces": 'rules: [{action: allow, tool: fs.read, constraints: {path: {pattern: "./docs/{}"}}}]',
    "an empty constraint": "rules: [{action: allow, tool: fs.read, constraints: {path: {}}}]",
    "no constraints": "rules: [{action: allow, tool: fs.read, constraints: {}}]",
    "no sources": "rules: [{action: allow, tool: fs.read, when: {source: []}, constraints: {path: {pattern: ./**}}}]",
    "no calls": "rules: [{action: allow, tool: fs.read, constraints: {path: {pattern: ./**}, max_calls: 0}}]",
    "no calls of the run": WIDE + "\nlimits: {calls: 0}",
}


@pytest.mark.parametrize("name", EMPTY)
def test_f5_empty_is_not_all(base: Path, workdir: Path, name: str) -> None:
    try:
        policy = Policy.parse(EMPTY[name])
    except PlanError:
        return  # refused at load, which is as good
    with gate_of(workdir, policy, approver=allow_all) as gate:
        result = gate.call(read("docs/a"))
    assert result.output is None
    assert code(result) in (1000, 1001, 1006)


def test_f5_no_executables_and_no_deny_tokens() -> None:
    for constraint in ("{executables: []}", "{patterns: []}", "{executables: [], deny_tokens: []}"):
        try:
            policy = Policy.parse(
                f"rules: [{{action: allow, tool: shell.run, constraints: {{command: {constraint}}}}}]"
            )
        except PlanError:
            continue
        assert policy.decide(ToolCall(tool="shell.run", args={"command": ["ls"]})).effect == "deny"


def test_f3_a_level_that_a_rule_demands_is_in_the_grant(workdir: Path) -> None:
    """Nothing runs yet; what will is bound to what stands here."""
    policy = (
        "rules: [{action: allow, tool: shell.run, sandbox_level: namespaces,"
        " constraints: {command: {executables: [git]}, sandbox: {read: [docs]}}}]"
    )
    with gate_of(workdir, policy) as gate:
        assert code(gate.call(ToolCall(tool="shell.run", args={"command": ["git", "status"]}))) == 2005
    grant = bodies(db_of(workdir), "intent")[0]["grant"]
    assert isinstance(grant, Mapping)
    commands = grant["commands"]
    assert isinstance(commands, list)
    assert (commands[0]["level"], commands[0]["read"]) == ("namespaces", [f"{workdir}/docs"])
    assert newest(db_of(workdir)).status is RunStatus.COMPLETED
