"""`engine submit` and `engine debug --show-spark-conf`: what a cluster is handed, with no service but a standalone one."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from engine.cli.main import invoke
from engine.compile import compile_project
from engine.project import load_project
from engine.runtime.operations import submit as submit_module
from engine.runtime.operations.submit import DeployMode, submission
from tests.cluster.conftest import STORE_SECRET, ClusterLab
from tests.lab import EVENTS, REPOSITORY
from tests.services import spark_cluster

SECRET = "planted-3141-in-a-target"
OTHER_SECRET = "planted-1618-beside-it"
PROJECT = """
name: shop
target: prod
targets:
  prod:
    schema: shop
    catalog: {type: rest, uri: "https://c.example", warehouse: lake, token: "{{ env_var('ENGINE_SECRET_TOKEN') }}"}
    spark:
      master: MASTER
      driver_memory: 3g
      shared_folders: true
      conf:
        spark.executor.instances: 4
        spark.authenticate.secret: "{{ env_var('ENGINE_SECRET_TOKEN') }}"
        spark.hadoop.fs.s3a.secret.key: in-plain-text-2718
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose target is a cluster; whoever reads a secret fails, as it is not set."""
    monkeypatch.delenv("ENGINE_SECRET_TOKEN", raising=False)
    (tmp_path / "models").mkdir()
    (tmp_path / "sources").mkdir()
    (tmp_path / "models" / "m.sql").write_text("select id, kind from {{ source('shop', 'events') }}\n")
    (tmp_path / "sources" / "s.yml").write_text(EVENTS)
    (tmp_path / "landing" / "events").mkdir(parents=True)
    (tmp_path / ".env").write_text(f"ENGINE_SECRET_TOKEN={SECRET}")
    (tmp_path / "key.pem").write_text(SECRET)
    write(tmp_path, "yarn")
    return tmp_path


def write(root: Path, master: str) -> None:
    (root / "project.yml").write_text(PROJECT.replace("MASTER", f'"{master}"'))


def run(shop: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = invoke([*arguments[:1], "--project-dir", str(shop), *arguments[1:]])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.slow
def test_the_configuration_is_shown_without_secrets_or_java(shop, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "")
    code, out, err = run(shop, capsys, "debug", "--show-spark-conf")
    conf = dict(line.split(" ", 1) for line in out.splitlines())
    assert code == 0, err
    assert conf["spark.master"] == "yarn"
    assert conf["spark.driver.memory"] == "3g"
    assert conf["spark.executor.instances"] == "4"
    assert conf["spark.sql.catalog.lake.uri"] == "https://c.example"
    assert conf["spark.sql.catalog.lake.token"] == conf["spark.authenticate.secret"] == "*****"
    assert conf["spark.hadoop.fs.s3a.secret.key"] == "*****"
    assert "in-plain-text-2718" not in out
    assert "iceberg-spark-runtime" in conf["spark.jars"]
    assert list(conf) == sorted(conf)


@pytest.mark.slow
@pytest.mark.parametrize("master", ["yarn", "k8s://https://h.example:6443"])
def test_cluster_mode_ships_the_project_and_the_engine(shop, capsys, master):
    write(shop, master)
    code, out, err = run(shop, capsys, "submit", "--dry-run", "--environment", "env.tar.gz", "test", "-s", "m")
    assert code == 0, err
    command, *rest = out.splitlines()
    assert command == (
        f"spark-submit --master {master} --deploy-mode cluster --name headrace-shop --properties-file spark.properties "
        "--archives 'headrace.tar.gz#headrace,env.tar.gz#environment' headrace_main.py test -s m --target prod "
        "--exclude test_type:unit"
    )
    conf = dict(line.strip().split(" ", 1) for line in rest if line.startswith("  spark."))
    assert conf["spark.pyspark.driver.python"] == "./environment/bin/python"
    assert conf["spark.executorEnv.PYTHONPATH"] == "./headrace/lib"
    assert "spark.driver.host" not in conf
    # A cluster manager keeps what it is handed where others can read it.
    assert not {"spark.authenticate.secret", "spark.hadoop.fs.s3a.secret.key", "spark.sql.catalog.lake.token"} & {*conf}
    assert "*****" not in out
    files = [line.strip() for line in rest if line.startswith("  project/")]
    assert files == ["project/models/m.sql", "project/project.yml", "project/sources/s.yml"]


@pytest.mark.parametrize("value", ["{k: 2}", "{main}", "{archive}", "{0}", "{", "}"])
def test_arguments_of_the_command_are_handed_on_as_they_are(shop, capsys, value):
    code, out, err = run(shop, capsys, "submit", "--dry-run", "test", "--vars", value)
    assert code == 0, err
    command = shlex.split(out.splitlines()[0])
    assert command[command.index("headrace_main.py") :][:4] == ["headrace_main.py", "test", "--vars", value]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("master", "arguments", "said"),
    [
        ("local[2]", ("build",), "there is nothing to submit to"),
        ("spark://h:7077", ("--deploy-mode", "cluster", "test"), "a standalone cluster starts Java programs only"),
        ("yarn", ("build",), "the state is a folder"),
        ("yarn", ("compile",), "and got 'compile'"),
        ("yarn", (), "and got no command"),
    ],
)
def test_what_cannot_be_submitted_is_rejected_by_name(shop, capsys, master, arguments, said):
    write(shop, master)
    code, _, err = run(shop, capsys, "submit", "--dry-run", *arguments)
    assert code in {1, 2}
    assert said in err


@pytest.mark.slow
def test_what_is_shipped_is_enough_to_run_a_command(shop, tmp_path_factory, monkeypatch):
    """The archive as YARN unpacks it: read-only, in the working folder of a Python that has no Headrace."""
    compiled = compile_project(load_project(shop), env={})
    made = submission(compiled.target, compiled.manifest, shop, shop / "target", ["show"], DeployMode.CLUSTER, "")
    work = tmp_path_factory.mktemp("container")
    submit_module._pack(work / "headrace.tar.gz", made.members)
    with tarfile.open(work / "headrace.tar.gz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(work / "headrace")
    for path in (work / "headrace").rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    main = work / "headrace_main.py"
    main.write_text((REPOSITORY / "engine" / "cli" / "commands" / "submitted_main.py").read_text())
    shown = "import atexit; atexit.register(lambda: print(sys.modules['engine'].__file__))"
    script = f"import runpy, sys; {shown}; sys.argv = [{str(main)!r}, 'ls']; runpy.run_path({str(main)!r}, run_name='__main__')"
    found = subprocess.run(
        [sys.executable, "-P", "-c", script], cwd=work, capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(work), "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(work)},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert "shop.m" in found.stdout.split() or "m" in found.stdout.split()
    assert str(work / "headrace" / "lib" / "engine") in found.stdout
    assert SECRET not in (work / "headrace.tar.gz").read_bytes().decode(errors="replace")


@pytest.mark.nightly
@pytest.mark.spark
def test_a_command_runs_in_the_session_that_spark_submit_started(cluster_lab: ClusterLab) -> None:
    lab = cluster_lab
    lab.model("m", "select * from {{ source('shop', 'events') }}")
    query = "select sum(id * 2) as total from range(10, 20)"
    command = [sys.executable, "-m", "engine", "submit", "--project-dir", str(lab.root), "show", "--inline", query]
    done = subprocess.run(
        command, cwd=REPOSITORY, env={**os.environ, **lab.secrets}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "290" in done.stdout
    assert STORE_SECRET not in done.stdout + done.stderr


# Each row is a second of an executor, whose environment it shows.
SEEN = (
    "select reflect('java.lang.System', 'getenv', 'ENGINE_SECRET_STORE') as store, "
    "reflect('java.lang.System', 'getenv', 'PATH') is null as empty, "
    "reflect('java.lang.Thread', 'sleep', 1000L) as slept from range(8)"
)


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_executors_of_a_submitted_command_get_no_variable_of_the_driver(cluster_lab: ClusterLab) -> None:
    lab = cluster_lab
    assert lab.cluster is not None
    lab.model("m", "select * from {{ source('shop', 'events') }}")
    command = [sys.executable, "-m", "engine", "submit", "--project-dir", str(lab.root), "show", "--inline", SEEN]
    # Core files are allowed where the command begins.
    command = ["sh", "-c", 'ulimit -S -c "$(ulimit -H -c)"; exec "$@"', "sh", *command]
    env = {**os.environ, **lab.secrets, "ENGINE_SECRET_OTHER": OTHER_SECRET}
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as driver:
        environments, shown, cores = set[bytes](), "", set[str]()
        while driver.poll() is None:
            for pid in lab.cluster.executors():
                with contextlib.suppress(OSError):
                    environments.add(Path(f"/proc/{pid}/environ").read_bytes())
            for pid in (driver.pid, *spark_cluster.below([driver.pid])):
                line = spark_cluster.arguments(pid)
                shown += line
                if "org.apache.spark.deploy.SparkSubmit" in line:
                    cores.add(core_limit(pid))
            time.sleep(0.3)
        assert driver.stdout is not None
        out = driver.stdout.read()
    assert driver.returncode == 0, out
    # A mask would be a value.
    rows = [line.split()[1] for line in out.splitlines() if "| false" in line]
    assert rows == ["null"] * 8, out
    assert environments
    assert all(
        secret.encode() not in environment for environment in environments for secret in (STORE_SECRET, OTHER_SECRET)
    )
    left = b"".join(path.read_bytes() for path in lab.cluster.folder.rglob("*") if path.is_file())
    for text in (out, shown, left.decode(errors="replace")):
        assert STORE_SECRET not in text
        assert OTHER_SECRET not in text
    assert cores - {""} == {"0"}


def core_limit(pid: int) -> str:
    """The soft limit of core files of a process; empty: it has ended."""
    try:
        return Path(f"/proc/{pid}/limits").read_text().partition("Max core file size")[2].split()[0]
    except (OSError, IndexError):
        return ""


KEYS = (
    "gcp-key.json", "config/service-account.json", "certs/client.p12", "deploy.key", "aws.ini", "passwords.txt", "models/gcp.json",
    "sources/token.txt", "tests/fixtures/key.pem",
)  # fmt: skip


def test_nothing_is_shipped_that_no_command_reads(shop, capsys):
    for name in (*KEYS, "data/rows.csv", "notes.md", "profiles.yml"):
        (shop / name).parent.mkdir(parents=True, exist_ok=True)
        (shop / name).write_text(f'{{"private": "{SECRET}"}}')
    (shop / "profiles.yml").unlink()
    (shop / "selectors.yml").write_text("selectors: [{name: all, definition: m}]\n")
    (shop / "macros").mkdir()
    (shop / "macros" / "a.sql").write_text("{% macro a() %}1{% endmacro %}")
    (shop / "models" / "linked.sql").symlink_to(shop / "models" / "m.sql")
    code, out, err = run(shop, capsys, "submit", "--dry-run", "test")
    assert code == 0, err
    files = [line.strip() for line in out.splitlines() if line.startswith("  project/")]
    assert files == [
        f"project/{name}"
        for name in (
            "macros/a.sql",
            "models/linked.sql",
            "models/m.sql",
            "project.yml",
            "selectors.yml",
            "sources/s.yml",
        )
    ]
    for name in KEYS:
        assert name in out + err


@pytest.mark.parametrize("text", [
    "-----BEGIN PRIVATE KEY-----", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "postgresql://me:planted-word@db.example/x",
])  # fmt: skip
def test_a_file_with_a_key_in_it_is_not_shipped(shop, capsys, text):
    (shop / "models" / "m.sql").write_text(f"-- first\n-- {text}\nselect 1 as id\n")
    code, out, err = run(shop, capsys, "submit", "--dry-run", "test")
    assert code == 1
    assert "secret-misplaced" in out + err
    assert "models/m.sql:2" in out + err
    assert "planted-word" not in out + err
