"""Other users of the machine: the ports of a running session, its temporary folders, and the files that it writes."""

from __future__ import annotations

import os
import socket
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.errors import SetupError
from engine.lake.catalog import catalog_settings
from engine.spark.jars import jar_paths
from engine.spark.java import find_java
from engine.spark.private_session import LOCAL_SETTINGS, PREFIX, remove, remove_leftovers, scratch
from engine.spark.session import SessionSettings, open_session, session_conf
from tests.lab import JAVA_OPTIONS, LabSession
from tests.security.open_ports import answers, sessions

CATALOG = "spark.sql.catalog.lake"
# What Java calls in Python: the first object of the pool, whatever it is.
COMMAND = b"c\np0\ncall\ne\n"
REFUSED = (ConnectionResetError, BrokenPipeError, TimeoutError)


def settings(folder: Path, **conf: str) -> SessionSettings:
    java = find_java()
    config = SimpleNamespace(type="sqlite", name="lake", objects="", store=None, path=folder / "lake")
    catalog_settings.prepare(config)
    return SessionSettings(
        java=java,
        log_dir=folder / "target" / "logs",
        master="local[2]",
        jar_paths=jar_paths(["core"], fetch=True, java=java),
        conf={**catalog_settings.spark_conf(config), "spark.driver.extraJavaOptions": JAVA_OPTIONS, **conf},
        umask=catalog_settings.umask(config),
    )


def listening(pid: int) -> dict[int, str]:
    """The addresses on which a process listens, by port."""
    inodes = {path.readlink().name for path in Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink()}
    found = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            row = line.split()
            if row[3] == "0A" and f"socket:[{row[9]}]" in inodes:
                address, port = row[1].split(":")
                packed = b"".join(struct.pack("<I", int(address[i : i + 8], 16)) for i in range(0, len(address), 8))
                found[int(port, 16)] = socket.inet_ntop(socket.AF_INET if table == "tcp" else socket.AF_INET6, packed)
    return found


def answer(port: int, said: bytes) -> bytes:
    """What a port answers to bytes of somebody who knows no secret; empty: nothing."""
    try:
        connected = socket.create_connection(("127.0.0.1", port), timeout=0.5)
    except ConnectionRefusedError:
        # PySpark fetches each result from a port of its own, which is closed once it was read.
        return b""
    with connected as connection:
        try:
            connection.sendall(said)
            return connection.recv(4096)
        except REFUSED:
            return b""


def frame(kind: int, body: bytes) -> bytes:
    """A message of Spark's network protocol."""
    return struct.pack(">qb", 9 + len(body), kind) + body


def reached(spark: Any, port: int) -> bool:
    """Whether Spark's own client without a secret finds an endpoint of the driver: what an executor begins with."""
    from py4j.protocol import Py4JError

    apache = spark._jvm.org.apache.spark
    conf = apache.SparkConf(False)
    conf.set("spark.rpc.numRetries", "1").set("spark.rpc.askTimeout", "5s").set("spark.rpc.lookupTimeout", "5s")
    nothing = getattr(spark._jvm.scala, "None$").__getattr__("MODULE$")
    manager = apache.SecurityManager(conf, nothing, getattr(apache, "SecurityManager$").__getattr__("MODULE$")
                                     .__getattr__("$lessinit$greater$default$3")())  # fmt: skip
    env = apache.rpc.RpcEnv.create("attack", "127.0.0.1", 0, conf, manager, True)
    try:
        env.setupEndpointRef(apache.rpc.RpcAddress("127.0.0.1", port), "BlockManagerMaster")
    except Py4JError:
        return False
    else:
        return True
    finally:
        env.shutdown()


def open_to_others(*folders: Path) -> Iterator[str]:
    """What others may read, write or enter below some folders."""
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            mode = stat.S_IMODE(path.lstat().st_mode)
            if mode & 0o077 and not path.is_symlink():
                yield f"{mode:o} {path}"


def use(spark: Any, folder: Path, scratch_folders: tuple[Path, ...]) -> Iterator[str]:
    """Run a stream with state and a callback, a worker in Python, and a cached table; what is open to others meanwhile."""
    (folder / "in").mkdir()
    (folder / "in" / "a.json").write_text('{"n": 1}\n' * 5)
    spark.sql("create namespace lake.s")
    seen: list[int] = []
    found: list[str] = []

    def write(rows: Any, _: int) -> None:
        rows.writeTo("lake.s.counts").createOrReplace()
        seen.append(rows.count())
        found.extend(open_to_others(*scratch_folders, folder / "checkpoint"))

    stream = spark.readStream.schema("n int").json(str(folder / "in")).groupBy("n").count()
    stream = stream.writeStream.outputMode("complete").option("checkpointLocation", str(folder / "checkpoint"))
    assert stream.foreachBatch(write).trigger(availableNow=True).start().awaitTermination(60)
    assert seen == [1]
    kept = spark.range(1000).selectExpr("repeat('row', 1000) as a").persist()
    assert kept.count() == 1000
    assert spark.range(3).rdd.map(lambda row: row.id + 1).collect() == [1, 2, 3]
    yield from found


@pytest.fixture
def _alone(lab_session: LabSession) -> None:
    lab_session.close()


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.usefixtures("_alone")
def test_no_port_of_a_session_answers_who_knows_no_secret_and_no_file_is_open_to_others(tmp_path: Path) -> None:
    with open_session(settings(tmp_path)) as session:
        spark, pid = session.spark, session.jvm.pid
        found = set(use(spark, tmp_path, session.jvm.scratch))
        found.update(open_to_others(*session.jvm.scratch, tmp_path / "lake", tmp_path / "checkpoint", session.jvm.log))
        assert not found
        assert session.jvm.log.stat().st_mode & 0o777 == 0o600

        java, python = listening(pid), listening(os.getpid())
        ours = [child for child in Path(f"/proc/{pid}/task").glob("*/children") if child.read_text().strip()]
        workers = {int(one) for child in ours for one in child.read_text().split()}
        ports = java | python | {port: at for one in workers for port, at in listening(one).items()}
        assert len(java) >= 3
        assert set(ports.values()) <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}

        conf = spark.sparkContext.getConf()
        assert conf.get("spark.authenticate.secret") is None
        rpc = int(conf.get("spark.driver.port") or 0)
        request = frame(3, struct.pack(">qi", 1, 4) + b"\0\0\0\0")
        for port in java.keys() - {session.jvm.port}:
            # The first was read by the receiver of messages, down to Java's deserialization, before there was a secret.
            assert b"RequestMessage" not in (refused := answer(port, request))
            assert not refused or b"Unknown challenge" in refused, refused
            assert b"content" not in answer(port, frame(6, struct.pack(">i", 12) + b"/files/a.txt"))
        assert not reached(spark, rpc)
        report = [port for port in sessions() if port.pid in {pid, os.getpid()}]
        # But those that were closed meanwhile: PySpark hands over results through ports of their own.
        still = listening(pid) | listening(os.getpid())
        assert {port.number for port in report} >= (set(java) | set(python)) & set(still)
        assert len(still) >= 3
        assert not [port for port in report if port.of_java and answers(port)]
        gateway = spark.sparkContext._gateway
        assert answer(gateway._callback_server.port, COMMAND) == b""
        assert answer(gateway._callback_server.port, b"A\nwrong\ne\n" + COMMAND) in (b"", b"!xn\n")
        assert b"Authentication" in answer(session.jvm.port, b"c\nj\nsystem\ne\n")
        token = "x" * len(gateway.gateway_parameters.auth_token)
        assert answer(spark.sparkContext._accumulatorServer.server_address[1], token.encode() + b"\0\0\0\0") == b""
        for port in ports:
            assert b"HTTP/1.1 200" not in answer(port, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        folders = session.jvm.scratch
        assert all(folder.is_dir() for folder in folders)
        # Machine code that is loaded comes from there too: the state store's, SQLite's.
        maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
        mapped = {Path(line.split(maxsplit=5)[5]) for line in maps if line.endswith(".so")}
        # A checkout may lie below the temporary folder, and Java in its environment.
        left = {path for path in mapped if not path.is_relative_to(find_java().home.resolve())}
        temporary = {path for path in left if path.is_relative_to(tempfile.gettempdir())}
        assert temporary
        assert all(path.is_relative_to(folders[0]) for path in temporary)
    assert not any(folder.exists() for folder in folders)


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.usefixtures("_alone")
def test_spark_answers_an_executor_without_a_secret_if_a_target_switches_authentication_off(tmp_path: Path) -> None:
    """That the attack of the test above is one."""
    with open_session(settings(tmp_path, **{"spark.authenticate": "false"})) as session:
        assert reached(session.spark, int(session.spark.sparkContext.getConf().get("spark.driver.port") or 0))
        assert [port for port in sessions() if port.pid == session.jvm.pid and answers(port)]


def test_a_local_session_authenticates_and_a_cluster_has_its_own_secret(tmp_path: Path) -> None:
    java: Any = SimpleNamespace()
    local = session_conf(SessionSettings(java, tmp_path))
    assert LOCAL_SETTINGS.items() <= local.items()
    for master in ("spark://h:7077", "yarn", "local-cluster[1,1,1024]"):
        conf = session_conf(SessionSettings(java, tmp_path, master=master))
        assert not [
            key for key in conf if key.startswith(("spark.authenticate", "spark.network", "spark.io.encryption"))
        ]
        assert conf["spark.ui.enabled"] == "false"
        agreed = session_conf(
            SessionSettings(java, tmp_path, master=master, conf={"spark.network.crypto.enabled": "true"})
        )
        assert agreed["spark.io.encryption.enabled"] == "true"


def test_temporary_folders_are_private_and_lie_where_a_target_wants_them(tmp_path: Path) -> None:
    chosen = {"spark.local.dir": f"{tmp_path}/a, {tmp_path}/b/c"}
    with scratch(chosen, {}) as made:
        assert [folder.parent for folder in made.folders] == [tmp_path / "a", tmp_path / "b" / "c"]
        assert not list(open_to_others(tmp_path / "a", tmp_path / "b" / "c"))
    with scratch(chosen, {"SPARK_LOCAL_DIRS": str(tmp_path / "d")}) as first:
        assert [folder.parent for folder in first.folders] == [tmp_path / "d"]
    remove(made.folders)
    assert not any(folder.exists() for folder in made.folders)
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError) as caught, scratch({"spark.local.dir": f"{tmp_path}/e,{tmp_path}/file/x"}, {}):
        pass
    assert caught.value.diagnostic.code == "java-start"
    assert not list((tmp_path / "e").iterdir())


@pytest.mark.slow
def test_folders_that_killed_sessions_left_are_removed_and_those_in_use_stay(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(precious)
    (precious / "file").write_text("")
    with scratch({"spark.local.dir": str(tmp_path)}, {}) as used:
        (mine,) = used.folders
        os.utime(mine, (0, 0))
        os.utime(precious, (0, 0))
        # A JVM inherits the lock: another process holds it here.
        script = "import sys; print(flush=True); sys.stdin.read()"
        holder = subprocess.Popen(
            [sys.executable, "-c", script], pass_fds=used.locks, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert holder.stdout is not None
        holder.stdout.readline()
    remove_leftovers(tmp_path)
    assert mine.exists()
    holder.communicate()
    new = tmp_path / f"{PREFIX}new"
    new.mkdir()
    remove_leftovers(tmp_path)
    assert not mine.exists()
    assert new.exists(), "it may not be locked yet"
    assert (precious / "file").exists()


@pytest.mark.parametrize(
    ("mode", "wanted"), [(0o700, 0o077), (0o750, 0o027), (0o770, 0o027), (0o755, 0o022), (None, 0o077)]
)
def test_new_files_are_as_open_as_the_folder_of_the_lake_and_no_more(
    tmp_path: Path, mode: int | None, wanted: int
) -> None:
    lake = tmp_path / "lake"
    if mode is not None:
        lake.mkdir()
        lake.chmod(mode)
    before = os.umask(0o022)
    try:
        assert (
            catalog_settings.umask(SimpleNamespace(type="sqlite", name="lake", objects="", store=None, path=lake))
            == wanted
        )
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
