"""Columns in the names of folders, as Hive writes them: in every format, as a stream and as a whole."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from engine.sources.files import file_formats
from engine.sources.spec import Place, SourceSpec
from tests.fault_injection.points import reached
from tests.lab import Lab
from tests.sources.test_files import FORMATS, declare, diagnosed, land, read, rows_of, sources, spark_file, table

SCHEMA = "dt date, id int, hour string"
FOLDERS = {"dt=2024-05-01/hour=01": 1, "dt=2024-05-02/hour=%3A": 2, f"dt={file_formats.NULL_FOLDER}/hour=3": 3}
ROWS = [(None, 3, "3"), (date(2024, 5, 1), 1, "01"), (date(2024, 5, 2), 2, ":")]


@pytest.mark.spark
def test_each_format_has_the_columns_of_its_folders(lab: Lab) -> None:
    sources(lab, *(table(one, "", SCHEMA, f"landing/{one}", one) for one in FORMATS))
    files = {(one, number): spark_file(lab, one, [(number,)], "id int") for one in FORMATS for number in (1, 2, 3)}
    for one in FORMATS:
        read(lab, one, "streamed", "whole")
        for folder, number in list(FOLDERS.items())[:2]:
            land(lab, f"{folder}/a.{one}", files[one, number], folder=f"landing/{one}")
    lab.build()
    (folder, number) = list(FOLDERS.items())[2]
    for one in FORMATS:
        assert rows_of(lab, f"{one}_streamed") == rows_of(lab, f"{one}_whole") == ROWS[1:], one
        land(lab, f"x/{folder}/b.{one}", files[one, number], age=1_000, folder=f"landing/{one}")
    lab.build()
    for one in FORMATS:
        assert rows_of(lab, f"{one}_streamed") == rows_of(lab, f"{one}_whole") == ROWS, one


# Format, folder and content of a file, and why its one record is bad.
UNFIT = {
    "json": ("dt=20240501", b'{"id": 1}\n', "'dt' is not of type date in the name of a folder: 20240501"),
    "csv": ("dt=2024-5", b"id,hour\n1,x\n", "'dt' is not of type date in the name of a folder: 2024-5"),
    "parquet": ("dt=May", None, "'dt' is not of type date in the name of a folder: May"),
    "two": ("dt=2024-05-01/dt=2024-05-02", b'{"id": 1}\n', "'dt' has two values in the names of folders"),
    "both": (
        "dt=2024-05-01",
        b'{"id": 1, "dt": "2024-05-02"}\n',
        "'dt' has one value in the file and another in the name of its folder",
    ),
    "csv_both": (
        "dt=2024-05-01",
        b"dt,id,hour\n2024-05-02,1,x\n",
        "'dt' has one value in the file and another in the name of its folder",
    ),
}


@pytest.mark.spark
def test_a_name_that_does_not_fit_is_a_bad_record(lab: Lab) -> None:
    formats = {"two": "json", "both": "json", "csv_both": "csv"}
    more = "on_bad_record: quarantine"
    sources(lab, *(table(formats.get(name, name), more, SCHEMA, f"landing/{name}", name) for name in UNFIT))
    for name, (folder, content, _) in UNFIT.items():
        format_ = formats.get(name, name)
        read(lab, name, "streamed")
        made = content or spark_file(lab, format_, [(1, "x")], "id int, hour string")
        land(lab, f"{folder}/a.{format_}", made, folder=f"landing/{name}")
    lab.build()
    for name, (_, content, reason) in UNFIT.items():
        assert lab.rows(f"{name}_streamed") == [], name
        (bad,) = lab.rows(f"{name}_streamed__quarantine")
        assert bad["reason"] == reason, name
        assert (bytes(bad["raw"]) in content) if content else bad["raw"] is None, name
        assert "dt%3D" in bad["origin"] or "dt=" in bad["origin"]


@pytest.mark.spark
def test_the_same_value_in_file_and_folder_and_folders_of_the_path_itself(lab: Lab) -> None:
    sources(
        lab,
        table("json", "", SCHEMA, "landing/same", "same"),
        table("csv", "", SCHEMA, "landing/same_csv", "same_csv"),
        table("json", "", "id int, Kind string", "landing/kind=web", "inside"),
        table("json", "", "id int, kind string", "landing/p/kind=*/x", "pattern"),
        table("json", "", "id int, kind string", "landing/none", "none"),
    )
    land(lab, "dt=2024-05-01/hour=7/a.json", '{"id": 1, "dt": "2024-05-01"}\n', folder="landing/same")
    land(lab, "dt=2024-05-01/a.csv", "dt,id,hour\n2024-05-01,1,7\n", folder="landing/same_csv")
    # The path itself is where the data are; what its records say counts.
    land(lab, "a.json", '{"id": 1, "Kind": "app"}\n{"id": 2}\n', folder="landing/kind=web")
    land(lab, "kind=a b/x/a.json", '{"id": 1}\n', folder="landing/p")
    land(lab, "kind=M%C3%BCnchen ü%2F%25/x/a.json", '{"id": 2}\n', folder="landing/p")
    land(lab, "other=1/a=b=c/=/kind/a.json", '{"id": 1}\n', folder="landing/none")
    for name in ("same", "same_csv", "inside", "pattern", "none"):
        read(lab, name, "streamed")
    lab.build()
    assert rows_of(lab, "same_streamed") == rows_of(lab, "same_csv_streamed") == [(date(2024, 5, 1), 1, "7")]
    assert rows_of(lab, "inside_streamed") == [(1, "app"), (2, "web")]
    assert rows_of(lab, "pattern_streamed") == [(1, "a b"), (2, "München ü/%")]
    assert rows_of(lab, "none_streamed") == [(1, None)]


@pytest.mark.spark
def test_columns_of_folders_are_inspected(lab: Lab) -> None:
    declare(lab, "json", schema=None)
    land(lab, "dt=2024-05-01/hour=01/n=1/a.json", '{"id": 1, "kind": "x"}\n')
    land(lab, f"dt={file_formats.NULL_FOLDER}/hour=02/n=20/kind=y/b.json", '{"id": 2}\n')
    result = lab.run("source", "inspect", "shop.events")
    assert result.code == 0, result.text
    assert "id bigint, kind string, dt date, hour string, n int" in " ".join(result.out.split())


@pytest.mark.spark
def test_the_first_folder_that_comes_while_a_query_begins_stops_it(lab: Lab) -> None:
    declare(lab, "parquet", schema="id int, dt date")
    read(lab, "events", "streamed")
    content = spark_file(lab, "parquet", [(1,)], "id int")
    land(lab, "a.parquet", content)

    def late(*_: object) -> None:
        land(lab, "dt=2024-05-01/b.parquet", content, age=10)

    with reached("resuming", late, times=1):
        result = lab.run("build")
    assert (result.code, result.codes()) == (1, ["source-unreadable"]), result.text
    assert "b.parquet landed in a folder whose name is a column" in diagnosed(result)["events_streamed"][1]
    lab.build()
    assert rows_of(lab, "events_streamed") == [(1, None), (1, date(2024, 5, 1))]


def test_folders_that_count(tmp_path: Path) -> None:
    def depths(path: str) -> tuple[int, int]:
        return file_formats.depths(SourceSpec("a.b", "json", "id int", settings={"path": path}), Place(tmp_path))

    above = len(tmp_path.parts) - 1
    (tmp_path / "in[1]").mkdir()
    assert depths("landing/x") == (above, 2)
    assert depths("./landing//x/") == (above, 2)
    assert depths("in[1]") == (above, 1)
    assert depths("landing/*/x") == (above, 1)
    assert depths("/data/in") == (0, 2)
    assert depths("s3a://bucket/raw/source=web/") == (0, 2)
    assert depths("file:///data/in") == (0, 2)
