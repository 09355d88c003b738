from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule.calls import Components, ConcreteCommand, Places
from capsule.canon import Json
from capsule.policy.command_patterns import CommandPattern, Mismatch
from capsule.policy.commands import BoundCommands, CommandConstraint, CommandIndex
from capsule.policy.paper import lexical

PLACES = Places(workdir=("w",), home=("home", "u"), capsule_home=("home", "u", ".capsule"))
LINKS = {("bin",): ("usr", "bin"), ("w", "tools"): ("w", "real")}


def directory(names: Components) -> Components:
    return LINKS.get(names, names)


def concrete(argv: list[str], *, program: str | None = None) -> ConcreteCommand:
    """As the world would find it: bare names in /usr/bin, directories resolved."""
    *parents, name = argv[0].split("/")
    where = directory(lexical("/".join(parents) + "/", PLACES)) if parents else ("usr", "bin")
    invoked = (*where, name)
    return ConcreteCommand(
        argument="command",
        argv=tuple(argv),
        invoked=invoked,
        program=lexical(program, PLACES) if program else invoked,
    )


def bind(raw: dict[str, Json], *, deny: bool = False) -> BoundCommands:
    return CommandConstraint.read(raw, deny=deny).bind(PLACES, directory)


def allows(pattern: str | list[str], argv: list[str], *, program: str | None = None) -> bool:
    return bind({"pattern": pattern}).mismatch(concrete(argv, program=program)) is None


def denies(pattern: str | list[str], argv: list[str], *, program: str | None = None) -> bool:
    return bind({"pattern": pattern}, deny=True).mismatch(concrete(argv, program=program)) is None


@pytest.mark.parametrize(
    ("pattern", "argv", "expected"),
    [
        ("git status", ["git", "status"], True),
        ("git status", ["git", "status", "-s"], False),
        ("git status", ["git"], False),
        ("git status", ["GIT", "status"], False),
        ("git status", ["git status"], False),
        ("git log **", ["git", "log"], True),
        ("git log **", ["git", "log", "-p", "--", "x"], True),
        ("git log **", ["git", "-C", "/", "log"], False),
        ("git log *", ["git", "log", "main"], True),
        ("git log *", ["git", "log", "a/b/c"], True),
        ("git log *", ["git", "log", ""], True),
        ("git log *", ["git", "log", "--output=x"], False),
        ("git log *", ["git", "log", "-"], False),
        ("git log *x", ["git", "log", "-x"], False),
        ("git log ?x", ["git", "log", "-x"], False),
        ("git log -*", ["git", "log", "-x"], True),
        ("git log --*", ["git", "log", "-x"], False),
        ("git log -- *", ["git", "log", "--", "-x"], True),
        ("git log -* *", ["git", "log", "--", "-x"], False),
        ("git log * -- *", ["git", "log", "-x", "--", "y"], False),
        ("cat a?c", ["cat", "a/c"], True),
        ("cat a*", ["cat", "a/../../etc/passwd"], True),
        ("cat [ab]", ["cat", "a"], False),
        ("cat [ab]", ["cat", "[ab]"], True),
        ("cat {a,b}", ["cat", "a"], False),
        ("echo \\*", ["echo", "*"], True),
        ("echo \\*", ["echo", "x"], False),
        ("echo a\\b", ["echo", "a\\b"], True),
        (["echo", "a b"], ["echo", "a b"], True),
        (["echo", ""], ["echo", ""], True),
        (["echo", "**"], ["echo", "x", "y"], True),
        ("git*", ["git-upload"], True),
        ("*", ["anything"], True),
        ("*", ["-x"], False),
        ("**", ["anything", "-x", "y"], True),
    ],
)
def test_what_an_allow_covers(pattern: str | list[str], argv: list[str], *, expected: bool) -> None:
    assert allows(pattern, argv) is expected


@pytest.mark.parametrize(
    ("pattern", "argv", "expected"),
    [
        ("git **", ["/usr/bin/git", "x"], False),
        ("git **", ["./git"], False),
        ("**", ["./git"], False),
        ("*", ["/usr/bin/git"], False),
        ("/usr/bin/git **", ["/usr/bin/git", "x"], True),
        ("/usr/bin/git **", ["/bin/git", "x"], True),
        ("/bin/git **", ["/usr/bin/git"], True),
        ("/usr/bin/git **", ["git"], False),
        ("/usr/bin/g*", ["/usr/bin/git"], True),
        ("/usr/bin/*", ["/usr/bin/x/y"], False),
        ("/usr/*/git", ["/usr/bin/git"], True),
        ("/usr/*", ["/usr/bin/git"], False),
        ("/usr/*/*", ["/usr/bin/a/b/git"], True),
        ("./tools/run", ["tools/run"], True),
        ("tools/run", ["./tools/run"], True),
        ("./real/run", ["./tools/run"], True),
        ("./tools/run", ["/w/real/run"], True),
        ("./tools/run", ["run"], False),
        ("./tools/*", ["./tools/../evil"], False),
        ("~/bin/x", ["/home/u/bin/x"], True),
        ("~/bin/x", ["/home/v/bin/x"], False),
        ("/x", ["/x"], True),
        ("./x", ["/w/x"], True),
    ],
)
def test_where_an_allowed_program_lies(pattern: str, argv: list[str], *, expected: bool) -> None:
    assert allows(pattern, argv) is expected


def test_an_allow_compares_the_name_as_written_and_not_the_real_program() -> None:
    assert allows("python3 **", ["python3"], program="/usr/bin/python3.11")
    assert not allows("python3.11 **", ["python3"], program="/usr/bin/python3.11")


@pytest.mark.parametrize(
    ("pattern", "argv", "program", "expected"),
    [
        ("rm", ["rm"], None, True),
        ("rm", ["rm", "-rf", "/"], None, True),
        ("rm", ["/bin/rm", "x"], None, True),
        ("rm", ["./rm"], None, True),
        ("rm", ["delete"], "/usr/bin/rm", True),
        ("rm", ["rmdir"], None, False),
        ("rm", ["busybox", "rm"], None, False),
        ("python3*", ["python3"], "/usr/bin/python3.11", True),
        ("git push", ["git", "push", "--force"], None, True),
        ("git push", ["git", "pull"], None, False),
        ("git * --force", ["git", "-x", "--force", "y"], None, True),
        ("git ?x", ["git", "-x"], None, True),
        ("/usr/bin/git push", ["git", "push"], None, True),
        ("/bin/git", ["/usr/bin/git"], None, True),
        ("/usr/bin/rm", ["delete"], "/usr/bin/rm", True),
        ("./tools/run", ["/w/real/run"], None, True),
        ("**", ["./x", "-y"], None, True),
        ("*", ["/usr/bin/x"], None, True),
        ("git **", ["git"], None, True),
    ],
)
def test_what_a_deny_covers(pattern: str, argv: list[str], program: str | None, *, expected: bool) -> None:
    assert denies(pattern, argv, program=program) is expected


@pytest.mark.parametrize(
    "pattern",
    ["", "git  log", " git", "git ", [], ["", "x"], "git ** log", "** x", "bin/", "/", "../x", "a/../b", "~/"],
)
@pytest.mark.parametrize("deny", [False, True])
def test_a_bad_pattern_is_refused(pattern: str | list[str], *, deny: bool) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        CommandPattern.parse(pattern, deny=deny)


@pytest.mark.parametrize("name", ["", "git*", "git log", "?"])
def test_an_executable_is_a_name(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a program"):
        CommandConstraint.read({"executables": [name]}, deny=False)


def test_executables_are_short_for_a_name_and_anything() -> None:
    bound = bind({"executables": ["git", "ls"], "patterns": ["cat *"]})
    for argv in (["git"], ["git", "-c", "x"], ["ls", "a"], ["cat", "a"]):
        assert bound.mismatch(concrete(argv)) is None
    assert bound.mismatch(concrete(["rm"])) is not None


def test_empty_lists_match_nothing_and_nothing_named_is_refused_in_an_allow() -> None:
    assert bind({"patterns": []}).mismatch(concrete(["git"])) is not None
    assert bind({"executables": []}).mismatch(concrete(["git"])) is not None
    assert bind({"patterns": []}, deny=True).mismatch(concrete(["git"])) is not None
    assert bind({}, deny=True).mismatch(concrete(["git"])) is None
    with pytest.raises(ValueError, match="which commands"):
        CommandConstraint.read({"deny_tokens": ["x"]}, deny=False)


@pytest.mark.parametrize(
    ("token", "argv", "at"),
    [
        ("--exec", ["git", "a", "--exec"], 2),
        ("--exec", ["git", "--exec=sh"], 1),
        ("--exec", ["git", "--executable"], None),
        ("--exec", ["git", "x--exec"], None),
        ("--exec*", ["git", "--executable"], 1),
        ("*;*", ["git", "a;b"], 1),
        ("git", ["git"], 0),
        ("a", ["git", "a=b"], None),
    ],
)
def test_a_denied_token_is_a_whole_one_with_a_code_of_its_own(token: str, argv: list[str], at: int | None) -> None:
    found = bind({"executables": ["git"], "deny_tokens": [token]}).mismatch(concrete(argv))
    assert (found and (found.code, found.token)) == (None if at is None else (1004, at))


def test_in_a_deny_a_token_narrows() -> None:
    force = bind({"executables": ["git"], "deny_tokens": ["--force"]}, deny=True)
    assert force.mismatch(concrete(["git", "push", "--force"])) is None
    assert force.mismatch(concrete(["git", "push"])) is not None
    assert force.mismatch(concrete(["hg", "--force"])) is not None


@pytest.mark.parametrize(
    ("argv", "token", "said"),
    [
        (["ls"], 0, "'ls' is not 'git'"),
        (["git", "push"], 1, "'push' does not match"),
        (["git", "log", "-p"], 2, "'-p' is an option"),
        (["git", "log"], None, "ends after 2 of at least 3"),
        (["git", "log", "a", "b"], 3, "'b' is more than the pattern has"),
    ],
)
def test_a_mismatch_names_the_first_token_that_does_not_fit(argv: list[str], token: int | None, said: str) -> None:
    found = bind({"pattern": "git log *"}).mismatch(concrete(argv))
    assert isinstance(found, Mismatch)
    assert (found.code, found.token) == (1003, token)
    assert said in found.reason


def test_of_several_patterns_the_one_that_went_furthest_is_explained() -> None:
    found = bind({"patterns": ["ls", "git log a", "git"]}).mismatch(concrete(["git", "log", "b"]))
    assert found == Mismatch(token=2, reason="'b' does not match")


def test_what_could_not_be_made_concrete_is_under_nothing() -> None:
    broken = ConcreteCommand(argument="command", argv=("git",), problem="no such program")
    for deny in (False, True):
        bound = bind({"pattern": "**"}, deny=deny)
        assert bound.mismatch(broken) is not None
        assert CommandIndex.build([(bound, 1)]).matches(broken) == set()


TOKENS = st.sampled_from(["git", "log", "*", "a*", "-*", "--", "-x", "?", "x/y", "", "l?g"])
PROGRAMS = st.sampled_from(["git", "g*", "*", "./git", "/bin/git", "/usr/*/git", "./tools/*", "~/x", "/usr/bin/?it"])
PATTERNS = st.builds(
    lambda program, tokens, rest: [program, *tokens, *rest],
    PROGRAMS,
    st.lists(TOKENS, max_size=3),
    st.sampled_from([[], ["**"]]),
)
ARGV = st.builds(
    lambda program, tokens: [program, *tokens],
    st.sampled_from(["git", "./git", "/bin/git", "/usr/bin/git", "tools/run", "/home/u/x", "/usr/a/b/git", "-x"]),
    st.lists(st.sampled_from(["log", "a", "-x", "--", "x/y", "", "/", "-"]), max_size=4),
)


@given(
    patterns=st.lists(st.lists(PATTERNS, max_size=3), max_size=6),
    tokens=st.lists(st.sampled_from(["-x", "a*"]), max_size=1),
    argv=ARGV,
    deny=st.booleans(),
)
def test_the_index_equals_asking_every_constraint(
    patterns: list[list[list[str]]], tokens: list[str], argv: list[str], *, deny: bool
) -> None:
    bound = [bind({"patterns": each, "deny_tokens": tokens}, deny=deny) for each in patterns]
    command = concrete(argv, program="/usr/lib/git")
    expected = {number for number, each in enumerate(bound) if each.mismatch(command) is None}
    assert CommandIndex.build((each, number) for number, each in enumerate(bound)).matches(command) == expected


def test_thousands_of_constraints_on_one_program_are_told_apart() -> None:
    index = CommandIndex.build((bind({"pattern": f"git show {number} *"}), number) for number in range(2000))
    assert index.matches(concrete(["git", "show", "1017", "x"])) == {1017}
    assert index.matches(concrete(["git", "show", "1017", "-x"])) == set()
