"""Bytes to checked values: one strict loader for YAML and JSON, and the place of everything that is wrong.

>>> from capsule.documents import check, load_text
>>> document = load_text("name: demo", name="plan.yaml", kind="plan")
>>> check(document, {"type": "object", "properties": {"name": {"type": "string"}}})
>>> document.value
{'name': 'demo'}
"""

from capsule.documents import schema, units
from capsule.documents.document import Document, Format, check, load_file, load_text
from capsule.documents.places import error_at
from capsule.documents.reading import MAX_BYTES, read_text
from capsule.documents.schema import Problem
from capsule.documents.tokens import MAX_DEPTH, Trail
from capsule.documents.wording import beginning, shown, spell, spell_name, suggest

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "Document",
    "Format",
    "Problem",
    "Trail",
    "beginning",
    "check",
    "error_at",
    "load_file",
    "load_text",
    "read_text",
    "schema",
    "shown",
    "spell",
    "spell_name",
    "suggest",
    "units",
]
