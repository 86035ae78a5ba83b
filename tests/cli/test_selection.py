"""What a selection matches, what it does not, and how several values and bare names are read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine import Project
from engine.cli.arguments import Command
from engine.cli.main import invoke
from engine.cli.options import Several
from engine.compile.artifacts.dbt_manifest import About, node_dict
from engine.schema.model_keys import MODEL
from tests.cli.test_commands import run, small, write
from tests.fixtures import read_rows

pytestmark = pytest.mark.slow

__all__ = ["small"]

FIXTURE = Path(__file__).parent / "fixtures/selections.txt"

COMMANDS = ("ls", "build", "run", "test", "maintain", "lineage", "source freshness")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_that_matches_nothing_is_an_error_before_anything_starts(
    small: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    write(small, "models/flights.sql", "select 1 as id")
    assert run(small, *command.split(), "-s", "flihgts") == 2
    said = capsys.readouterr()
    assert "error: the selection 'flihgts' matches nothing [selection-empty]" in said.err
    assert "Did you mean 'flights'?" in said.err
    assert "--allow-empty" in said.err
    assert not (small / ".engine").exists()


@pytest.mark.parametrize(("selection", "message", "hint"), read_rows(FIXTURE, "nothing", 3))
def test_what_matches_nothing_is_named_with_what_is_near(
    small: Path, capsys: pytest.CaptureFixture[str], selection: str, message: str, hint: str
) -> None:
    assert run(small, "ls", "-s", selection) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert hint in said.err
    assert not said.out


def test_groups_and_other_values_of_meta(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        small,
        "models/paid.sql",
        "/*---\nmeta: {group: finance, owner: Ann, pii: true, level: 2}\n---*/\nselect 1 as id",
    )
    for selection in (
        "group:finance",
        "group:fin*",
        "config.meta.owner:Ann",
        "config.meta.pii:true",
        "config.meta.level:2",
    ):
        assert run(small, "ls", "--output", "name", "-s", selection) == 0
        assert capsys.readouterr().out.split() == ["paid"], selection
    assert run(small, "ls", "--output", "name", "-s", "group:finanze") == 2
    assert "Did you mean 'group:finance'?" in capsys.readouterr().err


def test_with_allow_empty_it_is_a_warning(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(small, "build", "-s", "tag:nightly", "--allow-empty") == 0
    said = capsys.readouterr()
    assert "warning: the selection 'tag:nightly' matches nothing [selection-empty]" in said.err
    assert "The selection has no models or tests; nothing to do" in said.out
    monkeypatch.setenv("ENGINE_ALLOW_EMPTY", "1")
    assert run(small, "ls", "--output", "name", "-s", "tag:nightly", "a") == 0
    assert capsys.readouterr().out.split() == ["a", "not_null_a_id"]


@pytest.mark.parametrize(
    "selection", [["test_type:unit"], ["resource_type:unit_test"], ["a,test_type:unit"], ["result:error"]]
)
def test_a_kind_of_which_there_is_none_is_no_error(
    small: Path, capsys: pytest.CaptureFixture[str], selection: list[str]
) -> None:
    write(small, "target/run_results.json", '{"results": []}')
    assert run(small, "test", "-s", *selection) == 0
    said = capsys.readouterr()
    assert "The selection has no tests; nothing to do" in said.out
    assert not said.err


def test_state_modified_with_nothing_modified_is_no_error_but_its_neighbour_may_be(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(small, "compile")
    shutil.copytree(small / "target", small / "before")
    state = ("--state", str(small / "before"))
    assert run(small, "build", "-s", "state:modified+", "state:modified,tag:hot", *state) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert run(small, "build", "-s", "state:modified,tag:hto", *state) == 2
    assert "Did you mean 'tag:hot'?" in capsys.readouterr().err


def test_an_exclusion_that_matches_nothing_is_a_warning(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small, "ls", "--output", "name", "-s", "path:models", "--exclude", "b", "tag:cold") == 0
    said = capsys.readouterr()
    assert said.out.split() == ["a", "not_null_a_id"]
    assert "warning: the selection 'tag:cold' matches nothing [selection-empty]" in said.err
    assert "Did you mean" not in said.err or "tag:hot" in said.err
    assert run(small, "ls", "--exclude", "test_type:unit") == 0
    assert not capsys.readouterr().err
    assert run(small, "ls", "--output", "name", "-s", "a", "--exclude", "a") == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["-s", "a", "b", "-t", "dev"], ["a", "b", "not_null_a_id"]),
        (["-s", "a", "b", "--exclude", "b", "test_name:not_null"], ["a"]),
        (["-s", "path:models", "--exclude", "b", "test_name:not_null", "-q"], ["a"]),
        (["--select=a", "b"], ["a", "b", "not_null_a_id"]),
        (["--select", "a", "--select", "b"], ["a", "b", "not_null_a_id"]),
        (["-sa", "b"], ["a", "b", "not_null_a_id"]),
        (["-qs", "a", "b"], ["a", "b", "not_null_a_id"]),
        (["-m", "b", "-s", "a"], ["a", "b", "not_null_a_id"]),
        (["--models", "b"], ["b"]),
        (["-t", "dev", "-s", "b"], ["b"]),
        (["--vars", "{s: -s}", "-s", "b"], ["b"]),
        (["a", "b"], ["a", "b", "not_null_a_id"]),
        (["-q", "b"], ["b"]),
        (["+b", "--exclude", "a"], ["shop.events", "b"]),
    ],
)
def test_values_follow_each_other_as_in_dbt(
    small: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], names: list[str]
) -> None:
    assert run(small, "ls", "--output", "name", *arguments) == 0
    assert capsys.readouterr().out.split() == names


def test_an_option_is_no_value(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small, "ls", "-s", "--exclude", "b") == 2
    assert "Option '-s' requires an argument" in capsys.readouterr().err
    assert run(small, "ls", "-s", "a", "--no-such") == 2
    assert "No such option" in capsys.readouterr().err


def test_two_hyphens_end_the_values(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGINE_PROJECT_DIR", str(small))
    assert invoke(["ls", "--output", "name", "-s", "a", "--", "b"]) == 0
    assert capsys.readouterr().out.split() == ["a", "b", "not_null_a_id"]


def test_an_argument_of_the_commands_own_is_not_a_selection(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small, "lineage", "b.n", "-s", "a") == 0
    assert "b.n" in capsys.readouterr().out
    assert run(small, "clean", "a") == 2


def test_values_are_split_by_what_click_declares() -> None:
    command = Command("x", params=[Several(["-s", "--select"]), *Command("y").params])
    context = command.make_context("x", ["-s", "a", "b", "c"])
    assert context.params == {"select": ("a", "b", "c")}


@pytest.mark.parametrize(
    "arguments",
    [
        ["-q", "--project-dir", "{root}", "ls"],
        ["--project-dir={root}", "ls", "-q"],
        ["-qt", "dev", "ls", "--project-dir", "{root}"],
        ["-q", "--project-dir", "{root}", "docs", "generate"],
        ["docs", "-q", "--project-dir", "{root}", "generate"],
    ],
)
def test_shared_options_stand_before_or_behind_the_command(small: Path, arguments: list[str]) -> None:
    assert invoke([part.format(root=small) for part in arguments]) == 0


SELECTORS = """
selectors:
  - name: typo
    definition:
      union: [path:models, tag:hto]
  - name: method
    definition: {method: colour, value: red}
  - name: left_out
    definition:
      union: [path:models, {exclude: [bb]}]
"""


def test_mistakes_of_the_file_of_selectors_have_their_place_and_end_with_1(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(small, "selectors.yml", SELECTORS)
    assert run(small, "ls", "--selector", "typo") == 1
    said = capsys.readouterr().err
    assert "selectors.yml:5:28: error: the selection 'tag:hto' matches nothing [selection-empty]" in said
    assert "Did you mean 'tag:hot'?" in said
    assert run(small, "ls", "--selector", "method") == 1
    assert "selectors.yml:7:41: error: unknown selection method 'colour:'" in capsys.readouterr().err
    assert run(small, "ls", "--selector", "left_out") == 0
    assert "warning: the selection 'bb' matches nothing" in capsys.readouterr().err
    write(small, "selectors.yml", "selectors: [{name: x, definitoin: a}]\n")
    assert run(small, "ls", "--selector", "x") == 1
    assert "unknown-key" in capsys.readouterr().err


def test_a_file_of_selectors_is_checked_with_the_project(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether or not a command selects with it."""
    wrong = SELECTORS.replace("tag:hto", "tag:hto,state:modified+")
    for command in ("parse", "compile"):
        write(small, "selectors.yml", wrong)
        assert run(small, command) == 1
        said = "".join(capsys.readouterr())
        assert "selectors.yml:7:41: error: unknown selection method 'colour:' [bad-value]" in said
        assert "selectors.yml:5:28: warning: the selection 'tag:hto' matches nothing [selection-empty]" in said
        assert "1 error, 2 warnings" in said
        write(
            small, "selectors.yml", "selectors: [{name: x, definition: tag:hot}, {name: y, definition: 'state:new'}]\n"
        )
        assert run(small, command) == 0
        assert "0 errors, 0 warnings" in "".join(capsys.readouterr())
        write(small, "selectors.yml", "selectors: [\n")
        assert run(small, command) == 1
        assert "yaml-syntax" in "".join(capsys.readouterr())


def chosen(root: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    capsys.readouterr()
    assert run(root, "ls", "--output", "name", *arguments) == 0, capsys.readouterr().err
    return capsys.readouterr().out.splitlines()


def test_modified_includes_new_models_sources_and_tests_as_in_dbt(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(small, "compile")
    shutil.copytree(small / "target", small / "before")
    state = ("--state", str(small / "before"))
    write(small, "models/fresh.sql", "/*---\ncolumns: {id: {tests: [unique]}}\n---*/\nselect 1 as id")
    write(small, "tests/units.yml", "unit_tests: [{name: counts, model: b, given: {a: [{id: 1}]}, expect: [{n: 1}]}]")
    assert chosen(small, capsys, "-s", "state:new", *state) == ["fresh", "unique_fresh_id", "counts"]
    for part in ("", ".body", ".config", ".relation"):
        assert chosen(small, capsys, "-s", f"state:modified{part}", *state) == ["fresh", "unique_fresh_id", "counts"]
    assert chosen(small, capsys, "-s", "state:modified,test_type:data", *state) == ["unique_fresh_id"]
    left = chosen(small, capsys, "-s", "state:unmodified", *state)
    assert set(left).isdisjoint({"fresh", "unique_fresh_id", "counts"})
    assert {"a", "b"} <= set(left)


def test_tests_of_a_modified_model_come_with_it(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(small, "compile")
    shutil.copytree(small / "target", small / "before")
    path = small / "models/a.sql"
    path.write_text(path.read_text().replace("select", "select 5 as five,", 1))
    names = chosen(small, capsys, "-s", "state:modified", "--state", str(small / "before"))
    assert names == ["a", "not_null_a_id"]


CONFIGURED = """/*---
materialized: table
tags: [nightly, finance]
meta: {owner: Ann}
refresh: full
partition_by: [id]
---*/
select 1 as id"""


@pytest.mark.parametrize(
    "selection",
    [
        "config.tags:finance",
        "config.tags:fin*",
        "config.refresh:full",
        "config.partition_by:id",
        "config.meta:owner",
        "config.meta.owner:Ann",
        "config.persist_docs.columns:true,folder.deep.*",
        "fqn:p.folder.deep.paid",
        "fqn:folder.deep.paid",
        "fqn:p.folder.*",
        "fqn:paid",
        "package:this,paid",
        "package:p,paid",
        "path:models/fold*",
        "models/*/deep",
        "path:models/folder/deep/",
        "selector:money",
    ],
)
def test_methods_of_dbt_select_by_config_name_folder_package_and_selector(
    small: Path, capsys: pytest.CaptureFixture[str], selection: str
) -> None:
    write(small, "models/folder/deep/paid.sql", CONFIGURED)
    write(small, "selectors.yml", "selectors: [{name: money, definition: {method: selector, value: inner}}, "
          "{name: inner, definition: {method: fqn, value: p.folder.deep.paid}}]\n")  # fmt: skip
    (small / "project.yml").write_text("name: p\n")
    assert chosen(small, capsys, "-s", selection) == ["paid"]


def test_a_selector_that_contains_itself_is_rejected(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        small, "selectors.yml", "selectors: [{name: x, definition: 'selector:y'}, {name: y, definition: 'selector:x'}]"
    )
    assert run(small, "ls", "-s", "selector:x") == 1
    assert "the selector 'x' contains itself" in capsys.readouterr().err
    assert run(small, "ls", "-s", "selector:z") == 2
    assert "selector 'z' not found" in capsys.readouterr().err


def test_values_with_blanks_are_selected_in_one_value(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(small, "models/my folder/t.sql", "/*---\ntags: [two words]\n---*/\nselect 1 as id")
    for selection in (
        "tag:two words",
        "path:models/my folder",
        "models/my folder",
        "config.tags:two words",
        "+tag:two words+",
    ):
        assert chosen(small, capsys, "-s", selection) == ["t"], selection
    assert chosen(small, capsys, "-s", "a b", "--exclude", "test_type:data") == ["a", "b"]


def test_every_key_of_a_header_is_in_the_manifest(small: Path) -> None:
    described = {"title", "description", "columns", "acknowledge"}
    model = Project(small).compile().manifest.model("a")
    config = set(node_dict(model, About("p"))["config"])
    aliases = {"data_tests", "tests", "pre_hook", "post_hook"}
    assert {key.name for key in MODEL.keys} - config - described - aliases == set()
