"""Servers that die, lose answers or stay away while a commit is made: each row is in its table once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from engine.lake.clients import catalog_errors
from tests.catalogs.conftest import CatalogLab
from tests.catalogs.life_cycle import LATEST, PLAIN
from tests.fault_injection.points import killing, reached
from tests.lab import event, killed_alone
from tests.services.iceberg_rest import Door, RestServer
from tests.services.postgres import Postgres

pytestmark = pytest.mark.spark
STAGED = """/*---
streams: [shop.events]
publish: on_tests_pass
---*/
select id, at from {{ source('shop', 'events') }}
"""
BATCH = "select id, amount from {{ ref('plain') }}\n"
ALL = {"plain": PLAIN, "latest": LATEST, "staged": STAGED, "batch": BATCH}


def prepare(lab: CatalogLab, *names: str) -> None:
    for name in names:
        lab.model(name, ALL[name])
    lab.land("a", [event(1), event(2)])
    lab.build()
    lab.land("b", [event(2, 5, amount=7.0), event(3)])


def check(lab: CatalogLab, *names: str) -> None:
    for name in names:
        assert lab.ids(name) == ([1, 2, 3] if name == "latest" else [1, 2, 2, 3]), name
        table = lab.table(name)
        assert table is not None
        batches = [snapshot.marker("batch-id") for snapshot in table.history if snapshot.marker("batch-id")]
        assert len(batches) == len(set(batches)), name


def returns(server: Any, seconds: float = 3.0) -> Callable[[], None]:
    """Kill a server at once, and start it again a little later."""

    def back() -> None:
        time.sleep(seconds)
        server.start()

    def kill() -> None:
        server.stop(kill=True)
        threading.Thread(target=back, daemon=True).start()

    return kill


@pytest.mark.gate
def test_an_answer_that_was_lost_is_found_by_its_marks(rest_lab: CatalogLab, door: Door) -> None:
    prepare(rest_lab, *ALL)
    lost: list[str] = []

    def lose(table: str) -> bool:
        # The first commit to each: an append, a MERGE, one to a branch, a replacement.
        first = table in ALL and table not in lost
        lost.extend([table] if first else [])
        return first

    door.committed = lose
    rest_lab.build()
    assert sorted(lost) == sorted(ALL), "each table lost an answer"
    check(rest_lab, *ALL)


@pytest.mark.nightly
def test_a_server_that_is_killed_before_and_after_a_commit_comes_back(
    rest_lab: CatalogLab, door: Door, rest_server: RestServer
) -> None:
    prepare(rest_lab, "plain", "latest")
    killed: list[str] = []

    def before(table: str, *_: object) -> None:
        if table == "plain" and "before" not in killed:
            killed.append("before")
            returns(rest_server)()

    def after(table: str) -> bool:
        if table != "latest" or "after" in killed:
            return False
        killed.append("after")
        returns(rest_server)()
        return True

    door.committed = after
    with reached("checked", before):
        rest_lab.build("--threads", "1")
    assert sorted(killed) == ["after", "before"]
    check(rest_lab, "plain", "latest")


# Iceberg repeats each call that is answered with 503 five times, over half a minute; one that is repeated once fails as well.
@pytest.mark.nightly
@pytest.mark.parametrize("rest_lab", [{"rest.client.max-retries": "1"}], indirect=True, ids=["one retry"])
def test_a_server_that_stays_away_fails_the_build_and_nothing_is_lost(
    rest_lab: CatalogLab, rest_server: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(rest_lab, "plain")
    monkeypatch.setattr(catalog_errors, "_PAUSES", (0.1, 0.2))
    with reached("checked", lambda *_: rest_server.stop(kill=True)):
        ended = rest_lab.run("build")
    assert ended.code == 1, ended.text
    assert "catalog-unreachable" in ended.codes()
    assert "Traceback" not in ended.text
    down = rest_lab.run("build")
    assert (down.code, down.codes()) == (1, ["catalog-unreachable"]), down.text
    rest_server.start()
    rest_lab.build()
    check(rest_lab, "plain")


@pytest.mark.gate
@pytest.mark.parametrize("shared", ["jdbc"], indirect=True)
def test_a_database_that_is_killed_before_a_commit_comes_back(shared: CatalogLab, postgres_server: Postgres) -> None:
    prepare(shared, "plain", "latest")
    killed: list[str] = []

    def kill(table: str, *_: object) -> None:
        if table not in killed:
            killed.append(table)
            returns(postgres_server)()

    with reached("checked", kill):
        shared.build("--threads", "1")
    assert sorted(killed) == ["latest", "plain"]
    check(shared, "plain", "latest")


@pytest.mark.nightly
def test_a_build_that_is_killed_behind_its_commit_continues(shared: CatalogLab) -> None:
    prepare(shared, "plain", "latest")
    killed_alone(shared.root, "build", script=killing({"plain": ("appended", 1), "latest": ("committed", 1)}))
    shared.build()
    check(shared, "plain", "latest")
