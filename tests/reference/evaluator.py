"""What the policy language says about a call, as plainly as can be: every rule is asked each time, in any order."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from math import inf
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from capsule.calls import ConcreteCommand, ConcretePath, ConcreteUrl, Effect, RuleCount
from capsule.documents import schema, units
from capsule.policy.floors import floor_document  # pure data: the lists that `capsule schema floor` prints
from reference.cases import Answer, Question
from reference.concrete import absolute

FLOORS: Any = floor_document()
NEVER, LATER = FLOORS["never_written"], FLOORS["runs_later"]
PROTECTED = [f"**/{name}/**".split("/") for name in NEVER["names"] + NEVER["trees"]]
PROTECTED += [f"{place}/**".split("/")[1:] for place in NEVER["system"]]
RUN_LATER = [["**", name] for name in LATER["names"]] + [f"**/{tree}/**/*".split("/") for tree in LATER["trees"]]
GUARD_KEYS = ("paths", "read_paths", "write_paths", "urls", "commands")  # each for the guards that end so
CODES: Any = {"read_path": 1001, "write_path": 1001, "url": 1002, "command": 1003}
EFFECTS = (Effect.DENY, Effect.ASK, Effect.ALLOW)  # here and below: the strictest first
WORDS = {"redact": ("personal", "secrets", "off"), "sandbox_level": ("namespaces", "landlock", "seatbelt", None, "any")}
SIZES: Any = {"timeout": units.duration_ms, "max_bytes": units.size, "max_output_bytes": units.size}
RANKS: Any = SIZES | {key: words.index for key, words in WORDS.items()}
LIMITS = (*SIZES, "max_calls", "rate_limit", "sandbox")
ALL: Any = {"patterns": ["**", "/", "/**"], "executables": ["*", "/*"], "hidden": "allow"}  # all above the floors
ALL |= {"schemes": ["*"], "ports": range(65536)}


def strictest_of(layers: Iterable[Answer]) -> Answer:
    """The strictest effect, then the smallest code, then the smallest id that there is."""
    ranked = sorted(layers, key=lambda it: (EFFECTS.index(it.effect), it.code or 0, not it.rule, it.rule))
    return ranked[0] if ranked else Answer(Effect.DENY, 1000)


def matches(text: str, globs: Any) -> bool:
    return any(fnmatchcase(text, glob) for glob in ([globs] if isinstance(globs, str) else globs))


def fits(globs: Sequence[str], names: Sequence[str], mark: str = "") -> bool:
    """Whether globs match names one by one, `**` any number; no wildcard is a `mark` that begins a name."""
    if not (globs and names):
        return not names and {*globs} <= {"**"}
    (glob, *later), (name, *others) = globs, names
    fit = fnmatchcase(name, glob) and (glob.startswith(mark) or not name.startswith(mark))
    if glob == "**":
        return fits(later, names, mark) or (fit and fits(globs, others, mark))
    return fit and fits(later, others, "" if (mark, glob) == ("-", "--") else mark)  # after `--` there are no options


class Case(Question):  # `deny`: as a deny (or a limit, or the strict half of an ask) matches; else as an allow does
    def code_of(self, argument: str) -> int:
        return int(CODES.get(self.call.definition.guards.get(argument), 1009))

    def seen(self, path: ConcretePath, lists: Any, *, loose: bool = False) -> list[Any]:
        """By which globs a deny or a floor sees this: in one of both forms, folded where the volume folds."""
        fold, below = str.lower if path.folded else str, self.places.workdir if loose else ()
        forms = [form[len(below) :] if form[: len(below)] == below else form for form in (path.real, path.written)]
        return [globs for globs in lists if any(fits([*map(fold, globs)], [*map(fold, form)]) for form in forms)]

    def covers_path(self, pattern: str, path: ConcretePath, want: Any, deny: bool) -> bool:
        if lists := re.fullmatch(r"(.*)(?<!\\){([^{}]*)}(.*)", pattern):  # `{a,b}` is written out
            choices = [lists[1] + choice + lists[3] for choice in lists[2].split(",")]
            return any(self.covers_path(choice, path, want, deny) for choice in choices)
        text = pattern if self.call.tool == "fs.list" else re.sub(r"/\*\*$", "/**/*", pattern)  # not what it hangs from
        loose = deny and pattern.startswith("**/")
        names = text.split("/") if loose else absolute(text, self.places)
        globs = [re.sub(r"\\(.)", lambda it: f"[{it[1]}]" if it[1] in "*?[" else it[1], name) for name in names]
        if deny:
            return self.seen(path, [[*globs, "**"]], loose=loose) != []
        never = [[*tree, "**"] for tree in self.places.unreadable]
        if path.access == "write":
            itself = tuple(re.sub(r"\\(.)", r"\1", pattern).split("/"))
            spelled = self.seen(replace(path, real=itself, written=itself), RUN_LATER)
            never += [one for one in RUN_LATER if one not in spelled or re.search(r"(?<!\\)[*?[][^/]*$", pattern)]
            if want.get("protected") != "allow" or re.search(r"(?<!\\)[*?[]", pattern):
                never += PROTECTED + [[*tree, "**"] for tree in (self.places.capsule_home, *self.places.unwritable)]
        return fits(globs, path.real, "" if want.get("hidden") == "allow" else ".") and not self.seen(path, never)

    def covers_url(self, pattern: str, url: ConcreteUrl, want: Any, deny: bool) -> bool:
        pattern = f"{url.scheme}://**/**" if pattern == "**" else pattern
        parts, sent = urlsplit(pattern), parse_qsl(url.query, keep_blank_values=True)
        web = matches(url.scheme, want.get("schemes", "*" if deny else ["http", "https"]))
        ports = [parts.port] if parts.port else want.get("ports", [url.port] if deny else [80, 443])
        domains = [host.lower().strip("[]") for host in want.get("domains", ["*"])]
        host, below = (f".{url.host}", "*.") if deny else (url.host, "")
        named = matches(host, f"{below}{parts.hostname}") and matches(host, [below + domain for domain in domains])
        above = url.public or (want.get("private_networks") == "allow" and url.host in (parts.hostname, *domains))
        path = fits(re.sub(r"/\*\*$", "/**/*", pattern).split("/")[3:], url.path.split("/")[1:])
        query = want.get("query", {name: "*" for name, _ in sent})
        held = [name for name, value in sent if matches(value, query.get(name, []))]
        asked = {*query} <= {*held} if deny else len(held) == len(sent)
        return web and parts.scheme == url.scheme and url.port in ports and named and path and asked and (deny or above)

    def covers_command(self, pattern: Any, command: ConcreteCommand, want: Any, deny: bool) -> bool:
        (first, *rest), (name, *words) = pattern.split(" ") if isinstance(pattern, str) else pattern, command.argv
        paths = ["/".join(("", *form)) for form in (command.invoked, command.program) if form]
        programs = paths if "/" in first else [form.split("/")[-1] for form in (name, *paths)]
        programs = programs if deny else programs[: ("/" in first) == ("/" in name)]  # as it is written
        wanted = "/".join(("", *absolute(first, self.places))) if "/" in first else first
        tokens = [token for token in rest if token != "**"]
        words = words[: len(tokens)] if deny or tokens != rest else words
        return any(fnmatchcase(form, wanted) for form in programs) and fits(tokens, words, "" if deny else "-")

    def check(self, argument: str, want: Any, deny: bool) -> int | None:
        """The code of a constraint that does not hold; of several values an allow needs all, a deny any."""
        code, some, value = self.code_of(argument), any if deny else all, self.args.get(argument)
        if value is None or code == 1009:
            return code if value is None or schema.problems(value, want) else None
        listed = want.get("patterns", [] if {"pattern", "executables"} & {*want} else ["**"])
        listed = [*listed, *filter(None, [want.get("pattern")]), *(f"{one} **" for one in want.get("executables", []))]
        covers: Any = {1001: self.covers_path, 1002: self.covers_url, 1003: self.covers_command}[code]
        if not some(any(covers(text, one, want, deny) for text in listed) for one in self.values(argument)):
            return code
        return 1004 if not deny and any(matches(word, want.get("deny_tokens", [])) for word in value) else None

    def asked(self, rule: Any) -> Any:
        """A rule, its limits in numbers and how it matches: whether it `hits` as a deny, what `fails` as an allow."""
        call, when, constraints = self.call, rule.get("when", {}), rule.get("constraints", {})
        said = {"when": when, "secrets": [], "headers": {}} | rule | constraints
        applies = call.source in when.get("source", [call.source]) and (self.tainted or "tainted" not in when)
        guards = {name: guard for name, guard in call.definition.guards.items() if name in call.args}
        guarded = {key: [name for name in guards if guards[name].endswith(key[:-1])] for key in GUARD_KEYS}
        names = {key: guarded.get(key, [key.removeprefix("args.")]) for key in constraints if key not in LIMITS}
        covered = {name for key in names for name in names[key]}
        needed = {name for name in guards if (call.carries_credentials() if name == "headers" else call.args[name])}
        fails = {self.check(name, constraints[key], deny=False) for key in names for name in names[key]} - {None}
        fails |= {self.code_of(name) for name in needed - covered}
        hits = all(any(not self.check(name, constraints[key], deny=True) for name in names[key]) for key in names)
        code = 1008 if "tainted" in when else min(map(self.code_of, covered), default=1000)
        limits = {key: rank(said[key]) for key, rank in RANKS.items() if key in said}
        return said | limits | {"applies": applies, "fails": fails, "hits": hits, "code": code}

    def sandbox(self, boxes: list[Any]) -> Any:
        """What every sandbox grants: of trees those in a tree of each, without those in another one."""
        found: dict[str, Any] = {key: all(box.get(key) == "allow" for box in boxes) for key in ("network", "protected")}
        for key in ("read", "write"):
            each = [{PurePosixPath("/", *absolute(tree, self.places)) for tree in box.get(key, [])} for box in boxes]
            shared = {tree for one in each for tree in one if all({tree, *tree.parents} & other for other in each)}
            found[key] = tuple(sorted(str(tree) for tree in shared if not {*tree.parents} & shared))
        return found

    def secrets(self, granting: list[Any]) -> Iterator[str]:
        """The secrets that a call uses; a handle that does not resolve has no name."""
        sure = [one for one in granting if "source" in one["when"] or self.call.source not in ("agent", "chat", "mcp")]
        for argument, key, text in self.texts():
            known = [one for one in sure if argument != "headers" or key in one["headers"].get("properties", {})]
            names = [name for one in known for name in one["secrets"] if text == f"secret:{name}"]
            if re.search(r"secret:[A-Za-z_]", f"{key} {text}"):
                yield names[0] if names and argument in ("headers", "env", "stdin") else ""

    def settled(self, granting: list[Any], strict: list[Any]) -> Answer:
        """What rules that match say together; only one that grants can loosen what is usual."""
        call, tool, secrets = self.call, self.call.definition, {*self.secrets(granting)}
        usual = {"id": "", "timeout": tool.timeout_ms, "max_bytes": tool.max_bytes or inf, "sandbox": {}}
        usual |= {"max_output_bytes": tool.max_output_bytes or inf, "redact": 1, "sandbox_level": 3}  # as in WORDS
        said = {key: [rule for rule in granting if key in rule] or [usual] for key in (*RANKS, "sandbox")}
        said = {key: some + [rule for rule in strict if key in rule] for key, some in said.items()}
        held = {key: min((rule[key], rule["id"]) for rule in said[key]) for key in RANKS}
        if (call.payload_bytes or 0) > held["max_bytes"][0]:
            return Answer(Effect.DENY, 1005, held["max_bytes"][1] or None)
        for rule in sorted(granting + strict, key=lambda rule: str(rule["id"])):
            count, rate = self.state.rules.get(rule["id"], RuleCount()), rule.get("rate_limit", {})
            recent = [at for at in count.recent_ms if self.now_ms - at < 60_000]
            if count.total >= rule.get("max_calls", inf) or len(recent) >= rate.get("requests_per_minute", inf):
                return Answer(Effect.DENY, 1006, rule["id"])
        spent = self.state.calls >= self.document.get("limits", {}).get("calls", inf)
        if spent or "" in secrets:
            return Answer(Effect.DENY, 1006 if spent else 1009)
        grant = {key: WORDS[key][value] if key in WORDS else value for key, (value, _) in held.items()} | {
            "secrets": tuple(sorted(secrets)),
            "later": [(one.argument, one.access == "write" and self.seen(one, RUN_LATER) != []) for one in call.paths],
            "hosts": [(url.argument, url.host, url.port) for url in call.urls],
            "sandbox_level": WORDS["sandbox_level"][held["sandbox_level"][0]] if call.commands else None,
            "sandbox": self.sandbox([rule["sandbox"] for rule in said["sandbox"]]) if call.commands else None,
        }
        asks = [rule["id"] for rule in granting + strict if rule["action"] == "ask"]
        first = min(asks or [rule["id"] for rule in granting])
        return Answer(Effect.ASK if asks else Effect.ALLOW, None, first or None, grant)

    def decide(self) -> Answer:
        if codes := [1009] if self.call.marker else [self.code_of(it.argument) for it in self.values() if it.problem]:
            return Answer(Effect.DENY, min(codes))
        known = [self.asked(rule) for rule in sorted(self.document.get("rules", []), key=lambda rule: str(rule["id"]))]
        rules = [rule for rule in known if rule["applies"] and matches(self.call.tool, rule["tool"])]
        if denies := [rule for rule in rules if rule["action"] == "deny" and rule["hits"]]:
            return Answer(Effect.DENY, denies[0]["code"], denies[0]["id"])
        tried = [rule for rule in rules if rule["action"] in ("allow", "ask")]
        asks = self.document.get("default_action") == "ask" and {"allow", "ask"} & {rule["action"] for rule in known}
        if asks and all(rule["fails"] for rule in tried):
            required: Any = self.call.definition.args_schema["required"]
            tried = [self.asked({"id": "", "action": "ask", "constraints": dict.fromkeys(required, ALL)})]
        if not (granting := [rule for rule in tried if not rule["fails"]]):
            return Answer(Effect.DENY, min((code for rule in tried for code in rule["fails"]), default=1000))
        strict = [rule for rule in rules if rule["hits"] and rule["action"] != "allow" and rule not in granting]
        return self.settled(granting, strict)
