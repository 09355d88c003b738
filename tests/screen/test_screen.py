"""What is masked, numbered and noted, wherever in a value it stands."""

from __future__ import annotations

import base64
import hmac
import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from secret_samples import PEM, SECRETS

from capsule.calls import Finding, Redact
from capsule.calls.marker import has_marker
from capsule.calls.texts import TooDeep
from capsule.canon import Json, canonical
from capsule.screen import Markers, Screen, ScreenRule

KEY = b"a key"
SCREEN = Screen(key=KEY)
TOKEN = SECRETS["github_token ghp"][1]
OTHER = SECRETS["gitlab_token glpat"][1]
M1, M2 = "⟦redacted:github_token:1⟧", "⟦redacted:gitlab_token:2⟧"


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        (TOKEN, M1),
        (f"{TOKEN} and {OTHER} and {TOKEN}", f"{M1} and {M2} and {M1}"),
        (["a", [TOKEN], 1, None, True, 1.5], ["a", [M1], 1, None, True, 1.5]),
        ({"a": {"b": TOKEN}, "c": OTHER}, {"a": {"b": M1}, "c": M2}),
        ({TOKEN: 1, f"x{OTHER}": 2}, {M1: 1, f"x{M2}": 2}),
        (f"é {TOKEN} 🔑 ü", f"é {M1} 🔑 ü"),
        ("\ud800" + TOKEN, "\ud800" + M1),
        (f"\\n{TOKEN}\\n", f"\\n{M1}\\n"),
        ({"Authorization": "5eb4223e-5008-46e5-be67-c7b8f2732305"}, {"Authorization": "⟦redacted:authorization:1⟧"}),
        (
            {"env": {"AWS_SECRET_ACCESS_KEY": SECRETS["aws_secret_access_key"][1]}},
            {"env": {"AWS_SECRET_ACCESS_KEY": "⟦redacted:aws_secret_access_key:1⟧"}},
        ),
        (["-H", f"Authorization: Bearer {TOKEN}"], ["-H", f"Authorization: Bearer {M1}"]),
    ],
)
def test_e2_every_text_in_a_value_is_screened_keys_too(value: Json, masked: Json) -> None:
    screened = SCREEN.screen(value)
    assert screened.value == masked
    assert screened.redacted
    assert has_marker(screened.value)


def test_what_holds_no_secret_is_given_back_itself() -> None:
    value: Json = {"a": ["bearer", "secret", {"authorization": None, "cookie": True}], "n": 1, "\0": "secret\0"}
    screened = SCREEN.screen(value)
    assert screened.value is value
    assert (screened.findings, screened.redacted) == ((), False)


def test_a_finding_says_where_and_never_what() -> None:
    screened = SCREEN.screen({"text": f"one\n  é {TOKEN}\n\n{OTHER}"})
    assert screened.findings == (
        Finding(
            rule="github-token",
            type="github_token",
            line=2,
            column=5,
            length=len(TOKEN),
            confidence=1.0,
            snippet=f"gh…{TOKEN[-2:]}",
            fingerprint=hmac.digest(KEY, TOKEN.encode(), "sha256").hex(),
        ),
        Finding(
            rule="gitlab-token",
            type="gitlab_token",
            line=4,
            column=1,
            length=len(OTHER),
            confidence=1.0,
            snippet=f"gl…{OTHER[-2:]}",
            fingerprint=hmac.digest(KEY, OTHER.encode(), "sha256").hex(),
        ),
    )


def test_a_column_under_a_telling_key_is_that_of_the_text() -> None:
    (finding,) = SCREEN.screen({"aws_secret": "  " + SECRETS["aws_secret_access_key"][1]}).findings
    assert (finding.line, finding.column) == (1, 3)


NAMED, COOKIE = "⟦redacted:authorization:1⟧", "⟦redacted:cookie:1⟧"


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        ({"Authorization": "Bearer correcthorsebatterystaple"}, {"Authorization": NAMED}),
        ({"h": {"authorization": "Basic YWRtaW46YWRtaW4="}}, {"h": {"authorization": NAMED}}),
        ({"AUTHORIZATION ": "hunter2"}, {"AUTHORIZATION ": NAMED}),
        ({"Cookie": "a=b"}, {"Cookie": COOKIE}),
        (
            {"cookie": ["a", "a", 1, {"x": "y"}, None]},
            {"cookie": [COOKIE, COOKIE, COOKIE[:-2] + "2⟧", {"x": "y"}, None]},
        ),
        ({"cookie": 4711, "n": 4711}, {"cookie": COOKIE, "n": 4711}),
        ({"authorization": "secret:NAME or more"}, {"authorization": NAMED}),
        ({"authorization": f"token {TOKEN}"}, {"authorization": M1}),
    ],
)
def test_e2_what_is_named_a_credential_is_one_whatever_it_looks_like(value: Json, masked: Json) -> None:
    screened = SCREEN.screen(value)
    assert (screened.value, screened.redacted) == (masked, True)
    assert SCREEN.screen(masked).value is masked
    assert SCREEN.screen(value, redact="off").value == value


@pytest.mark.parametrize("text", ["secret:NAME", NAMED, ""])
def test_a_handle_and_a_marker_are_no_credentials(text: str) -> None:
    value: Json = {"Authorization": text, "cookie": {"a": "b"}}
    assert SCREEN.screen(value).value is value


def between(text: str) -> str:
    return "\0".join(text)


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        (between(f"a {TOKEN} b"), f"a\0 \0{M1}\0 \0b"),
        ({"x": [f"\0{between(TOKEN)}\0 {TOKEN}"]}, {"x": [f"\0{M1}\0 {M1}"]}),
        ({between(TOKEN): 1}, {M1: 1}),
        (f"{TOKEN[:9]}\0{TOKEN[9:]}", M1),
        (f"found {between(TOKEN)!r}", f"found '{M1}'"),
        (json.dumps(between(TOKEN)), f'"{M1}"'),
    ],
)
def test_e2_nuls_hide_no_secret_in_a_text(value: Json, masked: Json) -> None:
    screened = SCREEN.screen(value)
    assert screened.value == masked
    assert {finding.fingerprint for finding in screened.findings} == {hmac.digest(KEY, TOKEN.encode(), "sha256").hex()}


def test_redact_off_finds_through_nuls_once() -> None:
    text = f"{TOKEN} {between(OTHER)}"
    screened = SCREEN.screen(text, redact="off")
    assert (screened.value, [finding.rule for finding in screened.findings]) == (text, ["github-token", "gitlab-token"])


@pytest.mark.parametrize(("secret", "snippet"), [("abc123def456ghi", ""), ("abc123def456ghij", "ab…ij")])
def test_a_snippet_needs_sixteen_characters(secret: str, snippet: str) -> None:
    (finding,) = SCREEN.screen(f"Authorization: Token {secret}").findings
    assert finding.snippet == snippet


def test_the_same_secret_has_one_number_through_a_whole_call() -> None:
    markers = Markers()
    assert SCREEN.screen({"url": f"x?{TOKEN}"}, markers=markers).value == {"url": f"x?{M1}"}
    assert SCREEN.screen(f"{OTHER} {TOKEN}", markers=markers).value == f"{M2} {M1}"


def test_off_still_finds_and_personal_masks_more() -> None:
    personal = ScreenRule(
        id="ticket", type="ticket", pattern=r"ticket-(\d+)", keywords=("ticket",), category="personal"
    )
    screen = Screen(key=KEY, rules=(*SCREEN.rules, personal))
    text = f"Ticket-1 ticket-22 {TOKEN}"
    results: dict[Redact, str] = {
        "off": text,
        "secrets": "Ticket-1 ticket-22 ⟦redacted:github_token:1⟧",
        "personal": "Ticket-1 ticket-⟦redacted:ticket:1⟧ ⟦redacted:github_token:2⟧",
    }
    for redact, value in results.items():
        screened = screen.screen(text, redact=redact)
        assert (screened.value, screened.redacted) == (value, value != text)
        assert [finding.rule for finding in screened.findings] == ["ticket", "github-token"]


GRANTED = 'hünter/2+ "secret"'
FORMS = {
    "plain": GRANTED,
    "json": json.dumps(GRANTED)[1:-1],
    "json utf-8": json.dumps(GRANTED, ensure_ascii=False)[1:-1],
    "percent": "h%C3%BCnter%2F2%2B%20%22secret%22",
    "percent lower": "h%c3%bcnter%2f2%2b%20%22secret%22",
    "path": "h%C3%BCnter/2%2B%20%22secret%22",
    "form": "h%C3%BCnter%2F2%2B+%22secret%22",
    "percent all": "".join(f"%{byte:02X}" for byte in GRANTED.encode()),
    "hex": GRANTED.encode().hex(),
    "hex upper": GRANTED.encode().hex().upper(),
    **{f"base64 {n}": base64.b64encode(b"x" * n + GRANTED.encode() + b"y" * n).decode() for n in range(4)},
    **{f"base64url {n}": base64.urlsafe_b64encode(b"x" * n + GRANTED.encode() + b"y" * n).decode() for n in range(4)},
    "basic": base64.b64encode(f"user:{GRANTED}".encode()).decode(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("redact", ["off", "secrets", "personal"])
def test_e2_a_granted_secret_is_masked_in_every_form_and_mode(form: str, redact: Redact) -> None:
    screen = SCREEN.with_secret("PASSWORD", GRANTED)
    screened = screen.screen({"a": [f"<{FORMS[form]}>"]}, redact=redact)
    assert screened.redacted
    assert {finding.rule for finding in screened.findings} == {"secret:PASSWORD"}
    left = canonical(screened.value).decode().replace("⟦redacted:secret:1⟧", "")
    assert FORMS["plain"][:8] not in left
    assert len(left) <= len('{"a":["<>"]}') + (12 if form.startswith("base64") else 8 if form == "basic" else 0)


def test_a_granted_secret_is_found_beside_and_within_others() -> None:
    screen = SCREEN.with_secret("A", TOKEN[:20]).with_secret("B", "correct horse")
    screened = screen.screen(f"{TOKEN} correct horse battery")
    assert screened.value == "⟦redacted:secret:1⟧ ⟦redacted:secret:2⟧ battery"


def test_what_is_too_short_to_be_told_apart_is_not_masked() -> None:
    assert SCREEN.with_secret("A", "abc").screen("abc abcd").value == "abc abcd"
    assert SCREEN.with_secret("A", "abcd").screen("abc abcd").value == "abc ⟦redacted:secret:1⟧"


def test_what_was_granted_is_masked_whatever_rule_finds_it_too() -> None:
    screen = SCREEN.with_secret("TOKEN", TOKEN).with_secret("PART", TOKEN[8:30])
    for text in (TOKEN, f"a {TOKEN} b"):
        assert TOKEN[8:30] not in str(screen.screen(text, redact="off").value)


@pytest.mark.parametrize(
    ("data", "masked"),
    [
        (b"\xff\xfe\x00" + TOKEN.encode() + b"\x00\xff", b"\xff\xfe\x00" + M1.encode() + b"\x00\xff"),
        (b"\x00" * 9 + PEM.encode() + b"\x80", b"\x00" * 9 + "⟦redacted:private_key:1⟧".encode() + b"\x80"),
        (f"a {TOKEN}".encode("utf-16"), f"a {M1}".encode("utf-16")),
        (b"\xfe\xff" + f"a {TOKEN}".encode("utf-16-be"), b"\xfe\xff" + f"a {M1}".encode("utf-16-be")),
        (f"é {TOKEN}\n".encode("utf-16-le"), f"é {M1}\n".encode("utf-16-le")),
        (f"é {TOKEN}\n".encode("utf-16-be"), f"é {M1}\n".encode("utf-16-be")),
        (TOKEN.encode("utf-16-le"), M1.encode("utf-16-le")),
        (TOKEN.encode("utf-32-le"), M1.encode() + bytes(3)),
        (b"\xff\xfe" + f"a {TOKEN} b".encode() + b"\n", b"\xff\xfe" + f"a {M1} b".encode() + b"\n"),
    ],
    ids=["binary", "pem", "utf-16-le", "utf-16-be", "le without mark", "be without mark", "alone", "utf-32", "ASCII"],
)
def test_bytes_are_screened_before_they_are_base64(data: bytes, masked: bytes) -> None:
    screened = SCREEN.screen_bytes(data)
    assert (screened.data, screened.redacted, len(screened.findings)) == (masked, True, 1)
    assert has_marker(base64.b64encode(screened.data).decode()) or b"\x00a" in masked or masked[2:4] == b"a\x00"


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"\xff\xfea", b"secret \xff\xfe", b"\xff\xfe\x00\xd8 secret"])
def test_bytes_without_a_secret_come_back_as_they_are(data: bytes) -> None:
    assert SCREEN.screen_bytes(data).data is data
    assert SCREEN.screen_bytes(data, redact="off").findings == ()


def test_redact_off_leaves_bytes_alone_and_finds() -> None:
    data = TOKEN.encode()
    screened = SCREEN.screen_bytes(data, redact="off")
    assert (screened.data, len(screened.findings)) == (data, 1)


def test_ten_thousand_secrets_are_all_masked_and_a_thousand_noted() -> None:
    tokens = [f"ghp_{sha256(b'%d' % number).hexdigest()}" for number in range(10_000)]
    screened = SCREEN.screen(" ".join(tokens))
    assert isinstance(screened.value, str)
    assert "ghp_" not in screened.value
    assert len(screened.findings) == 1_000


def test_what_is_nested_too_deeply_is_refused_and_never_a_crash() -> None:
    value: Json = TOKEN
    for _ in range(200):
        value = [value]
    assert TOKEN not in str(SCREEN.screen(value).value)
    for _ in range(100_000):
        value = [value]
    with pytest.raises(TooDeep):
        SCREEN.screen(value)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "secret " + "aws " * 250_000,
        "-----BEGIN PRIVATE KEY-----\n" * 37_000,
        "-----BEGIN PRIVATE KEY-----" + "A" * 31 + "-" * 1_000_000,
        "private key " + "A" * 1_000_000,
        "authorization: basic " + "aaaa" * 250_000,
        "glpat-" * 170_000,
        "xoxb-1-1-1-1-" * 80_000,
        "bearer " * 140_000,
        "a://b:" * 170_000,
        "https://b:cdefghijklm@" * 45_000,
        "a" * 1_000_000 + "://b:cdefghijklm@d",
        "&access_token=" * 70_000,
        "\0".join(f"ghp_{'aB3d' * 9} " * 12_000),
    ],
    ids=lambda text: text[:32].strip(),
)
def test_a_megabyte_made_to_be_slow_is_screened_in_time_that_grows_with_its_length_only(text: str) -> None:
    SCREEN.screen(text)  # some 0.1 s; quadratic time would be minutes


FILLER = st.sampled_from(
    ["", " ", "\n", '"', "'", ",", "; ", "x = ", "é", "secret ", "authorization ", "aws: ", "🔑", "\\n", "=>"]
)
SECRET = st.sampled_from([name for name in SECRETS if not name.startswith(("aws_secret", "authorization"))])


@st.composite
def texts_with_secrets(draw: st.DrawFn) -> tuple[str, list[str]]:
    parts, planted = [draw(FILLER)], []
    for name in draw(st.lists(SECRET, max_size=4)):
        before, secret, after = SECRETS[name]
        parts += [before, secret, after, draw(st.sampled_from([" ", "\n", '"', ", ", "\t"])), draw(FILLER)]
        planted.append(secret)
    return "".join(parts), planted


@given(st.lists(texts_with_secrets(), max_size=4), st.booleans())
def test_no_planted_secret_is_left_and_what_is_masked_stays_as_it_is(
    texts: list[tuple[str, list[str]]], as_keys: bool
) -> None:
    value: Json = {text: 1 for text, _ in texts} if as_keys else [text for text, _ in texts]
    screened = SCREEN.screen(value)
    left = json.dumps(screened.value, ensure_ascii=False)
    for _, planted in texts:
        for secret in planted:
            assert secret not in left
            assert json.dumps(secret, ensure_ascii=False)[1:-1] not in left
    again = SCREEN.screen(screened.value)
    assert again.value == screened.value
    assert screened.redacted is any(planted for _, planted in texts)
