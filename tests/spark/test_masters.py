"""What a master URL says, and what is asked of a cluster before Java starts."""

import sys
import time

import pytest

from engine.errors import SetupError
from engine.spark.cluster import check_masters, executor_python
from engine.spark.session import SessionSettings, session_conf
from engine.spark_master import MasterKind, addresses, is_loopback, is_on_this_machine, kind_of
from tests.services import process
from tests.spark.test_session import settings


@pytest.mark.parametrize(
    ("master", "kind"),
    [
        ("local", MasterKind.LOCAL),
        ("local[*]", MasterKind.LOCAL),
        ("local[4,2]", MasterKind.LOCAL),
        ("local-cluster[2,1,512]", MasterKind.STANDALONE),
        ("spark://h:7077", MasterKind.STANDALONE),
        ("spark://a:7077,b:7078", MasterKind.STANDALONE),
        ("yarn", MasterKind.YARN),
        ("k8s://https://h:6443", MasterKind.KUBERNETES),
        ("sc://h:15002", MasterKind.CONNECT),
        ("sc://adb.databricks.com:443", MasterKind.DATABRICKS),
        ("mesos://h:5050", MasterKind.UNKNOWN),
        ("localhost", MasterKind.UNKNOWN),
        ("spark://", MasterKind.UNKNOWN),
    ],
)
def test_kinds_of_masters(master, kind):
    assert kind_of(master) is kind


def test_addresses_of_masters():
    assert addresses("spark://a:7077,b") == (("a", 7077), ("b", 7077))
    assert addresses("spark://[::1]:7099") == (("[::1]", 7099),)
    assert addresses("yarn") == ()


@pytest.mark.parametrize(
    ("master", "near"),
    [("spark://127.0.0.1:1", True), ("spark://localhost", True), ("spark://localhost:1,h:1", False), ("yarn", False)],
)
def test_a_loopback_master_keeps_the_driver_on_the_loopback_interface(master, near):
    assert is_loopback(master) is near
    assert (session_conf(settings(master=master)).get("spark.driver.bindAddress") == "127.0.0.1") is near
    # A tunnel has such an address as well: it is no promise about disks.
    assert not is_on_this_machine(master)


def test_a_master_that_is_not_there_is_noticed_at_once():
    port = process.free_port()
    begin = time.monotonic()
    with pytest.raises(SetupError) as raised:
        check_masters(f"spark://127.0.0.1:{port}")
    assert time.monotonic() - begin < 5
    assert raised.value.diagnostic.code == "cluster-unreachable"
    assert f"127.0.0.1:{port}: Connection refused" in raised.value.diagnostic.message
    check_masters("yarn")
    check_masters("local[2]")


@pytest.mark.parametrize(
    ("master", "conf", "python"),
    [
        ("local[2]", {}, sys.executable),
        ("spark://127.0.0.1:7077", {}, sys.executable),
        ("spark://h:7077", {}, None),
        ("spark://h:7077", {"spark.pyspark.python": "/srv/venv/bin/python"}, "/srv/venv/bin/python"),
    ],
)
def test_the_python_of_executors(master, conf, python):
    assert executor_python(master, conf) == python


def test_the_drivers_folders_do_not_depend_on_the_master():
    """Spark would make spark-warehouse/ in the current folder."""
    warehouses = {
        session_conf(SessionSettings(settings().java, settings().log_dir, master=master))["spark.sql.warehouse.dir"]
        for master in ("local[2]", "yarn")
    }
    assert warehouses == {"file:/p/.engine/spark-warehouse"}
