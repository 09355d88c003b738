"""All that is ever done to files for a tool: read, write and list, each on one FileGrant."""

from capsule.effects.listing import MAX_SCANNED, Visible
from capsule.effects.listing import list_entries as list
from capsule.effects.reading import Bounds, read
from capsule.effects.writing import write

__all__ = ["MAX_SCANNED", "Bounds", "Visible", "list", "read", "write"]
