"""What SPEC §3 says about one call, as plainly as it can be said: every rule is asked every time, order means nothing.

`deny` means: as a deny (or a limit, or the strict half of an ask) matches; else as an allow does. Rules that let a call
through are `granting`; asks and limits that only match as a deny does are `strict`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from glob import escape
from itertools import product
from math import inf
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from capsule.calls import Access, ConcreteCall, ConcretePath, ConcreteUrl, Effect, Guard, LayerState, Places, RuleCount
from capsule.documents import schema, units
from capsule.policy.floors import floor_document  # pure data: the lists that `capsule schema floor` prints
from reference.concrete import absolute

FLOORS: Any = floor_document()
NEVER, LATER = FLOORS["never_written"], FLOORS["runs_later"]
PROTECTED = [f"**/{name}" for name in NEVER["names"] + NEVER["trees"]] + [place[1:] for place in NEVER["system"]]
GUARD_KEYS = ("paths", "read_paths", "write_paths", "urls", "commands")  # each for the guards that end so
LIMITS = ("max_bytes", "max_calls", "rate_limit", "timeout", "max_output_bytes", "sandbox")
CODES: Any = {Guard.READ_PATH: 1001, Guard.WRITE_PATH: 1001, Guard.URL: 1002, Guard.COMMAND: 1003}
EFFECTS, REDACT = (Effect.DENY, Effect.ASK, Effect.ALLOW), ("personal", "secrets", "off")  # the strictest first
LEVELS = ("namespaces", "landlock", "seatbelt", None, "any")


class Verdict(NamedTuple):
    effect: Effect
    code: int | None
    rule: str | None
    grant: Any = None  # what an allow or an ask grants, by name


def strictest_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Of layers or of checks: the strictest effect, then the smallest code, then the smallest id that there is."""
    return min(
        verdicts,
        key=lambda it: (EFFECTS.index(it.effect), it.code or 0, not it.rule, it.rule),
        default=Verdict(Effect.DENY, 1000, None),
    )


def fits(globs: Sequence[str], names: Sequence[str], *, mark: str = "", more: bool = False) -> bool:
    """Whether globs match names one by one, `**` any number; no wildcard is a `mark` that begins a name."""
    if not (globs and names):
        return {*globs} <= {"**"} and (more or not names)
    (glob, *later), (name, *others) = globs, names
    if glob == "**" and fits(later, names, mark=mark, more=more):
        return True
    if not fnmatchcase(name, glob) or (mark and name.startswith(mark) and not glob.startswith(mark)):
        return False
    rest = "" if (mark, glob) == ("-", "--") else mark  # what follows a literal `--` is no option
    return fits(globs if glob == "**" else later, others, mark=rest, more=more)


def split(names: Sequence[str], *, hanging: bool = False) -> list[str]:
    """The globs of a path; a last `**` is one name at least, unless what it is `hanging` from matches too."""
    globs = [re.sub(r"\\(.)", lambda found: escape(found[1]), name) for name in names]
    return [*globs, "*"] if globs[-1:] == ["**"] and not hanging else globs


def seen(path: ConcretePath, globs: Sequence[str], *, more: bool = True, below: tuple[str, ...] = ()) -> list[str]:
    """The last names of the forms in which a deny or a floor sees this: both, folded where the volume folds."""
    fold, skip = str.lower if path.folded else str, len(below)
    forms = [form[skip:] if form[:skip] == below else form for form in (path.real, path.written)]
    return ["".join(form[-1:]) for form in forms if fits([*map(fold, globs)], [*map(fold, form)], more=more)]


def runs_later(path: ConcretePath) -> list[str]:
    """Floor 3: the directories and the names that a pattern has to spell."""
    trees = [tree for tree in LATER["trees"] if seen(path, ["**", *tree.split("/"), "**", "*"])]
    names = [name for listed in LATER["names"] for name in seen(path, ["**", listed], more=False)]
    return trees + names if path.access is Access.WRITE else []


def above_floors(path: ConcretePath, places: Places, pattern: str = "", *, protected: bool = False) -> bool:
    """Floors 2 and 3, for what one pattern lets through; an empty one spells nothing."""
    if path.access is Access.READ or any(seen(path, tree) for tree in places.unreadable):
        return not any(seen(path, tree) for tree in places.unreadable)
    never = [places.capsule_home, *places.unwritable, *(place.split("/") for place in PROTECTED)]
    wild = [re.search(r"(?<!\\)[*?[]", name) for name in pattern.split("/")]
    if (any(wild) or not protected) and any(seen(path, globs) for globs in never):
        return False
    fold, spelled = str.lower if path.folded else str, re.sub(r"\\(.)", r"\1", f"/{pattern}/")
    return all(fold(f"/{name}/") in fold(spelled) and not wild[-1] for name in runs_later(path))


def url_fits(pattern: str, url: ConcreteUrl, ports: list[int], *, deny: bool) -> bool:
    parts, glob = urlsplit(pattern), pattern.split("/", 3)[3]
    hosts = (f".{url.host}", f"*.{parts.hostname}") if deny else (url.host, parts.hostname or "")
    there = parts.scheme == url.scheme and url.port in ([parts.port] if parts.port else ports)
    return there and fnmatchcase(*hosts) and fits(split(glob.split("/")), url.path.split("/")[1:])


def query_fits(want: Any, url: ConcreteUrl, *, deny: bool) -> bool:
    """An allow names every parameter that is sent; of a deny each that it names is sent."""
    wanted = [(name, value) for name, given in want.items() for value in ([given] if isinstance(given, str) else given)]
    sent = parse_qsl(url.query, keep_blank_values=True)
    named = [one for one in sent if any(one[0] == name and fnmatchcase(one[1], value) for name, value in wanted)]
    return {*want} <= {one[0] for one in named} if deny else named == sent


def strictest(rules: tuple[list[Any], list[Any]], key: str, rank: Callable[[Any], int], default: int | None) -> Any:
    """The strictest that rules say under a key, and who says it; only a rule that grants can loosen the default."""
    granting, strict = ([(rank(rule[key]), rule["id"]) for rule in some if key in rule] for some in rules)
    return min((granting or ([] if default is None else [(default, "")])) + strict, default=(None, ""))


class Case(NamedTuple):
    document: Any
    call: ConcreteCall
    state: LayerState
    now_ms: int
    tainted: bool
    places: Places

    def code_of(self, argument: str) -> int:
        return int(CODES.get(self.call.definition.guards.get(argument), 1009))

    def path_holds(self, want: Any, path: ConcretePath, *, deny: bool) -> bool:
        mark, protected = "" if want.get("hidden") == "allow" else ".", {"protected": want.get("protected") == "allow"}
        parts = [re.split(r"(?<!\\){([^{}]*)}", pattern) for pattern in want["listed"]]  # `{a,b}` is written out
        lists = [[part.split(",") if at % 2 else [part] for at, part in enumerate(one)] for one in parts]
        for pattern in ["".join(chosen) for choices in lists for chosen in product(*choices)]:
            loose, hanging = deny and pattern.startswith("**/"), self.call.tool == "fs.list" or pattern == "**"
            globs = split(pattern.split("/") if loose else absolute(pattern, self.places), hanging=hanging)
            below = self.places.workdir if loose else ()
            spelled = fits(globs, path.real, mark=mark) and above_floors(path, self.places, pattern, **protected)
            if seen(path, globs, below=below) if deny else spelled:
                return True
        return False

    def url_holds(self, want: Any, url: ConcreteUrl, *, deny: bool) -> bool:
        """Every key that is there has to hold, and an allow has to name the host."""
        ports, schemes = ([url.port], [url.scheme]) if deny else ([80, 443], ["http", "https"])
        patterns = [one for one in want["listed"] if url_fits(one, url, want.get("ports", ports), deny=deny)]
        wide = [f"{url.scheme}://{host}:{url.port}/**" for host in want.get("domains", [])]
        domains = [one for one in wide if url_fits(one, url, [], deny=deny)]
        held = [
            url.scheme in want.get("schemes", schemes),
            domains or "domains" not in want,
            patterns if {"pattern", "patterns"} & {*want} else url.port in want.get("ports", ports),
            "query" not in want or query_fits(want["query"], url, deny=deny),
        ]
        spelled = any("*" not in one.split("/")[2] for one in domains + patterns)
        private = spelled and want.get("private_networks") == "allow"
        return all(held) and (deny or (domains + patterns != [] and (url.public or private)))

    def command_holds(self, want: Any, command: Any, *, deny: bool) -> bool:
        name, *words = command.argv
        paths = ["/".join(("", *form)) for form in (command.invoked, command.program) if form]
        names = [form.split("/")[-1] for form in (name, *paths)]
        known = [pattern.split(" ") if isinstance(pattern, str) else pattern for pattern in want["listed"]]
        for first, *rest in known + [[name, "**"] for name in want.get("executables", [])]:
            slash, tokens, more = "/" in first, [token for token in rest if token != "**"], deny or "**" in rest
            wanted, programs = ("/".join(("", *absolute(first, self.places))), paths) if slash else (first, names)
            programs = programs if deny else programs[: slash == ("/" in name)]  # as it is written
            program = any(fnmatchcase(form, wanted) for form in programs)
            if program and fits(tokens, words, mark="" if deny else "-", more=more):
                return True
        return False

    def check(self, argument: str, want: Any, *, deny: bool) -> int | None:
        """The code of a constraint that does not hold; of several values an allow needs all, a deny any."""
        call, some, code = self.call, any if deny else all, self.code_of(argument)
        value: Any = call.args.get(argument)
        if value is None or code == 1009:
            return code if value is None or schema.problems(value, want) else None
        want = want | {"listed": [*want.get("patterns", []), *filter(None, [want.get("pattern")])]}
        holds: Any = {1001: self.path_holds, 1002: self.url_holds, 1003: self.command_holds}[code]
        values: Any = [*call.paths, *call.urls, *call.commands]
        if not some(holds(want, one, deny=deny) for one in values if one.argument == argument):
            return code
        belt = want.get("deny_tokens", []) if code == 1003 and not deny else []
        return 1004 if any(fnmatchcase(word, bad) for bad in belt for word in value) else None

    def asked(self, rule: Any) -> list[tuple[list[str], Any]]:
        """What a rule wants, and of which arguments of the call."""
        guards = [(name, guard) for name, guard in self.call.definition.guards.items() if name in self.call.args]
        guarded = {key: [name for name, guard in guards if guard.endswith(key[:-1])] for key in GUARD_KEYS}
        wants = {key: want for key, want in rule["constraints"].items() if key not in LIMITS}
        return [(guarded.get(key, [key.removeprefix("args.")]), want) for key, want in wants.items()]

    def failing(self, rule: Any, *, deny: bool) -> set[int]:
        """The codes of what keeps a rule from matching; under each key of a deny one argument is enough."""
        found = [(names, {self.check(name, want, deny=deny) for name in names}) for names, want in self.asked(rule)]
        if deny:
            return {1000 for _, codes in found if None not in codes}
        args: Any = self.call.args  # an allow has to cover what is guarded, but of headers only credentials
        credentials = {header.lower() for header in args.get("headers", ())} & {"authorization", "cookie"}
        needed = {
            name for name in self.call.definition.guards if (credentials if name == "headers" else args.get(name))
        }
        bare = needed - {name for names, _ in found for name in names}
        return {code for _, codes in found for code in codes if code} | {self.code_of(name) for name in bare}

    def applies(self, rule: Any) -> bool:
        tools, sources = rule["tool"], rule["when"].get("source", [self.call.source])
        named = any(fnmatchcase(self.call.tool, tool) for tool in ([tools] if isinstance(tools, str) else tools))
        return named and self.call.source in sources and (self.tainted or "tainted" not in rule["when"])

    def secrets(self, granting: list[Any]) -> Iterator[str]:
        """The secrets that a call uses; a handle that does not resolve has no name."""
        source, unsure = self.call.source, self.call.source in ("agent", "chat", "mcp")
        rules = [rule for rule in granting if not unsure or source in rule["when"].get("source", [])]
        for argument, value in self.call.args.items():
            for key, item in value.items() if isinstance(value, Mapping) else [("", value)]:
                known = [one for one in rules if argument != "headers" or key in one["headers"].get("properties", {})]
                name = str(item).removeprefix("secret:") if argument in ("headers", "env", "stdin") else ""
                if re.search(r"secret:[A-Za-z_]", f"{key} {item}"):
                    yield name if any(name in one["secrets"] for one in known) else ""

    def refusals(self, granting: list[Any], strict: list[Any]) -> Iterator[tuple[int, str | None]]:
        """What is too large, used up, or a secret that does not resolve."""
        cap, by = strictest((granting, strict), "max_bytes", units.size, self.call.definition.max_bytes)
        if cap is not None and (self.call.payload_bytes or 0) > cap:
            yield 1005, by or None
        for rule in granting + strict:
            count, rate = self.state.rules.get(rule["id"], RuleCount()), rule.get("rate_limit", {})
            recent = [at for at in count.recent_ms if self.now_ms - at < 60_000]
            if count.total >= rule.get("max_calls", inf) or len(recent) >= rate.get("requests_per_minute", inf):
                yield 1006, rule["id"]
        if self.state.calls >= self.document.get("limits", {}).get("calls", inf):
            yield 1006, None
        yield from ((1009, None) for name in self.secrets(granting) if not name)

    def sandbox(self, granting: list[Any], strict: list[Any]) -> Any:
        """What every sandbox grants: of trees those in a tree of each, without those in another one."""
        boxes = [rule["sandbox"] for rule in granting + strict if rule["action"] != "limit" and "sandbox" in rule]
        boxes = boxes if any("sandbox" in rule for rule in granting) else [{}]
        found: dict[str, Any] = {key: all(box.get(key) == "allow" for box in boxes) for key in ("network", "protected")}
        for key in ("read", "write"):
            each = [{PurePosixPath("/", *absolute(tree, self.places)) for tree in box.get(key, [])} for box in boxes]
            shared = {tree for one in each for tree in one if all({tree, *tree.parents} & other for other in each)}
            found[key] = tuple(sorted(str(tree) for tree in shared if not {*tree.parents} & shared))
        return found if self.call.commands else None

    def granted(self, granting: list[Any], strict: list[Any]) -> Verdict:
        """What rules that match allow together; an ask in `strict` grants nothing of its own."""
        call, tool, rules = self.call, self.call.definition, (granting, strict)
        asks = [rule for rule in granting + strict if rule["action"] == "ask"]
        names = [rule["id"] for rule in asks or granting]
        level = LEVELS[strictest(rules, "sandbox_level", LEVELS.index, LEVELS.index(None))[0]]
        grant = {
            "timeout_ms": strictest(rules, "timeout", units.duration_ms, tool.timeout_ms)[0],
            "max_bytes": strictest(rules, "max_bytes", units.size, tool.max_bytes)[0],
            "max_output_bytes": strictest(rules, "max_output_bytes", units.size, tool.max_output_bytes)[0],
            "redact": REDACT[strictest(rules, "redact", REDACT.index, REDACT.index("secrets"))[0]],
            "secrets": tuple(sorted({*self.secrets(granting)})),
            "later": [(path.argument, runs_later(path) != []) for path in call.paths],
            "hosts": [(url.argument, url.host, url.port) for url in call.urls],
            "level": level if call.commands else None,
            "sandbox": self.sandbox(granting, strict),
        }
        return Verdict(Effect.ASK if asks else Effect.ALLOW, None, min(names) or None, grant)

    def decide(self) -> Verdict:
        call, flat = self.call, dict[str, Any](constraints={}, when={}, secrets=[], headers={})
        values: Any = [*call.paths, *call.urls, *call.commands]
        broken = [self.code_of(one.argument) for one in values if one.problem]
        if call.marker or broken:
            return Verdict(Effect.DENY, 1009 if call.marker else min(broken), None)
        known = [flat | rule | rule.get("constraints", {}) for rule in self.document.get("rules", [])]
        rules = [rule for rule in known if self.applies(rule)]
        hits = [rule for rule in rules if not self.failing(rule, deny=True)]
        if denies := [rule for rule in hits if rule["action"] == "deny"]:
            rule = min(denies, key=lambda rule: str(rule["id"]))
            code = min((self.code_of(name) for names, _ in self.asked(rule) for name in names), default=1000)
            return Verdict(Effect.DENY, 1008 if "tainted" in rule["when"] else code, rule["id"])
        asks = self.document.get("default_action") == "ask" and {"allow", "ask"} & {rule["action"] for rule in known}
        tried = [(rule, self.failing(rule, deny=False)) for rule in rules if rule["action"] in ("allow", "ask")]
        if asks and all(codes for _, codes in tried):  # an ask for all above the floors; what is optional needs a rule
            required: Any = call.definition.args_schema["required"]
            codes = self.failing(flat, deny=False) - {self.code_of(name) for name in required}
            codes |= {1001 for path in call.paths if not above_floors(path, self.places)}
            tried = [(flat | {"id": "", "action": "ask"}, codes | {1002 for url in call.urls if not url.public})]
        granting = [rule for rule, codes in tried if not codes]
        strict = [rule for rule in hits if rule["action"] in ("ask", "limit") and rule not in granting]
        if not granting:
            return Verdict(Effect.DENY, min((code for _, codes in tried for code in codes), default=1000), None)
        refused = [Verdict(Effect.DENY, *found) for found in self.refusals(granting, strict)]
        return strictest_of(refused) if refused else self.granted(granting, strict)
