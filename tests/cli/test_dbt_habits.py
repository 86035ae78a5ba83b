"""What a dbt user types: the same names where there is the same thing, and an answer where there is none."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import click
import pytest

from engine.cli.arguments import COMMANDS, OPTIONS, as_markdown
from engine.cli.main import cli, invoke
from tests.cli.test_commands import run, small, write
from tests.lab import REPOSITORY
from tests.pages.terminal import UPDATE

__all__ = ["small"]


@pytest.mark.slow
def test_list_is_ls(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small, "list", "--output", "name", "-s", "b") == 0
    assert capsys.readouterr().out == "b\n"
    assert invoke(["--help"]) == 0
    assert " list " not in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_of_dbt_that_do_not_exist_have_an_answer(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert name not in cli.commands
    assert invoke([name, "--whatever", "x"]) == 2
    assert f"There is no command '{name}': {COMMANDS[name]}." in capsys.readouterr().err


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_dbt_that_do_not_exist_have_an_answer(
    small: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert run(small, "source", "freshness", name, "x") == 2
    said = capsys.readouterr().err
    assert f"There is no option '{name}': {OPTIONS[name]}." in said
    assert "Did you mean" not in said
    assert not (small / "target").exists()


def test_the_page_on_migration_has_all_answers() -> None:
    page = REPOSITORY / "docs" / "dbt-commands.md"
    text = page.read_text(encoding="utf-8")
    begin, end = (f"<!-- engine.cli.arguments: {mark} -->\n" for mark in ("begin", "end"))
    before, _, rest = text.partition(begin)
    shown, _, after = rest.partition(end)
    if UPDATE in os.environ:
        page.write_text(f"{before}{begin}\n{as_markdown()}\n\n{end}{after}", encoding="utf-8")
        return
    assert shown.strip() == as_markdown()


def test_answers_name_commands_and_options_that_exist() -> None:
    texts = [*COMMANDS.values(), *OPTIONS.values()]
    named = {match for text in texts for match in re.findall(r"\bengine ([a-z]+)", text)}
    assert named <= set(cli.commands)
    options = {o for command in leaves(cli) for param in command.params for o in param.opts}
    assert {match for text in texts for match in re.findall(r"(?<!\w)--?[a-z][a-z-]*", text)} <= options


def leaves(group: click.Group) -> list[click.Command]:
    found = []
    for command in group.commands.values():
        found += leaves(command) if isinstance(command, click.Group) else [command]
    return found


def test_summaries_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    invoke(["--help"])
    assert "..." not in capsys.readouterr().out.partition("Commands:")[2]


@pytest.mark.slow
def test_compile_prints_the_sql_of_what_is_selected(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small, "compile", "-s", "b") == 0
    out = capsys.readouterr().out
    assert "-- b: models/marts/b.sql\nselect count(*) as n from `lake`.`small`.`a`\n" in out
    assert "-- a" not in out
    assert (small / "target/manifest.json").is_file()
    assert run(small, "compile", "b", "--log-format", "json") == 0
    (record,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (record["event"], record["node"]) == ("Compiled", "model.b")
    assert run(small, "compile") == 0
    assert "--" not in capsys.readouterr().out


@pytest.mark.slow
def test_parse_and_compile_of_a_selection_show_its_warnings(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "/*---\nstreams: [shop.events]\noutput_mode: complete\n---*/\nselect id, count(*) as n from {{ source('shop', 'events') }} group by id"
    write(small, "models/one.sql", text)
    for command in ("parse", "compile"):
        assert run(small, command, "-s", "b") == 0
        assert " warning: " not in capsys.readouterr().err
        assert run(small, command, "-s", "one") == 0
        assert "models/one.sql" in capsys.readouterr().err
        assert run(small, command, "-s", "typo") == 2
        capsys.readouterr()


def test_what_is_found_is_counted_in_english(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small, "parse") == 0
    assert "Found 2 models, 1 data test, 0 unit tests, 1 source; 0 errors, 0 warnings" in capsys.readouterr().out


def test_show_takes_its_model_behind_an_option_too(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small, "show", "-s", "bb", "--table") == 2
    assert "model 'bb' not found" in capsys.readouterr().err
    assert run(small, "show", "b", "-s", "a") == 2
    assert "show takes one model" in capsys.readouterr().err
