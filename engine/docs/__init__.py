"""Last stage: artifacts, the site and lineage, told from what the other stages found out."""

from engine.docs.site.last_run import read_results
from engine.docs.site.site_data import Facts
from engine.docs.site.write_site import write_site

__all__ = ["Facts", "read_results", "write_site"]
