"""The gate between an agent and a machine."""

from capsule._version import __version__

__all__ = ["__version__"]
