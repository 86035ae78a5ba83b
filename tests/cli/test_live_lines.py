"""The last lines of a terminal: what is under way from the first moment, nothing of it afterwards, none elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading

import pytest

from engine.cli.console import live_area
from engine.cli.console.live_area import AREA, fits
from engine.cli.console.live_progress import LiveProgress
from engine.cli.console.printing import JsonPrinter, TextPrinter
from engine.cli.console.progress_bars import bar_lines
from engine.cli.console.running_node import RunningNode, RunProgress
from engine.events import BatchCommitted, ModelStarted, RunFinished, RunStarted, Step, StepStarted
from tests.cli.processes import engine
from tests.cli.screen import Screen, Watched, watch
from tests.cli.test_watch import PROJECT, land
from tests.lab import EVENTS, event
from tests.pages.page_blocks import comparable
from tests.project.small_projects import write
from tests.security.test_terminal import COLOUR, HOSTILE, UNSEEN

# Also those of bars, which have more colours.
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
BROKEN: dict[str, str | bytes] = {"models/a.sql": "select 1 as a from nowhere.b\n", "models/b.sql": "select from"}
# Each file is a micro-batch.
SLOW: dict[str, str | bytes] = {
    "project.yml": PROJECT,
    "sources/shop.yml": EVENTS.replace("format: json", "format: json\n        max_files_per_trigger: 1"),
    "models/paid.sql": (
        "/*---\nstreams: [shop.events]\ncolumns: {id: {tests: [not_null]}}\n---*/\n"
        "select id, at, kind, amount from {{ source('shop', 'events') }}\n"
    ),
}
MODEL = "model.paid"


@pytest.fixture
def on_a_terminal(monkeypatch, capsys):
    """As on a terminal; what is drawn leads nowhere."""
    monkeypatch.setattr(live_area.os, "isatty", lambda number: number == 1)
    monkeypatch.setattr(live_area, "_write_unbuffered", lambda _: None)
    for name in ("CI", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    yield
    AREA.close()


def batch(number: int, **read: int) -> BatchCommitted:
    return BatchCommitted(
        node=MODEL, batch_id=number, watermark="2024-05-01T10:00:00.000Z", snapshot_id=None, seconds=0.5, rows_in=1200,
        read=read,
    )  # fmt: skip


def live_threads() -> int:
    return sum(thread.name == "live-area" for thread in threading.enumerate())


@pytest.mark.slow
def test_compiling_is_shown_at_once_and_nothing_of_it_stays(tmp_path):
    root = write(tmp_path, BROKEN)
    watched = watch(["build"], {}, folder=root)
    assert watched.code == 1
    assert watched.seen[0][1].endswith("Starting")
    spinners = {line[0] for line in watched.last_lines() if line.endswith(("Starting", "Compiling the project  0s"))}
    assert len(spinners) > 1
    assert "Compiling the project" in "\n".join(watched.last_lines())
    assert watched.screen.unknown == []
    plain = engine(root, "build")
    # The command on a terminal names `engine explain` beside that.
    shown = [line for line in watched.screen.text.split("\n") if "engine explain" not in line]
    assert comparable("\n".join(shown)).replace(f"{root}/", "") == comparable(plain.stdout + plain.stderr)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (["build"], {"NO_COLOR": "1"}),
        (["build"], {"TERM": "dumb"}),
        (["build"], {"TERM": ""}),
        (["build"], {"CI": "true"}),
        (["build", "--log-format", "json"], {}),
        (["build", "--log-format=json"], {}),
        (["build"], {"ENGINE_LOG_FORMAT": "json"}),
        (["build", "-q"], {}),
        (["build", "--log-level", "warn"], {}),
        (["build", "--help"], {}),
        (["compile"], {}),
    ],
)
def test_no_line_is_redrawn_where_that_is_not_wanted(tmp_path, arguments, environment):
    watched = watch(arguments, environment, folder=write(tmp_path, BROKEN))
    assert watched.raw
    assert b"\x1b" not in COLOUR.sub(b"", watched.raw)
    assert "Starting" not in watched.screen.text


@pytest.mark.slow
def test_a_command_that_is_mistyped_leaves_no_live_line(tmp_path):
    watched = watch(["build", "--no-such-option"], {}, folder=tmp_path)
    assert watched.code == 2
    assert "No such option" in watched.screen.text
    assert "Starting" not in watched.screen.text


@pytest.mark.slow
def test_ctrl_c_while_compiling_leaves_one_word(tmp_path):
    models: dict[str, str | bytes] = {f"models/m{n}.sql": "select 1 as a" for n in range(300)}
    watched = watch(["build"], {}, folder=write(tmp_path, models), interrupt_at="Compiling")
    assert watched.code == 130
    assert watched.screen.text.splitlines()[-1].startswith("interrupted")
    assert "Compiling" not in watched.screen.text


@pytest.mark.slow
def test_the_first_line_is_drawn_before_the_command_line_is_loaded():
    code = "import engine.cli.console.live_area, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "engine.cli.console.live_area" in loaded
    assert {"click", "rich", "yaml", "json", "engine.events", "engine.cli.main"}.isdisjoint(loaded)


@pytest.mark.slow
def test_rich_is_loaded_on_a_terminal_alone(tmp_path):
    root = write(tmp_path, {"models/a.sql": "select 1 as a\n"})
    code = (
        "import sys; from engine.cli.main import invoke; from engine.cli.console.printing import TextPrinter\n"
        "from engine.events import RunStarted\n"
        f"invoke(['build', '-s', 'a', '--allow-empty', '--project-dir', {str(root / 'none')!r}])\n"
        "TextPrinter().event(RunStarted('r', 'build', 'dev', 3, ''))\n"
        "print('rich' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "False"


def test_no_thread_runs_while_the_project_is_compiled(on_a_terminal):
    live = LiveProgress()
    live.event(StepStarted(Step.COMPILE))
    # Compiling starts several processes only where there is one thread.
    assert live_threads() == 0
    live.event(StepStarted(Step.PLAN))
    live.event(StepStarted(Step.SESSION))
    assert live_threads() == 1
    assert "Starting Spark" in live.lines()[0]
    live.event(RunStarted("r", "build", "dev", 3, ""))
    live.event(RunFinished(1.0))
    assert list(live.lines()) == []
    for thread in threading.enumerate():
        if thread.name == "live-area":
            thread.join(5)
    assert live_threads() == 0


@pytest.mark.slow
def test_a_fork_draws_nothing(on_a_terminal, monkeypatch):
    parent = os.getpid()  # whose timer goes on
    AREA.by_timer(lambda: ("under way",))
    monkeypatch.setattr(live_area, "_write_unbuffered", lambda _: None if os.getpid() == parent else os._exit(7))
    if not (pid := os.fork()):
        with AREA.above():
            AREA.close()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_bar_is_there_where_the_amount_is_known(monkeypatch, on_a_terminal):
    monkeypatch.setattr("engine.cli.console.progress_bars.os.get_terminal_size", lambda _: os.terminal_size((120, 30)))
    live = LiveProgress()
    live.event(RunStarted("r", "build", "dev", 3, ""))
    live.event(ModelStarted(MODEL, 1, 3, "streaming_table", "lake.main.paid", {"files": 4, "snapshots": 2}))
    live.event(ModelStarted("model.kinds", 2, 3, "table", "lake.main.kinds"))
    first = COLOURS.sub("", "\n".join(live.lines()))
    assert "0 of 4 files" in first
    assert "0 of 3 nodes" in first
    live.event(batch(0, files=3))
    paid, kinds, total = (COLOURS.sub("", line) for line in live.lines())
    assert "3 of 4 files, 1,200 rows, 2,400 rows/s, watermark 2024-05-01 10:00:00" in paid
    assert ["━" in line for line in (paid, kinds, total)] == [True, False, True]
    assert all(name in line for name, line in (("paid", paid), ("kinds", kinds), ("total", total)))
    # More than the plan counted came meanwhile.
    live.event(batch(1, files=3))
    assert "4 of 4 files" in live.lines()[0]


def test_names_in_bars_steer_nothing_and_no_line_is_wider_than_the_terminal(monkeypatch):
    monkeypatch.setattr("engine.cli.console.progress_bars.os.get_terminal_size", lambda _: os.terminal_size((60, 10)))
    running = [RunningNode(f"{HOSTILE}{'x' * 200}[red]", 0.0, "files", 9, n) for n in range(12)]
    lines = [COLOURS.sub("", line) for line in bar_lines(running, RunProgress(5_000, 17, 0.0))]
    assert len(lines) == 9
    assert "and 5 more" in lines[-2]
    assert all(len(line) < 60 for line in lines)
    assert all(line[2:9] == lines[0][2:9] and "━" in line for line in lines[:7])
    assert not UNSEEN.search("".join(lines))


def test_a_step_is_no_record_of_json(capsys):
    JsonPrinter().event(StepStarted(Step.PLAN))
    assert capsys.readouterr().out == ""


def test_what_is_printed_is_above_the_lines(monkeypatch, on_a_terminal, capsys):
    screen = Screen()
    monkeypatch.setattr(live_area, "_write_unbuffered", lambda text: screen.feed(text.replace("\n", "\r\n")))
    out = TextPrinter()
    out.event(RunStarted("r", "build", "dev", 3, ""))
    AREA._draw(("one", "two"))
    with AREA.above():
        screen.feed("printed\r\n")
    AREA._draw(("one", "two", "three"))
    with AREA.above():
        screen.feed("printed too\r\n")
    assert screen.text.split("\n")[:2] == ["printed", "printed too"]
    AREA.close()
    assert screen.text == "printed\nprinted too"


def test_a_terminal_that_was_not_asked_for_gets_nothing():
    assert not fits({"TERM": "xterm"})


@pytest.mark.nightly
@pytest.mark.spark
def test_a_build_has_bars_that_leave_what_is_printed_without_a_terminal(tmp_path):
    roots = [write(tmp_path / name, SLOW) for name in ("terminal", "pipe")]
    for root in roots:
        for number in range(4):
            land(root, str(number), event(number, number))
    watched: Watched = watch(["build"], {}, folder=roots[0], seconds=300)
    assert watched.code == 0
    seen = "\n".join(text for _, text in watched.seen)
    for text in ("Starting", "Compiling the project", "Starting Spark", "0 of 4 files", "1 of 4 files", "0 of 2 nodes"):
        assert text in seen
    assert watched.screen.unknown == []
    plain = engine(roots[1], "build")
    assert plain.returncode == 0
    assert progress_lines(watched.screen.text) >= 1
    assert comparable(without_progress(watched.screen.text)) == comparable(without_progress(plain.stdout))


@pytest.mark.nightly
@pytest.mark.spark
def test_ctrl_c_takes_the_bars_away(tmp_path):
    root = write(tmp_path, SLOW)
    for number in range(30):
        land(root, str(number), event(number, number))
    watched = watch(["build"], {}, folder=root, interrupt_at="2 of 30 files", seconds=300)
    assert watched.code == 130
    assert "CANCELLED" in watched.screen.text
    assert watched.screen.text.splitlines()[-1] == "interrupted; the next build continues where this one stopped"
    assert " of 30 files" not in watched.screen.text
    assert " nodes  " not in watched.screen.text


def progress_lines(text: str) -> int:
    return sum(" batch" in line and "rows/s" in line for line in text.split("\n"))


def without_progress(text: str) -> str:
    """Lines of progress come every few seconds, however many micro-batches there are."""
    return "\n".join(line for line in text.split("\n") if "rows/s" not in line)


def test_the_screen_of_these_tests_redraws():
    screen = Screen()
    screen.feed("a\r\nb\x1b[K\r\nc\r\x1b[1A\x1b[Jd")
    assert screen.text == "a\nd"
