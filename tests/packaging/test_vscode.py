"""The extension for VS Code: what it names exists, and its text is JavaScript. `make vscode` packages it."""

import json
import re
import shutil
import subprocess

import pytest

from engine import Project, __version__
from engine.lsp.language_server import build_server
from tests.lab import REPOSITORY

FOLDER = REPOSITORY / "editors" / "vscode"
MANIFEST = json.loads((FOLDER / "package.json").read_text())
SCRIPT = (FOLDER / "extension.js").read_text()


def test_its_commands_are_those_that_it_registers():
    declared = {command["command"] for command in MANIFEST["contributes"]["commands"]}
    assert set(re.findall(r'registerCommand\("([^"]+)"', SCRIPT)) == declared
    assert {item["command"] for items in MANIFEST["contributes"]["menus"].values() for item in items} <= declared


def test_it_asks_for_commands_that_the_server_has(tmp_path):
    (tmp_path / "project.yml").write_text("name: p\n")
    commands = build_server(Project(tmp_path)).protocol.fm.commands
    asked = set(re.findall(r'^const [A-Z_]+ = "(headrace\.[^"]+)";', SCRIPT, re.MULTILINE))
    assert len(asked) == 3
    assert asked <= set(commands)


def test_its_version_is_that_of_the_server():
    assert MANIFEST["version"] == __version__
    assert json.loads((FOLDER / "package-lock.json").read_text())["version"] == __version__


def test_which_program_is_started_is_not_for_a_workspace_to_say():
    assert MANIFEST["contributes"]["configuration"]["properties"]["headrace.command"]["scope"] == "machine"
    assert "headrace.command" in MANIFEST["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_its_text_is_javascript():
    subprocess.run(["node", "--check", str(FOLDER / "extension.js")], check=True)
