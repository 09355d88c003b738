"""What each tool is: its definition and what it does with its granted arguments.

>>> from capsule.tools import Registry
>>> registry = Registry.built_in()
>>> registry.names
('fs.list', 'fs.read', 'fs.write', 'http.get', 'shell.run')
>>> registry.get("fs.read").definition.side_effect_class.value
'read'
"""

from capsule.tools.fs import FsList, FsRead, FsWrite
from capsule.tools.registry import NotAvailable, Registry

__all__ = ["FsList", "FsRead", "FsWrite", "NotAvailable", "Registry"]
