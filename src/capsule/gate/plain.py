"""What callers and foreign code hand over, made plain before anybody looks at it."""

from __future__ import annotations

from collections.abc import Mapping

from capsule.calls import Source, ToolCall
from capsule.canon import Json
from capsule.errors import CapsuleError
from capsule.gate.foreign import attempt
from capsule.gate.recordable import Copier


def plain_call(call: ToolCall, copier: Copier) -> ToolCall:
    """The caller's values, read once; what does not fit is noted and stands in the copy as text."""
    tool = _copied(call.tool, copier)
    if not isinstance(tool, str):
        copier.misfit = copier.misfit or "the name of a tool is text"
        tool = str(tool)
    args = _copied(call.args, copier)
    if not isinstance(args, Mapping):
        copier.misfit = copier.misfit or "arguments are a mapping of names to values"
        args = {"value": args}
    return ToolCall(tool=tool, args=args, source=_source(call.source, copier))


def _copied(value: object, copier: Copier) -> Json:
    """A value of foreign make may raise while it is read."""
    copied = attempt(lambda: copier.copy(value), who="a value of the call")
    if isinstance(copied, CapsuleError):
        copier.misfit = copier.misfit or "its values cannot be read"
        return {}
    return copied


def _source(source: object, copier: Copier) -> Source:
    """A source that is none gets the least trust there is."""
    name = _copied(source, copier)
    if name in list(Source):
        return Source(name)
    copier.misfit = copier.misfit or "there is no such source"
    return Source.MCP
