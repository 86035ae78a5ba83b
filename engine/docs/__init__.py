"""Last stage: artifacts, the site and lineage, made from the results of the other stages."""
