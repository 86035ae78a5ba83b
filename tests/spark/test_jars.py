import hashlib
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from engine.errors import SetupError
from engine.spark import _ivy, jars
from engine.spark._pyspark import pyspark_home
from engine.spark.jars import Jar, JarState, cache_dir, jar_paths, status
from engine.spark.java import find_java

CONTENT = {"first": b"one" * 1000, "second": b"two" * 1000}


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def lock(monkeypatch):
    sets = {"both": tuple(Jar(f"org.example:{name}:1.0", sha(c)) for name, c in CONTENT.items())}
    monkeypatch.setattr(jars, "_lock", lambda: sets)


@pytest.fixture
def env(tmp_path):
    return {**os.environ, "ENGINE_JARS": str(tmp_path / "cache")}


@pytest.fixture
def filled(tmp_path, lock, env):
    folder = tmp_path / "cache"
    folder.mkdir()
    for name, content in CONTENT.items():
        (folder / f"{name}-1.0.jar").write_bytes(content)
    return folder


def paths(env, **how):
    return jar_paths(["both"], **{"fetch": False, "java": None, "env": env} | how)


def test_the_lock_is_complete():
    assert "core" in jars.jar_sets()
    for name in jars.jar_sets():
        for jar in jars._lock()[name]:
            assert len(jar.coordinates.split(":")) == 3
            assert len(jar.sha256) == 64


def test_jars_of_spark_and_hadoop_follow_the_installed_pyspark():
    installed = version("pyspark")
    minor, _, patch = installed.rpartition(".")
    hadoop = {
        path.stem.removeprefix("hadoop-client-api-") for path in (pyspark_home() / "jars").glob("hadoop-client-api-*")
    }
    checked = set()
    for name in jars.jar_sets():
        for jar in jars._lock()[name]:
            group, artifact, locked = jar.coordinates.split(":")
            if group == "org.apache.spark":
                # Each newer one up to the installed one was asked for, and is not there.
                later = [f"{minor}.{number}" for number in range(int(locked.rpartition(".")[2]) + 1, int(patch) + 1)]
                assert (locked.rpartition(".")[0], [*jar.not_served]) == (minor, later), artifact
                checked.add(artifact)
            if group == "org.apache.hadoop":
                assert {locked} == hadoop, artifact
                checked.add(artifact)
    assert len(checked) == 4
    assert f"iceberg-spark-runtime-{minor}_2.13" in jars._lock()["core"][0].coordinates


def test_the_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir({"ENGINE_JARS": "/x/jars", "XDG_CACHE_HOME": "/y"}) == Path("/x/jars")
    assert cache_dir({"XDG_CACHE_HOME": "/y"}) == Path("/y/headrace/jars")
    assert cache_dir({"XDG_CACHE_HOME": "relative"}) == tmp_path / ".cache/headrace/jars"
    assert cache_dir({}) == tmp_path / ".cache/headrace/jars"


def test_jars_in_the_cache_need_neither_java_nor_network(filled, env, monkeypatch):
    monkeypatch.setattr(_ivy, "download", lambda *_: pytest.fail("downloads"))
    assert paths(env, fetch=True) == (filled / "first-1.0.jar", filled / "second-1.0.jar")


def test_missing_jars_without_fetching(lock, env):
    with pytest.raises(SetupError) as caught:
        paths(env)
    assert caught.value.diagnostic.code == "jars-download"
    assert "first-1.0.jar, second-1.0.jar" in caught.value.diagnostic.message
    assert "engine jars fetch" in caught.value.diagnostic.hint


def test_a_wrong_jar_is_never_handed_out(filled, env):
    (filled / "second-1.0.jar").write_bytes(b"evil")
    for _ in range(2):
        with pytest.raises(SetupError) as caught:
            paths(env, fetch=True)
        found = caught.value.diagnostic
        assert found.code == "jars-checksum"
        for part in ("second-1.0.jar", sha(b"evil"), sha(CONTENT["second"])):
            assert part in found.message
        assert str(filled / "second-1.0.jar") in found.hint


def test_a_jar_is_hashed_once_and_again_when_it_changed(filled, env, monkeypatch):
    hashed = []
    real = jars._sha256
    monkeypatch.setattr(jars, "_sha256", lambda path: hashed.append(path.name) or real(path))
    paths(env)
    paths(env)
    assert hashed == ["first-1.0.jar", "second-1.0.jar"]
    changed = bytearray(CONTENT["first"])
    changed[0] ^= 1
    (filled / "first-1.0.jar").write_bytes(changed)
    os.utime(filled / "first-1.0.jar", ns=(1, 1))
    with pytest.raises(SetupError):
        paths(env)
    assert hashed[2:] == ["first-1.0.jar"]


def test_a_new_lock_is_not_satisfied_by_an_old_stamp(filled, env, monkeypatch):
    paths(env)
    monkeypatch.setattr(jars, "_lock", lambda: {"both": (Jar("org.example:first:1.0", sha(b"other")),)})
    with pytest.raises(SetupError) as caught:
        paths(env)
    assert caught.value.diagnostic.code == "jars-checksum"


def test_status(filled, env):
    (filled / "second-1.0.jar").write_bytes(b"evil")
    assert [state for _, _, state in status(env=env)] == [JarState.READY, JarState.DAMAGED]
    (filled / "first-1.0.jar").unlink()
    assert status(["both"], env)[0] == (
        "org.example:first:1.0",
        filled / "first-1.0.jar",
        JarState.MISSING,
    )


def test_a_cache_that_cannot_be_written(tmp_path, lock, env):
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(SetupError) as caught:
        paths(env, fetch=True, java=object())
    assert caught.value.diagnostic.code == "jars-cache"


def fake_download(content):
    def download(coordinates, folder, _java, _env):
        out = folder / "out"
        out.mkdir()
        for coordinate in coordinates:
            name = coordinate.split(":")[1]
            (out / f"{name}-1.0.jar").write_bytes(content[name])
        return out

    return download


def test_only_missing_jars_are_fetched_and_nothing_else_stays(filled, env, monkeypatch):
    (filled / "second-1.0.jar").unlink()
    monkeypatch.setattr(_ivy, "download", fake_download({"second": CONTENT["second"]}))
    told = []
    paths(env, fetch=True, java=object(), notify=told.append)
    assert len(told) == 1
    assert "second-1.0.jar" in told[0]
    assert "first" not in told[0]
    assert sorted(p.name for p in filled.iterdir() if not p.name.endswith(".verified")) == [
        "first-1.0.jar",
        "second-1.0.jar",
    ]


def test_a_download_with_the_wrong_hash_does_not_enter_the_cache(tmp_path, lock, env, monkeypatch):
    monkeypatch.setattr(_ivy, "download", fake_download({**CONTENT, "second": b"evil"}))
    with pytest.raises(SetupError) as caught:
        paths(env, fetch=True, java=object())
    assert caught.value.diagnostic.code == "jars-checksum"
    assert not (tmp_path / "cache" / "second-1.0.jar").exists()


def test_leftovers_of_killed_downloads_go_after_a_day(tmp_path):
    for name in ("old", "new"):
        (tmp_path / f"{_ivy.TEMPORARY}{name}").mkdir()
    os.utime(tmp_path / f"{_ivy.TEMPORARY}old", (0, 0))
    _ivy.remove_leftovers(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [f"{_ivy.TEMPORARY}new"]


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (
            ":::: ERRORS\n\tHttpClientHandler: PKIX path building failed: sun.X: no path url=https://u:p@h/x.jar\n",
            "the repository's certificate is not trusted by this Java (PKIX path building failed)",
        ),
        (
            ":::: ERRORS\n\tHttpClientHandler: h.invalid: Name or service not known url=x\n",
            "the host h.invalid is unknown",
        ),
        (":::: WARNINGS\n\t:: org.example#first;1.0: not found\n", "the repository does not have it"),
        ("Error: Could not find Ivy\n\n", "Error: Could not find Ivy"),
        ("", "Ivy gave no reason"),
    ],
)
def test_the_cause_is_one_sentence_without_addresses(said, cause):
    assert _ivy._cause(said) == cause


def test_proxies_of_the_environment_reach_java():
    options = _ivy._proxy_options({"HTTPS_PROXY": "http://user:pw@proxy:3128", "NO_PROXY": "localhost,.corp"})
    assert options == [
        "-Dhttps.proxyHost=proxy",
        "-Dhttps.proxyPort=3128",
        "-Dhttp.nonProxyHosts=localhost|*.corp",
    ]


# With a real Ivy. A mirror is a folder, or a port where nobody listens.


def mirror(tmp_path: Path, root: str) -> str:
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="m"/><resolvers>'
        f'<ibiblio name="m" m2compatible="true" usepoms="false" root="{root}"/></resolvers></ivysettings>'
    )
    return str(settings)


def folder_mirror(tmp_path: Path) -> str:
    for name, content in CONTENT.items():
        folder = tmp_path / "repo" / "org" / "example" / name / "1.0"
        folder.mkdir(parents=True)
        (folder / f"{name}-1.0.jar").write_bytes(content)
    return mirror(tmp_path, (tmp_path / "repo").as_uri())


@pytest.mark.spark
def test_no_network_is_one_sentence_with_the_ways_on(tmp_path, lock, env):
    env["ENGINE_IVY_SETTINGS"] = mirror(tmp_path, "http://127.0.0.1:9/")
    with pytest.raises(SetupError) as caught:
        paths(env, fetch=True, java=find_java())
    found = caught.value.diagnostic
    assert found.code == "jars-download"
    assert "Connection refused" in found.message
    assert "\n" not in found.message
    assert "ENGINE_IVY_SETTINGS" in found.hint
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.spark
def test_a_mirror_without_the_jar(tmp_path, lock, env):
    (tmp_path / "repo").mkdir()
    env["ENGINE_IVY_SETTINGS"] = mirror(tmp_path, (tmp_path / "repo").as_uri())
    with pytest.raises(SetupError) as caught:
        paths(env, fetch=True, java=find_java())
    assert "does not have it" in caught.value.diagnostic.message


@pytest.mark.nightly
@pytest.mark.spark
def test_two_processes_fetch_at_once_and_the_home_folder_stays_clean(tmp_path, lock, env):
    env |= {
        "ENGINE_IVY_SETTINGS": folder_mirror(tmp_path),
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "own"),
    }
    (tmp_path / "home").mkdir()
    script = (
        "from engine.spark import jars\n"
        f"sets = {{'both': tuple(jars.Jar(*pair) for pair in {[(j.coordinates, j.sha256) for j in jars._lock()['both']]})}}\n"
        "jars._lock = lambda: sets\n"
        "print(*jars.jar_paths(['both'], fetch=True, java=None), sep='\\n')\n"
    )
    runs = [subprocess.Popen([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE, text=True) for _ in "ab"]
    expected = "".join(f"{tmp_path}/cache/{name}-1.0.jar\n" for name in CONTENT)
    assert [run.communicate(timeout=60)[0] for run in runs] == [expected, expected]
    assert {p.name: p.read_bytes() for p in (tmp_path / "cache").glob("*.jar")} == {
        f"{name}-1.0.jar": content for name, content in CONTENT.items()
    }
    assert list((tmp_path / "cache").glob(f"{_ivy.TEMPORARY}*")) == []
    assert list((tmp_path / "home").iterdir()) == []
