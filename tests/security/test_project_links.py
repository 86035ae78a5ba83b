"""What a project reads lies in the project: no file or folder of it is read through a link that leads out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine.cli.main import invoke
from engine.compile import compile_project
from engine.project import load_project
from tests.security.hostile import PROJECT, SOURCES, run, write

pytestmark = pytest.mark.slow

SECRET = "its_a_secret"
SELECTORS = f"selectors: [{{name: mine, definition: a, description: {SECRET}}}]\n"
TEXTS = {
    "project.yml": f"{PROJECT}# {SECRET}\n",
    "selectors.yml": SELECTORS,
    "models/b.sql": f"select '{SECRET}' as b",
    "macros/m.sql": f"{{% macro m() %}}{SECRET}{{% endmacro %}}",
    "packages/p/macros/m.sql": f"{{% macro m() %}}{SECRET}{{% endmacro %}}",
    "sources/more.yml": SOURCES.replace("shop", SECRET),
    "sources/s.avsc": f'{{"type": "record", "name": "{SECRET}", "fields": []}}',
    "tests/singular.sql": f"select '{SECRET}' as x",
    "tests/t.yml": f"# {SECRET}\n",
    "tests/fixtures/rows.csv": f"id\n{SECRET}\n",
}
COMMANDS = (["compile"], ["ls", "--selector", "mine"], ["docs", "generate"])


def removed(path: Path) -> Path:
    """The path of a file or folder that was there, perhaps."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    return path


def linked(tmp_path: Path, name: str, to: Path) -> Path:
    root = write(tmp_path / "project", {"selectors.yml": SELECTORS.replace(SECRET, "")})
    removed(root / name).symlink_to(to)
    return root


@pytest.mark.parametrize("name", TEXTS)
def test_no_file_is_read_through_a_link_out_of_the_project(tmp_path, name, capsys):
    outside = tmp_path / "theirs" / Path(name).name
    outside.parent.mkdir()
    outside.write_text(TEXTS[name])
    root = linked(tmp_path, name, outside)
    for command in COMMANDS:
        code = run(root, *command)
        assert code in {0, 1, 2}
    shown = capsys.readouterr()
    assert "path-outside" in shown.out + shown.err
    written = b"".join(p.read_bytes() for p in (root / "target").rglob("*") if p.is_file())
    assert SECRET not in shown.out + shown.err
    assert SECRET.encode() not in written


@pytest.mark.parametrize(
    "name", ["models", "macros", "packages", "packages/p", "packages/p/macros", "sources", "tests", "tests/fixtures"]
)
def test_no_folder_is_read_through_a_link_out_of_the_project(tmp_path, name):
    theirs = write(tmp_path / "theirs", TEXTS)
    root = write(tmp_path / "project", {})
    removed(root / name).symlink_to(theirs / name)
    project = load_project(root)
    assert "path-outside" in {found.code for found in project.diagnostics}
    assert SECRET not in repr([project.texts, project.macros, project.singular, [m.text for m in project.models]])


LOOPS = (*TEXTS, "models", "macros", "packages", "packages/p", "sources", "tests", "tests/fixtures", "models/deep",
         "target", "target/manifest.json", ".engine", "landing")  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_a_link_in_a_circle_is_a_diagnostic_and_no_internal_error(tmp_path, name, capsys):
    root = write(tmp_path / "project", {})
    path = removed(root / name)
    other = path.with_name("other" + path.suffix)
    path.symlink_to(other)
    other.symlink_to(path)
    for command in (["compile"], ["ls"], ["docs", "generate"], ["ls", "--selector", "mine"]):
        code = run(root, *command)
        shown = capsys.readouterr()
        assert "[internal-error]" not in shown.out + shown.err
        assert "Traceback" not in shown.out + shown.err
        refused = ("selectors.yml", "an earlier state cannot be read")
        assert code in {0, 1} or any(text in shown.out + shown.err for text in refused)


@pytest.mark.parametrize("name", ["project.yml", "selectors.yml", "models/b.sql"])
def test_a_link_to_a_file_of_the_project_is_read(tmp_path, name):
    root = write(tmp_path / "project", {"docs/text": TEXTS[name], "selectors.yml": SELECTORS})
    (root / name).unlink(missing_ok=True)
    (root / name).symlink_to(root / "docs" / "text")
    assert compile_project(load_project(root), env={}).manifest.errors == ()
    assert run(root, "ls", "--selector", "mine") == 0


def test_the_project_itself_may_be_reached_by_a_link(tmp_path, capsys):
    write(tmp_path / "real", {})
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert invoke(["compile", "--project-dir", str(tmp_path / "link")]) == 0
    assert (tmp_path / "real/target/manifest.json").is_file()


def test_a_project_that_is_a_link_out_says_so_and_not_that_it_is_missing(tmp_path, capsys):
    root = linked(tmp_path, "project.yml", Path("/etc/hostname"))
    assert run(root, "compile") == 1
    shown = capsys.readouterr()
    assert "path-outside" in shown.out + shown.err
    assert "project-missing" not in shown.out + shown.err
