"""What each rule finds, and what only looks like it."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
import re2
from secret_samples import PEM, SECRETS

from capsule.calls.concrete import CREDENTIAL_HEADERS
from capsule.screen import RULES, Screen, rules_digest

SCREEN = Screen(key=b"key")
CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "secrets.jsonl"
FIRST_SET = ("aws-access", "github", "gitlab", "slack", "private-key")


@pytest.mark.parametrize("kind", SECRETS)
def test_e2_a_secret_is_masked_and_what_stands_around_it_is_not(kind: str) -> None:
    before, secret, after = SECRETS[kind]
    screened = SCREEN.screen(f"see: {before}{secret}{after}\nthe end")
    assert isinstance(screened.value, str)
    masked = screened.value.replace("see: ", "", 1)
    *_, found = screened.findings
    assert found.type == kind.split()[0]
    assert masked.endswith(f"⟦redacted:{found.type}:{len(screened.findings)}⟧{after}\nthe end")
    assert len(screened.findings) > 1 or masked.startswith(before)
    assert secret not in masked


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PRIVATE KEY-----\nanything\n-----END PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY----------END OPENSSH PRIVATE KEY-----",
        "files that begin with -----BEGIN RSA PRIVATE KEY----- are refused, others are not refused",
        PEM.replace("RSA PRIVATE", "PUBLIC"),
        "AKIAIOSFODNN7EXAMPLE",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "AKIAAAAAAAAAAAAAAAAA",
        "aws commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "secret: da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "secret/kubernetes/production/databases/users",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "ghp_short",
        "github_pat_xxxxxxxxxxxxxxxxxxxxxx_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "glpat-XXXXXXXXXXX-XXXXXXXX",
        "xoxb-my-bot-token-goes-here",
        "xoxp-1234567890",
        "https://hooks.slack.com/services/",
        "Authorization: Bearer $TOKEN",
        "Authorization: Bearer $(gcloud auth print-access-token)",
        "Authorization: Basic authentication is required",
        "a bearer authentication-and-authorization scheme",
        "the bearer of this letter is internationally-known",
        "Authorization: required-for-all-of-the-endpoints",
        "Asia, amazon and the secret garden",
        "postgres://user:password@localhost/db",
        "https://$USER:$PASSWORD@example.com, https://<user>:<password1>@host, https://{user}:{password1}@host",
        "http://localhost:8080/@scope/package, ssh://git@example.com:2222/a@b",
        "https://example.com/?access_token=YOUR_ACCESS_TOKEN&client_secret=$CLIENT_SECRET",
        "client_secret = the_secret_of_the_client",
        "Cookie: a=b",
        "sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    ],
)
def test_what_only_looks_like_a_secret_is_left_alone(text: str) -> None:
    screened = SCREEN.screen(text)
    assert (screened.value, screened.findings, screened.redacted) == (text, (), False)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_is_well_formed(rule: object) -> None:
    assert rule in RULES
    known = next(known for known in RULES if known == rule)
    assert re2.compile(known.pattern).groups <= 1
    assert bool(known.pattern) is not bool(known.names)
    assert known.keywords
    assert all(word == word.lower() for word in known.keywords)
    assert 0 < known.confidence <= 1
    assert re2.fullmatch("[a-z0-9_.-]+", known.type)


def test_each_header_that_is_a_credential_has_a_rule_for_its_name() -> None:
    assert {name for rule in RULES for name in rule.names} == CREDENTIAL_HEADERS


def test_the_digest_is_that_of_the_rules() -> None:
    assert SCREEN.rules_digest == rules_digest(RULES) != rules_digest(RULES[1:])
    assert Screen(key=b"other").rules_digest == SCREEN.rules_digest
    assert SCREEN.with_secret("NAME", "a long value").rules_digest == SCREEN.rules_digest
    assert len({rule.id for rule in RULES}) == len(RULES)


def corpus() -> list[tuple[str | None, str, str]]:
    if not CORPUS.exists():
        pytest.skip(f"{CORPUS.name} is not here")
    lines = (json.loads(line) for line in CORPUS.read_text().splitlines())
    return [
        (line["label"], line["rule"], base64.b64decode(line["text_b64"]).decode(errors="replace")) for line in lines
    ]


def test_the_corpus_has_nothing_that_we_claim_and_do_not_find() -> None:
    claimed = [(rule, text) for label, rule, text in corpus() if label and rule.startswith(FIRST_SET)]
    assert len(claimed) > 50
    assert [(rule, text) for rule, text in claimed if not SCREEN.screen(text).findings] == []


def test_the_corpus_has_nothing_innocent_that_we_find() -> None:
    innocent = [(rule, text) for label, rule, text in corpus() if label is None]
    assert len(innocent) > 100
    assert [(rule, text) for rule, text in innocent if SCREEN.screen(text).findings] == []
