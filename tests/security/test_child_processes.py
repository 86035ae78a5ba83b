"""What processes that the engine starts get and leave: no secret that they do not need, no core file in the project."""

from __future__ import annotations

import ast
import os
import re
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from engine.secrets.scrubber import PREFIX, register_secret
from engine.spark import java as java_module
from engine.spark.java import find_java
from engine.spark.jvm import start_jvm
from engine.spark.private_session import LOCAL_SETTINGS
from engine.spark.session import REDACTION, SessionSettings, session_conf
from engine.state.lock import LockKeeper
from engine.user_cache import own_folder, project_cache
from tests.cli.processes import children, wait
from tests.lab import REPOSITORY
from tests.test_layers import ROOT, modules_with

SECRET = "hunter2-and-more"


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv(f"{PREFIX}DB", SECRET)


def environment(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.slow
def test_every_program_that_is_started_is_given_its_environment():
    """A call without `env` hands on all variables; each of them says what it gives."""
    without = []
    for path, text in modules_with(r"\bsubprocess\."):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and re.fullmatch(
                r"subprocess\.(run|Popen|call|check_\w+)", ast.unparse(node.func)
            ):
                given = {k.arg: ast.unparse(k.value) for k in node.keywords}
                if "env" not in given or "environ" in given["env"]:
                    without.append(f"{path.relative_to(ROOT.parent)}:{node.lineno}")
    assert without == []


def test_a_java_that_is_asked_for_its_version_gets_no_secret(tmp_path):
    script = tmp_path / "java"
    script.write_text(f"#!/bin/sh\nenv > {tmp_path}/env\necho 'openjdk version \"17.0.1\"' >&2\n")
    script.chmod(0o755)
    assert java_module._ask(script) is not None
    assert "PATH=" in (tmp_path / "env").read_text()
    assert PREFIX not in (tmp_path / "env").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_the_shell_that_keeps_locks_gets_no_secret(tmp_path):
    lock = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    with LockKeeper() as keeper, keeper.keeping([lock]):
        # The kernel shows the arguments a moment after the program has begun.
        wait(lambda: all(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children(os.getpid())))
        shells = [
            pid
            for pid in children(os.getpid())
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"/bin/sh\0-c\0read")
        ]
        assert len(shells) == 1
        assert PREFIX.encode() not in environment(shells[0])
    os.close(lock)


@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_java_gets_no_secret_and_its_crash_leaves_a_private_report_and_no_core(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        jvm = start_jvm(find_java(), conf=LOCAL_SETTINGS, log_dir=tmp_path / "target" / "logs")
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    try:
        assert PREFIX.encode() not in environment(jvm.pid)
        os.kill(jvm.pid, signal.SIGSEGV)
        jvm.process.wait(60)
    finally:
        jvm.stop()
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    reports = list((tmp_path / "target" / "logs").glob("hs_err_pid*.log"))
    assert len(reports) == 1
    assert stat.S_IMODE(reports[0].stat().st_mode) == 0o600
    assert SECRET not in reports[0].read_text(errors="replace")


@pytest.mark.slow
def test_a_command_leaves_no_core_file(tmp_path):
    (tmp_path / "project.yml").write_text("name: shop\n")
    code = (
        "import resource, sys; from engine.cli import main\n"
        "soft, hard = resource.getrlimit(resource.RLIMIT_CORE)\n"
        "resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))\n"
        "try: main.main(['ls', '--project-dir', sys.argv[1]])\n"
        "finally: print('core', resource.getrlimit(resource.RLIMIT_CORE)[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert "core 0" in done.stdout


@pytest.mark.parametrize("before", [None, 0o755, 0o775])
def test_every_folder_of_the_cache_is_the_users_alone(tmp_path, before):
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    home = tmp_path / "cache" / "headrace"
    if before is not None:
        (home / "projects").mkdir(parents=True)
        (home / "projects").chmod(before)
        home.chmod(before)
    assert project_cache(tmp_path / "project" / "target", env) is not None
    assert own_folder("verified", env) is not None
    assert {stat.S_IMODE(path.stat().st_mode) for path in [home, *home.rglob("*")] if path.is_dir()} == {0o700}


def test_a_folder_above_the_cache_stays_as_it_is(tmp_path):
    (tmp_path / "cache").mkdir(mode=0o755)
    assert own_folder("verified", {"XDG_CACHE_HOME": str(tmp_path / "cache")}) is not None
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o755


def test_the_workflow_of_init_has_few_rights_and_names_commits():
    text = (REPOSITORY / "engine" / "cli" / "starter" / "common" / "ci.yml").read_text()
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action) for action, _ in used)
    assert all(re.fullmatch(r" # v\d+\.\d+\.\d+", version) for _, version in used)


def settings(tmp_path: Path, **conf: str) -> SessionSettings:
    return SessionSettings(find_java(), tmp_path / "logs", master="local[1]", conf=conf)


def test_spark_hides_settings_whose_value_is_a_secret_whatever_their_name(tmp_path):
    register_secret(SECRET)
    conf = session_conf(settings(tmp_path, **{"spark.hadoop.shop.greeting": f"hello {SECRET}", "spark.plain": "plain"}))
    hides = re.compile(conf["spark.redaction.regex"])
    assert hides.search("spark.hadoop.shop.greeting")
    assert not hides.search("spark.hadoop.shop.greeting2")
    assert not hides.search("spark.plain")
    assert SECRET not in conf["spark.redaction.regex"]
    assert conf["spark.redaction.regex"].startswith(REDACTION)
    assert conf["spark.sql.redaction.options.regex"] == conf["spark.redaction.regex"]


@pytest.mark.nightly
@pytest.mark.spark
def test_an_event_log_holds_no_secret_whatever_the_names_of_settings(tmp_path):
    """In a process of its own: the session of these tests has no event log."""
    (tmp_path / "events").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", EVENTS, str(tmp_path), SECRET],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
    )
    assert done.returncode == 0, done.stderr
    text = "".join(path.read_text() for path in (tmp_path / "events").rglob("*") if path.is_file())
    assert "in the clear" in text
    assert "spark.hadoop.shop.greeting" in text
    assert SECRET not in text


EVENTS = """
import sys
from pathlib import Path
from engine.secrets.scrubber import register_secret
from engine.spark.java import find_java
from engine.spark.session import SessionSettings, open_session
folder, secret = Path(sys.argv[1]), sys.argv[2]
register_secret(secret)
conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": (folder / "events").as_uri(), "spark.eventLog.compress": "false",
        "spark.hadoop.shop.greeting": "hello " + secret, "spark.shop.plain": "in the clear"}
with open_session(SessionSettings(find_java(), folder / "logs", master="local[1]", conf=conf, brief=True)) as session:
    session.spark.range(3).collect()
"""
