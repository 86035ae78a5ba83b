"""Whether `.ci/run` notices faults in the order of commits, in leases and in the steps of operations.

python -m tests.mutants.gate [--only NAME ...]

Each fault is put into a copy of the repository, and the tests that should notice it run there, in a process of their own.
A fault whose text is not in the code any more is an error: the list follows the code.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.lab import REPOSITORY

_COPIED = (
    "engine",
    "engine_import",
    "tests",
    "models",
    "sources",
    "macros",
    "producer",
    "project.yml",
    "pyproject.toml",
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A change of a module, and the tests of `make test` or `make gate` that it should fail.

    Attributes:
        name: what it breaks.
        module: its path below `engine/`.
        before: a text that is there once.
        after: what takes its place.
        tests: as for pytest.
    """

    name: str
    module: str
    before: str
    after: str
    tests: str


_WRITER, _REFRESH = "runtime/writer/micro_batch_writer.py", "runtime/lifecycle/full_refresh.py"
_PUBLISH = "runtime/lifecycle/publish.py"
FAULTS = (
    Fault("a batch that is in the table is rewritten", _WRITER,
          "if self.reached is not None and batch <= self.reached:", "if self.reached is None and batch < 0:",
          "tests/runtime/test_merge_crash.py"),
    Fault("rows that were kept for several outputs are computed again", _WRITER,
          "if self.rules.stored_batches is not None else None", "if self.rules is None else None",
          "tests/fault_injection/test_begun_batches.py"),
    Fault("a batch of several outputs is not kept", _WRITER,
          "and rules.stored_batches is not None and stored_batch is None:", "and rules.stored_batches is None and stored_batch is None:",
          "tests/runtime/test_bad_records_crash.py"),
    Fault("the quarantine is written behind the commit", _WRITER,
          "            quarantined = self._quarantine(session, batch, observations, more_rows)\n"
          '            commit = prepared.commit(markers, self._expected(markers["model"]))\n',
          '            commit = prepared.commit(markers, self._expected(markers["model"]))\n'
          "            quarantined = self._quarantine(session, batch, observations, more_rows)\n",
          "tests/runtime/test_bad_records_crash.py tests/fault_injection/test_begun_batches.py"),
    Fault("a batch is recorded before it is written", _WRITER,
          "            result = self._write(frame, batch, markers_of(offsets))\n",
          "            self.record(batch=batch)\n            result = self._write(frame, batch, markers_of(offsets))\n",
          "tests/runtime/test_merge_crash.py tests/fault_injection/test_killed.py"),
    Fault("commits carry no offsets", _WRITER,
          "markers = {**self.markers(batch), **offsets}", "markers = {**self.markers(batch)}",
          "tests/fault_injection/test_older_spark.py tests/security/test_hostile_state.py"),
    Fault("a lease that was taken over counts as held", "state/lease.py",
          'if newest != self.number or record.get("owner") != self.holder.owner:', "if newest < 0:",
          "tests/state/test_lease.py tests/catalogs/test_fencing.py"),
    Fault("of two that take a lease both have it", "state/lease.py",
          "    if not holder.store.put_if_absent(_key(folder, lease.number), lease.record()):\n",
          "    if holder.store.put_if_absent(_key(folder, lease.number), lease.record()) is None:\n",
          "tests/state/test_lease.py"),
    Fault("no fence is raised before a run that took over writes", "state/lease.py",
          'fenced=not is_gone and bool(record.get("fenced", True))', "fenced=True",
          "tests/state/test_lease.py tests/catalogs/test_two_machines.py"),
    Fault("a later fence in the table is not seen", "lake/table_fence.py",
          "number is not None and int(number) > self.lease.number", "number is not None and int(number) < 0",
          "tests/catalogs/test_fencing.py"),
    Fault("an error of a run that was taken over is not lease-lost", "state/lease.py",
          "            raise lost_lease from error\n", "            raise\n", "tests/state/test_lease.py"),
    Fault("a commit is made onto a table that was rolled back", "lake/commit_guard.py",
          "if expected.snapshot is not None and not self._follows(self.head):", "if expected.snapshot == 0:",
          "tests/fault_injection/test_rollbacks.py"),
    Fault("a refresh that was published is discarded", _REFRESH,
          "    published_state = published_refresh(model, pending_state, table)\n", "    published_state = None\n",
          "tests/runtime/test_refresh.py tests/runtime/test_refresh_interrupted.py"),
    Fault("the earlier generation goes before the new one is noted", _REFRESH,
          "    folder.save(published_state)\n    folder.journal.end(Refresh)\n    folder.discard_before(published_state.generation)\n",
          "    folder.discard_before(published_state.generation)\n    folder.journal.end(Refresh)\n    folder.save(published_state)\n"
          '    kill_points.reach("noted", model.name)\n',
          "tests/runtime/test_refresh.py tests/runtime/test_refresh_interrupted.py tests/runtime/test_publish_crash.py"),
    Fault("a rollback retires the newer generation first", "runtime/operations/roll_back.py",
          'Step("brought back", partial(folder.save, replaced_generation.state)),\n        Step("retired", partial(folder.retire, note.other)),\n',
          'Step("retired", partial(folder.retire, note.other)),\n        Step("brought back", partial(folder.save, replaced_generation.state)),\n',
          "tests/runtime/test_rollback.py"),
    Fault("an operation is not noted", "state/operations.py",
          "        journal.begin(operation)\n", "        pass\n", "tests/runtime/test_rollback.py"),
    Fault("a step is noted before its effect", "state/operations.py",
          "        step.effect()\n", "        [journal.complete(type(operation), str(step)) for journal, operation in noted]\n        step.effect()\n",
          "tests/state/test_operations.py"),
    Fault("a rename moves the state before it names the tables", "runtime/lifecycle/rename_table.py",
          '        Step("rewritten", partial(_rewrite_state, folder, renaming)),\n', "", "tests/runtime/test_renamed_from.py tests/runtime/test_rename_table.py"),
    Fault("a drop forgets the state before the tables are gone", "runtime/operations/drop_table.py",
          "    operations.carry_out([(journal, note)], steps,", "    operations.carry_out([(journal, note)], steps[::-1],",
          "tests/runtime/test_orphans.py"),
    Fault("a rebuild is noted as published before it is", "runtime/rebuild/cut_over.py",
          "steps = [Step(PUBLISHING), publish,", "steps = [Step(PUBLISHING), Step(PUBLISHED), publish,",
          "tests/runtime/test_rebuild.py"),
    Fault("a clone is not noted before it begins", "runtime/clone.py",
          "                clone.folder.journal.begin(_note(clone, unfinished_clones[0], where))\n", "                pass\n",
          "tests/runtime/test_clone.py"),
    Fault("rows are published though a test has failed", _PUBLISH,
          "        if not missing_tests:\n", "        if missing_tests is not None:\n", "tests/runtime/test_publish.py"),
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", help="words of the names of the faults to try")
    parser.add_argument("--check", action="store_true", help="only whether the texts are in the code")
    chosen = parser.parse_args()
    faults = [one for one in FAULTS if not chosen.only or any(word in one.name for word in chosen.only)]
    if lost := [one.name for one in faults if _source(one).count(one.before) != 1]:
        sys.exit("not in the code any more, or more than once: " + "; ".join(lost))
    if chosen.check:
        return 0
    survived = [one.name for one in faults if not _noticed(one)]
    print(f"{len(faults) - len(survived)} of {len(faults)} noticed")
    return bool(survived)


def _source(one: Fault) -> str:
    return (REPOSITORY / "engine" / one.module).read_text(encoding="utf-8")


def _noticed(one: Fault) -> bool:
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "copy"
        root.mkdir()
        for name in _COPIED:
            here = REPOSITORY / name
            (shutil.copytree if here.is_dir() else shutil.copy)(here, root / name)
        (root / "engine" / one.module).write_text(_source(one).replace(one.before, one.after), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-m", "not nightly", "-p", "no:cacheprovider"]
        tests = [test for test in one.tests.split() if (root / test).exists()]
        environment = {**os.environ, "PYTHONPATH": str(root), "ENGINE_WARMUP": "off"}
        done = subprocess.run(
            [*command, *tests], cwd=root, env=environment, capture_output=True, text=True, check=False
        )
    noticed = done.returncode == 1
    by = next((line for line in done.stdout.splitlines() if line.startswith("FAILED")), done.stdout[-300:])
    print(
        f"{'noticed ' if noticed else 'SURVIVED'} {time.monotonic() - begin:4.0f} s  {one.name}: {by[:150]}", flush=True
    )
    return noticed


if __name__ == "__main__":
    sys.exit(main())
