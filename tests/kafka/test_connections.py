"""Connections to a real broker: logins, TLS, what debug says, and that no secret gets out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.kafka.conftest import Kafka, event
from tests.lab import Lab, run_alone
from tests.services.kafka import PASSWORD, USER, Broker

pytestmark = pytest.mark.spark


def connect(kafka: Kafka, **security: str) -> None:
    """Give the project's connection another address and security."""
    text = (kafka.lab.root / "project.yml").read_text().split("    connections:")[0]
    said = json.dumps({"bootstrap_servers": security.pop("address"), "security": security})
    kafka.lab.write("project.yml", f"{text}    connections: {{main: {said}}}\n")


def test_a_login_is_taken_and_a_wrong_one_refused_soon(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = kafka.topic()
    kafka.source(topic)
    kafka.lab.model(
        "plain", "/*---\nstreams: [shop.events]\nexplain: true\n---*/\nselect id from {{ source('shop', 'events') }}\n"
    )
    kafka.broker.send(topic, [event(1)])
    monkeypatch.setenv("ENGINE_SECRET_KAFKA", PASSWORD)
    login = {
        "address": kafka.broker.login_address, "protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN",
        "username": USER,
    }  # fmt: skip
    connect(kafka, **login, password="{{ env_var('ENGINE_SECRET_KAFKA') }}")
    kafka.lab.build()
    assert kafka.ids() == [1]
    assert "Spark's plan of plain:" in (kafka.lab.root / "target" / "logs" / "engine.log").read_text()
    texts = [path.read_bytes() for path in kafka.lab.root.rglob("*") if path.is_file()]
    assert not any(PASSWORD.encode() in text or PASSWORD.split('"')[1].encode() in text for text in texts)

    monkeypatch.setenv("ENGINE_SECRET_KAFKA", "wrong")
    refused = kafka.lab.run("build")
    assert refused.code == 1
    assert refused.codes() == ["kafka-rejected"]
    assert "wrong" not in refused.text
    assert kafka.ids() == [1]


def test_a_query_that_is_not_analysed_shows_no_secret_anywhere(tmp_path: Path, broker: Broker) -> None:
    """Spark's error has the plan in its message; a query that fails while it runs: test_secured.py."""
    kafka = Kafka(Lab(tmp_path, None, None, schema="shop"), broker.start())
    topic = kafka.topic()
    kafka.source(topic)
    kafka.stream("select cast(to_number('1', 'XX') as int) as id")
    broker.send(topic, [event(1)])
    connect(
        kafka, address=broker.login_address, protocol="SASL_PLAINTEXT", mechanism="PLAIN", username=USER,
        password="{{ env_var('ENGINE_SECRET_KAFKA') }}",
    )  # fmt: skip
    failed = run_alone(kafka.lab.root, "build", env={"ENGINE_SECRET_KAFKA": PASSWORD})
    assert failed.returncode == 1
    texts = {"output": (failed.stdout + failed.stderr).encode()}
    texts |= {str(path): path.read_bytes() for path in kafka.lab.root.rglob("*") if path.is_file()}
    assert any(b"INVALID_FORMAT" in text for name, text in texts.items() if not name.endswith(".sql")), (
        "another failure"
    )
    assert any(name.endswith("spark.log") for name in texts)
    assert [name for name, text in texts.items() if b"battery" in text] == []


def test_debug_says_whether_a_broker_answers(kafka: Kafka) -> None:
    good = kafka.lab.run("debug")
    assert f"'main' at {kafka.broker.address}" in good.text
    connect(kafka, address="127.0.0.1:1", protocol="PLAINTEXT")
    bad = kafka.lab.run("debug")
    assert bad.code == 1
    assert "no broker of the connection 'main' responds" in bad.text


@pytest.mark.nightly
def test_the_jars_of_kafka_are_there_only_for_models_that_read_it(kafka: Kafka, broker: Broker, tmp_path: Path) -> None:
    topic = kafka.topic()
    kafka.source(topic)
    kafka.stream("select id")
    kafka.lab.model("other", "select 1 as id")
    found = {}
    for model in ("other", "plain"):
        script = (
            "import engine.runtime.build as b\nfrom engine.spark.jars import jar_paths\n"
            "def noted(names, **how):\n    print('SETS', *names, flush=True)\n    return jar_paths(names, **how)\n"
            "b.jar_paths = noted\n"
        )
        done = run_alone(kafka.lab.root, "build", "-s", model, script=script, env=dict(os.environ))
        assert done.returncode == 0, done.stdout + done.stderr
        found[model] = next(line for line in done.stdout.splitlines() if line.startswith("SETS"))
    assert found == {"other": "SETS core", "plain": "SETS core kafka"}
