"""Stage 4: executes a plan in Spark. In: a manifest, a target and ids of nodes; out: events, commits, states.

Read `build` first (locks, plan, session), then `run_nodes`, `run_batch` for batch tables and views,
`streams.run_stream` for streaming tables, `writer.micro_batch_writer` for the commit of a micro-batch. No SQL is built
from pieces of the project here.
"""
