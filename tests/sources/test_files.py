"""Every format of files, as a stream and as a whole, end to end; and what is not a record as declared."""

from __future__ import annotations

import gzip
import os
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.lab import Lab, Result

pytestmark = pytest.mark.spark

FORMATS = ("json", "csv", "parquet", "orc", "avro")
SCHEMA = "id int, at timestamp, kind string, amount double"
ROWS = [
    (1, datetime(2024, 5, 1, 10, 0, tzinfo=UTC), "paid", 2.5),
    (2, datetime(2024, 5, 1, 10, 1, tzinfo=UTC), 'a "quoted", one', None),
    (3, datetime(2024, 5, 1, 10, 2, tzinfo=UTC), None, 1.0),
]
STREAM = "/*---\nstreams: [shop.events]\n---*/\nselect * from {{ source('shop', 'events') }}\n"
WHOLE = "select * from {{ source('shop', 'events') }}\n"


def table(
    format_: str, more: str = "", schema: str | None = SCHEMA, path: str = "landing/events", name: str = "events"
) -> str:
    """A table of a source, as YAML."""
    lines = [f"      - name: {name}", f"        format: {format_}", f'        path: "{path}"']
    lines += [f'        schema: "{schema}"'] if schema else []
    return "\n".join([*lines, *(f"        {line}" for line in more.splitlines())]) + "\n"


def sources(lab: Lab, *tables: str) -> None:
    lab.write("sources/shop.yml", "sources:\n  - name: shop\n    tables:\n" + "".join(tables))


def declare(lab: Lab, format_: str, more: str = "", schema: str | None = SCHEMA, path: str = "landing/events") -> None:
    sources(lab, table(format_, more, schema, path))


def read(lab: Lab, name: str, *ways: str) -> None:
    """Models that read a table as a stream, in full, or both."""
    for way in ways:
        text = STREAM if way == "streamed" else WHOLE
        lab.model(f"{name}_{way}", text.replace("shop.events", f"shop.{name}").replace("'events'", f"'{name}'"))


def diagnosed(result: Result) -> dict[str, tuple[str, str]]:
    """What is wrong with each model: code and text."""
    return {
        e["node"].split(".")[-1]: (e["code"], f"{e['message']} {e['hint']}")
        for e in result.events
        if e["event"] == "Diagnosed"
    }


def land(lab: Lab, name: str, content: str | bytes, age: float = 100_000, folder: str = "landing/events") -> Path:
    """Land a file that is so many seconds old."""
    path = lab.root / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    when = datetime.now(UTC).timestamp() - age
    os.utime(path, (when, when))
    return path


def spark_file(lab: Lab, format_: str, rows: Any, schema: str = SCHEMA) -> bytes:
    """The bytes of one file that Spark writes."""
    assert lab.session is not None
    folder = lab.root / "made" / format_
    frame = lab.session.spark.createDataFrame(rows, schema).coalesce(1)
    options = {"header": "true", "escape": '"'} if format_ == "csv" else {}
    frame.write.mode("overwrite").format(format_).options(**options).save(f"file:{folder}")
    (part,) = [p for p in folder.iterdir() if p.name.startswith("part-")]
    return part.read_bytes()


def rows_of(lab: Lab, name: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in lab.rows(name)), key=repr)


def test_each_format_gives_the_same_rows_as_a_stream_and_as_a_whole(lab: Lab) -> None:
    zones = dict.fromkeys(("json", "csv"), "timezone: UTC")
    sources(lab, *(table(one, zones.get(one, ""), path=f"landing/{one}", name=one) for one in FORMATS))
    for one in FORMATS:
        read(lab, one, "streamed", "whole")
        land(lab, f"a.{one}", spark_file(lab, one, ROWS[:2]), folder=f"landing/{one}")
    lab.build()
    for one in FORMATS:
        land(lab, f"b.{one}", spark_file(lab, one, ROWS[2:]), age=90_000, folder=f"landing/{one}")
    second, third = lab.build(), lab.build()
    for one in FORMATS:
        assert second.model(f"{one}_streamed")["rows_in"] == 1, one
        assert rows_of(lab, f"{one}_streamed") == rows_of(lab, f"{one}_whole") == sorted(ROWS, key=repr), one
        assert third.model(f"{one}_streamed")["status"] == "unchanged", one


def test_lines_of_text_are_one_column(lab: Lab) -> None:
    declare(lab, "text", schema=None)
    lab.model("lines", STREAM.replace("select *", "select value, length(value) as n"))
    land(lab, "a.log", "first\n\nthird line\n")
    land(lab, "b.log.gz", gzip.compress(b"packed\n"), age=90_000)
    lab.build()
    assert rows_of(lab, "lines") == [("", 0), ("first", 5), ("packed", 6), ("third line", 10)]


def test_where_a_row_came_from_is_selected_by_name(lab: Lab) -> None:
    declare(lab, "csv")
    lab.model("rows", STREAM.replace("select *", "select id, _metadata.file_path as file, _metadata"))
    path = land(lab, "a b.csv", "id,at,kind,amount\n1,2024-05-01T10:00:00Z,paid,1\n")
    lab.build()
    (row,) = lab.rows("rows")
    assert row["file"].endswith("/landing/events/a%20b.csv")
    assert int(row["_metadata"]["file_modification_time"].timestamp()) == int(path.stat().st_mtime)


PATTERNS: dict[str, tuple[str, dict[str, int]]] = {
    "months": ("landing/2024-*", {"2024-01/a.json": 1, "2024-02/a.json": 2, "2025-01/a.json": 3}),
    "either": ("landing/{x,y}/in", {"x/in/a.json": 1, "y/in/b.json": 2, "z/in/c.json": 3}),
    "odd": ("landing/[odd] {name}", {"[odd] {name}/50%25 é.json": 1, "[odd] {name}/a#b?.json": 2, "o/a.json": 3}),
}


def test_patterns_and_names_that_look_like_patterns(lab: Lab) -> None:
    sources(lab, *(table("json", "", "id int", path, name) for name, (path, _) in PATTERNS.items()))
    for name, (_, files) in PATTERNS.items():
        read(lab, name, "streamed", "whole")
        for file, number in files.items():
            land(lab, file, f'{{"id": {number}}}\n', folder="landing")
    lab.build()
    again = lab.build()
    for name in PATTERNS:
        assert rows_of(lab, f"{name}_streamed") == rows_of(lab, f"{name}_whole") == [(1,), (2,)], name
        ways = (f"{name}_streamed", f"{name}_whole")
        assert {m: again.model(m)["status"] for m in ways} == dict.fromkeys(ways, "unchanged")


def test_a_uri_says_itself_where_it_is(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    declare(lab, "json", schema="id int", path=f"file://{elsewhere}")
    lab.model("streamed", STREAM)
    lab.model("whole", WHOLE)
    (elsewhere / "a.json").write_text('{"id": 1}\n')
    lab.build()
    assert rows_of(lab, "streamed") == rows_of(lab, "whole") == [(1,)]
    assert lab.build().model("whole")["status"] == "unchanged"


def test_a_project_whose_folder_has_a_space_and_brackets(lab: Lab) -> None:
    inner = Lab(lab.root / "my [own] project", lab.session, lab.capsys)
    declare(inner, "json", schema="id int")
    inner.model("streamed", STREAM)
    land(inner, "a.json", '{"id": 1}\n')
    inner.build()
    land(inner, "b.json", '{"id": 2}\n', age=1_000)
    assert inner.build().model("streamed")["rows_in"] == 1
    assert rows_of(inner, "streamed") == [(1,), (2,)]


CSV = """id,at,kind,amount
1,2024-05-01T10:00:00Z,"a ""b"", c",1
x,2024-05-01T10:00:00Z,not a number,1
3,2024-05-01T10:00:00Z,too few
4,2024-05-01T10:00:00Z,too many,1,9

,,,
5,2024-05-01T10:00:00Z,,
"""


def test_lines_of_csv_that_do_not_fit_are_counted_or_kept(lab: Lab) -> None:
    for policy in ("drop", "quarantine"):
        declare(lab, "csv", f"on_bad_record: {policy}")
        # One column is enough to find what is wrong with another.
        lab.model(policy, STREAM.replace("select *", "select kind"))
        land(lab, "a.csv", CSV)
        found = lab.build("-s", policy).model(policy)
        assert found["bad_records"] == {"shop.events": 4}
        assert rows_of(lab, policy) == [('a "b", c',), (None,)]
    kept = {bytes(r["raw"]).decode(): r["reason"] for r in lab.rows("quarantine__quarantine")}
    fits = "the number of fields does not match the declared columns"
    assert kept == {
        "x,2024-05-01T10:00:00Z,not a number,1": "'id' is not of type int: x",
        "3,2024-05-01T10:00:00Z,too few": fits,
        "4,2024-05-01T10:00:00Z,too many,1,9": fits,
        ",,,": "it has no value in any column",
    }


def test_a_line_of_csv_that_does_not_fit_ends_the_model_and_names_its_file(lab: Lab) -> None:
    declare(lab, "csv")
    lab.model("streamed", STREAM)
    lab.model("whole", WHOLE)
    path = land(lab, "a.csv", CSV)
    result = lab.run("build")
    assert result.code == 1
    assert sorted(result.codes()) == ["bad-record", "bad-record"]
    assert "a.csv" in result.text
    assert lab.snapshot("streamed") is None
    # Corrected, the same file is read, once.
    path.write_text(CSV[: CSV.index("x,")])
    lab.build()
    assert lab.build().model("streamed")["status"] == "unchanged"
    assert [row[0] for row in rows_of(lab, "streamed")] == [1]


def test_a_header_of_csv_that_is_not_the_schema_ends_the_model(lab: Lab) -> None:
    headers = {"swapped": "id,kind,at,amount", "short": "id,at,kind", "long": "id,at,kind,amount,more"}
    sources(lab, *(table("csv", "on_bad_record: drop", path=f"landing/{name}", name=name) for name in headers))
    for name, header in headers.items():
        read(lab, name, "streamed")
        land(lab, f"{name}.csv", f"{header}\n1,2024-05-01T10:00:00Z,b,1\n", folder=f"landing/{name}")
    result = lab.run("build")
    found = diagnosed(result)
    assert (result.code, result.codes()) == (1, ["source-unreadable"] * 3)
    for name in headers:
        code, text = found[f"{name}_streamed"]
        assert code == "source-unreadable"
        assert f"{name}.csv" in text
        assert "header" in text.lower()


CORRUPT = {
    "parquet": lambda lab: spark_file(lab, "parquet", ROWS)[:-200],
    "orc": lambda lab: spark_file(lab, "orc", ROWS)[:-50],
    "avro": lambda lab: spark_file(lab, "avro", ROWS)[:-20],
    "csv": lambda _: gzip.compress(os.urandom(20_000).hex().encode())[:-5_000],
    "json": lambda _: gzip.compress(os.urandom(20_000).hex().encode())[:-5_000],
}


# `make test` has these, the night all of them.
FEW = [("json", "drop"), ("json", "fail"), ("parquet", "drop")]


@pytest.mark.nightly_cases("all")
@pytest.mark.parametrize("chosen", [FEW, list(product(CORRUPT, ["fail", "drop"]))], ids=["few", "all"])
def test_a_file_that_ends_early_is_named_and_an_empty_one_in_its_place_goes_on(
    lab: Lab, chosen: list[tuple[str, str]]
) -> None:
    cases = {f"{format_}_{policy}": (format_, policy) for format_, policy in chosen}
    sources(
        lab,
        *(
            table(of, f"on_bad_record: {policy}", path=f"landing/{name}", name=name)
            for name, (of, policy) in cases.items()
        ),
    )
    good = {format_: spark_file(lab, format_, ROWS) for format_, _ in chosen}
    torn: dict[str, Path] = {}
    for name, (format_, _) in cases.items():
        read(lab, name, "streamed")
        suffix = ".gz" if format_ in {"csv", "json"} else ""
        land(lab, f"good.{format_}", good[format_], folder=f"landing/{name}")
        torn[name] = land(lab, f"{name}.{format_}{suffix}", CORRUPT[format_](lab), folder=f"landing/{name}")
    result = lab.run("build")
    found = diagnosed(result)
    assert (result.code, result.codes()) == (1, ["source-unreadable"] * len(cases)), result.text
    for name in cases:
        code, text = found[f"{name}_streamed"]
        assert code == "source-unreadable"
        assert torn[name].name in text
        assert "an empty one" in text
        assert lab.snapshot(f"{name}_streamed") is None
        torn[name].write_bytes(b"")
    lab.build()
    again = lab.build()
    for name in cases:
        assert len(rows_of(lab, f"{name}_streamed")) == 3, name
        assert again.model(f"{name}_streamed")["status"] == "unchanged", name


MISFITS = [
    ("parquet", "id int", "id tinyint", "id is int and not tinyint"),
    ("parquet", "amount decimal(10,4)", "amount double", "amount is decimal(10,4) and not double"),
    ("parquet", "other int", "id int, kind string", "it has none of the declared columns, but other"),
    ("parquet", "s struct<a: array<int>>", "s struct<a: array<tinyint>>", "s.a.element is int and not tinyint"),
    ("orc", "id string", "id int", "id is string and not int"),
    ("orc", "id bigint", "id int", "id is bigint and not int"),
    (
        "orc",
        "at timestamp",
        "at timestamp_ntz",
        "at is a timestamp of ORC, which Spark reads in a time zone: declare it as timestamp",
    ),
    ("avro", "other int", "id int", "it has none of the declared columns"),
]


def test_a_file_of_another_schema_ends_the_model(lab: Lab) -> None:
    cases = {f"case{number}": case for number, case in enumerate(MISFITS)}
    sources(lab, *(table(of, "", declared, f"landing/{n}", n) for n, (of, _, declared, _) in cases.items()))
    for name, (format_, have, _, _) in cases.items():
        read(lab, name, "streamed", "whole")
        value = {"int": 300, "bigint": 3_000_000_000, "string": "x"}.get(have.split(" ", 1)[1])
        land(lab, f"a.{format_}", spark_file(lab, format_, [(value,)], have), folder=f"landing/{name}")
    result = lab.run("build")
    found = diagnosed(result)
    assert result.code == 1
    for name, (format_, _, _, said) in cases.items():
        # A stream may end with Spark's own words for it, which come first.
        assert said in found[f"{name}_whole"][1], name
        for model in (f"{name}_streamed", f"{name}_whole"):
            code, text = found[model]
            assert code == ("bad-record" if format_ == "avro" else "source-unreadable"), result.text
            assert f"landing/{name}/a.{format_}" in text
            assert lab.snapshot(model) is None


def test_a_column_that_came_later_is_null_in_older_files(lab: Lab) -> None:
    declared = dict.fromkeys(("parquet", "orc"), "id bigint, later string") | {"avro": "id int, later string"}
    sources(lab, *(table(one, "", schema, f"landing/{one}", one) for one, schema in declared.items()))
    for one in declared:
        read(lab, one, "streamed")
        land(lab, f"a.{one}", spark_file(lab, one, [(1,)], "id int"), folder=f"landing/{one}")
    lab.build()
    for one in declared:
        assert rows_of(lab, f"{one}_streamed") == [(1, None)], one
