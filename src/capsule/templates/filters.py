"""The filters a template may use, and no others.

They do what Jinja2's filters of these names do, with sizes bounded while they work. `tojson` writes plain JSON, not
HTML-safe JSON, since nothing here is a page, and keeps characters as they are, so that a redaction marker stays one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

from capsule.canon import Json
from capsule.templates.values import (
    MAX_RESULT,
    Undefined,
    as_text,
    bounded,
    is_list,
    items,
    joined,
    kind,
    number,
    plain,
    refused,
    too_large,
    utf8_size,
    weigh,
)

MAX_TRIMMED = 256  # different characters: each is looked for at every place of the text
MAX_ITEMS = 1_000_000  # of a JSON text: each costs Python some sixty times the byte it took to write
MAX_URL = 1024 * 1024  # bytes to percent-encode: far above any URL that a server takes
MAX_INDENT = 8

_GITHUB_HOST = re.compile(
    r"(?:(?:https?|git|ssh)://(?:[^/@\s]+@)?(?:www\.)?github\.com(?::[0-9]+)?/|(?:git@)?(?:www\.)?github\.com[:/])",
    re.IGNORECASE,
)
_GITHUB_PLACE = re.compile(r"(?P<owner>[A-Za-z0-9][A-Za-z0-9-]{0,38})/(?P<repo>[A-Za-z0-9._-]{1,100}?)(?:\.git)?/?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    run: Callable[..., Json | Undefined]
    parameters: tuple[str, ...] = ()
    required: int = 0


def default(value: Json | Undefined, default_value: Json | Undefined = "", boolean: Json = False) -> Json | Undefined:  # noqa: FBT002 - Jinja2's signature
    return default_value if isinstance(value, Undefined) or (boolean and not value) else value


def join(value: Json, d: Json = "") -> str:
    found, separator = items(value), as_text(d)
    sure = utf8_size(value) if isinstance(value, str) else 0
    if sure + (len(found) - 1) * utf8_size(separator) > MAX_RESULT:
        raise too_large()
    return joined(map(as_text, found), separator)


def length(value: Json) -> int:
    return len(items(value))


def lower(value: Json) -> str:
    return bounded(as_text(value).lower())


def upper(value: Json) -> str:
    return bounded(as_text(value).upper())


def replace(value: Json, old: Json, new: Json, count: Json = None) -> str:
    source, before, after = as_text(value), as_text(old), as_text(new)
    most = -1 if count is None else _integer_argument(count, "count")
    hits = source.count(before)
    hits = hits if most < 0 else min(hits, most)
    if utf8_size(source) + hits * (utf8_size(after) - utf8_size(before)) > MAX_RESULT:
        raise too_large()
    return source.replace(before, after, most)


def trim(value: Json, chars: Json = None) -> str:
    if chars is None:
        return as_text(value).strip()
    unwanted = as_text(chars)
    if len(unwanted) > MAX_TRIMMED:
        raise refused(f"`trim` takes away at most {MAX_TRIMMED} characters, found {len(unwanted)}")
    return as_text(value).strip(unwanted)


def first(value: Json) -> Json | Undefined:
    found = items(value)
    return found[0] if found else Undefined("there is no first item: the value is empty")


def last(value: Json) -> Json | Undefined:
    found = items(value)
    return found[-1] if found else Undefined("there is no last item: the value is empty")


def tojson(value: Json, indent: Json = None) -> str:
    weigh(value)
    if indent is None:
        return bounded(json.dumps(plain(value), ensure_ascii=False))
    width = _integer_argument(indent, "indent")
    if not 0 <= width <= MAX_INDENT:
        raise refused(f"`tojson` indents by 0 to {MAX_INDENT}, found {width}")
    return joined(json.JSONEncoder(ensure_ascii=False, indent=width).iterencode(plain(value)))


def from_json(value: Json) -> Json:
    source = bounded(_text_only(value, "from_json"))
    if sum(map(source.count, "[{,")) > MAX_ITEMS:
        raise refused(f"the JSON text may hold more than {MAX_ITEMS:,} values")
    try:
        parsed: Json = json.loads(
            source, parse_constant=_no_constant, parse_int=_parse_int, parse_float=_parse_float, object_pairs_hook=_once
        )
    except json.JSONDecodeError as error:
        raise refused(f"the text is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise refused("the JSON text is nested too deeply") from None
    weigh(parsed)
    return parsed


def _no_constant(name: str) -> float:
    raise refused(f"the text is not JSON: {name} is not a number there")


def _parse_int(digits: str) -> int | float:
    return number(int(digits[:400]))  # already far too large; int() itself refuses some thousand digits


def _parse_float(digits: str) -> int | float:
    return number(float(digits))


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise refused("the JSON text has a key twice in one object")
    return members


def urlencode(value: Json) -> str:
    if weigh(value) > MAX_URL:
        raise refused(f"`urlencode` takes at most {MAX_URL // 1024} KiB")
    if isinstance(value, Mapping):
        return "&".join(f"{_query_part(key)}={_query_part(value[key])}" for key in sorted(value))
    if is_list(value):
        return "&".join("=".join(map(_query_part, _pair(item))) for item in items(value))
    return quote(_utf8(as_text(value)), safe="/")


def _pair(item: Json) -> tuple[Json, Json]:
    if isinstance(item, list | tuple) and len(item) == 2:
        return item[0], item[1]
    raise refused("`urlencode` takes text, an object, or a list of [key, value] pairs")


def _query_part(value: Json) -> str:
    return quote_plus(_utf8(as_text(value)), safe="")


def _utf8(source: str) -> bytes:
    try:
        return source.encode()
    except UnicodeEncodeError:
        raise refused("the text holds half of a surrogate pair") from None


def to_int(value: Json, default: Json = 0, base: Json = 10) -> Json:
    """Jinja2's rule: what is not a number becomes the default, and "42.7" becomes 42."""
    try:
        if isinstance(value, str):
            return number(int(value, _integer_argument(base, "base")))
        if isinstance(value, int | float):
            return number(int(value))
    except ValueError:
        pass
    try:
        return number(int(float(value))) if isinstance(value, str) else default
    except (ValueError, OverflowError):
        return default


def extract_github_owner(value: Json) -> str:
    return _github(value)["owner"]


def extract_github_repo(value: Json) -> str:
    return _github(value)["repo"]


def _github(value: Json) -> re.Match[str]:
    place = _text_only(value, "extract_github_…").strip()
    host = _GITHUB_HOST.match(place)
    if host:
        place = "/".join(re.split(r"[/?#]", place[host.end() :], maxsplit=2)[:2])
    match = _GITHUB_PLACE.fullmatch(place)
    if match is None or match["repo"] in {".", ".."}:
        raise refused("the text names no GitHub repository", hint="give https://github.com/OWNER/REPO or OWNER/REPO")
    return match


def _text_only(value: Json, name: str) -> str:
    if not isinstance(value, str):
        raise refused(f"`{name}` takes text, found {kind(value)}")
    return value


def _integer_argument(value: Json, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise refused(f"`{name}` must be an integer, found {kind(value)}")
    return value


FILTERS: Mapping[str, Filter] = {
    "default": Filter(run=default, parameters=("default_value", "boolean")),
    "join": Filter(run=join, parameters=("d",)),
    "length": Filter(run=length),
    "lower": Filter(run=lower),
    "upper": Filter(run=upper),
    "replace": Filter(run=replace, parameters=("old", "new", "count"), required=2),
    "trim": Filter(run=trim, parameters=("chars",)),
    "first": Filter(run=first),
    "last": Filter(run=last),
    "tojson": Filter(run=tojson, parameters=("indent",)),
    "from_json": Filter(run=from_json),
    "urlencode": Filter(run=urlencode),
    "int": Filter(run=to_int, parameters=("default", "base")),
    "string": Filter(run=as_text),
    "extract_github_owner": Filter(run=extract_github_owner),
    "extract_github_repo": Filter(run=extract_github_repo),
}
