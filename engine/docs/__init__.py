"""Last stage: artifacts, the site and lineage, told from what the other stages found out."""

from engine.docs.facts import Facts
from engine.docs.last_run import read_results
from engine.docs.site import write_site

__all__ = ["Facts", "read_results", "write_site"]
