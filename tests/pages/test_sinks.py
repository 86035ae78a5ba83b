"""docs/sinks.md: its project delivers the table to a real PostgreSQL."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

import pytest

from engine.cli.main import invoke
from engine.sinks.postgres_types import postgres_type
from tests.lab import REPOSITORY, LabSession, share_session
from tests.pages.page_blocks import blocks_of, commands_of, put
from tests.services import postgres

PAGE = (REPOSITORY / "docs" / "sinks.md").read_text(encoding="utf-8")


@pytest.mark.spark
def test_the_example_delivers(
    lab_session: LabSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if postgres.binaries() is None:
        pytest.skip("no PostgreSQL here")
    blocks = blocks_of(PAGE)
    with postgres.running() as server, chdir(tmp_path), share_session(lab_session, own_lakes=True):
        monkeypatch.setenv("ENGINE_SECRET_CRM", server.password)
        assert invoke(["init", "shop"]) == 0
        with chdir("shop"):
            for block in blocks:
                if block.file:
                    put(block, Path())
            project = Path("project.yml")
            project.write_text(project.read_text().replace(":5432/", f":{server.port}/"))
            for block in blocks:
                for command in commands_of(block) if block.language == "console" else ():
                    assert invoke(command.text.split()[1:]) == 0, capsys.readouterr()
        assert "waiting: 0 commits" in capsys.readouterr().out
        orders = (Path("shop") / "data" / "orders").glob("*.jsonl")
        landed = sum(1 for file in orders for line in file.read_text().splitlines() if '"order_id"' in line)
        ((delivered,),) = server.execute("SELECT count(*) FROM public.orders")
        assert 0 < int(str(delivered)) <= landed


def test_the_table_of_types_is_the_codes() -> None:
    rows = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| `") and "created" not in line]
    checked = 0
    for types, created, *_ in rows:
        names = [name.strip("| `") for name in types.split(",") if "(" not in types]
        made = [name.strip("` ") for name in created.partition(";")[0].split(",")]
        for name, wanted in zip(names, made * len(names) if len(made) == 1 else made, strict=False):
            if name in {"array", "map", "struct"}:
                assert postgres_type(f"{name}<int>") == wanted
                checked += 1
            elif (found := postgres_type(name)) is not None:
                assert found == wanted
                checked += 1
    assert checked == 15
