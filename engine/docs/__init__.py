"""Last stage: artifacts, the site and lineage, told from what the other stages found out."""
