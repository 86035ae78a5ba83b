"""Pages that are looked up, not followed: their commands are accepted, their files are read by what reads them."""

from __future__ import annotations

import ast
import configparser
import importlib
import json
import shlex
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
import yaml

from engine import Project, events
from engine.cli.main import invoke
from engine.runtime.context.run_results import as_dict
from tests.lab import REPOSITORY
from tests.pages.command_lines import check_command, engine_commands
from tests.pages.page_blocks import Block, blocks_of, put

DOCS = REPOSITORY / "docs"
HOW_TO = sorted((DOCS / "how-to").glob("*.md"))
PAGES = [*HOW_TO, *sorted(DOCS.glob("*.md")), DOCS / "examples" / "README.md", REPOSITORY / "README.md"]


def blocks(name: str) -> list[Block]:
    return blocks_of((DOCS / name).read_text(encoding="utf-8"))


def file_of(name: str, file: str) -> str:
    (block,) = [block for block in blocks(name) if block.file == file]
    return block.text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_is_accepted(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Folders that options name.
    (tmp_path / "here").mkdir()
    (tmp_path / "base" / "target").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    for block in blocks_of(page.read_text(encoding="utf-8")):
        for line, arguments in engine_commands(block):
            try:
                check_command(arguments)
            except Exception as error:  # noqa: BLE001 (a value that a callback does not take, too)
                pytest.fail(f"{page.name}:{line}: engine {' '.join(arguments)}: {error!r}")


def test_commands_are_found() -> None:
    text = "ExecStart=/srv/venv/bin/engine build --log-format json\n*/5 * * * * cd /srv && engine run -q\n"
    found = [arguments for _, arguments in engine_commands(Block("text", "", text, 1))]
    assert found == [["build", "--log-format", "json"], ["run", "-q"]]
    counts = {page.name: sum(1 for b in blocks(f"how-to/{page.name}") for _ in engine_commands(b)) for page in HOW_TO}
    # An editor and an assistant start the command of their page.
    assert min(count for name, count in counts.items() if name not in {"editor.md", "assistants.md"}) >= 1, counts


@pytest.mark.parametrize(
    "arguments", [["built"], ["build", "--fresh"], ["source", "fresh"], ["build", "--threads", "x"]]
)
def test_a_wrong_command_is_noticed(arguments: list[str]) -> None:
    with pytest.raises(Exception, match=r"(?i)no such|not a valid"):
        check_command(arguments)


# The files of after-dbt.md are edits of an imported project: test_after_dbt.py follows it.
@pytest.mark.parametrize("page", [p for p in HOW_TO if p.name != "after-dbt.md"], ids=lambda page: page.name)
def test_the_files_of_a_project_have_no_errors(page: Path, tmp_path: Path) -> None:
    project = {"project.yml", "sources", "models", "tests"}
    shown = [
        block
        for block in blocks_of(page.read_text(encoding="utf-8"))
        if block.file.split("/")[0] in project and block.language != "diff"
    ]
    (tmp_path / "project.yml").write_text("name: shop\n")
    for block in shown:
        put(block, tmp_path)
    for target in ("prod", None) if "prod:" in (tmp_path / "project.yml").read_text() else (None,):
        result = Project(tmp_path, target=target).compile()
        assert [str(diagnostic) for diagnostic in result.manifest.diagnostics] == []


@pytest.mark.parametrize(("page", "file"), [("ci", ".github/workflows/headrace.yml"), ("ci", ".gitlab-ci.yml")])
def test_ci_files_run_commands(page: str, file: str) -> None:
    text = file_of(f"how-to/{page}.md", file)
    settings = yaml.safe_load(text)
    job = settings["jobs"]["test"] if "jobs" in settings else settings["headrace"]
    lines = [step.get("run", "") for step in job["steps"]] if "steps" in job else job["script"]
    assert sum(line.startswith("engine ") for line in lines) == 2


def test_the_container_runs_commands_that_exist() -> None:
    (text,) = [block.text for block in blocks("how-to/deploy.md") if block.language == "dockerfile"]
    lines = dict(line.split(" ", 1) for line in text.splitlines() if line.startswith(("ENTRYPOINT", "CMD")))
    program, *arguments = [*json.loads(lines["ENTRYPOINT"]), *json.loads(lines["CMD"])]
    assert program == "engine"
    check_command(arguments)


@pytest.mark.parametrize("page", [DOCS / "python-api.md", *HOW_TO], ids=lambda page: page.name)
def test_python_is_python_and_what_it_imports_of_the_engine_exists(page: Path) -> None:
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.language != "python":
            continue
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "engine":
                module = importlib.import_module(node.module or "")
                assert all(hasattr(module, name.name) for name in node.names), f"{page.name}:{block.line}"
            if isinstance(node, ast.Call) and any(keyword.arg == "bash_command" for keyword in node.keywords):
                (command,) = [ast.literal_eval(k.value) for k in node.keywords if k.arg == "bash_command"]
                check_command(shlex.split(command)[1:])


@pytest.mark.slow
def test_units_of_systemd(tmp_path: Path) -> None:
    names = [block.file for block in blocks("how-to/deploy.md") if block.file.startswith("/etc/systemd")]
    assert len(names) == 3
    for name in names:
        text = file_of("how-to/deploy.md", name).replace("/srv/venv/bin/engine", sys.executable)
        configparser.ConfigParser(strict=True).read_string(text)
        (tmp_path / Path(name).name).write_text(text)
    if (program := shutil.which("systemd-analyze")) is None:
        return
    units = [str(tmp_path / Path(name).name) for name in names]
    ended = subprocess.run([program, "verify", "--man=no", *units], capture_output=True, text=True, check=False)
    assert [line for line in ended.stderr.splitlines() if str(tmp_path) in line or "shop." in line] == []


def test_the_manifest_of_kubernetes_runs_commands_that_exist() -> None:
    manifest = yaml.safe_load(file_of("how-to/deploy.md", "shop.yaml"))
    pod = manifest["spec"]["template"]
    assert manifest["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    (container,) = pod["spec"]["containers"]
    check_command(container["args"])
    program, *arguments = container["livenessProbe"]["exec"]["command"]
    assert program == "engine"
    check_command(arguments)
    claims = {claim["metadata"]["name"] for claim in manifest["spec"]["volumeClaimTemplates"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == claims


def test_events_that_are_listed_exist() -> None:
    text = (DOCS / "how-to" / "orchestrate.md").read_text(encoding="utf-8")
    rows = [
        line.split("|")
        for line in text.splitlines()
        if line.startswith("| `") and ("`node`" in line or "`run_id`" in line)
    ]
    assert len(rows) == 5
    for _, names, _, keys, _ in rows:
        known: set[str] = set()
        for name in names.replace("`", "").split(","):
            known |= set(getattr(events, name.strip()).__dataclass_fields__)
        assert {key for part in keys.split(";") for key in part.replace("`", "").replace(" ", "").split(",")} <= known


@pytest.mark.slow
def test_the_script_that_reads_results(tmp_path: Path) -> None:
    put(next(block for block in blocks("how-to/orchestrate.md") if block.file == "results.py"), tmp_path)
    run = events.fold(
        [
            events.RunStarted("1", "build", "dev", 1, "2024-05-01T10:00:00Z"),
            events.ModelStarted("model.hourly", 1, 1, "streaming_table", "lake.shop.hourly"),
            events.ModelFinished(
                node="model.hourly",
                index=1,
                total=1,
                kind="streaming_table",
                relation="lake.shop.hourly",
                seconds=1.0,
                status=events.Status.SUCCESS,
                rows_in=5,
                late=1,
                watermark="2024-05-01 09:00:00",
            ),
            events.RunFinished(1.0),
        ]
    )
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "run_results.json").write_text(json.dumps(as_dict(run, "shop")))
    ended = subprocess.run([sys.executable, "results.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout.split()[-5:] == ["success", "5", "1", "2024-05-01", "09:00:00"]


@pytest.mark.slow
def test_only_what_changed_is_selected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = [block for block in blocks("how-to/ci.md") if "state:modified+" in block.text]
    commands = {" ".join(arguments): arguments for _, arguments in engine_commands(block)}

    def engine(*arguments: str, folder: str = "shop") -> str:
        with chdir(tmp_path / folder):
            assert invoke(arguments) == 0
        return capsys.readouterr().out

    engine("init", "shop", folder=".")
    shutil.copytree(tmp_path / "shop", tmp_path / "base")
    engine(*commands.pop("compile --project-dir ../base"))
    (listing, test) = commands.values()
    assert "nothing to do" in engine(*listing)
    assert "nothing to do" in engine(*test)
    model = tmp_path / "shop" / "models" / "marts" / "sales_hourly.sql"
    text = model.read_text()
    model.write_text(text.replace("\nselect\n", "\n-- a comment\nselect\n"))
    assert "nothing to do" in engine(*listing)
    model.write_text(text.replace("description: Number", "description: Count"))
    assert "sales_hourly" in engine(*listing)
    assert "nothing to do" in engine("ls", "-s", "state:modified.body+", "--state", "../base/target")
    model.write_text(text.replace("sum(amount)", "sum(amount) filter (where amount > 0)"))
    assert "sales_hourly  (streaming_table" in engine(*listing)
    assert "orders  (streaming_table" not in engine(*listing)
