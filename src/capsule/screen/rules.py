"""The rules that come with Capsule; written from the issuers' published formats.

Patterns have no left boundary where the prefix is telling: in escaped text (`\\nghp_…`) a letter stands before it.
"""

from __future__ import annotations

from capsule.screen.rule import ScreenRule

_BEGIN = r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_END = r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_BODY = r"(?:[^-]|-{1,3}[^-])*?"  # anything up to the next dashes of a header
_GAP = r"(?:\s|\\[nrt])*"  # also of text that was escaped
_LINES = rf"(?:{_GAP}[A-Za-z0-9+/=]{{16,}})+"

# A whole block; one that is cut off before its end; one whose beginning is cut off. None without a line of real key:
# documentation shows headers around a few words.
_PEM = (
    rf"{_BEGIN}{_BODY}[A-Za-z0-9+/]{{32}}{_BODY}{_END}"
    rf"|{_BEGIN}(?:{_GAP}[A-Za-z-]+: [^\n\\]*)*{_LINES}(?:{_GAP}[A-Za-z0-9+/=]+$)?"
    rf"|[A-Za-z0-9+/=]{{32,}}(?:{_GAP}[A-Za-z0-9+/=]+)*{_GAP}{_END}"
)

_CREDENTIAL = r"[A-Za-z0-9._~+/=-]"
_NO_USERINFO = r"\s/?#\"'`<>{}()\\⟦"  # ends it, or tells a placeholder
_HEADER = r"(?i)authorization[\"'\\]*\s*[:=,]\s*[\"'\\\[]*"  # also as a JSON key, or escaped

RULES: tuple[ScreenRule, ...] = (
    ScreenRule(id="private-key", type="private_key", pattern=_PEM, keywords=("private key",), confidence=1.0),
    ScreenRule(
        id="aws-access-key-id",
        type="aws_access_key_id",
        pattern=r"((?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16})\b",
        keywords=("akia", "asia", "abia", "acca", "a3t"),
        entropy=3.0,
        examples=("example",),
    ),
    ScreenRule(
        id="aws-secret-access-key",
        type="aws_secret_access_key",
        pattern=(
            r"(?s)(?i:aws|amazon|secret|a[ks]ia[a-z0-9]{16}).{0,80}?(?:[^A-Za-z0-9/+]|\\[nrt])"
            r"([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"
        ),
        keywords=("aws", "amazon", "secret", "akia", "asia"),
        confidence=0.8,
        entropy=4.2,  # forty hexadecimal digits have at most 4.0
        digit=True,
        examples=("examplekey",),
    ),
    ScreenRule(
        id="github-token",
        type="github_token",
        pattern=r"gh[pousr]_[A-Za-z0-9_]{36,}(?:[.-][A-Za-z0-9_-]{8,})*",
        keywords=("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        confidence=1.0,
        entropy=3.0,
    ),
    ScreenRule(
        id="github-fine-grained-token",
        type="github_token",
        pattern=r"github_pat_[A-Za-z0-9_]{36,}",
        keywords=("github_pat_",),
        confidence=1.0,
        entropy=3.0,
    ),
    ScreenRule(
        id="gitlab-token",
        type="gitlab_token",
        pattern=(
            r"(?:gl(?:pat|dt|rt|cbt|ptt|ft|soat|ffct|imt|agent|oas)-[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_.-]{7,})*"
            r"|GR1348941[A-Za-z0-9_-]{20,})"
        ),
        keywords=(
            *(f"gl{kind}-" for kind in ("pat", "dt", "rt", "cbt", "ptt", "ft", "soat", "ffct", "imt", "agent", "oas")),
            "gr1348941",
        ),
        confidence=1.0,
        entropy=3.0,
    ),
    ScreenRule(
        id="gitlab-session",
        type="gitlab_token",
        pattern=r"_gitlab_session=([0-9a-z]{32})",
        keywords=("_gitlab_session",),
        entropy=3.0,
    ),
    ScreenRule(
        id="slack-token",
        type="slack_token",
        pattern=(
            r"(?i)(?:xox[abeoprs](?:\.xox[bp])?-(?:[0-9]{1,14}-){1,4}[a-z0-9]{10,}"
            r"|xapp-[0-9]-[a-z0-9]+-[0-9]+-[a-z0-9]{16,})"
        ),
        keywords=(*(f"xox{kind}" for kind in "abeoprs"), "xapp-"),
        confidence=1.0,
        entropy=2.5,
    ),
    ScreenRule(
        id="slack-webhook",
        type="slack_webhook",
        pattern=r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{43,}",
        keywords=("hooks.slack.com",),
        confidence=1.0,
        entropy=3.0,
    ),
    ScreenRule(
        id="authorization-header",
        type="authorization",
        pattern=rf"{_HEADER}(?:bearer|token|apikey|digest|negotiate)\s+({_CREDENTIAL}{{8,}})",
        keywords=("authorization",),
        confidence=0.85,  # where it is a bearer token, that rule names it
        entropy=2.5,
        digit=True,
    ),
    ScreenRule(
        id="authorization-basic",
        type="authorization",
        pattern=rf"{_HEADER}basic\s+((?:[a-z0-9+/]{{4}}){{2,}}(?:[a-z0-9+/]{{2}}==|[a-z0-9+/]{{3}}=)?)(?:[^a-z0-9+/=]|$)",
        keywords=("authorization",),
        entropy=3.1,
    ),
    ScreenRule(
        id="authorization-value",
        type="authorization",
        pattern=rf"{_HEADER}({_CREDENTIAL}{{20,}})",
        keywords=("authorization",),
        confidence=0.8,
        entropy=3.0,
        digit=True,
    ),
    ScreenRule(
        id="bearer-token",
        type="bearer_token",
        pattern=rf"(?i)\bbearer\s+({_CREDENTIAL}{{16,}})",
        keywords=("bearer",),
        entropy=3.0,
        digit=True,
    ),
    ScreenRule(
        id="authorization-named",
        type="authorization",
        pattern="",
        keywords=("authorization",),
        names=("authorization",),
        confidence=0.8,  # a rule that knows the token says more
    ),
    ScreenRule(id="cookie-named", type="cookie", pattern="", keywords=("cookie",), names=("cookie",), confidence=0.8),
    ScreenRule(
        id="url-password",
        type="url_password",
        pattern=rf"(?i)\b[a-z][a-z0-9+.-]*://[^{_NO_USERINFO}:@]*:([^{_NO_USERINFO}$*][^{_NO_USERINFO}]*)@",
        keywords=("://",),
        entropy=2.8,  # `password` and `changeme` have less
    ),
    ScreenRule(
        id="url-parameter",
        type="url_parameter",
        pattern=r"(?i)(?:^|[?&;\"']|\\u0026)(?:access_token|client_secret)=([A-Za-z0-9._~%+/=-]{8,})",
        keywords=("access_token=", "client_secret="),
        entropy=3.0,
        examples=("_token", "-token", "accesstoken", "_secret", "-secret", "clientsecret", "_here", "-here"),
    ),
)
