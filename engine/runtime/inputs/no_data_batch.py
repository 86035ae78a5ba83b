"""The micro-batch without rows that a killed run owes.

After the last rows Spark runs one more micro-batch, which closes what the moved watermark closes. A run that is killed
before never makes it up: windows would stay open, and later rows be judged by an older watermark (measured, Spark 4.1).
Taking back Spark's note of the last micro-batch makes it come again: computed for its state, by its markers not written
twice; the owed one follows.
"""

from __future__ import annotations

from engine import local_paths
from engine.compile import Model, Source
from engine.compile.nodes.model_settings import OutputMode
from engine.plan.deployed.checkpoint_facts import watermark_moved
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.source_file_check import modified
from engine.sources import listing, source_traits
from engine.state import checkpoint as spark_checkpoint
from engine.state.file_log import accepted_times, file_sources, logged, reaches
from engine.state.state_path import StatePath

_LIMIT = "globalLimit"


def take_back(run: Run, model: Model, checkpoint: StatePath) -> bool:
    """Let the last micro-batch come again if the one after it is owed; whether it does."""
    if not owed(run, model, checkpoint):
        return False
    last = spark_checkpoint.last_committed(checkpoint)
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)
    (checkpoint / "commits" / str(last)).unlink()
    return True


def owed(run: Run, model: Model, checkpoint: StatePath) -> bool:
    """Whether a micro-batch without rows is owed, and the one before it can come again, with the same rows.

    Only files are there again for certain: brokers forget records and tables their snapshots.
    """
    if not model.stateful or model.write.output_mode is OutputMode.COMPLETE or not _rereads(run, model):
        return False
    last = spark_checkpoint.last_committed(checkpoint)
    if last is None or last != spark_checkpoint.last_started(checkpoint):
        return False
    if not watermark_moved(checkpoint, spark_checkpoint.read_offsets(checkpoint, last)):
        return False
    if not _files_there(checkpoint, last):
        # Repeated without them it would lose their rows from its state.
        return False
    # A LIMIT keeps a count, and asks for no micro-batch; alone it would be taken back in each build.
    return spark_checkpoint.operators(checkpoint) != {_LIMIT}


def _rereads(run: Run, model: Model) -> bool:
    nodes = [run.manifest.nodes[item.node] for item in model.inputs if item.stream]
    return all(isinstance(node, Source) and source_traits(node.spec.format).rereads(node.spec) for node in nodes)


def _files_there(checkpoint: StatePath, batch: int) -> bool:
    """Whether the files that a micro-batch read are there as they were; those of other machines are taken to be."""
    accepted = accepted_times(checkpoint.parent)
    for source in file_sources(checkpoint):
        begin, end = (reaches(checkpoint, source, number) for number in (batch - 1, batch))
        for file in logged(checkpoint, source, after_entry=begin, to=end):
            uri = local_paths.decoded(file.uri)
            path = listing.local(uri)
            if path is not None and modified(path) != accepted.get(uri, file.modified):
                return False
    return True
