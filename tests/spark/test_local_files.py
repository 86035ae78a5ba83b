"""The local file system of the JVM: modes by a system call, all else as in Hadoop's own."""

from __future__ import annotations

import importlib.util
import os
import stat
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from engine.spark import checkpoint_files, local_files, record_readers
from engine.spark._command import with_jars
from engine.spark.java import Java, find_java
from engine.spark.local_files import SETTINGS
from engine.spark.session import SessionSettings, open_session, session_conf
from tests.lab import JAVA_OPTIONS, REPOSITORY, LabSession

ANY_JAVA = Java(Path("/j/bin/java"), 21, "21.0.8", "path")


def builder() -> ModuleType:
    """The script that makes the jar."""
    spec = importlib.util.spec_from_file_location("java_jars", REPOSITORY / "scripts" / "java_jars.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("package", [checkpoint_files, local_files, record_readers])
def test_a_jar_is_made_from_the_sources_beside_it(package: ModuleType):
    script = builder()
    with zipfile.ZipFile(package.JAR) as jar:
        found = {name: jar.read(name) for name in jar.namelist()}
    kept = found.pop("META-INF/MANIFEST.MF").decode()
    assert {f"headrace/{source.stem}.class" for source in package.SOURCES} <= set(found)
    of = script.manifest(package.SOURCES).splitlines()
    assert [line for line in of if not line.startswith("Built-By")] == [
        line for line in kept.splitlines() if not line.startswith("Built-By")
    ], "compile the sources again"
    # Another compiler may write other bytes for the same program.
    if script.compiler() and f"Built-By-Compiler: {script.compiler()}" in kept.splitlines():
        assert script.compiled(package.SOURCES) == found


def test_a_session_in_one_jvm_has_it_and_a_cluster_does_not():
    local = SessionSettings(ANY_JAVA, Path("/p/log"))
    assert session_conf(local).items() >= SETTINGS.items()
    own = SessionSettings(ANY_JAVA, Path("/p/log"), conf={"spark.hadoop.fs.file.impl": "my.Files"})
    assert session_conf(own)["spark.hadoop.fs.file.impl"] == "my.Files"
    cluster = SessionSettings(ANY_JAVA, Path("/p/log"), master="spark://h:7077")
    assert not session_conf(cluster).keys() & SETTINGS.keys()


def test_executors_of_a_cluster_get_the_jar_for_their_files_of_state():
    cluster = SessionSettings(
        ANY_JAVA, Path("/p/log"), (Path("/a.jar"),), "spark://h:7077", conf={"spark.jars": "b.jar"}
    )
    conf = session_conf(cluster)
    assert conf["spark.jars"] == f"{checkpoint_files.JAR.as_uri()},{record_readers.JAR.as_uri()},file:///a.jar,b.jar"
    local = session_conf(SessionSettings(ANY_JAVA, Path("/p/log"), (Path("/a.jar"),)))
    assert "spark.jars" not in local
    for one in (conf, local):
        assert one["spark.sql.streaming.checkpointFileManagerClass"] == "headrace.CheckpointFiles"


def test_sparks_scripts_get_the_jar_too(monkeypatch):
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    ours = f"{checkpoint_files.JAR}:{local_files.JAR}:{record_readers.JAR}"
    assert with_jars(ANY_JAVA, {}, ())["spark.driver.extraClassPath"] == ours
    given = with_jars(ANY_JAVA, {"spark.driver.extraClassPath": "/mine.jar"}, (Path("/a.jar"),))
    assert given["spark.driver.extraClassPath"] == f"{ours}:/a.jar:/mine.jar"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")
def test_files_get_their_modes_without_a_process(tmp_path, monkeypatch):
    java = find_java()
    # A chmod that leaves a trace before it does its work.
    trace, folder = tmp_path / "trace", tmp_path / "bin"
    folder.mkdir()
    (folder / "chmod").write_text(f'#!/bin/sh\necho "$@" >> {trace}\nPATH=/usr/bin:/bin exec chmod "$@"\n')
    (folder / "chmod").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    conf = {"spark.driver.extraJavaOptions": JAVA_OPTIONS}
    with open_session(SessionSettings(java, tmp_path / "log", master="local[1]", conf=conf)) as session:
        jvm: Any = session.spark._jvm
        root = tmp_path / "made"
        files = jvm.org.apache.hadoop.fs.FileSystem.get(
            jvm.java.net.URI.create("file:///"), session.spark._jsc.hadoopConfiguration()
        )
        assert files.getClass().getName() == "headrace.LocalFiles"

        def path(name: str) -> Any:
            return jvm.org.apache.hadoop.fs.Path(str(root / name))

        def write(name: str, *, over: bool = True) -> None:
            out = files.create(path(name), over)
            out.write(65)
            out.close()

        # What a session makes is its owner's alone, and has its file of sums.
        assert files.mkdirs(path("a/b"))
        write("a/b/c")
        assert [mode(root / name) for name in ("a", "a/b", "a/b/c", "a/b/.c.crc")] == [0o700, 0o700, 0o600, 0o600]
        assert (root / "a/b/c").read_bytes() == b"A"

        # Every bit, on a file, a folder and what a link names.
        (root / "link").symlink_to("a/b/c")
        for wanted in (0o000, 0o400, 0o640, 0o751, 0o777, 0o604, 0o600):
            permission = jvm.org.apache.hadoop.fs.permission.FsPermission(wanted)
            for name in ("link", "a/b"):
                files.setPermission(path(name), permission)
                assert (mode(root / name), (root / "link").is_symlink()) == (wanted, True)
                files.setPermission(path("a/b"), jvm.org.apache.hadoop.fs.permission.FsPermission(0o700))
        assert not trace.exists(), trace.read_text()

        # What Java has no name for goes Hadoop's way.
        files.setPermission(path("a"), jvm.org.apache.hadoop.fs.permission.FsPermission("1770"))
        assert mode(root / "a") == 0o1770
        assert trace.read_text().split()[0] == "1770"

        # Errors, sums and renames are Hadoop's.
        with pytest.raises(Py4JJavaError, match="missing"):
            files.setPermission(path("missing"), jvm.org.apache.hadoop.fs.permission.FsPermission(0o600))
        with pytest.raises(Py4JJavaError, match="exists"):
            write("a/b/c", over=False)
        assert files.rename(path("a/b/c"), path("a/b/d"))
        assert sorted(p.name for p in (root / "a/b").iterdir()) == [".d.crc", "d"]
        (root / "a/b/d").write_bytes(b"B")
        with pytest.raises(Py4JJavaError, match="Checksum"):
            files.open(path("a/b/d")).read()


@pytest.mark.spark
def test_extensions_of_other_jars_count_and_only_those_of_machine_learning_are_left_out(
    tmp_path: Path, lab_session: LabSession
) -> None:
    spark = lab_session.spark
    jvm = spark._jvm
    name = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider"
    other = tmp_path / "other.jar"
    with zipfile.ZipFile(other, "w") as jar:
        jar.writestr(name, "a.b.Extensions\n")
    urls = spark._sc._gateway.new_array(jvm.java.net.URL, 1)
    urls[0] = jvm.java.io.File(str(other)).toURI().toURL()
    everything = jvm.java.net.URLClassLoader(urls, jvm.java.lang.Thread.currentThread().getContextClassLoader())

    def found(loader: Any, resource: str) -> list[str]:
        places = jvm.java.util.Collections.list(loader.getResources(resource))
        return [Path(place.getPath().partition("!")[0]).name for place in places]

    ours = jvm.headrace.SessionLoader(everything)
    before, after = found(everything, name), found(ours, name)
    assert "other.jar" in after
    assert [jar for jar in before if jar not in after] == [jar for jar in before if jar.startswith("spark-mllib_")]
    assert len(before) == len(after) + 1, "Spark no longer registers them: the class loader can go"
    drivers = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"
    assert found(ours, drivers) == found(everything, drivers)
    assert ours.loadClass("org.apache.spark.ml.Model").getName() == "org.apache.spark.ml.Model"


@pytest.mark.spark
def test_the_thread_that_made_the_session_has_its_own_class_loader_again(lab_session: LabSession) -> None:
    loader = lab_session.spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    assert loader.getClass().getName() != "headrace.SessionLoader"
    assert lab_session.spark.sql("select array(1, 2) as a").collect()[0].a == [1, 2]


@pytest.mark.spark
def test_files_of_a_checkpoint_on_a_disk_are_created_once(tmp_path: Path, lab_session: LabSession) -> None:
    jvm: Any = lab_session.spark._jvm
    place = jvm.org.apache.hadoop.fs.Path
    files = jvm.headrace.CheckpointFiles(place(f"file:{tmp_path}"), lab_session.spark._jsc.hadoopConfiguration())

    def begun(name: str, content: bytes, *, over: bool = False) -> Any:
        out = files.createAtomic(place(f"file:{tmp_path}/{name}"), over)
        out.write(bytearray(content))
        return out

    # Two that have both seen that it is not there: Spark's own manager asks, and then renames.
    first, second = begun("7", b"first"), begun("7", b"woken")
    first.close()
    with pytest.raises(Py4JJavaError, match=r"FileAlreadyExistsException.* was written by another run"):
        second.close()
    second.cancel()
    assert sorted(p.name for p in tmp_path.iterdir()) == [".7.crc", "7"]
    stream = files.open(place(f"file:{tmp_path}/7"))
    assert bytes(stream.readAllBytes()) == b"first"
    stream.close()
    begun("7", b"again", over=True).close()
    assert (tmp_path / "7").read_bytes() == b"again"
    (tmp_path / "7").write_bytes(b"agaim")
    with pytest.raises(Py4JJavaError, match="Checksum"):
        files.open(place(f"file:{tmp_path}/7")).readAllBytes()
