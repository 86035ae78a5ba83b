"""`engine build --clone`: the tables and checkpoints of another target, over the same files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fault_injection.points import kill, reached
from tests.lab import EVENTS, Lab, Result, event

pytestmark = pytest.mark.spark

PAID = "/*---\nstreams: [shop.events]\n---*/\nselect id, at, {0} as version from {{{{ source('shop', 'events') }}}}\n"
COPY = "/*---\nstreams: [paid]\n---*/\nselect id, version from {{ ref('paid') }}\n"
OTHER = "/*---\nstreams: [shop.events]\n---*/\nselect id + 100 as id from {{ source('shop', 'events') }}\n"
HOURLY = """/*---
streams: {{paid: {{watermark: at delay 10 minutes}}}}
windows: {{hour: 'tumbling(at, 1 hour)'}}
---*/
select hour.start as hour, count(*) as n{0} from {{{{ ref('paid') }}}} group by hour
"""


class Request:
    """A checkout of a pull request: the same lake and landing folder, the edited models, a target and state of its own."""

    def __init__(self, lab: Lab, root: Path) -> None:
        self.lab, self.schema = lab, f"{lab.schema}_pr"
        self.made = Lab(root, lab.session, lab.capsys, lab.schema)
        text = (self.made.root / "project.yml").read_text()
        (head, target) = text.split("targets:\n", 1)
        prod = target.replace("    schema:", f"    state: {lab.root / '.engine' / 'state'}\n    schema:")
        own = target.replace("  dev:", "  pr:").replace(f"schema: {lab.schema}", f"schema: {self.schema}")
        self.made.write("project.yml", f"{head}targets:\n{prod.rstrip()}\n{own}")
        self.made.write("sources/shop.yml", EVENTS.replace("landing", str(lab.root / "landing")))

    def build(self, *arguments: str, code: int = 0) -> Result:
        result = self.made.run("build", "-t", "pr", *arguments)
        assert result.code == code, result.text
        return result

    def rows(self, name: str) -> list[dict[str, Any]]:
        found = self.made._lake().rows(self.schema, name, None)
        assert found is not None, name
        return [dict(zip(found[0], row, strict=True)) for row in found[1]]


@pytest.fixture
def request_(lab: Lab, tmp_path: Path) -> Request:
    lab.write("sources/shop.yml", EVENTS.replace("landing", str(lab.root / "landing")))
    lab.land("a", [event(1, "10:05"), event(2, "11:50")])
    lab.land("b", [event(3, "13:40")])
    lab.model("paid", PAID.format(1))
    lab.model("copy", COPY)
    lab.model("other", OTHER)
    lab.build()
    made = Request(lab, tmp_path / "pr")
    made.made.model("paid", PAID.format(2))
    made.made.model("copy", COPY)
    made.made.model("other", OTHER)
    return made


def versions(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return sorted((row["id"], row["version"]) for row in rows)


def test_an_edited_model_and_its_readers_continue_from_production(lab: Lab, request_: Request) -> None:
    lab.land("c", [event(4)])
    said = request_.build("--clone", "dev")
    assert said.codes() == ["table-cloned", "table-cloned"]
    assert versions(request_.rows("paid")) == versions(request_.rows("copy")) == [(1, 1), (2, 1), (3, 1), (4, 2)]
    assert versions(lab.rows("paid")) == [(1, 1), (2, 1), (3, 1)]
    assert request_.made._lake().table(request_.schema, "other") is None
    lab.build()
    assert versions(lab.rows("paid")) == [(1, 1), (2, 1), (3, 1), (4, 1)]
    lab.land("d", [event(5)])
    request_.build("--clone", "dev")
    assert versions(request_.rows("copy")) == [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)]


def test_an_open_window_continues_from_production(lab: Lab, request_: Request) -> None:
    """Half of the rows of a window were read by production, the others by the clone; each keeps its own state."""
    lab.model("hourly", HOURLY.format(""))
    request_.made.model("hourly", HOURLY.format(""))
    lab.build()
    lab.land("c", [event(4, "13:50")])
    request_.build("--clone", "dev")
    lab.land("d", [event(5, "20:00")])
    request_.build("--clone", "dev")
    lab.build()
    for rows in (request_.rows("hourly"), lab.rows("hourly")):
        assert {row["hour"].hour: row["n"] for row in rows} == {10: 1, 11: 1, 13: 2}


def test_what_production_expires_and_compacts_stays_in_the_clone(lab: Lab, request_: Request) -> None:
    request_.build("--clone", "dev")
    assert lab.session is not None
    spark = lab.session.spark
    spark.sql(
        f"call lake.system.rewrite_data_files(table => '{lab.schema}.paid', options => map('rewrite-all', 'true'))"
    )
    late = "older_than => timestamp '2100-01-01 00:00:00', retain_last => 1"
    spark.sql(f"call lake.system.expire_snapshots(table => '{lab.schema}.paid', {late})")
    spark.sql(
        f"call lake.system.remove_orphan_files(table => '{lab.schema}.paid', older_than => timestamp '2020-01-01 00:00:00')"
    )
    lab.land("c", [event(4)])
    request_.build("--clone", "dev")
    assert versions(request_.rows("paid")) == [(1, 1), (2, 1), (3, 1), (4, 2)]


def test_a_clone_that_is_dropped_takes_no_file_of_production(lab: Lab, request_: Request) -> None:
    request_.build("--clone", "dev")
    folders = list((lab.lake_path / "warehouse").glob(f"{request_.schema}/*"))
    assert len(folders) == 2
    for name in ("copy", "paid"):
        dropped = request_.made.run("drop", f"lake.{request_.schema}.{name}", "-t", "pr", "--yes")
        assert dropped.code == 0, dropped.text
    assert not list((lab.lake_path / "warehouse").glob(f"{request_.schema}/*/*"))
    assert versions(lab.rows("paid")) == [(1, 1), (2, 1), (3, 1)]
    lab.land("c", [event(4)])
    lab.build()
    assert versions(lab.rows("copy")) == [(1, 1), (2, 1), (3, 1), (4, 1)]


@pytest.mark.gate
@pytest.mark.parametrize("point", ["table cloned", "state cloned", "clone noted"])
@pytest.mark.parametrize("table", ["paid", "copy"])
def test_a_clone_that_is_killed_is_made_by_the_same_command(
    lab: Lab, request_: Request, point: str, table: str
) -> None:
    def at(name: str, *_: Any) -> None:
        if name == table:
            kill()

    with reached(point, at):
        assert request_.made.run("build", "-t", "pr", "--clone", "dev").code != 0
    lab.land("c", [event(4)])
    lab.build()
    finished = (point, table) == ("clone noted", "copy")
    said = request_.build(code=0 if finished else 1)
    assert set(said.codes()) <= {"drop-unfinished", "state-missing", "build-rejected"}
    request_.build("--clone", "dev")
    assert {row["id"] for row in request_.rows("copy")} == {1, 2, 3, 4}
    assert len(request_.rows("copy")) == 4


def test_an_edit_that_the_state_does_not_allow_is_rejected_as_in_production(lab: Lab, request_: Request) -> None:
    lab.model("hourly", HOURLY.format(""))
    lab.build()
    request_.made.model("paid", PAID.format(1))
    request_.made.model("hourly", HOURLY.format(", max(id) as m"))
    said = request_.build("--clone", "dev", code=1)
    assert "model-changed" in said.codes()
