"""Which node of `engine start` has the next turn: the order, failures, pauses and schedules of the queue."""

from __future__ import annotations

from datetime import UTC, datetime

from engine.compile.types.cron import Schedule
from engine.events import NodeState
from engine.runtime.queue.live_nodes import LiveNode
from engine.runtime.queue.node_queue import LOCKED, MOST, NodeQueue, pause_after
from engine.state.lock_holder import LockHolder

NOW = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC).timestamp()


def queue_of(*nodes: LiveNode) -> NodeQueue:
    queue = NodeQueue()
    queue.replace({node.id: node for node in nodes}, (), NOW)
    return queue


def stream(name: str, *after: str, source: str = "", **more) -> LiveNode:
    above = frozenset(f"model.{a}" for a in after)
    sources = frozenset({source} if source else ())
    return LiveNode(f"model.{name}", (f"model.{name}",), above, above, sources, **more)


def turn(queue: NodeQueue, now: float) -> str | None:
    entry = queue.next(now)
    if entry is None:
        return None
    queue.begin_turn(entry, now)
    return entry.node.id


def test_new_input_makes_its_readers_due_and_no_others():
    queue = queue_of(stream("a", source="source.s.x"), stream("b", source="source.s.y"))
    queue.new_input("source.s.y", NOW)
    assert (turn(queue, NOW), turn(queue, NOW)) == ("model.b", None)


def test_the_node_that_is_due_longest_is_first():
    queue = queue_of(stream("a"), stream("b"), stream("c"))
    for at, name in enumerate("cab"):
        queue.mark_due(f"model.{name}", "x", NOW + at)
    assert [turn(queue, NOW + 9) for _ in range(3)] == ["model.c", "model.a", "model.b"]


def test_a_commit_makes_what_reads_it_due_while_it_runs_on():
    queue = queue_of(stream("a"), stream("b", "a"))
    queue.mark_due("model.a", "x", NOW)
    assert turn(queue, NOW) == "model.a"
    queue.succeed("model.a", NOW + 1, more=True)
    queue.committed("model.a", NOW + 1)
    assert {turn(queue, NOW + 1), turn(queue, NOW + 1)} == {"model.a", "model.b"}


def test_what_came_during_a_turn_is_another_turn():
    queue = queue_of(stream("a", source="s.x"))
    queue.mark_due("model.a", "x", NOW)
    turn(queue, NOW)
    queue.new_input("s.x", NOW + 1)
    assert turn(queue, NOW + 1) is None
    queue.succeed("model.a", NOW + 2, more=False)
    assert turn(queue, NOW + 4) == "model.a"


def test_a_node_waits_for_one_that_has_not_run_and_for_one_that_failed():
    queue = queue_of(stream("a"), stream("b", "a"))
    queue.mark_due("model.b", "x", NOW)
    queue.mark_due("model.a", "x", NOW + 1)
    assert turn(queue, NOW + 1) == "model.a"
    queue.fail("model.a", NOW + 2, "the broker is away", heals=True)
    assert turn(queue, NOW + 2) is None
    assert queue.entries["model.b"].state is NodeState.WAITING
    queue.tick(NOW + 4)
    assert turn(queue, NOW + 4) == "model.a"
    queue.succeed("model.a", NOW + 5, more=False)
    assert turn(queue, NOW + 5) == "model.b"


def test_a_failure_stops_nothing_that_does_not_read_it():
    queue = queue_of(stream("a"), stream("b"))
    for name in "ab":
        queue.mark_due(f"model.{name}", "x", NOW)
    turn(queue, NOW)
    queue.fail("model.a", NOW, "broken", heals=False)
    assert turn(queue, NOW) == "model.b"


def test_a_node_that_fails_again_and_again_is_tried_less_and_less_often():
    assert [pause_after(n) for n in (1, 2, 3, 9, 10, 1000)] == [1, 2, 4, 256, MOST, MOST]
    queue = queue_of(stream("a", source="s.x"))
    queue.mark_due("model.a", "x", NOW)
    turn(queue, NOW)
    queue.fail("model.a", NOW, "away", heals=True)
    queue.new_input("s.x", NOW)
    queue.tick(NOW + 0.9)
    assert turn(queue, NOW + 0.9) is None
    queue.tick(NOW + 1)
    assert turn(queue, NOW + 1) == "model.a"


def test_what_needs_an_edit_waits_for_one():
    queue = queue_of(stream("a", source="s.x"))
    queue.mark_due("model.a", "x", NOW)
    turn(queue, NOW)
    queue.fail("model.a", NOW, "its window changed", heals=False)
    queue.new_input("s.x", NOW)
    queue.tick(NOW + 10 * MOST)
    assert turn(queue, NOW + 10 * MOST) is None
    queue.replace({"model.a": stream("a", source="s.x")}, ["model.a"], NOW)
    assert turn(queue, NOW) == "model.a"


def test_a_paused_node_has_no_turn_until_it_is_resumed():
    queue = queue_of(stream("a", source="s.x"))
    queue.pause(["model.a"])
    queue.new_input("s.x", NOW)
    assert turn(queue, NOW) is None
    assert queue.entries["model.a"].state is NodeState.PAUSED
    queue.resume(["model.a"], NOW + 1)
    assert turn(queue, NOW + 1) == "model.a"


def test_turns_begin_at_most_as_often_as_the_trigger_says():
    queue = queue_of(stream("a", source="s.x", min_seconds=30.0))
    queue.new_input("s.x", NOW)
    assert turn(queue, NOW) == "model.a"
    queue.succeed("model.a", NOW + 1, more=False)
    queue.new_input("s.x", NOW + 2)
    assert turn(queue, NOW + 29) is None
    assert turn(queue, NOW + 30) == "model.a"


def test_a_busy_node_does_not_keep_the_others_waiting():
    queue = queue_of(stream("busy"), stream("small", source="s.x"))
    queue.mark_due("model.busy", "x", NOW)
    turn(queue, NOW)
    queue.new_input("s.x", NOW + 5)
    queue.succeed("model.busy", NOW + 20, more=True)
    assert [turn(queue, NOW + 20), turn(queue, NOW + 20)] == ["model.small", "model.busy"]


def test_a_schedule_makes_a_node_due_at_its_times():
    node = LiveNode("model.a", ("model.a",), schedule=Schedule.of("*/5 * * * *"))
    queue = queue_of(node)
    queue.tick(NOW + 269)
    assert turn(queue, NOW + 269) is None
    queue.tick(NOW + 270)
    assert turn(queue, NOW + 270) == "model.a"
    queue.succeed("model.a", NOW + 271, more=False)
    queue.tick(NOW + 570)
    assert turn(queue, NOW + 571) == "model.a"


def test_changes_of_state_are_told_once():
    queue = queue_of(stream("a", source="s.x"))
    queue.new_input("s.x", NOW)
    queue.new_input("s.x", NOW)
    turn(queue, NOW)
    assert [change.state for change in queue.take_changes()] == [NodeState.QUEUED, NodeState.RUNNING]
    assert queue.take_changes() == []


def test_a_node_that_is_gone_ends_without_a_word():
    queue = queue_of(stream("a"))
    queue.mark_due("model.a", "x", NOW)
    turn(queue, NOW)
    queue.replace({}, (), NOW)
    queue.succeed("model.a", NOW, more=False)
    queue.fail("model.a", NOW, "x", heals=True)
    assert queue.entries == {}


def committed(queue: NodeQueue, name: str, times: int, now: float) -> None:
    for _ in range(times):
        queue.committed(f"model.{name}", now)


def maintained(queue: NodeQueue, now: float) -> str | None:
    entry = queue.next_maintenance(now)
    return None if entry is None else entry.node.id


def test_the_table_with_most_commits_is_maintained_when_nothing_is_due():
    queue = queue_of(stream("a"), stream("b"), stream("c"))
    queue.maintain_after = 5
    committed(queue, "a", 5, NOW)
    committed(queue, "b", 6, NOW)
    committed(queue, "c", 4, NOW)
    queue.mark_due("model.c", "x", NOW)
    assert maintained(queue, NOW) is None
    assert turn(queue, NOW) == "model.c"
    assert maintained(queue, NOW) is None
    queue.succeed("model.c", NOW, more=False)
    assert maintained(queue, NOW) == "model.b"


def test_a_table_with_many_commits_does_not_wait_for_a_quiet_moment():
    queue = queue_of(stream("a"), stream("b"))
    queue.maintain_after = 5
    committed(queue, "a", 15, NOW)
    queue.mark_due("model.b", "x", NOW)
    assert maintained(queue, NOW) == "model.a"


def test_maintenance_takes_the_turn_of_its_model_and_what_comes_meanwhile_is_not_lost():
    queue = queue_of(stream("a", source="s.x"))
    queue.maintain_after = 1
    committed(queue, "a", 1, NOW)
    entry = queue.next_maintenance(NOW)
    assert entry is not None
    queue.begin_maintenance(entry)
    queue.new_input("s.x", NOW + 1)
    assert (turn(queue, NOW + 1), maintained(queue, NOW + 1), queue.running()) == (None, None, 1)
    queue.maintained("model.a", NOW + 2)
    assert turn(queue, NOW + 2) == "model.a"
    assert maintained(queue, NOW + 3) is None


def test_few_commits_are_maintained_after_some_hours_and_no_table_where_that_is_off():
    queue = queue_of(stream("a"))
    committed(queue, "a", 1, NOW)
    assert maintained(queue, NOW + 3600) is None
    assert maintained(queue, NOW + 6 * 3600) == "model.a"
    queue.maintain_after = 0
    assert maintained(queue, NOW + 6 * 3600) is None


OTHER = LockHolder({"pid": 7, "host": "other", "command": "engine start", "keeps_running": True})


def stand_by(queue: NodeQueue, now: float, *, up_to_date: bool = False) -> None:
    assert turn(queue, now) == "model.a"
    queue.stand_by("model.a", now, OTHER, up_to_date=up_to_date)


def standby(*more: LiveNode, up_to_date: bool = False) -> NodeQueue:
    queue = queue_of(stream("a", source="s.x"), *more)
    queue.mark_due("model.a", "x", NOW)
    stand_by(queue, NOW, up_to_date=up_to_date)
    return queue


def test_a_node_on_standby_says_so_once_however_often_its_table_is_locked():
    queue = standby()
    for later in range(10, 1000, int(LOCKED)):
        queue.new_input("s.x", NOW + later - 1)
        assert turn(queue, NOW + later - 1) is None
        queue.tick(NOW + later)
        stand_by(queue, NOW + later)
    last = queue.take_changes()[-1]
    assert (last.state, last.reason) == (NodeState.STANDBY, "process 7 on other (engine start) writes it")
    assert [change.state for change in queue.changes] == []
    assert (queue.entries["model.a"].state, queue.entries["model.a"].failures) == (NodeState.STANDBY, 0)


def test_a_node_that_takes_over_says_so_once():
    queue = standby()
    queue.tick(NOW + LOCKED)
    assert turn(queue, NOW + LOCKED) == "model.a"
    assert not queue.busy()
    queue.take_changes()
    queue.took_over("model.a")
    assert queue.busy()
    queue.succeed("model.a", NOW + 12, more=False)
    queue.new_input("s.x", NOW + 30)
    assert turn(queue, NOW + 30) == "model.a"
    changes = queue.take_changes()
    assert [change.state for change in changes if change.took_over] == [NodeState.RUNNING]
    assert changes[0].reason == "took over from process 7 on other (engine start)"


def test_what_reads_a_table_on_standby_runs_once_that_has_all_its_input():
    queue = standby(stream("b", "a"))
    queue.mark_due("model.b", "x", NOW)
    assert turn(queue, NOW + 1) is None
    queue.tick(NOW + LOCKED)
    stand_by(queue, NOW + LOCKED, up_to_date=True)
    assert turn(queue, NOW + LOCKED) == "model.b"


def test_a_node_on_standby_may_be_paused_edited_and_fail():
    queue = standby()
    queue.pause(["model.a"])
    assert queue.entries["model.a"].state is NodeState.PAUSED
    queue.resume(["model.a"], NOW + 1)
    stand_by(queue, NOW + 1)
    queue.replace({"model.a": stream("a", source="s.x")}, ["model.a"], NOW + 2)
    queue.tick(NOW + 2)
    assert turn(queue, NOW + 2) == "model.a"
    queue.fail("model.a", NOW + 2, "the broker is away", heals=True)
    assert queue.entries["model.a"].state is NodeState.BACKING_OFF
    queue.tick(NOW + 3)
    stand_by(queue, NOW + 3)
    assert queue.take_changes()[-1].state is NodeState.STANDBY


def test_a_scheduled_node_keeps_its_schedule_after_a_failure_and_on_standby():
    for ends in ("fails", "stands by"):
        queue = queue_of(LiveNode("model.a", ("model.a",), schedule=Schedule.of("*/5 * * * *")))
        queue.tick(NOW + 270)
        assert turn(queue, NOW + 270) == "model.a"
        if ends == "fails":
            queue.fail("model.a", NOW + 271, "away", heals=True)
        else:
            queue.stand_by("model.a", NOW + 271, OTHER, up_to_date=False)
        queue.tick(NOW + 281)
        assert turn(queue, NOW + 281) == "model.a"
        queue.succeed("model.a", NOW + 282, more=False)
        queue.tick(NOW + 569)
        assert turn(queue, NOW + 569) is None
        queue.tick(NOW + 570)
        assert turn(queue, NOW + 571) == "model.a", ends


def test_a_node_that_waits_says_so_once():
    queue = queue_of(stream("a"), stream("b", "a"))
    queue.mark_due("model.a", "x", NOW)
    queue.mark_due("model.b", "x", NOW)
    assert turn(queue, NOW) == "model.a"
    for later in range(5):
        assert turn(queue, NOW + later) is None
    waits = [(change.node, change.reason) for change in queue.take_changes() if change.state is NodeState.WAITING]
    assert waits == [("model.b", "a")]


def test_an_edit_of_a_node_that_backs_off_runs_it_also_if_input_came_meanwhile():
    queue = queue_of(stream("a", source="source.s.x"))
    queue.mark_due("model.a", "x", NOW)
    turn(queue, NOW)
    queue.fail("model.a", NOW + 1, "no broker", heals=True)
    queue.new_input("source.s.x", NOW + 1)
    queue.replace({"model.a": stream("a", source="source.s.x")}, {"model.a"}, NOW + 1)
    assert queue.entries["model.a"].state is NodeState.QUEUED
    assert turn(queue, NOW + 1) == "model.a"


def test_a_node_that_was_paused_during_a_turn_that_failed_is_shown_as_paused():
    for ends in (True, False):
        queue = queue_of(stream("a", source="source.s.x"))
        queue.mark_due("model.a", "x", NOW)
        turn(queue, NOW)
        queue.pause(["model.a"])
        queue.fail("model.a", NOW + 1, "no broker", heals=ends)
        if ends:
            queue.tick(NOW + 3)
        else:
            queue.heal("model.a", NOW + 3)
        assert queue.take_changes()[-1].state is queue.entries["model.a"].state is NodeState.PAUSED
        assert turn(queue, NOW + 3) is None
        queue.resume(["model.a"], NOW + 4)
        assert turn(queue, NOW + 4) == "model.a"
