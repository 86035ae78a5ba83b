"""Which warnings a command shows, how often, and hints that several findings share."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from engine.cli.console.printing import TextPrinter, collapse_repeated, hints_once
from engine.cli.console.shown_warnings import not_shown_today, note_shown
from engine.errors import Diagnostic, Level, Location
from engine.events import Diagnosed, RunStarted
from engine.user_cache import project_cache
from tests.cli.test_commands import run, small, write

__all__ = ["small"]

KEEPS = "/*---\nstreams: [shop.events]\noutput_mode: complete\n---*/\nselect {what}, count(*) as n from {{{{ source('shop', 'events') }}}} group by 1\n"
LOOSE = "sources: [{name: loose, tables: [{name: rows, format: iceberg, table: other.rows}]}]\n"


@pytest.fixture
def warned(small: Path) -> Path:
    """A project with a warning about each of two models and a source."""
    write(small, "models/one.sql", KEEPS.format(what="id"))
    write(small, "models/two.sql", KEEPS.format(what="at"))
    write(small, "sources/loose.yml", LOOSE)
    return small


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The files of the warnings that were printed."""
    lines = capsys.readouterr().err.splitlines()
    return [line.partition(":")[0].rpartition("/")[2] for line in lines if " warning: " in line]


EVERY = ["loose.yml", "one.sql", "two.sql"]


@pytest.mark.slow
def test_compile_and_parse_show_all_warnings_each_time(warned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("parse", "compile", "compile"):
        assert run(warned, command) == 0
        assert sorted(told(capsys)) == EVERY


@pytest.mark.slow
def test_a_build_shows_the_warnings_of_what_is_selected_each_time(
    warned: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        # It ends before Java starts: there is nothing landed.
        assert run(warned, "build", "-s", "one") == 1
        assert told(capsys) == ["one.sql"]
    assert run(warned, "test", "-s", "two") == 0
    assert told(capsys) == ["two.sql"]


@pytest.mark.spark
def test_a_build_shows_no_warning_of_what_is_not_selected(warned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(warned, "build", "-s", "b") in {0, 1}
    assert told(capsys) == []


@pytest.mark.slow
@pytest.mark.parametrize("command", [["ls"], ["docs", "generate"], ["lineage"], ["debug"]], ids=" ".join)
def test_other_commands_show_a_warning_once_a_day(
    warned: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    run(warned, *command)
    assert sorted(told(capsys)) == EVERY
    run(warned, *command)
    assert told(capsys) == []
    write(warned, "models/one.sql", "\n" + KEEPS.format(what="id"))
    run(warned, *command)
    assert told(capsys) == []
    write(warned, "models/three.sql", KEEPS.format(what="id"))
    run(warned, *command)
    assert told(capsys) == ["three.sql"]


@pytest.mark.slow
def test_ls_and_show_are_about_what_is_chosen(warned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(warned, "ls", "-s", "one") == 0
    assert told(capsys) == ["one.sql"]
    assert run(warned, "show", "two", "--table") == 1
    assert told(capsys) == ["two.sql"]
    assert run(warned, "ls") == 0
    assert told(capsys) == ["loose.yml"]


@pytest.mark.slow
def test_what_compile_showed_is_not_shown_by_ls(warned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(warned, "compile")
    told(capsys)
    run(warned, "ls")
    assert told(capsys) == []


@pytest.mark.slow
def test_machines_get_every_warning_each_time(warned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert run(warned, "docs", "generate", "--log-format", "json") == 0
        records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert len([r for r in records if r["event"] == "Diagnosed"]) == 3


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "json"])
def test_quiet_commands_show_errors_alone(warned: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    for command in (["ls"], ["parse"], ["compile"], ["ls", "--exclude", "typo"]):
        assert run(warned, *command, "-q", "--log-format", form) == 0
        said = capsys.readouterr()
        assert "warning" not in said.out + said.err
    # They were not shown.
    run(warned, "ls")
    assert sorted(told(capsys)) == EVERY
    write(warned, "models/one.sql", "selec 1")
    assert run(warned, "compile", "-q", "--log-format", form) == 1
    said = capsys.readouterr()
    assert "not-a-query" in said.out + said.err
    assert "warning" not in said.out + said.err


def test_after_a_day_a_warning_comes_again(warned: Path) -> None:
    folder = project_cache(warned / "target")
    assert folder is not None
    found = [Diagnostic("watermark-unused", "unused", level=Level.WARNING, node="a")]
    note_shown(folder, found)
    assert not_shown_today(folder, found) == []
    record = json.loads((folder / "told.json").read_text())
    (folder / "told.json").write_text(json.dumps(dict.fromkeys(record, time.time() - 25 * 3600)))
    assert not_shown_today(folder, found) == found


@pytest.mark.parametrize("content", ["", "[]", "[1", '{"a": "b"}', "[" * 5000])
def test_what_the_cache_has_may_be_anything(warned: Path, content: str) -> None:
    folder = project_cache(warned / "target")
    assert folder is not None
    (folder / "told.json").write_text(content)
    (folder / "told.json").chmod(0o600)
    found = [Diagnostic("watermark-unused", "unused", level=Level.WARNING, node="a")]
    assert not_shown_today(folder, found) == found
    note_shown(folder, found)
    assert not_shown_today(folder, found) == []
    assert not_shown_today(None, found) == found


def finding(number: int, hint: str) -> Diagnostic:
    return Diagnostic("downstream-stops", f"m{number} stops", hint, node=f"m{number}")


def test_hints_that_follow_each_other_are_given_once() -> None:
    found = [
        finding(1, "Rebuild."),
        finding(2, "Rebuild."),
        finding(3, "Wait."),
        finding(4, "Rebuild."),
        finding(5, ""),
    ]
    hints = [one.hint for one in hints_once([*found, finding(6, "")], {})]
    assert hints == ["", "Rebuild.", "Wait.", "As for m2.", "", ""]


def test_six_findings_with_one_hint_are_six_lines_and_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    TextPrinter().diagnostics(finding(number, "Rebuild them too.") for number in range(6))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "error: m0 stops [downstream-stops]"
    assert [line.strip() for line in lines[5:]] == ["error: m5 stops [downstream-stops]", "Rebuild them too."]


def test_one_finding_stands_for_many_that_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    def changed(number: int) -> Diagnostic:
        return Diagnostic("file-changed", "a.json changed", f"engine build -f -s m{number}", node=f"m{number}",
                          location=Location(f"models/m{number}.sql"))  # fmt: skip

    other = finding(9, "Wait.")
    many = [changed(0), other, *(changed(number) for number in range(1, 1000))]
    first, rest, last = collapse_repeated(many)
    assert (str(first.location), first.message, first.hint) == ("models/m0.sql:1:1", "a.json changed", "")
    assert rest.message == "the same of 999 other nodes: 'm1', 'm2', 'm3', 'm4', 'm5', .. (all: --log-format json)"
    assert (rest.hint, last) == ("engine build -f -s m0", other)
    assert collapse_repeated(many[:6]) == many[:6]
    out = TextPrinter()
    out.diagnostics(many)
    assert len(capsys.readouterr().err.splitlines()) == 5
    assert out.errors.count("file-changed") == 1000


def test_findings_of_a_run_name_the_one_that_has_the_hint(capsys: pytest.CaptureFixture[str]) -> None:
    out = TextPrinter()
    place = Location("models/m.sql", 3, 4)
    for one in (
        finding(1, "Rebuild."),
        Diagnostic("query-failed", "x", "Look.", location=place),
        finding(2, "Rebuild."),
    ):
        out.event(Diagnosed(one))
    assert "    As for m1." in capsys.readouterr().err
    out.event(RunStarted("id", "build", "dev", 1, "now"))
    out.event(Diagnosed(finding(3, "Rebuild.")))
    assert "    Rebuild." in capsys.readouterr().err
