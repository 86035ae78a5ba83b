"""What a sink delivers to a real PostgreSQL: each committed row once, whatever happened to the table."""

from __future__ import annotations

import pytest

from engine import kill_points
from engine.errors import RunError, SetupError, StateError
from engine.sinks import delivery as deliveries
from engine.sinks.target import SinkColumn, Written


def statement(error):
    """What the hint of an error gives to paste."""
    text = error.diagnostic.hint
    return text[text.index(": ") + 2 : text.index(";") + 1]


def test_appended_rows_are_delivered_once(delivery):
    delivery.append((1, "a"), (2, None))
    delivery.append((3, ""))
    assert delivery.deliver() == Written(3)
    assert delivery.delivered() == [(1, "a"), (2, None), (3, "")]
    assert delivery.deliver() == Written()
    delivery.append((4, 'q"u,o\nte'))
    assert delivery.deliver() == Written(1)
    assert delivery.delivered()[3:] == [(4, 'q"u,o\nte')]


def test_a_sink_without_a_key_adds_each_row(delivery):
    delivery.key = ()
    delivery.append((1, "a"), (1, "a"))
    delivery.deliver()
    delivery.append((1, "a"))
    delivery.deliver()
    assert delivery.delivered() == [(1, "a")] * 3


def test_a_later_row_of_a_key_replaces_the_earlier_one(delivery):
    delivery.unique = False
    for name in ("old", "newer", "newest"):
        delivery.append((1, name))
    delivery.deliver()
    assert delivery.delivered() == [(1, "newest")]


def test_start_now_delivers_later_changes_only(delivery):
    delivery.from_now = True
    delivery.append((1, "a"))
    assert delivery.deliver() == Written()
    delivery.append((2, "b"))
    delivery.deliver()
    assert delivery.delivered() == [(2, "b")]


@pytest.mark.parametrize("point", ["sink written", "sink committing", "sink committed"])
def test_a_delivery_that_ends_anywhere_is_continued(point, delivery, monkeypatch):
    monkeypatch.setattr(deliveries, "ROWS", 2)
    delivery.append((1, "a"), (2, "b"), (3, "c"))
    delivery.append((4, "d"), (5, "e"))
    delivery.append((6, "f"), (7, "g"))
    passed = []

    def listener(reached, _table, _batch, _where):
        passed.append(reached)
        if reached == point and passed.count(point) == 2:
            raise KeyboardInterrupt

    end = kill_points.listen(listener)
    try:
        with pytest.raises(KeyboardInterrupt):
            delivery.deliver()
    finally:
        end()
    assert 0 < len(delivery.delivered()) < 7
    delivery.deliver()
    assert delivery.delivered() == list(zip(range(1, 8), "abcdefg", strict=True))


def test_a_second_writer_is_fenced(delivery):
    delivery.append((1, "a"))
    delivery.deliver()
    delivery.append((2, "b"))
    late = delivery.target()
    late.check()
    stored = late.position()
    delivery.deliver()
    with pytest.raises(StateError) as error:
        late.deliver(deliveries.Transaction(stored, iter(()), stored))
    late.close()
    assert error.value.diagnostic.code == "sink-fenced"
    assert delivery.delivered() == [(1, "a"), (2, "b")]


def test_rows_taken_out_are_deleted_by_their_key(delivery):
    delivery.append(*((number, f"n{number}") for number in range(10)))
    delivery.deliver()
    delivery.table.delete("id in (3, 4)")
    delivery.table.overwrite(delivery.arrow([(5, "other"), (77, "new")]), overwrite_filter="id in (5, 6)")
    delivery.append((3, "again"))
    written = delivery.deliver()
    assert delivery.delivered() == delivery.stored()
    assert written.deleted == 2


def test_a_rollback_and_a_replaced_table_are_compared(delivery):
    delivery.append((1, "a"), (2, "b"))
    first = delivery.table.current_snapshot().snapshot_id
    delivery.append((3, "c"))
    delivery.table.overwrite(delivery.arrow([(2, "changed"), (4, "d")]))
    delivery.deliver()
    assert delivery.delivered() == [(2, "changed"), (4, "d")]
    delivery.table.manage_snapshots().rollback_to_snapshot(first).commit()
    delivery.deliver()
    assert delivery.delivered() == [(1, "a"), (2, "b")] == delivery.stored()


def test_a_change_is_rejected_where_rows_are_only_added(delivery):
    delivery.key = ()
    delivery.append((1, "a"), (2, "b"))
    delivery.deliver()
    delivery.table.delete("id = 1")
    with pytest.raises(StateError) as error:
        delivery.deliver()
    assert error.value.diagnostic.code == "sink-rows-changed"
    assert delivery.delivered() == [(1, "a"), (2, "b")]


def test_two_rows_of_a_key_are_rejected_where_nothing_says_which_is_newer(delivery):
    delivery.unique = False
    delivery.append((1, "a"), (2, "b"))
    delivery.deliver()
    delivery.table.overwrite(delivery.arrow([(3, "x"), (3, "y")]))
    with pytest.raises(RunError) as error:
        delivery.deliver()
    assert error.value.diagnostic.code == "sink-key"
    assert delivery.delivered() == [(1, "a"), (2, "b")]


def test_a_key_without_a_value_is_rejected(delivery):
    delivery.append((1, "a"), (None, "b"))
    with pytest.raises(RunError, match="NULL in its key"):
        delivery.deliver()
    assert delivery.delivered() == []


def test_another_table_of_the_same_name_is_not_continued(delivery):
    delivery.append((1, "a"))
    delivery.deliver()
    delivery.table.catalog.drop_table("main.orders")
    delivery.make()
    delivery.append((2, "b"))
    with pytest.raises(StateError) as error:
        delivery.deliver()
    assert error.value.diagnostic.code == "sink-position"


def test_columns_that_the_table_does_not_fit_are_named(delivery):
    delivery.create = False
    delivery.append((1, "a"))
    with pytest.raises(SetupError, match="does not exist") as error:
        delivery.deliver()
    delivery.server.execute(statement(error.value))
    assert delivery.deliver() == Written(1)
    delivery.server.execute(f"ALTER TABLE {delivery.schema}.orders ALTER COLUMN id TYPE int")
    with pytest.raises(SetupError, match="'id' is bigint, and integer in"):
        delivery.deliver()
    delivery.server.execute(f"ALTER TABLE {delivery.schema}.orders ALTER COLUMN id TYPE bigint")
    delivery.server.execute(f"ALTER TABLE {delivery.schema}.orders DROP CONSTRAINT orders_pkey")
    with pytest.raises(SetupError, match="no primary key or unique index") as error:
        delivery.deliver()
    delivery.server.execute(statement(error.value))
    delivery.server.execute(f"ALTER TABLE {delivery.schema}.orders DROP COLUMN name")
    with pytest.raises(SetupError, match="has no column 'name'"):
        delivery.deliver()


def test_a_new_column_is_delivered_from_then_on(delivery):
    delivery.append((1, "a"))
    delivery.deliver()
    with delivery.table.update_schema() as update:
        from pyiceberg.types import DoubleType

        update.add_column("price", DoubleType())
    delivery.columns = (*delivery.columns, SinkColumn("price", "double"))
    delivery.append((2, "b", 2.5))
    delivery.server.execute(f'ALTER TABLE {delivery.schema}.orders ADD COLUMN "price" double precision')
    delivery.deliver()
    assert delivery.delivered("id, name, price") == [(1, "a", None), (2, "b", 2.5)]
