"""What callers and foreign code hand over, made plain before anybody looks at it."""

from __future__ import annotations

import traceback
from collections.abc import Mapping

from capsule.calls import Source, ToolCall
from capsule.gate.recordable import Copier


def plain_call(call: ToolCall, copier: Copier) -> ToolCall:
    """The caller's values, read once; what does not fit is noted and stands in the copy as text."""
    tool = copier.copy(call.tool)
    if not isinstance(tool, str):
        copier.misfit = copier.misfit or "the name of a tool is text"
        tool = str(tool)
    args = copier.copy(call.args)
    if not isinstance(args, Mapping):
        copier.misfit = copier.misfit or "arguments are a mapping of names to values"
        args = {"value": args}
    return ToolCall(tool=tool, args=args, source=_source(call.source, copier))


def _source(source: object, copier: Copier) -> Source:
    """A source that is none gets the least trust there is."""
    if isinstance(source, str) and source in list(Source):
        return Source(source)
    copier.misfit = copier.misfit or "there is no such source"
    return Source.MCP


def described(error: BaseException) -> str:
    """Its type and message; an exception whose text cannot be made has one all the same."""
    return "".join(traceback.format_exception_only(error)).strip()
