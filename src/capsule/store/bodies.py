"""Large fields of a record's body lie once, compressed, under the digest of their bytes; the record keeps a reference.

A field that itself looks like a reference is moved out whatever its size, so that in a stored body every object with
the key `$body` at the top level is a reference, and nothing needs escaping.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from capsule.canon import Json, canonical
from capsule.errors import StorageError

INLINE_BYTES = 8 * 1024  # a larger field is worth a row of its own: it is often the same as an earlier one
REFERENCE = "$body"
REFERENCE_TEXT = '"$body":"'  # in canonical text, unescaped quotes belong to keys: no user's string holds this

_PIECE = 256 * 1024  # what is unpacked at once

_LEVEL = 1  # higher levels cost as much as several commits and save little
_WORTH_IT = 0.75
_MARK = b'"$body"'
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBody:
    digest: bytes
    data: bytes


def split_body(body: Mapping[str, Json]) -> tuple[str, tuple[StoredBody, ...]]:
    """The canonical text of a body, and what was moved out of it."""
    whole = canonical(body)
    if len(whole) <= INLINE_BYTES and _MARK not in whole:
        return whole.decode(), ()
    kept = dict(body)
    moved: list[StoredBody] = []
    for name, value in body.items():
        data = canonical(value)
        if len(data) > INLINE_BYTES or (isinstance(value, Mapping) and REFERENCE in value):
            digest = hashlib.sha256(data)
            moved.append(StoredBody(digest=digest.digest(), data=data))
            kept[name] = {REFERENCE: digest.hexdigest(), "size": len(data)}
    return canonical(kept).decode(), tuple(moved)


def insert_body(db: sqlite3.Connection, body: StoredBody) -> None:
    """Inside a transaction, so that a body that is there now is there when the record is."""
    if db.execute("SELECT 1 FROM bodies WHERE digest = ?", (body.digest,)).fetchone():
        return
    packed = zlib.compress(body.data, _LEVEL)
    codec, data = ("zlib", packed) if len(packed) <= len(body.data) * _WORTH_IT else ("raw", body.data)
    db.execute(
        "INSERT INTO bodies (digest, size, codec, data) VALUES (?, ?, ?, ?)",
        (body.digest, len(body.data), codec, data),
    )


def references(body: Mapping[str, Json]) -> dict[str, tuple[str, int]]:
    """Field → digest and size of what was moved out of it."""
    found: dict[str, tuple[str, int]] = {}
    for name, value in body.items():
        if isinstance(value, Mapping) and REFERENCE in value:
            digest, size = value[REFERENCE], value.get("size")
            if not isinstance(digest, str) or not _DIGEST.fullmatch(digest) or not isinstance(size, int):
                raise _not_believed(str(digest), "is not named as bodies are")
            found[name] = digest, size
    return found


def check_body(db: sqlite3.Connection, digest: str, size: int) -> None:
    """Like `load_body`, in little memory: nothing of it is kept."""
    codec, data = _stored(db, digest, size)
    found, length = hashlib.sha256(), 0
    for piece in _pieces(digest, data) if codec == "zlib" else (data,):
        length += len(piece)
        if length > size:
            break
        found.update(piece)
    if length != size or found.hexdigest() != digest:
        raise _not_believed(digest, "does not have the bytes it is named for")


def load_body(db: sqlite3.Connection, digest: str, size: int) -> bytes:
    """The bytes that were moved out; never more than the record says, whatever the file holds."""
    check_body(db, digest, size)  # first: what is said to be large may be a few bytes that unpack without end
    codec, data = _stored(db, digest, size)
    return b"".join(_pieces(digest, data)) if codec == "zlib" else data


def _stored(db: sqlite3.Connection, digest: str, size: int) -> tuple[str, bytes]:
    row = db.execute("SELECT size, codec, data FROM bodies WHERE digest = ?", (bytes.fromhex(digest),)).fetchone()
    if row is None:
        raise _not_believed(digest, "is missing")
    stored_size, codec, data = row
    if stored_size != size or not isinstance(data, bytes) or codec not in ("raw", "zlib"):
        raise _not_believed(digest, "is not stored as it was")
    return codec, data


def _pieces(digest: str, data: bytes) -> Iterator[bytes]:
    unpacker = zlib.decompressobj()
    try:
        while data and not unpacker.eof:
            yield unpacker.decompress(data, _PIECE)
            data = unpacker.unconsumed_tail
    except zlib.error:
        raise _not_believed(digest, "cannot be unpacked") from None
    if not unpacker.eof or unpacker.unused_data:
        raise _not_believed(digest, "cannot be unpacked")


def filled_in(db: sqlite3.Connection, body: Mapping[str, Json]) -> dict[str, Json]:
    """The body as it was appended."""
    return {**body, **{name: json.loads(load_body(db, *where)) for name, where in references(body).items()}}


def _not_believed(digest: str, problem: str) -> StorageError:
    return StorageError(
        5004,
        f"the body {digest[:12]}… {problem}",
        hint="the journal was altered or damaged; `capsule verify --all` says which runs are concerned",
        context={"digest": digest},
    )
