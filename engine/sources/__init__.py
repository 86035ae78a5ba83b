"""Sources: one module a kind. A kind knows its options, how it is read, and where it stands now."""

from types import ModuleType

from engine.sources import files
from engine.sources.spec import SourceSpec

# format -> the module that reads it
KINDS: dict[str, ModuleType] = dict.fromkeys(files.FORMATS, files)

__all__ = ["KINDS", "SourceSpec"]
