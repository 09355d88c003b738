"""fs.read, fs.list and fs.write."""

from __future__ import annotations

import codecs
from base64 import b64decode, b64encode
from collections.abc import Mapping

from capsule.calls import Chunk, Context, Entry
from capsule.calls.builtin import FS_LIST, FS_READ, FS_WRITE
from capsule.canon import Json, digest
from capsule.errors import ToolError
from capsule.tools.arguments import integer, optional_integer, text, truth


class FsRead:
    definition = FS_READ

    def run(self, args: Mapping[str, Json], context: Context) -> Json:
        offset, length = integer(args, "offset"), optional_integer(args, "length")
        chunk = context.read("path", offset=offset, length=length)
        if chunk.hard_link:
            context.flag("hard_link")
        try:
            data, content, encoding = _as_text(chunk, offset, text(args, "encoding"))
        except _NotText as error:
            raise ToolError(
                2003, f"{text(args, 'path')} is not text: {error}", hint="read it with encoding base64, or auto"
            ) from None
        left = max(0, chunk.size - offset)
        end = offset + len(data)
        return {
            "path": text(args, "path"),
            "content": content,
            "encoding": encoding,
            "size": chunk.size,
            "sha256": digest(data),
            "truncated": len(chunk.data) < (left if length is None else min(length, left)),
            "next_offset": end if end < chunk.size else None,
        }


class _NotText(Exception):
    pass


def _as_text(chunk: Chunk, offset: int, encoding: str) -> tuple[bytes, str, str]:
    """The bytes that are returned, as text, and in which encoding.

    A character that the end of the range cuts is left for the next range. Text with NULs is UTF-16, or none at all.
    """
    if encoding != "base64":
        last = offset + len(chunk.data) >= chunk.size
        try:
            content, used = codecs.utf_8_decode(chunk.data, "strict", last)
        except UnicodeDecodeError as error:
            if encoding == "utf-8":
                raise _NotText(f"byte {offset + error.start} is not UTF-8") from None
        else:
            if encoding == "auto" and "\0" in content:
                return chunk.data, b64encode(chunk.data).decode(), "base64"
            if used or not chunk.data:
                return chunk.data[:used], content, "utf-8"
            if encoding == "utf-8":
                raise _NotText("the range ends within its only character")
    return chunk.data, b64encode(chunk.data).decode(), "base64"


class FsList:
    definition = FS_LIST

    def run(self, args: Mapping[str, Json], context: Context) -> Json:
        offset = integer(args, "offset")
        listing = context.list("path", pattern=text(args, "pattern"), offset=offset, limit=integer(args, "limit"))
        more = listing.truncated and listing.entries
        return {
            "path": text(args, "path"),
            "entries": [_entry(entry) for entry in listing.entries],
            "truncated": listing.truncated,
            "next_offset": offset + len(listing.entries) if more else None,
            "skipped_names": listing.skipped_names,
        }


def _entry(entry: Entry) -> dict[str, Json]:
    return {"path": entry.path, "type": entry.type, "size": entry.size}


class FsWrite:
    definition = FS_WRITE

    def run(self, args: Mapping[str, Json], context: Context) -> Json:
        data = _content(text(args, "content"), text(args, "encoding"))
        written = context.write("path", data, mode=text(args, "mode"), create_dirs=truth(args, "create_dirs"))
        return {
            "path": text(args, "path"),
            "bytes_written": len(data),
            "created": written.created,
            "sha256": digest(data),
        }


def _content(content: str, encoding: str) -> bytes:
    try:
        return content.encode() if encoding == "utf-8" else b64decode(content, validate=True)
    except UnicodeEncodeError:
        raise ToolError(2002, "content: it holds a lone surrogate", hint="send bytes as base64") from None
    except ValueError as error:
        raise ToolError(
            2002, f"content: not base64: {error}", hint="the standard alphabet, padded, no spaces"
        ) from None
