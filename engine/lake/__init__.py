"""Iceberg tables: reading their metadata and rows, and committing to them.

In: a target's catalog, Spark frames and markers; out: facts of tables (`table_facts`) and marked commits (`commits`).
Read `lake_reader` for everything that needs no Java, `table_writer` and `commits` for what Spark writes, `commit_guard`
for what a commit checks. `catalog` and `clients` find tables, `fencing` keeps a writer out whose lease was taken over.
"""
