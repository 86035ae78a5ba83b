"""Secrets are given to the places that the user has confirmed, and to no other that a project names."""

from __future__ import annotations

import io
import json
import os
import pty
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.cli.main import invoke
from engine.errors import ProjectError
from engine.lake.clients import catalog_client
from engine.secrets.secret_places import Gift, places
from engine.secrets.trusted_projects import confirm, confirmed, unconfirmed_gifts
from tests.cli.processes import read_until
from tests.lab import REPOSITORY, Lab
from tests.project.small_projects import compiled
from tests.security.answering import Answering, answering
from tests.security.test_hostile_catalogs import whole

pytestmark = pytest.mark.slow

SECRET = "planted-production-password"
PROJECT = """
name: lab
targets:
  dev:
    schema: s
    catalog: {{type: rest, uri: "{uri}", token: "{{{{ env_var('ENGINE_SECRET_PROD_DB') }}}}"}}
  plain:
    schema: s
    catalog: {{type: rest, uri: "{uri}"}}
"""
GONE = (404, {"error": {"message": "no", "type": "NoSuchTableException", "code": 404}})
ASKING = (("plan",), ("docs", "generate"), ("show", "base", "--table"), ("debug",))
FILES_ALONE = (("parse",), ("ls",), ("compile",), ("lineage",))


@pytest.fixture(autouse=True)
def untrusting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tests trust all servers otherwise (conftest)."""
    monkeypatch.delenv("ENGINE_TRUST")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("ENGINE_SECRET_PROD_DB", SECRET)
    monkeypatch.setattr(catalog_client, "_clients", {})


@pytest.fixture
def server() -> Iterator[Answering]:
    """A catalog without a table."""
    answers = {begin: answer for begin, answer in whole().items() if not begin.endswith("/base")}
    with answering(
        {**answers, "GET /v1/namespaces/s/tables": {"identifiers": []}, "GET /v1/namespaces/s/tables/": GONE}
    ) as found:
        yield found


@pytest.fixture
def lab(tmp_path: Path, capsys: pytest.CaptureFixture[str], server: Answering) -> Lab:
    lab = Lab(tmp_path / "project", None, capsys)
    lab.write("project.yml", PROJECT.format(uri=server.url))
    lab.model("base", "/*---\nmaterialized: table\n---*/\nselect 1 as id")
    return lab


@pytest.mark.parametrize("command", ASKING, ids=" ".join)
def test_a_secret_is_not_sent_to_the_server_of_a_foreign_project(
    lab: Lab, server: Answering, command: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    result = lab.run(*command)
    assert server.asked == []
    text = result.text + caplog.text
    assert "ENGINE_SECRET_PROD_DB" in text
    assert "engine trust" in text
    assert "Traceback" not in text
    if command[0] in {"plan", "show"}:
        assert (result.code, result.codes()) == (1, ["secret-untrusted"])


@pytest.mark.parametrize("command", FILES_ALONE, ids=" ".join)
def test_commands_that_need_no_server_need_no_trust(lab: Lab, server: Answering, command: tuple[str, ...]) -> None:
    result = lab.run(*command)
    assert (result.code, result.codes()) == (0, []), result.text
    assert server.asked == []


def test_a_target_without_a_secret_asks_for_nothing(lab: Lab, server: Answering) -> None:
    assert lab.run("plan", "--target", "plain").code == 0
    assert server.asked != []
    assert SECRET not in server.seen()


def test_the_user_confirms_once(lab: Lab, server: Answering) -> None:
    assert lab.run("trust", "--yes").code == 0
    assert lab.run("plan").code == 0
    assert SECRET in server.seen()


def test_what_is_confirmed_is_shown_without_the_secret(lab: Lab, server: Answering) -> None:
    host = server.url.removeprefix("http://")
    shown = lab.run("trust", "--list")
    assert shown.code == 0
    assert SECRET not in shown.text
    given = lab.run("trust", "--yes")
    assert SECRET not in given.text
    expected = [{"event": "SecretGiven", "secret": "ENGINE_SECRET_PROD_DB", "place": host}]
    assert given.events == lab.run("trust", "--list").events == expected
    assert lab.run("trust", "--forget").code == 0
    assert lab.run("plan").codes() == ["secret-untrusted"]


def test_without_a_terminal_nobody_is_taken_to_agree(
    lab: Lab, server: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y"))
    result = lab.run("trust")
    assert result.code == 2
    assert "--yes" in result.text
    assert lab.run("plan").codes() == ["secret-untrusted"]


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("yes\n", 0), ("n\n", 1), ("\n", 1), ("\x04", 1)])
def test_a_terminal_is_asked(lab: Lab, server: Answering, answer: str, code: int) -> None:
    leader, follower = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-P", "-m", "engine", "trust", "--project-dir", str(lab.root)],
        stdin=follower, stdout=follower, stderr=follower, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, cwd=REPOSITORY,
    )  # fmt: skip
    os.close(follower)
    shown = read_until(leader, b"[y/N]")
    os.write(leader, answer.encode())
    assert done.wait(60) == code
    os.close(leader)
    assert b"ENGINE_SECRET_PROD_DB -> " in shown
    assert SECRET.encode() not in shown
    assert bool(confirmed(lab.root)) == (code == 0)


def test_the_file_is_the_users_alone(lab: Lab, tmp_path: Path) -> None:
    lab.run("trust", "--yes")
    path = tmp_path / "config" / "headrace" / "trust.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert SECRET not in path.read_text()


def test_a_file_that_others_could_write_says_nothing(lab: Lab, tmp_path: Path) -> None:
    lab.run("trust", "--yes")
    path = tmp_path / "config" / "headrace" / "trust.json"
    assert confirmed(lab.root)
    path.chmod(0o660)
    assert not confirmed(lab.root)
    path.chmod(0o600)
    path.parent.chmod(0o770)
    assert not confirmed(lab.root)
    path.parent.chmod(0o700)
    kept = path.rename(path.with_name("kept"))
    path.symlink_to(kept)
    assert not confirmed(lab.root)
    path.unlink()
    os.mkfifo(path, 0o600)
    assert not confirmed(lab.root)
    path.unlink()
    for content in (
        "[",
        "[]",
        '{"projects": []}',
        '{"projects": {"/x": [["a"]]}}',
        '{"projects": {"/x": 5}}',
        "[" * 99999,
    ):
        path.write_text(content)
        path.chmod(0o600)
        assert not confirmed(lab.root)


def test_a_file_that_comes_with_a_project_says_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(lab.root / "config"))
    folder = lab.root / "config" / "headrace"
    folder.mkdir(mode=0o700, parents=True)
    planted = {"projects": {str(lab.root.resolve()): [["ENGINE_SECRET_PROD_DB", "127.0.0.1:1"]]}}
    (folder / "trust.json").write_text(json.dumps(planted))
    (folder / "trust.json").chmod(0o600)
    assert not confirmed(lab.root)
    assert lab.run("trust", "--yes").codes() == ["trust-file"]


@pytest.mark.parametrize("change", ["host", "port", "scheme", "secret", "folder", "header", "login host"])
def test_a_change_asks_again(lab: Lab, server: Answering, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lab.run("trust", "--yes").code == 0
    assert lab.run("plan").code == 0
    text = (lab.root / "project.yml").read_text()
    root = lab.root
    if change == "host":
        text = text.replace("127.0.0.1", "127.0.0.2")
    elif change == "port":
        text = text.replace(server.url, "http://127.0.0.1:9")
    elif change == "scheme":
        text = text.replace(server.url, "http://elsewhere.example")
    elif change == "secret":
        monkeypatch.setenv("ENGINE_SECRET_OTHER", "another-planted-password")
        text = text.replace("PROD_DB", "OTHER")
    elif change == "header":
        text = text.replace("token:", "rest.client.proxy.hostname: evil.example, token:")
    elif change == "login host":
        text = text.replace("token:", "oauth2-server-uri: 'https://evil.example/t', token:")
    else:
        root = lab.root.rename(lab.root.with_name("moved"))
    (root / "project.yml").write_text(text)
    lab.root = root
    before = len(server.asked)
    assert lab.run("plan").codes()[-1] == "secret-untrusted"
    assert len(server.asked) == before


def test_in_ci_a_variable_names_the_places(lab: Lab, server: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    host = server.url.removeprefix("http://")
    monkeypatch.setenv("ENGINE_TRUST", "catalog.example,db.example:5432")
    assert lab.run("plan").codes() == ["secret-untrusted"]
    monkeypatch.setenv("ENGINE_TRUST", f"catalog.example, {host}")
    assert lab.run("plan").code == 0
    assert SECRET in server.seen()


@pytest.mark.parametrize("value", ["1", "true"])
def test_in_ci_a_variable_trusts_all(lab: Lab, server: Answering, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_TRUST", value)
    assert lab.run("plan").code == 0
    assert SECRET in server.seen()


@pytest.mark.parametrize("value", ["0", "", "false", "*", " "])
def test_a_variable_that_names_nothing_trusts_nothing(lab: Lab, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_TRUST", value)
    assert lab.run("plan").codes() == ["secret-untrusted"]


SECRET_OF = "\"{{ env_var('ENGINE_SECRET_PROD_DB') }}\""
BLOCKS = {
    "jdbc": (
        f"catalog: {{type: jdbc, uri: 'jdbc:postgresql://db.example:5432/lake', jdbc.user: u, jdbc.password: {SECRET_OF}, warehouse: /w}}",
        lambda target: target.catalog.settings(), ["db.example:5432"],
    ),
    "a store": (
        f"s3: {{endpoint: 'https://minio.example:9000', access_key_id: a, secret_access_key: {SECRET_OF}}}",
        lambda target: target.s3(), ["minio.example:9000"],
    ),
    "AWS's store": (
        f"s3: {{access_key_id: a, secret_access_key: {SECRET_OF}}}", lambda target: target.s3(), ["s3"],
    ),
    "a broker": (
        f"connections: {{main: {{bootstrap_servers: 'k1.example:9093,k2.example:9093', security: {{password: {SECRET_OF}}}}}}}",
        lambda target: target.connections["main"](), ["k1.example:9093", "k2.example:9093"],
    ),
    "a registry": (
        f"schema_registries: {{main: {{url: 'https://registry.example', auth: {{username: u, password: {SECRET_OF}}}}}}}",
        lambda target: target.registries["main"](), ["registry.example"],
    ),
    "events": (
        f"openlineage: {{type: http, url: 'http://lineage.example', api_key: {SECRET_OF}}}",
        lambda target: target.openlineage(), ["http://lineage.example"],
    ),
    "alerts": (
        f"alerts: {{url: 'https://hooks.example/shop', token: {SECRET_OF}, lag: 10 minutes}}",
        lambda target: target.alerts(), ["hooks.example"],
    ),
    "the address of a webhook": (
        f"alerts: {{url: {SECRET_OF}}}", lambda target: target.alerts(), ["alerts"],
    ),
}  # fmt: skip


def target_with(tmp_path: Path, block: str) -> Any:
    files = {"project.yml": f"name: shop\ntargets:\n  dev:\n    schema: shop\n    {block}\n"}
    return compiled(tmp_path, files, env={"ENGINE_SECRET_PROD_DB": SECRET}).target


@pytest.mark.parametrize("name", BLOCKS)
def test_each_block_of_a_target_gives_its_secrets_to_places(name: str, tmp_path: Path) -> None:
    block, use, expected = BLOCKS[name]
    target = target_with(tmp_path / "p", block)
    with pytest.raises(ProjectError) as found:
        use(target)
    (diagnostic,) = found.value.diagnostics
    assert diagnostic.code == "secret-untrusted"
    assert all(place in diagnostic.message for place in expected)
    assert SECRET not in str(found.value)
    confirm(tmp_path / "p", [Gift("ENGINE_SECRET_PROD_DB", place) for place in expected])
    assert SECRET in repr(
        list(dict(use(target)).values()) if name not in {"a store", "AWS's store"} else [use(target).secret_access_key]
    )


def test_settings_of_spark_are_one_place_that_changes_with_them(tmp_path: Path) -> None:
    seen = set()
    # An address without a scheme is not known as one.
    for value in ("lake.example:9000", "evil.example:9000", "lake.example:9000"):
        conf = (
            f"spark: {{conf: {{spark.hadoop.fs.s3a.endpoint: '{value}', spark.hadoop.fs.s3a.secret.key: {SECRET_OF}}}}}"
        )
        target = target_with(tmp_path / "p", conf)
        with pytest.raises(ProjectError) as found:
            target.spark_conf()
        seen.add(str(found.value))
    assert len(seen) == 2


@pytest.mark.parametrize("url", ["http://good.example\\@evil.example/", "http://evil.example#@good.example/", "http://good.example@evil.example/",
                                 "https://good.example,evil.example/"])  # fmt: skip
def test_a_place_is_not_disguised(url: str) -> None:
    assert places({"url": url}, "x") not in {("good.example",), ("http://good.example",)}


def test_an_address_with_a_backslash_names_no_host() -> None:
    r"""Some clients take what is before the `\` for the host, others what is behind the `@`: none connects."""
    (place,) = places({"url": "https://good.example\\@evil.example/"}, "x")
    assert place.startswith("x#")


def test_a_default_of_a_secret_is_not_a_secret(tmp_path: Path) -> None:
    files = {"project.yml": "name: shop\ntargets:\n  dev:\n    schema: shop\n    catalog: {type: rest, uri: 'http://127.0.0.1:1', "
             "token: \"{{ env_var('ENGINE_SECRET_NOT_SET', 'demo') }}\"}\n"}  # fmt: skip
    assert compiled(tmp_path, files, env={}).target.catalog.settings()["token"] == "demo"


def test_a_login_of_the_machine_is_a_secret_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """libpq takes PGPASSWORD, and the AWS SDK its own login, without being told."""
    target = target_with(
        tmp_path / "a", "catalog: {type: jdbc, uri: 'jdbc:postgresql://db.example/lake', warehouse: /w}"
    )
    target.catalog.settings()
    monkeypatch.setenv("PGPASSWORD", SECRET)
    with pytest.raises(ProjectError, match="PGPASSWORD"):
        target.catalog.settings()
    target = target_with(tmp_path / "b", "s3: {endpoint: 'https://minio.example'}")
    with pytest.raises(ProjectError, match="AWS"):
        target.s3()
    for catalog in (
        "{type: rest, uri: 'https://evil.example', rest.sigv4-enabled: true}",
        "{type: rest, uri: 'https://c.example', s3.endpoint: 'https://evil.example'}",
    ):
        with pytest.raises(ProjectError, match="AWS"):
            target_with(tmp_path / "c", f"catalog: {catalog}").catalog.settings()
    amazon = "{type: rest, uri: 'https://glue.us-east-1.amazonaws.com/iceberg', rest.sigv4-enabled: true}"
    target_with(tmp_path / "e", f"catalog: {amazon}").catalog.settings()


def test_pairs_are_pairs(tmp_path: Path) -> None:
    confirm(tmp_path, [Gift("A", "x"), Gift("B", "y")])
    assert unconfirmed_gifts(tmp_path, [Gift("A", "y"), Gift("B", "y")], {}) == (Gift("A", "y"),)
    assert unconfirmed_gifts(tmp_path / "other", [Gift("B", "y")], {}) == (Gift("B", "y"),)


def test_trust_of_a_folder_that_is_no_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["trust", "--yes", "--project-dir", str(tmp_path)]) == 1
    assert "project-missing" in capsys.readouterr().err
