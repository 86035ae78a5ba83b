"""The tree of `engine plan`: each model once below what it reads, with what an edit affects, writes and takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from engine.api.plan_report.plan_output import plan_word
from engine.api.plan_report.plan_tree import TreeLine, TreeOptions, TreePlace, in_tree_order, plan_tree, tree_places
from engine.compile import Manifest
from engine.plan import Action, ActionKind, LastWriter, Plan
from engine.plan.against_manifest import plan_against
from tests.cli.screen import watch
from tests.plan.random_chains import Columns, Link, affected, chain
from tests.plan.test_plan_command import edited, forward, run, write
from tests.project.small_projects import clean, orders_with

pytestmark = pytest.mark.slow

__all__ = ["edited", "forward"]


def _project(root: Path, sql: dict[str, str]) -> Manifest:
    files = {f"models/{name}.sql": text for name, text in sql.items()}
    return clean(root, {**files, **orders_with("id int, amount int")})


def _drawn(lines: Sequence[TreeLine]) -> list[str]:
    return [f"{line.rail}{line.action}{' ' if line.action else ''}{line.label}" for line in lines if line.action]


def _compared(before: Manifest, after: Manifest) -> Plan:
    writers = {model.id: LastWriter(model.fingerprint, model.facts) for model in before.models}
    return plan_against(after, after.order, writers)


def _of_model(lines: Sequence[TreeLine], name: str, label: str) -> list[str]:
    """The lines of a model that are about something."""
    found, here, now = [], False, ""
    for line in lines:
        if line.action:
            here, now = line.label == name, ""
        now = line.label or now
        if here and now == label and not line.action:
            found.append(line.text)
    return found


def _links(links: Sequence[Link]) -> dict[str, str]:
    return {link.name: link.sql() for link in links}


@pytest.mark.parametrize("seed", range(30))
def test_a_random_edit_of_a_random_chain(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    links = chain(random)
    before = _project(tmp_path / "before", _links(links))
    changed: dict[str, Columns] = {}
    for place in random.sample(range(len(links)), random.randint(1, 2)):
        links[place], changed[links[place].name] = links[place].edited(random)
    after = _project(tmp_path / "after", _links(links))
    plan = _compared(before, after)
    lines = list(plan_tree(after, plan, TreeOptions(diff=random.random() < 0.5)))

    named = [line.label for line in lines if line.action]
    built = {after.nodes[node].name for node, action in plan.actions.items() if plan_word(action) != "unchanged"}
    assert sorted(named) == sorted(built)
    assert changed.keys() <= built
    for name, own in changed.items():
        texts = dict(text.split(": ") for text in _of_model(lines, name, "affects"))
        found = {other: None if text == "all rows" else frozenset(text.split(", ")) for other, text in texts.items()}
        assert found == affected(links, name, own), name
    ancestors = {link.name: link.parents for link in links}
    for node, place in tree_places(after, [f"model.{name}" for name in built]).items():
        above = [one.partition(".")[2] for one in (*filter(None, [place.above]), *place.also)]
        assert set(above) == built & set(ancestors[after.nodes[node].name])


DIAMOND = {
    "a": "select id, amount from {{ source('shop', 'orders') }}",
    "b": "select id from {{ ref('a') }}",
    "c": "select id from {{ ref('b') }}",
    "d": "select x.amount from {{ ref('a') }} as x join {{ ref('c') }} as y on x.id = y.id",
    "apart": "select 1 as one",
    "e": "select amount from {{ ref('a') }}",
}


def _all(manifest: Manifest, *unchanged: str) -> Plan:
    return Plan({
        model.id: Action(model.id, ActionKind.REBUILD, unchanged=True if model.name in unchanged else None)
        for model in manifest.models
    })  # fmt: skip


def test_a_model_with_several_parents_is_below_the_deepest_and_names_the_others(tmp_path: Path) -> None:
    manifest = _project(tmp_path, DIAMOND)
    lines = list(plan_tree(manifest, _all(manifest, "apart"), TreeOptions()))
    assert sorted(_drawn(lines)) == sorted([
        "rebuild a", "├─ rebuild b", "│  └─ rebuild c", "│     └─ rebuild d", "└─ rebuild e",
    ])  # fmt: skip
    assert [(line.rail, line.text) for line in lines if line.label == "also reads"] == [("│           ", "a")]
    assert "apart" not in [line.label for line in lines]
    lines = list(plan_tree(manifest, _all(manifest, "apart"), TreeOptions(unchanged=True)))
    assert "unchanged apart" in _drawn(lines)


def test_a_model_is_below_what_it_reads_through_an_unchanged_one(tmp_path: Path) -> None:
    manifest = _project(tmp_path, DIAMOND)
    lines = list(plan_tree(manifest, _all(manifest, "apart", "b", "d", "e"), TreeOptions()))
    assert _drawn(lines) == ["rebuild a", "└─ rebuild c"]
    assert not list(plan_tree(manifest, _all(manifest, *DIAMOND), TreeOptions()))


def test_the_order_of_a_tree() -> None:
    places = {
        "a": TreePlace(),
        "b": TreePlace("a", 1),
        "c": TreePlace(),
        "d": TreePlace("b", 2),
        "e": TreePlace("a", 1),
    }
    assert in_tree_order(places) == [("a", False), ("b", False), ("d", True), ("e", True), ("c", True)]
    assert in_tree_order({}) == []


def test_the_tree_of_a_project(forward: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(forward, capsys, "plan", "--output", "tree", "--diff", "-s", "plain", "ids", "one")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "Plan for dev: 2 create, 1 resume",
        "create    one  table lake.s.one",
        "   writes     creates the table",
        "resume    plain  streaming_table lake.s.plain",
        "│  why        the query changed (column 'id'); it keeps no state, so the new SQL applies to new rows",
        "│             to compute earlier rows again after the build: engine backfill plain --from DATE",
        "│  diff         output_mode: append",
        "│             - select id",
        "│             + select id + 1 as id",
        "│               from {{ source('shop', 'events') }}",
        "│  affects    ids: number",
        "│  used by    board",
        "│  writes     appends rows",
        "└─ create    ids  table lake.s.ids",
        "      writes     creates the table",
    ]


def test_a_rejected_model_writes_nothing_and_says_why(edited: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(edited, capsys, "plan", "--output", "tree", "-s", "hours", "daily")
    lines = out.splitlines()
    assert code == 1
    assert lines[:2] == ["Plan for dev: 1 rejected, 1 create", "rejected  hours  streaming_table lake.s.hours"]
    assert lines[2].startswith("│  why        the window of GROUP BY changed from ")
    assert lines[3:] == ["└─ create    daily  table lake.s.daily", "      writes     creates the table"]


def test_a_terminal_gets_a_tree_in_colour_as_wide_as_it_is(forward: Path) -> None:
    cache = {"ENGINE_CACHE": str(forward.parent / "cache")}
    plain = watch(["plan", "-s", "plain", "ids"], cache, folder=forward)
    assert plain.code == 0
    lines = plain.screen.text.splitlines()
    assert lines[:2] == ["Plan for dev: 1 create, 1 resume", "resume    plain  streaming_table lake.s.plain"]
    assert "└─ create    ids  table lake.s.ids" in lines
    assert b"\x1b[36m\x1b[1mresume" in plain.raw
    narrow = watch(["plan", "-s", "plain", "ids"], {**cache, "COLUMNS": "90", "NO_COLOR": "1"}, folder=forward)
    assert b"\x1b" not in narrow.raw
    lines = narrow.screen.text.splitlines()
    assert lines[2:4] == [
        "│  why        the query changed (column 'id'); it keeps no state, so the new SQL applies",
        "│             to new rows",
    ]
    assert watch(["plan", "--output", "text", "-s", "plain"], cache, folder=forward).screen.text.startswith("resume  ")


def test_a_tree_is_drawn_in_characters_that_standard_output_has(
    forward: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.cli.commands.plan_command.is_unicode", lambda: False)
    _, out, _ = run(forward, capsys, "plan", "--output", "tree", "-s", "plain", "ids")
    assert out.isascii()
    assert "`- create    ids" in out
    assert "|  affects    ids: number" in out


def test_what_is_unread_and_written(forward: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(forward, "landing/events/b.json", '{"id": 2}\n')
    write(forward, "models/plain.sql", "/*---\nstreams: [shop.events]\nunique_key: id\n---*/\n" + _plain(forward))
    _, out, _ = run(forward, capsys, "plan", "--output", "tree", "-f", "-s", "plain")
    assert "   writes     replaces all rows\n" in out
    assert "   reads      2 new files of shop.events: a.json, b.json\n" in out


def _plain(root: Path) -> str:
    return (root / "models/plain.sql").read_text().partition("---*/\n")[2]


def test_data_tests_are_not_in_the_tree(tmp_path: Path) -> None:
    manifest = _project(tmp_path, {"a": "/*---\ncolumns: {id: {tests: [not_null]}}\n---*/\n" + DIAMOND["a"]})
    plan = Plan({node: Action(node, ActionKind.TEST) for node in manifest.order})
    assert len(plan.actions) > 1
    assert [line.label for line in plan_tree(manifest, plan, TreeOptions()) if line.action] == ["a"]
