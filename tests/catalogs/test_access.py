"""Logins, tokens and rights: what is wrong is one diagnostic at the target, and no secret is shown."""

from __future__ import annotations

import re
import shutil
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engine.compile import Catalog
from engine.lake.clients import catalog_client, rest_session
from tests.catalogs.conftest import CatalogLab, block, jdbc_catalog, rest_catalog
from tests.catalogs.life_cycle import PLAIN
from tests.lab import EVENTS, REPOSITORY, LabSession, event, run_alone, share_session
from tests.security.answering import answer, answering
from tests.services import process
from tests.services.iceberg_rest import Door, RestServer
from tests.services.postgres import Postgres

SECRET = "s3cret-of-the-catalog"
LOGIN = ("shop", SECRET)
pytestmark = pytest.mark.spark


def planned(root: Path, capsys: pytest.CaptureFixture[str], catalog: Catalog, **keys: str) -> tuple[list[str], str]:
    """What a plan in a catalog reports: code, file and line; and all that it prints."""
    lab = CatalogLab(root, None, capsys, catalog=catalog, written=block(Catalog(
        catalog.type, catalog.name, catalog.path, {**catalog.keys, **keys})))  # fmt: skip
    lab.model("plain", PLAIN)
    lab.land("a", [event(1)])
    begin = time.monotonic()
    result = lab.run("plan", "--output", "json")
    assert time.monotonic() - begin < 60
    assert "Traceback" not in result.text
    found = [e for e in result.events if e.get("event") == "Diagnosed"]
    return [f"{e['code']} {e['file']}:{e['line']}" for e in found], result.text


PLACE = "project.yml:5"


def test_a_wrong_login(
    door: Door,
    rest_server: RestServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    door.login = LOGIN
    monkeypatch.setenv("ENGINE_SECRET_CATALOG", f"shop:{SECRET}x")
    secret = {"credential": "{{ env_var('ENGINE_SECRET_CATALOG') }}"}
    codes, text = planned(tmp_path, capsys, rest_catalog(door.url, rest_server), **secret)
    assert codes == [f"catalog-denied {PLACE}"], text
    assert SECRET not in text
    codes, text = planned(tmp_path, capsys, rest_catalog(door.url, rest_server), token="expired-token")
    assert codes == [f"catalog-denied {PLACE}"], text
    assert "expired-token" not in text
    monkeypatch.setenv("ENGINE_SECRET_CATALOG", f"shop:{SECRET}")
    codes, text = planned(tmp_path, capsys, rest_catalog(door.url, rest_server), **secret)
    assert codes == [], text
    assert SECRET not in text


def test_a_user_without_rights(
    door: Door, rest_server: RestServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    door.forbidden = ("GET /v1/namespaces",)
    codes, text = planned(tmp_path, capsys, rest_catalog(door.url, rest_server))
    assert codes == [f"catalog-denied {PLACE}"], text
    assert "rights" in text


def test_a_server_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = process.free_port()
    codes, text = planned(tmp_path, capsys, Catalog("rest", "r", tmp_path, {"uri": f"http://127.0.0.1:{port}"}))
    assert codes == [f"catalog-unreachable {PLACE}"], text
    assert f"127.0.0.1:{port}" in text
    keys = {"uri": f"jdbc:postgresql://127.0.0.1:{port}/lake", "jdbc.user": "me", "jdbc.password": SECRET}
    catalog = Catalog("jdbc", "p", tmp_path, {**keys, "warehouse": str(tmp_path / "w")})
    codes, text = planned(tmp_path, capsys, catalog)
    assert codes == [f"catalog-unreachable {PLACE}"], text
    assert SECRET not in text


def test_a_server_that_does_not_answer_is_not_waited_for_without_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest_session, "SECONDS", 0.5)
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as silent:  # listens, and is not served
        url = f"http://127.0.0.1:{silent.server_address[1]}"
        codes, text = planned(tmp_path, capsys, Catalog("rest", "r", tmp_path, {"uri": url}))
    assert codes == [f"catalog-unreachable {PLACE}"], text


def test_a_server_that_is_no_catalog(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with answering({"GET ": lambda handler: answer(handler, 200, b"<html>hello</html>")}) as server:
        codes, text = planned(tmp_path, capsys, Catalog("rest", "r", tmp_path, {"uri": server.url}))
    assert codes == [f"catalog-unusable {PLACE}"], text


def test_a_certificate_that_is_not_trusted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "ca.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True,
    )  # fmt: skip
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        url = f"https://127.0.0.1:{server.server_address[1]}"
        codes, text = planned(tmp_path / "p", capsys, Catalog("rest", "r", tmp_path, {"uri": url}))
        server.shutdown()
    assert codes == [f"catalog-unreachable {PLACE}"], text
    assert "certificate" in text


def test_a_wrong_password_database_and_right_of_postgres(
    postgres_server: Postgres, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = postgres_server.start()
    right = jdbc_catalog(server, tmp_path / "w")
    codes, text = planned(tmp_path, capsys, right, **{"jdbc.password": "wrong-password"})
    assert codes == [f"catalog-denied {PLACE}"], text
    assert "wrong-password" not in text
    codes, text = planned(tmp_path, capsys, right, uri=server.jdbc.replace("/lake", "/other"))
    assert codes == [f"catalog-unusable {PLACE}"], text
    assert "Create the database" in text
    server.execute("CREATE TABLE IF NOT EXISTS public.iceberg_tables (catalog_name text, table_namespace text, table_name text,"
                   " metadata_location text, previous_metadata_location text, iceberg_type text)")  # fmt: skip
    server.execute("DROP ROLE IF EXISTS guest")
    server.execute("CREATE ROLE guest LOGIN PASSWORD 'guest-password'")
    codes, text = planned(tmp_path, capsys, right, **{"jdbc.user": "guest", "jdbc.password": "guest-password"})
    assert codes == [f"catalog-denied {PLACE}"], text


@pytest.mark.nightly
def test_the_rights_that_the_security_page_gives_are_enough_and_no_more(
    postgres_server: Postgres, lab_session: LabSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = postgres_server.start()
    page = (REPOSITORY / "docs/how-to/security.md").read_text(encoding="utf-8")
    (statements,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    server.execute("DROP TABLE IF EXISTS iceberg_tables, iceberg_namespace_properties")
    for statement in statements.replace("<password>", SECRET).split(";"):
        if statement.strip():
            server.execute(statement)
    catalog = jdbc_catalog(server, tmp_path / "w", **{"jdbc.user": "shop_build", "jdbc.password": SECRET})
    with share_session(lab_session):
        lab = CatalogLab(tmp_path / "p", lab_session, capsys, catalog=catalog, written=block(catalog))
        lab.write("sources/shop.yml", EVENTS)
        lab.model("plain", PLAIN)
        lab.model("totals", "/*---\nmaterialized: table\n---*/\nselect count(*) as n from {{ ref('plain') }}\n")
        lab.model("seen", "/*---\nmaterialized: view\n---*/\nselect id from {{ ref('plain') }}\n")
        for number in (1, 2):
            lab.land(str(number), [event(number)])
            lab.build()
        lab.build("-f")
        assert lab.ids("plain") == [1, 2]
        assert lab.run("drop", "totals", "--yes").code == 0
        reader = {**catalog.keys, "jdbc.user": "shop_read"}
        lab.retarget(block(Catalog(catalog.type, catalog.name, catalog.path, reader)))
        catalog_client._clients.clear()
        assert "create" in lab.run("plan").text
        assert lab.run("show", "plain", "--table").code == 0
        removed = lab.run("drop", "seen", "--yes")
        assert removed.code == 1
        assert "catalog-denied" in removed.codes(), removed.text


@pytest.mark.nightly
def test_tokens_are_renewed_and_one_alone_is_not(
    door: Door,
    rest_server: RestServer,
    lab_session: LabSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ENGINE_SECRET_CATALOG", f"shop:{SECRET}")
    door.login, door.lifetime = LOGIN, 12.0
    catalog = rest_catalog(door.url, rest_server, credential=f"shop:{SECRET}")
    written = block(catalog).replace(f"shop:{SECRET}", "{{ env_var('ENGINE_SECRET_CATALOG') }}")
    with share_session(lab_session):
        lab = CatalogLab(tmp_path, lab_session, capsys, catalog=catalog, written=written)
        lab.write("sources/shop.yml", EVENTS)
        lab.model("plain", PLAIN)
        begin = time.monotonic()
        for number in range(4):
            lab.land(str(number), [event(number)])
            result = lab.build()
            assert SECRET not in result.text
            time.sleep(6)
        assert time.monotonic() - begin > 2 * door.lifetime
        assert door.tokens > 4, "one of Java, and its renewals"
        assert lab.ids("plain") == [0, 1, 2, 3]

        # The secret can be used no more: Java's token expires, and cannot be renewed.
        door.login = ("shop", "another")
        lab.land("late", [event(9)])
        door.lifetime = 3600.0
        door._known.clear()
        monkeypatch.setenv("ENGINE_SECRET_CATALOG", "shop:another")
        ended = lab.run("build")
        assert ended.code == 1, ended.text
        assert "catalog-denied" in ended.codes(), ended.text
        assert "Traceback" not in ended.text
    for path in (tmp_path / "target").rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    for path in rest_server.warehouse.rglob("*.metadata.json"):
        assert SECRET not in path.read_text()


@pytest.mark.nightly
def test_a_secret_is_in_no_argument_of_a_process(
    door: Door, rest_server: RestServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    door.login = LOGIN
    catalog = rest_catalog(door.url, rest_server, credential=f"shop:{SECRET}")
    written = block(catalog).replace(f"shop:{SECRET}", "{{ env_var('ENGINE_SECRET_CATALOG') }}")
    lab = CatalogLab(tmp_path, None, capsys, catalog=catalog, written=written)
    lab.model("plain", PLAIN)
    lab.land("a", [event(1)])
    script = """
import subprocess
from engine import kill_points
def look(point, *_):
    if point == "checked":
        print("LOOKED", SECRET in subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True).stdout)
kill_points.listen(look)
""".replace("SECRET in", f"''.join(map(chr, {[ord(c) for c in SECRET]})) in")
    ended = run_alone(lab.root, "build", script=script, env={"ENGINE_SECRET_CATALOG": f"shop:{SECRET}"})
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "LOOKED False" in ended.stdout
    assert "LOOKED True" not in ended.stdout
    assert SECRET not in ended.stdout + ended.stderr
    for folder in (tmp_path / "target", tmp_path / ".engine"):
        for path in folder.rglob("*"):
            assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def test_a_table_of_others_is_neither_replaced_nor_dropped(shared: CatalogLab) -> None:
    lab = shared
    spark = lab.session.spark  # type: ignore[union-attr]
    names = ".".join(f"`{part}`" for part in lab.schema.split("."))
    for depth in (1, 2):
        name = ".".join(f"`{part}`" for part in lab.schema.split(".")[:depth])
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {lab.catalog.name}.{name}")
    spark.sql(f"CREATE TABLE {lab.catalog.name}.{names}.plain (id int) USING iceberg")
    spark.sql(f"INSERT INTO {lab.catalog.name}.{names}.plain VALUES (42)")
    lab.model("plain", PLAIN)
    lab.land("a", [event(1)])
    for arguments in ((), ("-f",)):
        ended = lab.run("build", *arguments)
        assert ended.code == 1, ended.text
    lab.run("drop", "plain", "--yes")
    assert lab.ids("plain") == [42]


def test_a_plan_asks_little(rest_lab: CatalogLab, door: Door) -> None:
    rest_lab.write("sources/shop.yml", EVENTS)
    for number in range(6):
        rest_lab.model(f"m{number}", PLAIN)
    rest_lab.land("a", [event(1)])
    rest_lab.build()
    door.asked.clear()
    assert rest_lab.run("plan").code == 0
    assert len([asked for asked in door.asked if "/tables/" in asked]) == 6, door.asked
    assert len(door.asked) <= 9, door.asked
