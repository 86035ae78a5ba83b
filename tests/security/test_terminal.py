"""What commands print neither steers a terminal nor gives a command to the program that reads a CI log."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from engine import events
from engine.characters import one_line, visible, without_commands
from engine.cli.commands.build_command import write_junit
from engine.cli.commands.show_command import format_rows
from engine.cli.console.safe_output import json_text
from engine.cli.main import invoke
from engine.compile import DataTest, Manifest
from engine.errors import Diagnostic
from engine.events import RunResults, Status
from tests.docs.build import manifest, model, not_null
from tests.test_layers import ROOT, modules_with

# Title of the window and clipboard (OSC), clear screen (CSI), C1's CSI and OSC, BEL, a return over the line, a
# backspace, a vertical tab, DEL, line ends of Unicode, an override, an isolate, a zero-width space, a byte order mark.
NASTY = (
    "\x1b]0;owned\x07\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\x9d0;x\x9c\x07\rfine\x08\x0b\x7f\u2028\u2029\x85"
    "\u202egnp\u2066x\u200b\ufeff\U000e0041"
)
COMMANDS = (
    "::add-mask::x",
    "::set-output name=a::b",
    "  ::error::forged",
    "##[error]x",
    "a ##vso[task.setvariable x]y",
)
HOSTILE = NASTY + "\n" + "\n".join(COMMANDS) + "\n00:00:00  Done. PASS=1"
# What may be printed beside text: line ends, and on a terminal the colours of ours.
COLOUR = re.compile(rb"\x1b\[(0|1|31|32|33)m")
UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\u200b-\u200f\ufeff\U000e0041]")
CI_COMMAND = re.compile(r"(?m)^[^\S\n]*::|##[\w-]*\[")


def quoted(text: str) -> str:
    """A text in double quotes, for YAML and for Jinja: with escapes, for control characters in files are errors."""
    return json.dumps(text).replace("\\ud" + "b40\\udc41", "\\U000e0041").replace("\x7f", "\\x7f")


def hostile_project(root: Path) -> Path:
    """A project that has its texts wherever a text can stand."""
    text = quoted(HOSTILE)
    (root / "models").mkdir(parents=True)
    (root / "sources").mkdir()
    (root / "macros").mkdir()
    (root / "tests").mkdir()
    (root / "project.yml").write_text(
        f"name: hostile\nvars: {{said: {text}, {text}: 1}}\nversion: {text}\n"
        f"targets:\n  dev:\n    catalog: {{type: sqlite, name: lake, path: .engine/lake}}\n    schema: h\n"
        f"    {text}: 1\n"
    )
    (root / "sources" / "s.yml").write_text(
        "sources:\n  - name: s\n    tables:\n      - name: events\n        format: csv\n"
        f"        path: {quoted('landing/' + HOSTILE)}\n        schema: {quoted('id string, ' + HOSTILE)}\n"
        f"        description: {text}\n        meta: {{{text}: {text}}}\n"
        "      - name: good\n        format: csv\n        path: landing/good\n        schema: id string\n"
        f"        description: {text}\n        options: {{header: {text}}}\n"
    )
    (root / "macros" / "m.sql").write_text(f"{{% macro shout() %}}{{{{ exceptions.warn({text}) }}}}{{% endmacro %}}\n")
    header = (
        "/*---\nmaterialized: table\n"
        f"description: {text}\ntags: [{text}]\nmeta: {{{text}: {text}}}\n"
        f"columns:\n  id: {{description: {text}, tests: [not_null]}}\n  {text}: {{}}\n---*/\n"
    )
    (root / "models" / "good.sql").write_text(
        f"{header}{{{{ shout() }}}}{{{{ log({text}, info=true) }}}}{{{{ print({text}) }}}}"
        f"select id, '{NASTY[-4:]}' as x from {{{{ source('s', 'good') }}}}\n"
    )
    (root / "models" / "bad.sql").write_text(f"/*---\n{text}: 1\n---*/\nselect 1 as a\n")
    (root / "models" / "raised.sql").write_text(f"{{{{ exceptions.raise_compiler_error({text}) }}}}")
    (root / "models" / "parsed.sql").write_text(f"select 1 as {{{{ {text} }}}} from")
    (root / "models" / "read.sql").write_text(f"select * from {{{{ ref({text}) }}}}")
    (root / "models" / "quoted.sql").write_text(f"select `{{{{ {text} }}}}` from {{{{ ref('good') }}}}")
    (root / "tests" / "t.yml").write_text(
        f"unit_tests:\n  - name: {text}\n    model: good\n    given: {{good: [{{id: {text}}}]}}\n    expect: {{rows: []}}\n"
    )
    for name in (f"{NASTY}.sql", "::error::x.sql", "##[error]y.sql", "line\n::debug::z.sql"):
        (root / "models" / name).write_text("select 1 as a")
    with contextlib.suppress(OSError):
        (root / "models" / os.fsdecode(b"\xff\x9b31m.sql")).write_text("select 1 as a")
    return root


def run(root: Path, *arguments: str, capfdbinary) -> tuple[int, bytes]:
    """A command's exit code and all that it printed to a pipe."""
    capfdbinary.readouterr()
    code = invoke([*arguments, "--project-dir", str(root)])
    return code, b"".join(capfdbinary.readouterr())


def run_on_a_terminal(root: Path, *arguments: str) -> tuple[int, bytes]:
    """The same of a process of its own on a terminal."""
    command = [sys.executable, "-m", "engine", *arguments, "--project-dir", str(root)]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        printed = b""
        with contextlib.suppress(OSError):
            while piece := os.read(ours, 65536):
                printed += piece
        os.close(ours)
    # The terminal's own line ends.
    return process.returncode, printed.replace(b"\r\n", b"\n")


def steering(printed: bytes, *, terminal: bool) -> list[str]:
    """What is in an output that may not be."""
    text = (COLOUR.sub(b"", printed) if terminal else printed).decode("utf-8", "surrogateescape")
    found = [repr(match[0]) for match in UNSEEN.finditer(text)]
    return found + [repr(match[0]) for match in CI_COMMAND.finditer(text)]


COMMAND_LINES = (
    ("parse",), ("compile",), ("compile", "--log-format", "json"), ("ls",), ("ls", "--output", "json"),
    ("ls", "--output", "path"), ("docs", "generate"), ("debug",), ("lineage",), ("lineage", "--output", "mermaid"),
    ("lineage", "good.id"), ("lineage", "good.id", "--output", "json"), ("test",), ("build",), ("plan",),
    ("show", HOSTILE.replace("\x00", "")), ("ls", "-s", HOSTILE), (HOSTILE,), ("ls", "--vars", HOSTILE),
    ("show", "good", "--table"),
)  # fmt: skip


@pytest.mark.slow
def test_no_command_prints_what_steers_a_terminal_or_a_ci_job(tmp_path, capfdbinary):
    root = hostile_project(tmp_path)
    for line in COMMAND_LINES:
        code, printed = run(root, *line, capfdbinary=capfdbinary)
        check(line, code, printed, terminal=False)


@pytest.mark.slow
def test_on_a_terminal_the_only_sequences_are_our_colours(tmp_path):
    # A terminal differs in colours and in the line that shows progress; most commands print the same to both.
    root = hostile_project(tmp_path)
    for line in COMMAND_LINES[::7]:
        code, printed = run_on_a_terminal(root, *line)
        check(line, code, printed, terminal=True)


def check(line: tuple[str, ...], code: int, printed: bytes, *, terminal: bool) -> None:
    assert printed
    assert steering(printed, terminal=terminal) == [], line
    assert b"Traceback" not in printed, line
    assert b"[internal-error]" not in printed, line
    assert code in {0, 1, 2}


@pytest.mark.slow
def test_json_on_standard_output_is_json_with_the_exact_text(tmp_path, capfdbinary):
    root = hostile_project(tmp_path)
    _, printed = run(root, "compile", "--log-format", "json", capfdbinary=capfdbinary)
    records = [json.loads(line) for line in printed.decode("ascii").splitlines()]
    assert any(NASTY in record["message"] for record in records if record["event"] == "Diagnosed")


@pytest.mark.slow
def test_the_log_file_has_no_control_characters_either(tmp_path, capfdbinary):
    root = hostile_project(tmp_path)
    run(root, "test", capfdbinary=capfdbinary)
    log = (root / "target" / "logs" / "engine.log").read_text("utf-8")
    assert not UNSEEN.search(log)


@pytest.mark.parametrize("output", ["text", "csv", "json"])
def test_rows_of_a_table_are_shown_escaped(output):
    shown = format_rows((["a", HOSTILE], [(HOSTILE, float("nan")), (None, float("inf"))]), output)
    if output == "json":
        first, second = map(json.loads, shown.split("\n"))
        assert first == {"a": HOSTILE, HOSTILE: "NaN"}
        assert second[HOSTILE] == "Infinity"
    if output == "text":
        assert len({len(line) for line in shown.split("\n")}) == 1
        assert len(shown.split("\n")) == 4
        assert not UNSEEN.search(shown)
    assert not CI_COMMAND.search(without_commands(visible(shown)))


@pytest.mark.parametrize("text", [HOSTILE, "".join(map(chr, range(0xA0))), "\ud800", "\ufffe\uffff", "]]>&<"])
def test_junit_is_xml_for_every_text(tmp_path, text):
    test = not_null("id", "good", name=text, file=text)
    project: Manifest = replace(manifest(model("good"), test), project=text)
    found = Diagnostic("sql-syntax", text, text, node=test.id.partition(".")[2])
    ended = events.TestFinished(test.id, 1, 1, Status.FAIL, 0.1, 1, text)
    write_junit(RunResults(results=(ended,), diagnostics=(found,)), project, tmp_path / "j.xml", tmp_path)
    assert isinstance(test, DataTest)
    assert len(ET.parse(tmp_path / "j.xml").getroot()) == 1


@pytest.mark.parametrize(
    "text", ["plain", "naïve café", "日本語", "שלום", "Привет", "a\nb", "::", "a::b", "cast(x::int)", "# ## x"]
)
def test_ordinary_text_is_printed_as_it_is(text):
    assert visible(text) == text
    assert without_commands(f"x {text}") == f"x {text}"


def test_a_record_as_json_gives_no_command():
    assert CI_COMMAND.search(json_text({"a": "##[error]"})) is None
    assert json.loads(json_text({"a": ["##[x]", "\x7f\u2028", float("-inf")]})) == {
        "a": ["##[x]", "\x7f\u2028", "-Infinity"]
    }
    assert one_line("a\nb") == "a\\nb"


@pytest.mark.slow
def test_nothing_else_of_the_engine_writes_to_the_terminal():
    """Calls of print, click.echo and the like outside the one module; the messages of click itself are among them."""
    told = []
    for path, text in modules_with(r"\bprint\(|\bclick\.|std(out|err)\.write"):
        if path.name == "safe_output.py" or "rich" in path.parts:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {
                "print", "click.echo", "click.secho", "click.style", "sys.stdout.write", "sys.stderr.write",
            }:  # fmt: skip
                told += [f"{path.relative_to(ROOT.parent)}: {ast.unparse(node)}"]
    assert told == []
