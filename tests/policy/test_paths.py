from __future__ import annotations

import pytest

from capsule.calls import Components, Places
from capsule.policy.paths import BoundPattern, PathPattern, is_within

PLACES = Places(workdir=("w", "proj"), home=("home", "user"), capsule_home=("home", "user", ".capsule"))


def components(path: str) -> Components:
    return tuple(name for name in path.split("/") if name)


def bind(pattern: str, links: dict[str, str] | None = None, *, deny: bool = False) -> tuple[BoundPattern, ...]:
    """Links as a map from real directory to real directory."""

    def directory(names: Components) -> Components:
        return components((links or {}).get("/" + "/".join(names), "/".join(names)))

    return PathPattern.parse(pattern, unanchored_allowed=deny).bind(PLACES, directory, as_written_too=deny)


def allows(pattern: str, path: str, links: dict[str, str] | None = None, *, hangs: bool = False) -> bool:
    return any(bound.matches(components(path), hidden=False, hangs=hangs) for bound in bind(pattern, links))


def denies(pattern: str, path: str, links: dict[str, str] | None = None, *, folded: bool = False) -> bool:
    return any(
        bound.matches(components(path), beneath=True, folded=folded) for bound in bind(pattern, links, deny=True)
    )


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("./docs/**", ["/w/proj/docs/a", "/w/proj/docs/a/b"], ["/w/proj/docs", "/docs/a", "/w/proj/x/docs/a"]),
        ("docs/*", ["/w/proj/docs/a"], ["/w/proj/docs/a/b", "/w/proj-evil/docs/a"]),
        ("docs/", ["/w/proj/docs"], ["/w/proj/docs/a"]),
        ("**", ["/w/proj", "/w/proj/a", "/w/proj/a/b"], ["/w", "/w/projx", "/w/other/a", "/etc/passwd"]),
        ("./**", ["/w/proj/a"], ["/w/proj", "/w/other"]),
        ("**/x", ["/w/proj/x", "/w/proj/a/x"], ["/x", "/etc/x"]),
        ("/**", ["/etc/passwd", "/w/proj/a"], ["/", "/home/user/.x"]),
        ("/etc/**", ["/etc/passwd"], ["/etc", "/w/proj/etc/passwd"]),
        ("~/notes/*.md", ["/home/user/notes/a.md"], ["/home/user/a.md", "/w/proj/notes/a.md"]),
        ("~", ["/home/user"], ["/home/user/a"]),
        ("\\~/a", ["/w/proj/~/a"], ["/home/user/a"]),
        ("~user/a", ["/w/proj/~user/a"], ["/home/user/a"]),
        (".", ["/w/proj"], ["/w/proj/a"]),
        ("/", ["/"], ["/w"]),
        ("{/etc,~,x}/a", ["/etc/a", "/home/user/a", "/w/proj/x/a"], ["/a"]),
        ("*", ["/w/proj/a"], ["/w/proj/.env"]),
        ("**/.git*", ["/w/proj/.gitignore"], ["/w/proj/.config/.gitignore"]),
        ("./.config/**", ["/w/proj/.config/a"], ["/w/proj/.config/.b"]),
        ("./.config/**/.b", ["/w/proj/.config/x/.b"], ["/w/proj/.config/.x/.b"]),
    ],
)
def test_what_an_allow_covers(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [path for path in yes if not allows(pattern, path)] == []
    assert [path for path in no if allows(pattern, path)] == []


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("secrets", ["/w/proj/secrets", "/w/proj/secrets/a/.b"], ["/w/proj/a/secrets", "/secrets"]),
        ("**/secrets", ["/w/proj/secrets/k", "/w/proj/a/secrets", "/etc/secrets/k", "/secrets"], ["/w/proj", "/w/a"]),
        ("./**/secrets", ["/w/proj/a/secrets"], ["/etc/secrets"]),
        ("**/.*", ["/w/proj/.env", "/home/user/.ssh/id"], ["/w/proj/a"]),
        ("**/proj", ["/w/proj/proj", "/x/proj/a"], ["/w/proj", "/w/proj/a"]),
        ("/etc", ["/etc", "/etc/passwd"], ["/w/proj/etc"]),
        ("*.pem", ["/w/proj/a.pem", "/w/proj/.pem"], ["/w/proj/a/b.pem"]),
        ("**", ["/w/proj", "/w/proj/.a/b"], ["/etc/passwd"]),
        ("/**", ["/a"], ["/"]),
        ("**/**", ["/etc", "/w/proj/a"], []),
    ],
)
def test_what_a_deny_covers(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [path for path in yes if not denies(pattern, path)] == []
    assert [path for path in no if denies(pattern, path)] == []


def test_a_listing_also_covers_the_directory_that_a_double_star_hangs_from() -> None:
    assert allows("docs/**", "/w/proj/docs", hangs=True)
    assert not allows("docs/**", "/w/proj/docs", hangs=False)
    assert not allows("docs/*", "/w/proj/docs", hangs=True)
    assert not allows("docs/**/x", "/w/proj/docs", hangs=True)


def test_literal_leading_directories_are_real_before_the_workdir_only() -> None:
    links = {"/data": "/mnt/disk", "/alias": "/w/proj", "/w/proj/link": "/etc", "/mnt/disk/deep": "/srv"}
    assert allows("/data/*", "/mnt/disk/a", links)
    assert allows("/data/deep/*", "/srv/a", links)
    assert not allows("/data/*", "/data/a", links)
    assert not allows("/data", "/mnt/disk", links)  # the last name is no directory it hangs from
    assert allows("/alias/link/*", "/w/proj/link/a", links)
    assert not allows("/alias/link/*", "/etc/a", links)
    assert not allows("/w/proj/link/*", "/etc/a", links)
    assert not allows("./link/*", "/etc/a", links)
    assert not allows("/da*/deep/*", "/srv/a", links)
    assert allows("~/x/*", "/srv/a", {"/home/user/x": "/srv"})


def test_a_deny_holds_in_both_forms_of_its_directories() -> None:
    links = {"/data": "/mnt/disk"}
    assert denies("/data/secret", "/mnt/disk/secret", links)
    assert denies("/data/secret", "/data/secret", links)


def test_folded_names_are_for_volumes_that_do_not_tell_cases_apart() -> None:
    assert denies("**/.Git", "/w/proj/.gIT/config", folded=True)
    assert not denies("**/.Git", "/w/proj/.gIT/config")
    assert denies("**/café.*", "/W/PROJ/CAFE\u0301.md", folded=True)
    assert denies("**/.git", "/w/proj/.g\u200cit/hooks", folded=True)
    assert denies("**/.git", "/w/proj/.git. /hooks", folded=True)
    assert denies("**/[A-C]x", "/w/proj/bX", folded=True)
    assert denies("**/stra?e", "/w/proj/straße", folded=True)
    assert not denies("**/proj", "/W/PROJ/a", folded=True)


@pytest.mark.parametrize("text", ["../a", "/a/../b", "", "a[", "{a,..}", "a\0"])
def test_a_bad_pattern_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        PathPattern.parse(text, unanchored_allowed=True)


def test_only_a_pattern_without_wildcards_is_literal() -> None:
    assert PathPattern.parse("./{a,b}/\\*", unanchored_allowed=False).is_literal
    assert not PathPattern.parse("./a/?", unanchored_allowed=False).is_literal
    assert not PathPattern.parse("./a/**", unanchored_allowed=False).is_literal


def test_within_is_by_names_and_not_by_letters() -> None:
    assert is_within(("w", "proj", "a"), PLACES.workdir)
    assert is_within(("w", "proj"), PLACES.workdir)
    assert not is_within(("w", "proj-evil"), PLACES.workdir)
