"""`engine debug --security`: each thing it looks at, as it is good and as it is not."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.main import invoke
from engine.runtime.operations.open_ports import Port, sessions
from engine.secrets import PREFIX
from tests.lab import Lab

TARGET = """
    connections:
      plain: {bootstrap_servers: "broker:9092"}
      login: {bootstrap_servers: "broker:9092", security: {protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: u, password: p1anted}}
      safe: {bootstrap_servers: "broker:9092", security: {protocol: SASL_SSL, mechanism: PLAIN, username: u, password: p1anted}}
      near: {bootstrap_servers: "localhost:9092"}
      missing: {bootstrap_servers: "{{ env_var('NO_SUCH_VARIABLE') }}"}
    schema_registries:
      open: {url: "http://registry:8081", auth: {token: p1anted}}
      shut: {url: "https://registry:8081", auth: {token: p1anted}}
    openlineage: {type: http, url: "http://lineage:5000", api_key: p1anted}
"""


@pytest.fixture
def own(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A project whose folders, cache and environment are what a machine of its own would have."""
    for name in ("home", "tmp", "project"):
        (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.delenv("ENGINE_JARS", raising=False)
    monkeypatch.setattr("engine.runtime.operations.security_report.sessions", lambda: iter(()))
    lab = Lab(tmp_path / "project", None, capsys)
    for folder in (lab.lake_path, lab.root / ".engine" / "state", lab.root / "target"):
        folder.mkdir(mode=0o700, parents=True)
    (lab.root / ".engine").chmod(0o700)
    return lab


def told(lab: Lab) -> tuple[int, list[tuple[str, str, str]]]:
    """The exit code, and of each line level, part and text; hints belong to the text."""
    assert lab.capsys is not None
    lab.capsys.readouterr()
    code = invoke(["debug", "--security", "--project-dir", str(lab.root)])
    lines: list[tuple[str, str, str]] = []
    for line in lab.capsys.readouterr().out.splitlines():
        if line.startswith(" "):
            lines[-1] = (*lines[-1][:2], f"{lines[-1][2]}\n{line.strip()}")
        else:
            level, part, text = line.split(maxsplit=2)
            lines.append((level, part, text))
    return code, lines


def of(lines: list[tuple[str, str, str]], level: str) -> list[str]:
    return [f"{part} {text}" for found, part, text in lines if found == level]


def test_a_machine_that_is_as_it_should_be_has_nothing_to_fail(own: Lab) -> None:
    code, lines = told(own)
    assert (code, of(lines, "FAIL")) == (0, []), lines
    parts = [part for _, part, _ in lines]
    for part in ("port", "state", "lake", "target", "cache", "jars", "links", "settings", "secrets", "templates"):
        assert part in parts
    assert not [text for text in of(lines, "WARN") if not text.startswith("secrets")]


def test_folders_and_jars_that_others_can_change_fail(own: Lab) -> None:
    own.lake_path.chmod(0o750)
    (own.root / ".engine" / "state").chmod(0o777)
    (own.root / "target" / "compiled").symlink_to(own.root)
    jars = own.root.parent / "home" / "headrace" / "jars"
    jars.mkdir(parents=True, mode=0o700)
    (jars / "open.jar").touch()
    (jars / "open.jar").chmod(0o666)
    code, lines = told(own)
    assert code == 1
    failed = of(lines, "FAIL")
    assert [text.split()[0] for text in failed] == ["state", "jars", "links"]
    assert "chmod go-w" in failed[0]
    assert "target/compiled" in failed[2]
    (lake,) = of(lines, "WARN")[:1]
    assert "mode 0750: others can read it" in lake
    # Whoever can rename what is above can put another folder in its place.
    (own.root / ".engine" / "state").chmod(0o700)
    (own.root / ".engine").chmod(0o777)
    assert [text for text in of(told(own)[1], "FAIL") if text.startswith("state") and "replace it" in text]


def test_settings_of_a_target_that_open_a_session_are_named(own: Lab) -> None:
    text = (own.root / "project.yml").read_text()
    conf = "conf: {spark.authenticate: false, spark.ui.enabled: true, spark.sql.variable.substitute: true, "
    own.write("project.yml", text.replace("conf: {", conf))
    code, lines = told(own)
    assert code == 1
    failed, warned = of(lines, "FAIL"), of(lines, "WARN")
    assert any("spark.authenticate is off" in line for line in failed)
    assert any("spark.sql.variable.substitute" in line for line in failed)
    assert any("web UI" in line for line in warned)
    remote = text.replace('"local[2]"', '"spark://h:7077"')
    own.write("project.yml", remote)
    assert any("want no secret" in line for line in of(told(own)[1], "WARN"))
    own.write("project.yml", remote.replace("conf: {", "conf: {spark.authenticate: true, "))
    assert any("unencrypted between its machines" in line for line in of(told(own)[1], "WARN"))
    both = "conf: {spark.authenticate: true, spark.network.crypto.enabled: true, "
    own.write("project.yml", remote.replace("conf: {", both))
    assert any("authenticated and encrypted" in line for line in of(told(own)[1], "OK"))


def test_what_goes_unencrypted_is_named_and_no_value_of_a_secret_is(own: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    own.write("project.yml", (own.root / "project.yml").read_text() + TARGET.lstrip("\n"))
    monkeypatch.setenv(f"{PREFIX}LONG", "planted-value")
    monkeypatch.setenv(f"{PREFIX}SHORT", "abc")
    monkeypatch.setenv("DB_PASSWORD", "another-planted-value")
    code, lines = told(own)
    wire = {line.split()[1] + line.split()[2].strip(":"): line for line in of(lines, "WARN") if line.startswith("wire")}
    assert code == 0
    assert set(wire) == {
        "connection'plain'",
        "connection'login'",
        "connection'missing'",
        "registry'open'",
        "openlineage:http,",
    }
    assert "the login is sent unencrypted" in wire["connection'login'"]
    assert "https" in wire["registry'open'"]
    everything = str(lines)
    assert f"{PREFIX}LONG" in everything
    assert "DB_PASSWORD" in everything
    assert any(f"1 shorter than 4 characters, and so not masked: {PREFIX}SHORT" in line for line in of(lines, "WARN"))
    assert "planted" not in everything.replace(str(own.root), "").replace("p1anted", "planted")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_ports_of_a_session_are_found_with_their_addresses() -> None:
    script = (
        "import socket, sys\n"
        "bound = [socket.create_server((a, 0), family=f) for a, f in"
        " (('127.0.0.1', socket.AF_INET), ('0.0.0.0', socket.AF_INET), ('::1', socket.AF_INET6))]\n"
        "print(*(b.getsockname()[1] for b in bound), flush=True)\n"
        "sys.stdin.read()\n"
    )
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    # As a JVM of PySpark's is called.
    words = [sys.executable, "-c", script, "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        wanted = [int(number) for number in process.stdout.readline().split()]
        found = {port.number: port for port in sessions() if port.pid == process.pid}
        process.communicate()
    assert list(found) == wanted or set(found) == set(wanted)
    assert [(found[n].address, found[n].loopback) for n in wanted] == [
        ("127.0.0.1", True), ("0.0.0.0", False), ("::1", True),
    ]  # fmt: skip


def test_a_port_that_other_machines_reach_fails(own: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    port = Port("0.0.0.0", 4040, 7, "Java: Spark, Py4J", "a token", of_java=True)
    monkeypatch.setattr("engine.runtime.operations.security_report.sessions", lambda: iter((port,)))
    code, lines = told(own)
    assert code == 1
    assert any("0.0.0.0:4040" in line and "other machines" in line for line in of(lines, "FAIL"))
    near = Port("::ffff:127.0.0.1", 4041, 7, "Java: Spark, Py4J", "a token", of_java=True)
    assert near.loopback
