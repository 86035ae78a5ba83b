"""What a rejected edit shows: the old and the new value of what changed, and only the ways that are sound."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan.test_plan import PLAIN, WINDOWED, compare, header

pytestmark = pytest.mark.slow

FROM = "from {{ source('shop', 'events') }}"
MERGED = f"/*---\nstreams: [shop.events]\nunique_key: id\nsequence_by: at\n---*/\nselect id, at, kind {FROM}"
KEYED = f"/*---\nstreams: [shop.events]\nunique_key: kind\n---*/\nselect kind, count(*) as n {FROM} group by kind"
COMPLETE = KEYED.replace("unique_key: kind", "output_mode: complete")
UPSERT = header().replace("---*/", "unique_key: hour\n---*/") + WINDOWED
NOW, EARLIEST = "--reset-checkpoint now", "--reset-checkpoint earliest"

VALUES = [
    (PLAIN, PLAIN.replace("streams:", "partition_by: [id]\nstreams:"), "'partition_by' changed from nothing to id"),
    (
        PLAIN.replace("streams:", "partition_by: ['bucket(4, id)']\nstreams:"),
        PLAIN.replace("streams:", "partition_by: ['bucket(8, id) as part']\nstreams:"),
        "'partition_by' changed from bucket(4, id) to bucket(8, id) as part",
    ),
    (MERGED, MERGED.replace("unique_key: id", "unique_key: [id, kind]"), "'unique_key' changed from id to id, kind"),
    (MERGED, MERGED.replace("unique_key:", "history: true\nunique_key:"), "'history' changed from nothing to true"),
    (KEYED, COMPLETE, "'unique_key' changed from kind to nothing; 'output_mode' changed from update to complete"),
    (
        header() + WINDOWED, header(dedup=", dedup: [id]") + WINDOWED,
        "the dedup of 'shop.events' changed from nothing to id",
    ),
    (
        header() + WINDOWED.replace("group by", "group by all --"),
        header(delay="10 minutes").replace("at delay", "cast(at as timestamp) as at delay") + WINDOWED,
        "the watermark of 'shop.events' changed from at",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "words"), VALUES)
def test_old_and_new_value_of_each_setting(tmp_path: Path, before: str, after: str, words: str) -> None:
    refusal = compare(tmp_path, before, after).refusal
    assert refusal is not None
    assert words in refusal.message


def test_the_lines_of_the_query_that_changed(tmp_path: Path) -> None:
    after = header() + WINDOWED.replace("count(*)", "sum(id)").replace("events') }}", "events') }} where id > 3")
    refusal = compare(tmp_path, header() + WINDOWED, after).refusal
    assert refusal is not None
    lines = refusal.hint.split("\n")
    assert lines[:-3] == ["- count(*) as n", "+ sum(id) as n", "+ where id > 3"]
    assert lines[-3] == "Undo the edit, or rebuild the table: engine build -f -s m"
    assert lines[-2].startswith("Or keep the windows that are written, ")
    assert lines[-2].endswith(": engine build -s m --reset-checkpoint open-windows")
    assert lines[-1].startswith("Or keep the rows and read only new data ")
    assert lines[-1].endswith(": engine build -s m --reset-checkpoint now")


def test_a_long_difference_is_cut(tmp_path: Path) -> None:
    more = "".join(f", sum(id + {n}) as n{n}" for n in range(40))
    refusal = compare(tmp_path, header() + WINDOWED, header() + WINDOWED.replace(" as n ", f" as n{more} ")).refusal
    assert refusal is not None
    lines = refusal.hint.split("\n")
    assert len(lines) == 14
    assert lines[-4].startswith("... and ")


WAYS = [
    (header() + WINDOWED, header(size="2 hours") + WINDOWED, [NOW]),
    (UPSERT, UPSERT.replace("1 hour", "2 hours"), [NOW, EARLIEST]),
    (KEYED, KEYED.replace("count(*)", "sum(id)"), [EARLIEST]),
    (COMPLETE, COMPLETE.replace("count(*)", "sum(id)"), [EARLIEST]),
    (MERGED, MERGED.replace("select id,", "select id + 1 as id,"), []),
    (PLAIN, PLAIN.replace("streams:", "partition_by: [id]\nstreams:"), []),
    (PLAIN, f"select id {FROM}", []),
]


@pytest.mark.parametrize(("before", "after", "ways"), WAYS)
def test_a_new_checkpoint_is_offered_where_it_is_sound(
    tmp_path: Path, before: str, after: str, ways: list[str]
) -> None:
    refusal = compare(tmp_path, before, after).refusal
    assert refusal is not None
    assert [way for way in (NOW, EARLIEST) if way in refusal.hint] == ways


def test_another_materialization_says_what_is_lost(tmp_path: Path) -> None:
    refusal = compare(tmp_path, MERGED, "/*---\nmaterialized: view\n---*/\nselect 1 as id").refusal
    assert refusal is not None
    assert "it was a streaming_table and is now a view" in refusal.message
    assert refusal.hint.startswith(
        "Undo the edit, or replace it: engine build -f -s m. That discards all rows of lake.s.m, "
    )
    assert "its checkpoint with all state" in refusal.hint
    back = compare(tmp_path, "/*---\nmaterialized: view\n---*/\nselect 1 as id", MERGED).refusal
    assert back is not None
    assert "nothing is lost" in back.hint
