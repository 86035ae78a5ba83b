"""Credentials of sources: rejected in declarations with their place, and in no artifact, page, message or fact."""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from engine.cli.main import invoke
from engine.compile import Manifest
from engine.compile.nodes.facts import plain
from engine.compile.nodes.manifest import Source
from engine.plan.deployed.checkpoint_facts import in_text
from engine.sources import credentials
from tests.project.small_projects import PROJECT, compiled

SECRET = "Planted/Value+9=x"
FORMS = (
    SECRET, quote(SECRET, safe=""), quote(SECRET), json.dumps(SECRET)[1:-1], SECRET.replace("/", "\\/"),
    base64.b64encode(SECRET.encode()).decode(), SECRET.encode().hex(), SECRET.lower(), "Planted",
)  # fmt: skip
MODEL = "/*---\nmaterialized: table\n---*/\nselect id from {{ source('ops', 'orders') }}\n"
STREAM = "/*---\nstreams: [ops.orders]\n---*/\nselect id from {{ source('ops', 'orders') }}\n"


def declared(*lines: str) -> str:
    body = "".join(f"        {line}\n" for line in ('schema: "id int"', *lines))
    return f"sources:\n  - name: ops\n    tables:\n      - name: orders\n{body}"


def traces(folder: Path) -> list[str]:
    """Files below a folder that hold a form of the secret."""
    return [
        f"{path.relative_to(folder)}: {form}"
        for path in folder.rglob("*")
        if path.is_file()
        for form in FORMS
        if form.encode() in path.read_bytes()
    ]


# What a declaration says, and where the finding is: line and column.
REJECTED = {
    "an option by its key": (("format: spark.jdbc", f"options: {{password: '{SECRET}'}}"), "7:19"),
    "a key in another spelling": (("format: spark.x", f"options: {{sfPassWord: '{SECRET}'}}"), "7:19"),
    "a key of the object store": (("format: json", "path: s3a://b/x", f"options: {{fs.s3a.secret.key: '{SECRET}'}}"), "8:19"),
    "a token": (("format: spark.x", f"options: {{accessToken: '{SECRET}'}}"), "7:19"),
    "a private key": (("format: spark.snowflake", f"options: {{pem_private_key: '{SECRET}'}}"), "7:19"),
    "a login of Kafka": (("format: kafka", "topic: t", f"options: {{kafka.sasl.jaas.config: '{SECRET}'}}"), "8:19"),
    "a user and password before a bucket": (("format: json", f"path: 's3a://AKIA:{SECRET}@bucket/x'"), "7:15"),
    "a user and password in a url": (("format: spark.jdbc", f"options: {{url: 'jdbc:postgresql://u:{SECRET}@h/d'}}"), "7:24"),
    "a parameter of a url": (("format: spark.jdbc", f"options: {{url: 'jdbc:postgresql://h/d?user=u&password={SECRET}'}}"), "7:24"),
    "a parameter after a semicolon": (("format: spark.jdbc", f"options: {{url: 'jdbc:sqlserver://h;password={SECRET};x=1'}}"), "7:24"),
    "an encoded parameter": (("format: spark.jdbc", f"options: {{url: 'jdbc:mysql://h/d?pass%77ord={SECRET}'}}"), "7:24"),
    "Oracle's form": (("format: spark.jdbc", "options: {url: 'jdbc:oracle:thin:scott/Planted@//h:1521/x'}"), "7:24"),
    "a signature": (("format: csv", f"path: 'https://h/x?sv=1&sig={SECRET}'"), "7:15"),
    "a signature of S3": (("format: csv", f"path: 'https://h/x?X-Amz-Signature={SECRET}'"), "7:15"),
    "a token as user": (("format: csv", "path: 'https://Planted@h/x'"), "7:15"),
    "an option of another target": (("format: json", "path: landing", f"targets: {{prod: {{options: {{token: '{SECRET}'}}}}}}"), "8:36"),
    "a text in place of options": (("format: json", "path: landing", f"options: 'password={SECRET}'"), "8:18"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("lines", "place"), REJECTED.values(), ids=REJECTED)
def test_a_credential_in_a_declaration_is_an_error_at_its_place_and_reaches_no_file(tmp_path, capfd, lines, place):
    (tmp_path / "landing").mkdir()
    files = {"sources/shop.yml": declared(*lines), "models/m.sql": MODEL, "models/s.sql": STREAM}
    result = compiled(tmp_path, files)
    (found,) = [d for d in result.manifest.diagnostics if d.code == "source-credentials"]
    assert found.location is not None
    assert str(found.location) == f"sources/shop.yml:{place}"
    assert "connection" in found.hint
    for command in (["compile"], ["ls"], ["ls", "--output", "json"], ["docs", "generate"], ["parse"], ["compile"]):
        assert invoke([*command, "--project-dir", str(tmp_path)]) in {0, 1}
    told = "".join(capfd.readouterr())
    assert [form for form in FORMS if form in told] == []
    assert traces(tmp_path / "target") == []


HARMLESS = {
    "a container and an account": ("format: json", "path: abfss://container@account.dfs.core.windows.net/x"),
    "an at sign in a folder": ("format: json", "path: s3a://bucket/x@2024/token=1"),
    "hosts with ports": ("format: spark.jdbc", "options: {url: 'jdbc:postgresql://h:5432,i:5433/d?ssl=true', user: u, dbtable: t}"),
    "a query": ("format: spark.jdbc", "options: {url: 'jdbc:oracle:thin:@//h:1521/x', query: 'select * from t where password=1'}"),
    "options of a format": ("format: csv", "path: landing", "options: {columnPruning: 'true', sep: ';', quote: '='}"),
    "keys of columns": ("format: spark.hudi", "options: {hoodie.datasource.write.recordkey.field: id, partitionColumn: id}"),
}  # fmt: skip


@pytest.mark.parametrize("lines", HARMLESS.values(), ids=HARMLESS)
def test_what_is_no_credential_is_taken(tmp_path, lines):
    result = compiled(tmp_path, {"sources/shop.yml": declared(*lines), "models/m.sql": MODEL})
    assert [d for d in result.manifest.diagnostics if d.is_error] == []


@pytest.mark.slow
def test_what_may_be_a_credential_is_read_and_masked_where_it_is_shown(tmp_path, capfd):
    options = f"options: {{magic.auth: '{SECRET}', url: 'https://h/x?key={SECRET}', depth: '3'}}"
    files = {
        "sources/shop.yml": declared("format: spark.x", f"path: 'https://h/y?key={SECRET}'", options),
        "models/m.sql": f"/*---\nmaterialized: table\ntable_properties: {{s3.secret-access-key: '{SECRET}'}}\n"
        f"write_options: {{api-token: '{SECRET}'}}\n---*/\nselect id from {{{{ source('ops', 'orders') }}}}\n",
        "models/s.sql": STREAM,
    }
    result = compiled(tmp_path, files)
    assert [d for d in result.manifest.diagnostics if d.code == "source-credentials"] == []
    source = result.manifest.nodes["source.ops.orders"]
    assert isinstance(source, Source)
    assert source.spec.options["magic.auth"] == SECRET
    for command in (["compile"], ["ls"], ["ls", "--output", "json"], ["docs", "generate"]):
        invoke([*command, "--project-dir", str(tmp_path)])
    told = "".join(capfd.readouterr())
    assert [form for form in FORMS if form in told] == []
    text = (tmp_path / "target" / "manifest.json").read_text()
    assert '"depth":"3"' in text
    assert '"magic.auth":"*****"' in text
    # The cache holds what is needed to read the source; it is checked by those who keep it.
    shown = [trace for trace in traces(tmp_path / "target") if not trace.startswith(".cache/")]
    assert shown == []


def streams(tmp_path: Path, options: str, own: str = "{magic.auth: one}") -> tuple[Manifest, str, str]:
    project = f"{PROJECT}    connections: {{main: {{options: {options}}}}}\n"
    source = declared("format: spark.x", "connection: main", f"options: {own}")
    files = {"project.yml": project, "sources/shop.yml": source, "models/s.sql": STREAM}
    result = compiled(tmp_path, files, env=dict(os.environ))
    model = result.manifest.nodes["model.s"]
    found = in_text(result.manifest, model, result.target.place(tmp_path))  # type: ignore[arg-type]
    return result.manifest, json.dumps([dict(s.identity) for s in found]), json.dumps(plain(model.facts))  # type: ignore[union-attr]


@pytest.mark.slow
def test_another_password_is_no_other_source_and_another_database_is(tmp_path):
    def identity(url: str, password: str = "Planted-1") -> str:
        options = f"{{url: '{url}', user: me, password: '{password}', fetchsize: 10}}"
        _, found, facts = streams(tmp_path, options)
        assert "Planted" not in found + facts
        return found

    first = identity("jdbc:x://h/d")
    assert "connection" in first
    assert identity("jdbc:x://h/d", "Planted-2") == first
    assert identity("jdbc:x://me:Planted-3@h/d") == identity("jdbc:x://me:Planted-4@h/d")
    assert identity("jdbc:x://h/d?password=Planted-5") == identity("jdbc:x://h/d?password=Planted-6")
    assert identity("jdbc:x://h/other") != first
    assert identity("jdbc:x://i/d") != first


@pytest.mark.slow
def test_a_secret_inside_an_address_is_no_part_of_its_identity(tmp_path, monkeypatch):
    def identity(secret: str, url: str) -> str:
        monkeypatch.setenv("ENGINE_SECRET_X", secret)
        _, found, facts = streams(tmp_path, f'{{url: "{url}"}}')
        assert secret not in found + facts
        return found

    inside = "jdbc:x://h/d?odd={{ env_var('ENGINE_SECRET_X') }}"
    assert identity("Planted-1", inside) == identity("Planted-2", inside)
    whole = "{{ env_var('ENGINE_SECRET_X') }}"
    assert identity("jdbc:x://h/one", whole) != identity("jdbc:x://h/two", whole)


def test_facts_tell_one_masked_option_from_another(tmp_path):
    _, _, first = streams(tmp_path, "{url: 'jdbc:x://h/d'}", "{magic.auth: Planted-1}")
    _, _, second = streams(tmp_path, "{url: 'jdbc:x://h/d'}", "{magic.auth: Planted-2}")
    assert "Planted" not in first + second
    assert first != second


def test_a_compilation_needs_no_secret_of_a_connection(tmp_path):
    project = f"{PROJECT}    connections: {{main: {{options: {{password: \"{{{{ env_var('ENGINE_SECRET_ABSENT') }}}}\"}}}}}}\n"
    source = declared("format: spark.jdbc", "connection: main")
    result = compiled(tmp_path, {"project.yml": project, "sources/shop.yml": source, "models/m.sql": MODEL})
    assert [d for d in result.manifest.diagnostics if d.is_error] == []


@pytest.mark.parametrize(
    ("connection", "code"),
    [
        ("{options: {url: x}, bootstrap_servers: 'a:1'}", "connection-settings"),
        ("{options: [x]}", "connection-settings"),
        ("{options: {url: [x]}}", "connection-settings"),
        ("{options: {mode: PERMISSIVE}}", "connection-settings"),
    ],
)
def test_a_connection_that_is_no_readers_is_an_error_before_anything_is_read(tmp_path, connection, code):
    from engine.errors import ProjectError
    from engine.sources import KINDS

    (tmp_path / "landing").mkdir()
    files = {
        "project.yml": f"{PROJECT}    connections: {{main: {connection}}}\n",
        "sources/shop.yml": declared("format: json", "path: landing", "connection: main"),
    }
    result = compiled(tmp_path, files)
    source = result.manifest.nodes["source.ops.orders"]
    assert isinstance(source, Source)
    with pytest.raises(ProjectError) as error:
        KINDS["json"].check(source.spec, result.target.place(tmp_path))
    assert error.value.diagnostic.code == code


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "://a:b" * 20_000, "?a=b" * 20_000, "?a={b" * 20_000, "?a={b}&" * 20_000, "x:" + "=" * 80_000,
        "jdbc:oracle:thin:" * 8_000 + "@",
    ],
)  # fmt: skip
def test_a_long_address_is_judged_in_bounded_steps(text):
    began = time.process_time()
    assert isinstance(credentials.in_address(text, "url"), bool)
    assert isinstance(credentials.masked(text, "url"), str)
    # A tenth of that; twelve seconds where each parameter looks through all of the text behind it.
    assert time.process_time() - began < 2
