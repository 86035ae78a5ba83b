"""OpenLineage: what is sent, where it goes, and that no run depends on it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import events
from engine.docs.openlineage.background_delivery import delivering
from engine.errors import Diagnostic
from engine.events import BatchCommitted, ModelFinished, ModelStarted, RunFinished, RunStarted, Status
from tests.lab import shortest_seconds
from tests.project.small_projects import compiled, only
from tests.security.answering import Answering, answer, answering, endless, redirect

pytestmark = pytest.mark.slow

AT = "2026-11-21T12:00:00+00:00"
PATH = "POST /api/v1/lineage"
RUN = "0190a4b2-3c4d-7e5f-8a9b-0c1d2e3f4a5b"
PROJECT = """\
name: shop
targets:
  dev:
    catalog: {{type: sqlite, name: lake, path: .engine/lake}}
    schema: main
    openlineage: {openlineage}
"""
FILES = {
    "models/clean.sql": "/*---\ndescription: Orders, cleaned.\ntags: [hot]\nstreams: [shop.orders]\n---*/\n"
    "select id, item.price * 2 as price from {{ source('shop', 'orders') }} where amount > 0",
    "models/totals.sql": "select id, sum(price) as total from {{ ref('clean') }} group by id",
}


def project(root: Path, openlineage: str):
    return compiled(root, {**FILES, "project.yml": PROJECT.format(openlineage=openlineage)})


def started(name: str, index: int) -> ModelStarted:
    return ModelStarted(f"model.{name}", index, 3, "table", f"lake.main.{name}")


def finished(name: str, index: int, status: Status = Status.SUCCESS, **more) -> ModelFinished:
    place = {"node": f"model.{name}", "index": index, "total": 3, "kind": "table", "relation": f"lake.main.{name}"}
    return ModelFinished(status, seconds=1.0, **place | more)


def a_run() -> list[events.Event]:
    test = events.TestFinished("test.not_null_totals_id.5f09fbd5fe", 3, 3, Status.PASS, 0.1)
    return [
        RunStarted(RUN, "build", "dev", 3, AT),
        started("clean", 1),
        BatchCommitted("model.clean", 0, None, 77, 0.5, rows_in=10, rows_out=8),
        finished("clean", 1, rows_out=8, snapshot_id=77),
        started("totals", 2),
        finished("totals", 2, Status.ERROR, message="it fell"),
        test,
        RunFinished(3.0),
    ]


def send(made, root: Path, happening: list[events.Event]) -> list[Diagnostic]:
    told: list[Diagnostic] = []
    with delivering(made.manifest, made.target, root, told.extend) as deliver:
        for event in happening:
            deliver(event)
    return told


def sent(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def records(tmp_path: Path) -> list[dict]:
    files = {"models/totals.sql": "/*---\ncolumns: {id: {tests: [not_null]}}\n---*/\n" + FILES["models/totals.sql"]}
    text = PROJECT.format(openlineage="{type: file, path: out/events.jsonl, namespace: plant}")
    made = compiled(tmp_path, {**FILES, **files, "project.yml": text})
    assert send(made, tmp_path, a_run()) == []
    return sent(tmp_path / "out" / "events.jsonl")


def test_a_run_is_told_from_its_start_to_its_end(records):
    assert [(r["job"]["name"], r["eventType"]) for r in records] == [
        ("shop.build", "START"),
        ("shop.clean", "START"),
        ("shop.clean", "COMPLETE"),
        ("shop.totals", "START"),
        ("shop.totals", "FAIL"),
        ("shop.not_null_totals_id", "COMPLETE"),
        ("shop.build", "FAIL"),
    ]
    assert {r["job"]["namespace"] for r in records} == {"plant"}
    assert {r["producer"].split(":")[1] for r in records} == {"headrace"}


@pytest.mark.parametrize(("status", "ends"), [(Status.PASS, "COMPLETE"), (Status.FAIL, "FAIL")])
def test_a_unit_test_is_a_job_without_datasets(tmp_path, status, ends):
    unit = "unit_tests: [{name: sums, model: totals, given: {clean: [{id: a}]}, expect: [{id: a}]}]\n"
    text = PROJECT.format(openlineage="{type: file, path: events.jsonl}")
    made = compiled(tmp_path, {**FILES, "tests/units.yml": unit, "project.yml": text})
    test = events.TestFinished("unit_test.totals.sums", 1, 1, status, 0.1)
    assert send(made, tmp_path, [RunStarted(RUN, "test", "dev", 1, AT), test, RunFinished(1.0)]) == []
    _, told, whole = sent(tmp_path / "events.jsonl")
    assert (told["job"]["name"], told["eventType"], told["inputs"]) == ("shop.sums", ends, [])
    assert told["job"]["facets"]["jobType"]["jobType"] == "TEST"
    assert whole["eventType"] == ends


def test_a_test_of_a_source_is_told_of_all_its_topics(tmp_path):
    source = (
        "sources: [{name: s, tables: [{name: t, format: kafka, connection: main, topics: [a, b], schema: id int,"
        " columns: {id: {tests: [not_null]}}}]}]\n"
    )
    text = PROJECT.format(openlineage="{type: file, path: events.jsonl}")
    text += "    connections: {main: {bootstrap_servers: 'broker:9092'}}\n"
    made = compiled(tmp_path, {**FILES, "sources/s.yml": source, "project.yml": text})
    assert made.manifest.errors == ()
    test = events.TestFinished("test.source_not_null_s_t_id.960bfdf4c6", 1, 1, Status.FAIL, 0.1)
    assert send(made, tmp_path, [RunStarted(RUN, "test", "dev", 1, AT), test, RunFinished(1.0)]) == []
    _, told, _ = sent(tmp_path / "events.jsonl")
    assert [(dataset["namespace"], dataset["name"]) for dataset in told["inputs"]] == [
        ("kafka://broker:9092", "a"),
        ("kafka://broker:9092", "b"),
    ]
    assertions = [dataset["inputFacets"]["dataQualityAssertions"]["assertions"][0] for dataset in told["inputs"]]
    assert [(a["assertion"], a["success"]) for a in assertions] == [("not_null", False)] * 2


def test_a_models_run_is_one_below_the_commands(records):
    clean = [r for r in records if r["job"]["name"] == "shop.clean"]
    assert len({r["run"]["runId"] for r in clean}) == 1
    assert clean[0]["run"]["runId"] != RUN
    parent = clean[0]["run"]["facets"]["parent"]
    assert (parent["run"]["runId"], parent["job"]["name"]) == (RUN, "shop.build")


def test_a_job_says_whether_it_is_a_stream(records):
    types = {r["job"]["name"]: r["job"]["facets"]["jobType"] for r in records}
    assert [(types[n]["processingType"], types[n]["integration"], types[n]["jobType"]) for n in ("shop.clean", "shop.totals", "shop.build")] == [
        ("STREAMING", "SPARK", "MODEL"), ("BATCH", "SPARK", "MODEL"), ("BATCH", "SPARK", "JOB"),
    ]  # fmt: skip
    facets = records[1]["job"]["facets"]
    assert facets["documentation"]["description"] == "Orders, cleaned."
    assert facets["sql"]["dialect"] == "spark"
    assert [tag["key"] for tag in facets["tags"]["tags"]] == ["hot"]


def test_columns_and_what_decides_on_rows_lead_to_their_origins(records, tmp_path):
    (output,) = records[2]["outputs"]
    assert (output["namespace"], output["name"]) == ("file", f"{tmp_path}/.engine/lake/warehouse/main/clean")
    assert [(f["name"], f["type"]) for f in output["facets"]["schema"]["fields"]] == [
        ("id", "string"),
        ("price", "double"),
    ]
    lineage = output["facets"]["columnLineage"]
    orders = {"namespace": "file", "name": f"{tmp_path}/landing/orders"}
    assert lineage["fields"]["price"]["inputFields"] == [
        {
            **orders,
            "field": "item.price",
            "transformations": [{"type": "DIRECT", "subtype": "TRANSFORMATION", "description": "item.price * 2"}],
        }
    ]
    assert lineage["fields"]["id"]["inputFields"][0]["transformations"][0]["subtype"] == "IDENTITY"
    assert lineage["dataset"] == [
        {**orders, "field": "amount", "transformations": [{"type": "INDIRECT", "subtype": "FILTER"}]}
    ]
    totals = records[3]["outputs"][0]["facets"]["columnLineage"]
    assert totals["fields"]["total"]["inputFields"][0]["transformations"][0]["subtype"] == "AGGREGATION"
    assert totals["dataset"][0]["transformations"][0]["subtype"] == "GROUP_BY"


def test_what_a_model_wrote_is_counted_and_a_failure_has_its_message(records):
    assert records[2]["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 8
    assert records[2]["outputs"][0]["facets"]["version"]["datasetVersion"] == "77"
    assert records[2]["outputs"][0]["facets"]["symlinks"]["identifiers"][0]["name"] == "main.clean"
    assert records[4]["run"]["facets"]["errorMessage"]["message"] == "it fell"
    assertion = records[5]["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"][0]
    assert (assertion["assertion"], assertion["column"], assertion["success"]) == ("not_null", "id", True)


def test_a_run_that_stops_without_a_word_is_aborted(tmp_path):
    made = project(tmp_path, "{type: file, path: events.jsonl}")
    assert send(made, tmp_path, a_run()[:3]) == []
    assert [(r["job"]["name"], r["eventType"]) for r in sent(tmp_path / "events.jsonl")][-2:] == [
        ("shop.clean", "ABORT"), ("shop.build", "ABORT"),
    ]  # fmt: skip


def test_a_long_stream_tells_how_far_it_is_now_and_then(tmp_path, monkeypatch):
    made = project(tmp_path, "{type: file, path: events.jsonl}")
    monkeypatch.setattr("engine.docs.openlineage.run_events._RUNNING_SECONDS", 0.0)
    batches = [BatchCommitted("model.clean", n, None, 70 + n, 0.5, rows_in=10, rows_out=8) for n in range(3)]
    send(made, tmp_path, [*a_run()[:2], *batches])
    running = [r for r in sent(tmp_path / "events.jsonl") if r["eventType"] == "RUNNING"]
    assert [r["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] for r in running] == [8, 16, 24]


def test_a_target_that_names_no_place_sends_nothing(tmp_path):
    made = compiled(tmp_path, FILES)
    assert made.target.openlineage is None
    assert send(made, tmp_path, a_run()) == []


@pytest.fixture
def endpoint() -> Iterator[Answering]:
    with answering({PATH: (201, b"")}) as server:
        yield server


def bodies(endpoint: Answering) -> list[dict]:
    return [json.loads(request.body) for request in endpoint.asked]


def test_events_reach_an_endpoint_with_the_key_in_its_header(tmp_path, endpoint, monkeypatch):
    monkeypatch.setenv("ENGINE_SECRET_OL", "open-sesame-7")
    text = PROJECT.format(
        openlineage=f"{{type: http, url: '{endpoint.url}', api_key: \"{{{{ env_var('ENGINE_SECRET_OL') }}}}\"}}"
    )
    made = compiled(tmp_path, {**FILES, "project.yml": text}, env=None)
    assert made.manifest.errors == ()
    happening = a_run()
    happening[5] = finished("totals", 2, Status.ERROR, message="no: open-sesame-7")
    assert send(made, tmp_path, happening[:6] + happening[7:]) == []
    assert [body["eventType"] for body in bodies(endpoint)] == ["START", "START", "COMPLETE", "START", "FAIL", "FAIL"]
    assert {request.headers["Authorization"] for request in endpoint.asked} == {"Bearer open-sesame-7"}
    assert "sesame" not in json.dumps(bodies(endpoint))


def test_an_endpoint_that_refuses_is_told_and_left_alone(tmp_path, endpoint):
    endpoint.answers[PATH] = (403, b"")
    made = project(tmp_path, f"{{type: http, url: 'http://user:hunter2@{endpoint.url.removeprefix('http://')}'}}")
    found = only(tuple(send(made, tmp_path, a_run()[:6])))
    assert (found.code, found.is_error) == ("openlineage-failed", False)
    assert found.message == f"6 of 6 OpenLineage events were not delivered to {endpoint.url}: the endpoint answered 403"
    assert len(endpoint.asked) == 3
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_carries_neither_events_nor_the_key_to_another_host(tmp_path, monkeypatch, status):
    monkeypatch.setenv("ENGINE_SECRET_OL", "open-sesame-7")
    with answering() as elsewhere, answering({"POST /": redirect(f"{elsewhere.url}/api/v1/lineage", status)}) as server:
        key = "api_key: \"{{ env_var('ENGINE_SECRET_OL') }}\""
        text = PROJECT.format(openlineage=f"{{type: http, url: '{server.url}', {key}}}")
        made = compiled(tmp_path, {**FILES, "project.yml": text}, env=None)
        found = only(tuple(send(made, tmp_path, a_run()[:2])))
    assert "open-sesame-7" in server.seen()
    assert elsewhere.asked == []
    assert f"the endpoint answered {status}; redirects are not followed" in found.message


def test_an_answer_without_end_is_not_read_to_its_end(tmp_path):
    with answering({"POST /": endless(b"x" * 65536)}) as server:
        made = project(tmp_path / "p", f"{{type: http, url: '{server.url}'}}")
        found = only(tuple(send(made, tmp_path, a_run()[:2])))
    assert "more than 65,536 bytes" in found.message


def test_what_fails_for_a_moment_is_sent_again(tmp_path):
    with answering() as server:
        statuses = iter([503, 201])
        server.answers["POST /"] = lambda handler: answer(handler, next(statuses, 201))
        assert send(project(tmp_path, f"{{type: http, url: '{server.url}'}}"), tmp_path, a_run()[:2]) == []
    assert len({request.body for request in server.asked}) == len(server.asked) - 1


def test_an_endpoint_that_is_not_there_holds_nothing_up(tmp_path):
    made = project(tmp_path, "{type: http, url: 'http://127.0.0.1:9', timeout: 1 second}")
    begin = time.monotonic()
    found = only(tuple(send(made, tmp_path, a_run()[:6])))
    assert time.monotonic() - begin < 10
    assert "not delivered to http://127.0.0.1:9: " in found.message


def test_a_slow_endpoint_is_not_waited_for_for_ever(tmp_path, endpoint, monkeypatch):
    monkeypatch.setattr("engine.docs.openlineage.background_delivery._PATIENCE_SECONDS", 0.3)
    endpoint.answers[PATH] = lambda handler: (time.sleep(1.0), answer(handler, 201))
    made = project(tmp_path, f"{{type: http, url: '{endpoint.url}'}}")

    def run() -> None:
        found = only(tuple(send(made, tmp_path, a_run()[:6])))
        assert found.message.startswith("some OpenLineage events were not delivered")

    assert shortest_seconds(run, limit=3.0) < 3


def test_a_file_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "events.jsonl").mkdir()
    made = project(tmp_path, "{type: file, path: events.jsonl}")
    found = only(tuple(send(made, tmp_path, a_run()[:2])))
    assert found.message == (
        "4 of 4 OpenLineage events were not delivered to events.jsonl: "
        f"{tmp_path / 'events.jsonl'} is not a file; nothing is written there"
    )


def test_a_key_that_is_not_set_is_told_and_the_run_goes_on(tmp_path):
    made = project(
        tmp_path, "{type: http, url: 'http://127.0.0.1:9', api_key: \"{{ env_var('ENGINE_SECRET_NONE') }}\"}"
    )
    assert made.manifest.errors == ()
    found = only(tuple(send(made, tmp_path, a_run())))
    assert found.message == "no event is sent: the environment variable 'ENGINE_SECRET_NONE' is not set"


@pytest.mark.parametrize(
    ("openlineage", "code", "message"),
    [
        ("{path: x}", "missing-key", "'openlineage' has no 'type'"),
        ("{type: kafka}", "bad-value", "'kafka' is not one of file, http"),
        ("{type: file}", "missing-key", "'openlineage' of type file has no 'path'"),
        ("{type: http}", "missing-key", "'openlineage' of type http has no 'url'"),
        ("{type: file, path: x, url: y}", "unknown-key", "openlineage has no key 'url'"),
    ],
)
def test_a_wrong_place_is_found_when_the_project_is_compiled(tmp_path, openlineage, code, message):
    found = only(project(tmp_path, openlineage).manifest.errors)
    assert (found.code, found.location.file, found.location.line) == (code, "project.yml", 6)
    assert message in found.message or code == found.code


def test_the_url_of_another_kind_is_told(tmp_path):
    made = project(tmp_path, "{type: http, url: 'ftp://x'}")
    assert "does not begin with http:// or https://" in only(tuple(send(made, tmp_path, a_run()))).message
