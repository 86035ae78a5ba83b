"""A database as a source, end to end through Spark: its login is in a connection and in no file or message."""

from __future__ import annotations

import base64
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.lab import Lab
from tests.projects import sources_yaml

pytestmark = pytest.mark.spark

PASSWORDS = {
    "ENGINE_SECRET_DB": "Planted/Val+ue=9 x",
    "SHOP_DB_LOGIN": "Other&Planted%Value",
    "LITERAL": "Literal'Planted\"Value",
    "ADDRESS": "Address-Planted-Value",
}
SOURCE = sources_yaml(
    orders={
        "format": "spark.jdbc",
        "connection": "warehouse",
        "options": {"dbtable": "orders"},
        "schema": "id bigint, amount double",
    }
)
MODEL = "/*---\nmaterialized: table\n---*/\nselect id, amount from {{ source('shop', 'orders') }}\n"


def forms(value: str) -> set[str]:
    encoded = {base64.b64encode(b" " * n + value.encode()).decode()[4:-4] for n in range(3)}
    escaped = {
        value.replace('"', '\\"'),
        value.replace("'", "\\'"),
        value.replace("'", "''"),
        value.replace("&", "&amp;"),
    }
    return {value, quote(value), quote(value, safe=""), value.encode().hex(), value.lower(), *encoded, *escaped}


def connect(lab: Lab, url: str, password: str = "{{ env_var('ENGINE_SECRET_DB') }}") -> None:
    text = lab.root.joinpath("project.yml").read_text().partition("    connections:")[0]
    other, literal = "{{ env_var('SHOP_DB_LOGIN') }}", PASSWORDS["LITERAL"].replace("'", "''")
    lab.write(
        "project.yml",
        f'{text}    connections:\n      warehouse:\n        options:\n          url: "{url}"\n'
        f'          driver: org.sqlite.JDBC\n          user: me\n          password: "{password}"\n'
        f"          apiToken: \"{other}\"\n          sslKeyPassword: '{literal}'\n",
    )


def database(path: Path, *rows: tuple[int, float]) -> str:
    """The address of a new database."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table orders (id int, amount double)")
        connection.executemany("insert into orders values (?, ?)", rows)
        connection.commit()
    return f"jdbc:sqlite:{path}"


def rows(lab: Lab, name: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in lab.rows(name))


def traces(*folders: Path) -> list[str]:
    found = []
    for path in (path for folder in folders for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        found += [f"{path}: {form}" for value in PASSWORDS.values() for form in forms(value) if form.encode() in data]
    return found


def test_a_database_is_read_with_a_login_that_no_file_and_no_message_holds(lab: Lab, tmp_path_factory, monkeypatch):
    for name in ("ENGINE_SECRET_DB", "SHOP_DB_LOGIN"):
        monkeypatch.setenv(name, PASSWORDS[name])
    outside = tmp_path_factory.mktemp("databases")
    connect(lab, database(outside / "one.db", (1, 2.5), (2, 3.5)))
    lab.write("sources/shop.yml", SOURCE)
    lab.model("orders", MODEL)
    told = [lab.run("compile"), lab.run("ls"), lab.run("build"), lab.run("docs", "generate"), lab.run("show", "orders")]
    assert [result.code for result in told] == [0] * 5, told[-1].text
    assert rows(lab, "orders") == [(1, 2.5), (2, 3.5)]

    connect(lab, database(outside / "two.db", (3, 4.5)))
    told += [lab.run("build"), lab.run("source", "inspect", "shop.orders")]
    assert rows(lab, "orders") == [(3, 4.5)]
    assert "amount double" in told[-1].text

    connect(lab, f"jdbc:absent:x?password={PASSWORDS['ADDRESS']}")
    failed = lab.run("build")
    assert failed.code == 1
    assert "jdbc:absent:x?password=*****" in failed.text
    told.append(failed)

    texts = "".join(result.text for result in told)
    assert [form for value in PASSWORDS.values() for form in forms(value) if form in texts] == []
    lab.root.joinpath("project.yml").unlink()  # holds the literal one
    assert traces(lab.root, lab.lake_path, lab.lake_path.parent / "logs") == []


def test_a_folder_is_read_with_the_options_of_a_connection(lab: Lab, monkeypatch):
    """Options of a connection reach the reader of files, in batches and streams."""
    monkeypatch.setenv("ENGINE_SECRET_DB", "|")
    text = lab.root.joinpath("project.yml").read_text()
    lab.write(
        "project.yml",
        f"{text}    connections: {{store: {{options: {{sep: \"{{{{ env_var('ENGINE_SECRET_DB') }}}}\", fs.s3a.secret.key: x}}}}}}\n",
    )
    lab.write(
        "sources/shop.yml",
        "sources:\n  - name: shop\n    tables:\n      - name: orders\n        format: csv\n        path: landing\n"
        '        connection: store\n        schema: "id int, amount double"\n',
    )
    lab.write("landing/a.csv", "id|amount\n1|2.5\n")
    lab.model("orders", MODEL)
    lab.model(
        "streamed", "/*---\nstreams: [shop.orders]\n---*/\nselect id, amount from {{ source('shop', 'orders') }}\n"
    )
    for _ in range(2):
        result = lab.run("build")
        assert result.code == 0, result.text
    assert rows(lab, "orders") == rows(lab, "streamed") == [(1, 2.5)]
