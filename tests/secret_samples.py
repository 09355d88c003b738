"""Made-up secrets of each kind, put together here so that no scanner takes this file for a leak."""

from __future__ import annotations

_MIXED = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
_LOWER = "k3j5h7g9f1d2s4a6p8o0i9u7y5t3r1e2w4q6z8x0c9v7b5n3m1"
_HEX = "5e8b1c9a7d3f2046" * 4
_LINE = (_MIXED + _LOWER)[:64]

PEM = "\n".join(("-----BEGIN RSA PRIVATE KEY-----", _LINE, _LINE[::-1], "abcd==", "-----END RSA PRIVATE KEY-----"))

# type → text around it → the secret itself
SECRETS: dict[str, tuple[str, str, str]] = {
    "private_key": ("", PEM, ""),
    "private_key open": ("", PEM.replace("RSA", "OPENSSH"), ""),
    "private_key bare": ("", PEM.replace("RSA ", ""), ""),
    "private_key encrypted": (
        "",
        PEM.replace("KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n", 1),
        "",
    ),
    "private_key pgp": (
        "",
        PEM.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK").replace(
            "BLOCK-----\n", "BLOCK-----\nVersion: 1\n\n", 1
        ),
        "",
    ),
    "private_key escaped": ("", PEM.replace("\n", "\\n"), ""),
    "private_key without an end": ("", PEM[: PEM.index("abcd==")].rstrip(), ""),
    "private_key without a beginning": ("", PEM[PEM.index("\n") + 1 :], ""),
    "aws_access_key_id": ("id: ", "AKIA" + "Q3EGRX7VJ2ZP5KWD", ""),
    "aws_access_key_id session": ("", "ASIA" + "Q3EGRX7VJ2ZP5KWD", ""),
    "aws_secret_access_key": ("aws_secret_access_key = ", _MIXED[:38] + "/+", ""),
    "aws_secret_access_key json": ('"SecretAccessKey": "', _MIXED[:39] + "/", '"'),
    "aws_secret_access_key csv": ("bob,AKIA" + "Q3EGRX7VJ2ZP5KW7" + ",", _MIXED[:40], ""),
    **{f"github_token gh{kind}": ("", f"gh{kind}_" + _MIXED[:36], "") for kind in "pousr"},
    "github_token fine": ("", "github" + "_pat_" + _MIXED[:22] + "_" + _MIXED[:59], ""),
    "github_token app": ("", "ghs" + "_" + _MIXED[:40] + "." + _MIXED[:20] + "." + _MIXED[:30], ""),
    **{
        f"gitlab_token gl{kind}": ("", f"gl{kind}-" + _LOWER[:24], "")
        for kind in ("pat", "dt", "rt", "cbt", "ptt", "ft", "soat", "ffct", "imt", "agent", "oas")
    },
    "gitlab_token routable": ("", "gl" + "pat-" + _LOWER[:27] + "." + _LOWER[:9], ""),
    "gitlab_token runner": ("", "GR" + "1348941" + _MIXED[:20], ""),
    "gitlab_token session": ("_gitlab_session=", _HEX[:31] + "a", "; path=/"),
    "slack_token bot": ("", "xox" + "b-781236542736-2364535789652-" + _MIXED[:24], ""),
    "slack_token user": ("", "xox" + "p-41684372915-1320496754-45609968301-" + _HEX[:32], ""),
    "slack_token config": ("", "xox" + "e.xoxp-1-" + _MIXED[:60], ""),
    "slack_token app": ("", "xapp" + "-1-A052FGTS2DL-5171572773297-" + _HEX, ""),
    "slack_webhook": ("https://", "hooks.slack.com" + "/services/T016M3G1GHZ/A04J3BAF7AA/" + _MIXED[:24], ""),
    "bearer_token": ("Authorization: Bearer ", _MIXED[:32], ""),
    "bearer_token bare": ("send bearer ", _MIXED[:20], " with it"),
    "authorization short": ("Authorization: Token ", "abc123def456", ""),
    "authorization basic": ("authorization: basic ", "dXNlcjpo" + "dW50ZXIyMjI=", ""),
    "url_password": ("git clone https://bob:", "Sup3rS3cretPw", "@example.com/"),
    "url_password alone": ("redis://:", "p@ss1word", "@cache:6379/0"),
    "url_parameter": ("https://example.com/?a=1&access_token=", "correcthorsebattery", "&b=2"),
    "url_parameter secret": ("-d 'client_secret=", _LOWER[:24], "&grant_type=x"),
    "authorization value": ('"Authorization": "', _HEX[:8] + "-46e5-be67-c7b8f2732305", '"'),
}
