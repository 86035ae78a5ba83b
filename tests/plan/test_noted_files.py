"""The files of Spark's log against those that are there: what a plan and a run both say of them."""

from __future__ import annotations

import pytest

from engine.plan.actions.file_checks import FileDifferences, compared
from engine.state.file_log import Logged

A = "file:/landing/a"
READ, STARTED = 1, 2


@pytest.mark.parametrize(
    ("entry", "accepted", "now", "written_to", "expected"),
    [
        (READ, None, 10, READ, FileDifferences()),
        (READ, None, 11, READ, FileDifferences(changed=[(A, 10, 11)])),
        (READ, 11, 11, READ, FileDifferences()),
        (READ, 11, 12, READ, FileDifferences(changed=[(A, 11, 12)])),
        (READ, None, None, READ, FileDifferences(deleted=[(A, 10)])),
        (STARTED, None, None, READ, FileDifferences(missing=[A], deleted=[(A, 10)])),
        (STARTED, None, 11, READ, FileDifferences(unwritten={A: 11})),
        # The micro-batch was written, and Spark's note of that is missing.
        (STARTED, None, 11, STARTED, FileDifferences(changed=[(A, 10, 11)])),
        (STARTED, None, None, STARTED, FileDifferences(missing=[A], deleted=[(A, 10)])),
    ],
)
def test_a_file_that_was_noted(
    entry: int, accepted: int | None, now: int | None, written_to: int, expected: FileDifferences
) -> None:
    log = [Logged("file:///landing/a", 10, entry)]
    times = {A: now} if now is not None else {}
    assert compared(log, {A: accepted} if accepted else {}, times.get, READ, written_to) == expected
