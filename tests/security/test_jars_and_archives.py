"""Jars and class archives are code: a stamp or an archive counts only if nobody but the user can have made it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from engine.errors import SetupError
from engine.spark import archive, archive_writer, jars
from engine.spark.archive import Classes
from engine.spark.jars import Jar, JarState, jar_paths, status
from engine.spark.java import Java

GOOD, EVIL = b"good" * 1000, b"evil" * 1000
DIGEST = hashlib.sha256(GOOD).hexdigest()


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A user's home, and a folder of jars that somebody else prepared."""
    monkeypatch.setattr(jars, "_lock", lambda: {"one": (Jar("org.example:one:1.0", DIGEST),)})
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "one-1.0.jar").write_bytes(GOOD)
    return {**os.environ, "ENGINE_JARS": str(tmp_path / "given"), "XDG_CACHE_HOME": str(tmp_path / "own")}


def paths(env: dict[str, str]) -> tuple[Path, ...]:
    return jar_paths(["one"], fetch=False, java=None, env=env)


def refused(env: dict[str, str]) -> bool:
    with pytest.raises(SetupError) as raised:
        paths(env)
    return raised.value.diagnostic.code == "jars-checksum" and status(["one"], env)[0][2] is JarState.DAMAGED


def test_a_forged_stamp_beside_a_jar_is_not_believed(tmp_path, env):
    jar = tmp_path / "given" / "one-1.0.jar"
    jar.write_bytes(EVIL)
    stat = jar.stat()
    for text in (f"{stat.st_size} {stat.st_mtime_ns} {DIGEST}",
                 f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_ino} {DIGEST}"):  # fmt: skip
        (tmp_path / "given" / ".one-1.0.jar.verified").write_text(text)
        assert refused(env)


def test_a_jar_exchanged_behind_its_stamp_is_seen_though_size_and_time_are_the_same(tmp_path, env, monkeypatch):
    jar = tmp_path / "given" / "one-1.0.jar"
    assert paths(env) == (jar,)
    hashed = []
    real = jars._sha256
    monkeypatch.setattr(jars, "_sha256", lambda path: hashed.append(path) or real(path))
    assert paths(env) == (jar,)
    assert hashed == [], "what was verified is not hashed again"
    stat = jar.stat()
    jar.write_bytes(EVIL)
    os.utime(jar, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert refused(env)


@pytest.mark.parametrize("where", ["project", "others write", "link"])
def test_stamps_that_others_can_write_are_not_believed(tmp_path, env, where):
    jar = tmp_path / "given" / "one-1.0.jar"
    paths(env)
    folder = tmp_path / "own/headrace/verified"
    (stamp,) = folder.iterdir()
    jar.write_bytes(EVIL)
    stat = jar.stat()
    stamp.write_text(f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_ino} {DIGEST}")
    assert paths(env) == (jar,), "whoever can write to the user's own cache is believed"
    if where == "project":
        (tmp_path / "own/project.yml").write_text("name: theirs")
    elif where == "others write":
        stamp.chmod(0o666)
    else:
        stamp.rename(tmp_path / "stamp")
        stamp.symlink_to(tmp_path / "stamp")
    assert refused(env)


def test_jars_beside_no_writable_cache_are_hashed_each_time(tmp_path, env, monkeypatch):
    (tmp_path / "own").write_text("a file")
    hashed = []
    real = jars._sha256
    monkeypatch.setattr(jars, "_sha256", lambda path: hashed.append(path) or real(path))
    for _ in range(2):
        paths(env)
    assert len(hashed) == 2


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Java:
    home = tmp_path / "java"
    (home / "lib").mkdir(parents=True)
    (home / "lib" / "modules").write_text("")
    monkeypatch.setattr(archive, "pyspark_home", lambda: tmp_path / "spark")
    return Java(home / "bin" / "java", 21, "21", "JAVA_HOME")


def an_archive(folder: Path, java: Java) -> Path:
    folder.mkdir(mode=0o700, parents=True)
    key = Classes(java, ()).key()
    path = folder / f"{key}-4.jsa"
    path.write_bytes(b"code")
    path.chmod(0o600)
    base = folder / f"base-{key}.jsa"
    base.write_bytes(b"base")
    base.chmod(0o600)
    return path


def test_an_archive_of_ones_own_is_used(tmp_path, env, java):
    path = an_archive(tmp_path / "own/headrace/classes", java)
    assert archive.archive_path(Classes(java, ()), env) == path
    assert str(path) in archive.reading(Classes(java, ()), path)[0]


@pytest.mark.parametrize(
    "how",
    ["writable", "link", "folder writable", "folder a link", "project", "checkout", "base writable", "base a link"],
)
def test_an_archive_that_others_can_have_made_is_not_used(tmp_path, env, java, how):
    path = an_archive(tmp_path / "own/headrace/classes", java)
    base = path.with_name(f"base-{path.stem.partition('-')[0]}.jsa")
    if how == "writable":
        path.chmod(0o620)
    elif how == "base writable":
        base.chmod(0o602)
    elif how == "folder writable":
        path.parent.chmod(0o770)
    elif how in {"link", "base a link"}:
        (tmp_path / "theirs").write_bytes(b"code")
        chosen = path if how == "link" else base
        chosen.unlink()
        chosen.symlink_to(tmp_path / "theirs")
    elif how == "folder a link":
        path.parent.rename(tmp_path / "theirs")
        path.parent.symlink_to(tmp_path / "theirs")
    elif how == "project":
        (tmp_path / "project.yml").write_text("name: theirs")
    else:
        (tmp_path / ".git").mkdir()
    found = archive.archive_path(Classes(java, ()), env)
    assert found is None or archive.reading(Classes(java, ()), found) == ()
    assert (found is None) is not how.startswith("base")


@pytest.mark.parametrize("how", ["writable", "project"])
def test_no_archive_is_written_where_others_can_write(tmp_path, env, java, how):
    folder = tmp_path / "own/headrace/classes"
    folder.mkdir(mode=0o700, parents=True)
    if how == "project":
        (tmp_path / "project.yml").write_text("name: theirs")
    else:
        folder.chmod(0o777)
    with pytest.raises(SetupError) as raised, archive_writer.writing(Classes(java, ()), env):
        pass
    assert raised.value.diagnostic.code == "class-archive"
