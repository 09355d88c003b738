"""How a record is bound to the ones before it. The format page in the docs is frozen; so is this."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from capsule.canon import Json
from capsule.store.bodies import StoredBody

AppendKind: TypeAlias = Literal["intent", "outcome", "refused", "question", "answer", "wait", "skipped", "proposal"]
Kind: TypeAlias = Literal["start", AppendKind, "end"]
APPEND_KINDS: frozenset[str] = frozenset(get_args(AppendKind))

FIRST_PREV = bytes(32)
SALT_BYTES = 16
RUN_SPAN = 2**32  # a record's place in the file is its run's number times this, plus its seq


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedRecord:
    """A record as it will stand in the file, with the bodies that were moved out of it."""

    seq: int
    kind: Kind
    fields: Mapping[str, Json]  # the body as it was appended
    body: str
    salt: bytes
    prev: bytes
    hash: bytes
    bodies: tuple[StoredBody, ...]


def record_bytes(run: str, seq: int, kind: str, body: str, salt: str, prev: str) -> bytes:
    """RFC 8785 bytes of the whole record, composed around the body's: the six keys are in their order."""
    return f'{{"body":{body},"kind":"{kind}","prev":"{prev}","run":"{run}","salt":"{salt}","seq":{seq}}}'.encode()


def record_hash(run: str, seq: int, kind: str, body: str, salt: bytes, prev: bytes) -> bytes:
    return hashlib.sha256(record_bytes(run, seq, kind, body, salt.hex(), prev.hex())).digest()
