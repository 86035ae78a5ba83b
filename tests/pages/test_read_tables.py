"""docs/how-to/read-tables.md: each way of reading that runs here gives the rows of the table."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from engine.cli.main import invoke
from engine.spark.jars import status
from tests.lab import REPOSITORY, LabSession, share_session
from tests.pages.page_blocks import Block, blocks_of, put

pytestmark = pytest.mark.spark
BLOCKS = blocks_of((REPOSITORY / "docs" / "how-to" / "read-tables.md").read_text(encoding="utf-8"))
BY_PRODUCT = [("coffee", Decimal("18.00")), ("tea", Decimal("22.50"))]


def block(file: str) -> Block:
    (found,) = [block for block in BLOCKS if block.file == file]
    return found


@pytest.fixture(scope="module")
def shop(lab_session: LabSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("read")
    with chdir(folder), share_session(lab_session, own_lakes=True):
        assert invoke(["init", "shop"]) == 0
        assert invoke(["build", "--project-dir", "shop"]) == 0
    with chdir(folder / "shop"):
        yield folder / "shop"


def run(file: str, text: str = "") -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(text or block(file).text, file, "exec"), names)
    return names


@pytest.mark.filterwarnings("ignore:Iceberg scan planning with the polars_iceberg plugin")
def test_arrow_pandas_and_polars(shop: Path) -> None:
    read = run("read_tables.py")
    assert read["arrow"].num_rows == 6
    assert read["pandas"].to_dict("records") == [{"product": "tea", "sales": Decimal("13.50")}]
    by_product = read["polars"].group_by("product").sum().sort("product")
    assert by_product.select("product", "sales").rows() == BY_PRODUCT


def test_duckdb_over_the_scan(shop: Path) -> None:
    assert run("read_duckdb.py")["by_product"] == BY_PRODUCT


def test_duckdb_over_the_metadata(shop: Path) -> None:
    spec = importlib.util.find_spec("duckdb_ext")
    assert spec is not None
    (folder,) = [path for root in spec.submodule_search_locations or () for path in Path(root).rglob("linux_amd64")]
    text = block("read_metadata.py").text.replace(
        '"install iceberg; load iceberg"',
        repr("; ".join(f"load '{folder / name}.duckdb_extension'" for name in ("avro", "iceberg"))),
    ).replace("duckdb.connect()", "duckdb.connect(config={'allow_unsigned_extensions': 'true'})")  # fmt: skip
    assert run("", text)["by_product"] == BY_PRODUCT


@pytest.mark.nightly
def test_spark_sql(shop: Path) -> None:
    put(block("lake.conf"), shop)
    jars = ",".join(str(path) for _, path, _ in status(("core",)))
    conf = (shop / "lake.conf").read_text()
    head, _, packages = conf.partition("spark.jars.packages ")
    assert packages.strip() == ",".join(name for name, _, _ in status(("core",)))
    (shop / "lake.conf").write_text(f"{head}spark.jars {jars}\n")
    (line,) = [line for b in BLOCKS for line in b.text.splitlines() if line.startswith("spark-sql")]
    program, *arguments = shlex.split(line)
    found = shutil.which(program, path=str(Path(sys.executable).parent))
    assert found is not None
    ended = subprocess.run([found, *arguments], capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert sorted(ended.stdout.split("\n")[:2]) == ["coffee\t18.00", "tea\t22.50"]


def test_the_commands(shop: Path, capsys: pytest.CaptureFixture[str], lab_session: LabSession) -> None:
    begins = ("engine show", "engine sql", "engine export")
    lines = [shlex.split(line) for b in BLOCKS for line in b.text.splitlines() if line.startswith(begins)]
    assert len(lines) == 6
    with share_session(lab_session, own_lakes=True):
        for _, *arguments in lines:
            assert invoke(arguments) == 0
    out = capsys.readouterr().out
    # By Spark and by DuckDB.
    assert out.count("| coffee  | 18.00 |") == 2
    assert len((shop / "sales.csv").read_text().splitlines()) == 7
    assert (shop / "sales.parquet").exists()
    with duckdb.connect("shop.duckdb", read_only=True) as database:
        totals = database.execute("select product, sum(sales) from sales_hourly group by product order by product")
        assert totals.fetchall() == BY_PRODUCT
