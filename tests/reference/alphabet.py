"""The few words that random policies and calls are made of."""

from __future__ import annotations

from typing import Any, TypeAlias

Document: TypeAlias = dict[str, Any]


def words(text: str) -> list[str]:
    return text.split()


NAMES = words("docs docs src src a a b.md out notes.md")
RARE = words(".env .git .hid Makefile .vscode x.pth secrets venv pack policy.yaml .bashrc .circleci")
GLOBS = {  # and what each may stand for in a call
    "*": NAMES,
    "*.md": ["b.md", "notes.md", "a"],
    "?": ["a", "b"],
    "[ab]": ["a", "b"],
    "[!a]": ["b", "a"],
    "{docs,src}": ["docs", "src"],
    "{.env,a}": [".env", "a"],
    ".*": [".env", ".hid", ".git"],
    "\\.env": [".env"],
    "?env": [".env", "xenv"],
    "*git": [".git", "git"],
    "Make*": ["Makefile"],
    "x.*": ["x.pth", "x.md"],
}
ELSEWHERE = words("""~/notes.md ~/docs/a ~/.ssh/config ~/.bashrc ~/.capsule/key ~/.capsule/packs /etc/hosts
    /workdir-evil/a /home/user /home/user/docs ~/.capsule/runs.db . .. docs/../a
    ~/.config/fish/a /etc/profile.d/a ~/.circleci/a""")
SPELLED = words("""./Makefile ./src/Makefile ./*/Makefile **/Makefile ./.vscode/a ./.vscode/* ./venv/** ./x.pth ./*.pth
    ./.github/workflows/a ./package.json ./{Makefile,a}""")
GUARDED = words("""./.git/config ./.git/Makefile ~/.ssh/config ~/.bashrc ./policy.yaml ./src/pack/a ~/.capsule/packs
    ./.git ~/.capsule/key ./a ./.vscode/.git
    ~/.config/fish/a /etc/profile.d/a""")
HOSTS = words("""example.com example.com api.example.com a.api.example.com other.org evilexample.com 8.8.8.8 10.0.0.1
    127.0.0.1 [::1]""")
DOMAINS = words("""example.com api.example.com *.example.com API.Example.com other.org *.api.example.com 8.8.8.8
    10.0.0.1 [::1]""")
URL_PATHS = words("/ /a /a/b /a%2fb /a/b/c /b")
URL_GLOBS = words("/** /** /** /a /a/* /a/** /* /**/b /*/b")
PROGRAMS = words("git git git ls ls rm ./tools/x tools/x /usr/bin/git ./git")
FIRST = words("git git git ls ls rm ./tools/x tools/x /usr/bin/git g* * /usr/bin/*")
WORDS = words("status log -n --force -- a -rf b/c")
TOKENS = {  # and what each may stand for
    "status": ["status"],
    "log": ["log"],
    "*": WORDS,
    "-*": ["-n", "--force", "--", "a"],
    "--": ["--"],
    "a": ["a"],
    "-n": ["-n"],
    "s*": ["status", "s"],
    "?": ["a", ""],
    "*t*": ["status", "-t"],
    "-r*": ["-rf", "-r"],
}
BOXES: list[Document] = [
    {"read": ["."]},
    {"read": ["./docs", "~/notes"], "write": ["./out"]},
    {"read": ["./docs/a"], "network": "allow"},
    {"read": [".", "/usr/share"], "write": ["./out", "./src"], "network": "allow", "protected": "allow"},
    {"write": ["."], "network": "none", "protected": "allow"},
]
HEADERS: list[Document] = [
    {"type": "object", "properties": {"authorization": {"type": "string"}, "x-key": {"type": "string"}}},
    {"properties": {"accept": {"enum": ["x"]}}, "additionalProperties": False},
    {"required": ["authorization"]},
]
OTHER: dict[str, list[tuple[str, Document]]] = {
    "fs.read": [("offset", {"maximum": 5}), ("encoding", {"enum": ["auto", "utf-8"]}), ("length", {"maximum": 9})],
    "fs.list": [("pattern", {"const": "**"}), ("limit", {"type": "integer", "maximum": 100})],
    "fs.write": [
        ("mode", {"enum": ["create", "append"]}),
        ("content", {"maxLength": 6}),
        ("content", {"pattern": "^x"}),
    ],
    "http.get": [("headers", schema) for schema in (*HEADERS, HEADERS[0])],
    "shell.run": [
        ("env", {"type": "object"}),
        ("env", {"additionalProperties": {"maxLength": 1}}),
        ("stdin", {"maxLength": 8}),
    ],
}
DENY_TOKENS = ["--force", "-rf", "a", "status"]
