"""Commands that a warm process carries out: the same bytes, exit codes, folder, environment and signals."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cli.warm.handover import default_target, hand_over
from engine.cli.warm.same_process import difference
from engine.control import connect, socket_path

pytestmark = pytest.mark.slow

SERVER = """
    import os, sys, time
    from pathlib import Path
    from engine.cli.warm.command_server import CommandServer
    from engine.control import ControlServer, socket_path

    def carry_out(arguments):
        if "--sleep" in arguments:
            print("sleeping", flush=True)
            # A signal that comes just before one sleep begins ends the next one.
            for _ in range(300):
                time.sleep(0.1)
        if "--die" in arguments:
            print("dying", flush=True)
            os._exit(9)
        print(Path.cwd().name, os.environ.get("MINE"), os.isatty(1), sys.stdin.read() if not os.isatty(0) else "")
        print("\\u00fc \\x1b[31mred\\x1b[0m", *arguments, file=sys.stderr)
        Path("made").touch(mode=0o666)
        return 3

    commands = CommandServer(carry_out)
    with ControlServer(socket_path(Path(sys.argv[1]), "warm dev"), {"command": commands.handle}):
        print("ready", flush=True)
        commands.serve(60, lambda: None)
"""
CLIENT = "import sys; from engine.cli.warm.handover import hand_over; sys.exit({None: 99}.get(c := hand_over(sys.argv[1:]), c))"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ENGINE_NO_WARM", raising=False)
    root = tmp_path / "shop"
    root.mkdir()
    (root / "project.yml").write_text("name: shop\n")
    return root


@pytest.fixture
def warm(project: Path) -> Iterator[subprocess.Popen[str]]:
    arguments = [sys.executable, "-c", textwrap.dedent(SERVER), str(project)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def client(project: Path, *arguments: str, **settings: object) -> subprocess.Popen[str]:
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | settings
    return subprocess.Popen([sys.executable, "-c", CLIENT, *arguments], cwd=project, text=True, **streams)  # type: ignore[call-overload, no-any-return]


def lives(number: int) -> bool:
    """Whether a process runs; one that has ended may wait for somebody to ask for its exit code."""
    try:
        return " Z " not in Path(f"/proc/{number}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def ended(process: subprocess.Popen[str], given: str = "") -> tuple[int, str, str]:
    out, err = process.communicate(given, timeout=60)
    return process.returncode, out, err


@pytest.mark.usefixtures("warm")
def test_bytes_codes_folder_environment_and_umask_are_the_clients(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "of the client")
    code, out, err = ended(client(project, "build", "-s", "a b", umask=0o027), "input")
    assert (code, out) == (3, "shop of the client False input\n")
    assert err == "\u00fc \x1b[31mred\x1b[0m build -s a b\n"
    assert (project / "made").stat().st_mode & 0o777 == 0o640
    monkeypatch.delenv("MINE")
    assert ended(client(project, "test"))[1] == "shop None False \n"


@pytest.mark.usefixtures("warm")
def test_a_terminal_stays_a_terminal(project: Path) -> None:
    ours, theirs = pty.openpty()
    process = client(project, "build", stdin=theirs, stdout=theirs)
    os.close(theirs)
    assert ended(process)[0] == 3
    assert os.read(ours, 1000) == b"shop None True \r\n"
    os.close(ours)


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_signals_reach_the_command(project: Path, number: int, code: int) -> None:
    # What is ignored (SIGHUP below nohup) is not passed on.
    process = client(project, "build", "--sleep", preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    assert process.stdout is not None
    assert process.stdout.readline() == "sleeping\n"
    process.send_signal(number)
    begin = time.monotonic()
    assert ended(process)[0] == code
    assert time.monotonic() - begin < 15
    assert ended(client(project, "build"))[0] == 3


@pytest.mark.usefixtures("warm")
def test_one_command_at_a_time_and_a_killed_client_ends_its_command(project: Path) -> None:
    process = client(project, "build", "--sleep")
    assert process.stdout is not None
    process.stdout.readline()
    assert ended(client(project, "build"))[0] == 99
    process.kill()
    process.communicate()
    until = time.monotonic() + 15
    while (code := ended(client(project, "build"))[0]) == 99:
        assert time.monotonic() < until
    assert code == 3


def test_a_warm_process_that_dies_is_reported_and_the_next_command_has_its_own(
    project: Path, warm: subprocess.Popen[str]
) -> None:
    code, out, err = ended(client(project, "build", "--die"))
    assert (code, out) == (1, "dying\n")
    assert f"process {warm.pid}, which carried out the command, has ended" in err
    assert "[process-lost]" in err
    assert ended(client(project, "build"))[0] == 99


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (("plan",), {}),
        (("build", "--watch"), {}),
        (("build", "--no-warm"), {}),
        (("build",), {"ENGINE_NO_WARM": "1"}),
        (("build",), {"AWS_PROFILE": "other"}),
        (("build",), {"ENGINE_TARGET": "prod"}),
        (("build", "--target=prod"), {}),
        (("build", "--project-dir", "/"), {}),
    ],
)
def test_what_does_not_fit_is_carried_out_by_the_client_itself(
    project: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ended(client(project, *arguments))[0] == 99


def test_an_edited_engine_is_another_version(project: Path, warm: subprocess.Popen[str]) -> None:
    found = connect(socket_path(project, "warm dev"))
    assert found is not None
    assert found.pid == warm.pid
    with found:
        answers = list(found.ask("command", version="another", environment={}, arguments=[]))
    assert answers == [{"end": True, "declined": "it is another version of Headrace or Python"}]


@pytest.mark.usefixtures("warm")
def test_in_a_folder_that_was_removed_the_client_reports_it_itself(project: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); {CLIENT}"
    arguments = [sys.executable, "-c", code, "build", "--project-dir", str(project)]
    assert subprocess.run(arguments, capture_output=True, check=False).returncode == 99


def test_without_a_warm_process_nothing_is_loaded(project: Path) -> None:
    code = "import sys; from engine.cli.warm.handover import hand_over; print(hand_over(['build']), *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("None ")
    assert {"click", "yaml", "engine.errors", "socket", "pyspark"}.isdisjoint(done.stdout.split())


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("name: a\n", "dev"),
        ("target: prod\n", "prod"),
        ("target: 'prod'  # the default\n", "prod"),
        ("target: \"{{ env_var('X') }}\"\n", None),
        ("targets: {dev: {}}\n", "dev"),
    ],
)
def test_the_default_target_is_read_from_the_text(tmp_path: Path, text: str, target: str | None) -> None:
    (tmp_path / "project.yml").write_text(text)
    assert default_target(tmp_path) == target
    assert hand_over(["build", "--project-dir", str(tmp_path / "none")], {}) is None


def test_variables_that_count_at_a_start_are_compared_by_name() -> None:
    own = {"AWS_SECRET_ACCESS_KEY": "a", "MINE": "1", "PATH": "/bin"}
    assert difference(own, own | {"MINE": "2", "ENGINE_TARGET": "x"}) == ""
    assert (
        difference(own, {"AWS_SECRET_ACCESS_KEY": "b", "https_proxy": "p"})
        == "AWS_SECRET_ACCESS_KEY, PATH, https_proxy"
    )


@pytest.mark.spark
def test_a_warm_process_builds_tests_and_shows(project: Path) -> None:
    def engine(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "engine", *arguments, "--project-dir", str(project)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    (project / "models").mkdir()
    (project / "models" / "numbers.sql").write_text("select 1 as number union all select 2\n")
    started = engine("warmup", "--stay", "10 minutes")
    assert started.returncode == 0, started.stdout + started.stderr
    found = connect(socket_path(project, "warm dev"))
    assert found is not None
    java = Path(f"/proc/{found.pid}/task/{found.pid}/children").read_text().split()
    try:
        assert "already warm" in engine("warmup", "--stay", "10m").stdout.lower()
        for arguments in (("build",), ("show", "numbers", "--output", "csv")):
            done = engine(*arguments)
            assert done.returncode == 0, done.stdout + done.stderr
        assert sorted(done.stdout.split()) == ["1", "2", "number"]
        # Each of them ran in the one Java, and none left a lock.
        assert Path(f"/proc/{found.pid}/task/{found.pid}/children").read_text().split() == java
        assert engine("build", "--no-warm").returncode == 0
        (project / "models" / "numbers.sql").write_text("select nothing\n")
        wrong, own = engine("build"), engine("build", "--no-warm")
        assert (wrong.returncode, wrong.stderr) == (own.returncode, own.stderr)
        assert wrong.returncode == 1
        (project / "models" / "numbers.sql").write_text("select 1 as number\n")
    finally:
        assert "Stopped" in engine("warmup", "--stop").stdout
        found.close()
    until = time.monotonic() + 20
    while any(lives(number) for number in (found.pid, *map(int, java))):
        assert time.monotonic() < until
        time.sleep(0.1)
    assert "Nothing to stop" in engine("warmup", "--stop").stdout
