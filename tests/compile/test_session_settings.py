"""Which settings of Spark are among the facts of a model: all but those that are known to change no row."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile import Manifest
from engine.compile.config.session_settings import meaning, recorded_first
from engine.compile.config.spark_settings import DEFAULTS, changes_nothing
from engine.plan import Change, LastWriter
from engine.plan.compare_models import compare_model
from engine.plan.source_changes import Recorded, of_facts
from tests.compile.test_clusters import found
from tests.lab import EVENTS, PROJECT
from tests.plan.test_plan import PLAIN, WINDOWED, header
from tests.project.small_projects import clean, findings

NULLS = "spark.sql.jsonGenerator.ignoreNullFields"
HARMLESS = (
    "spark.master", "spark.app.name", "spark.driver.memory", "spark.driver.extraJavaOptions", "spark.executor.cores",
    "spark.executorEnv.X", "spark.cores.max", "spark.sql.shuffle.partitions", "spark.default.parallelism", "spark.ui.port",
    "spark.eventLog.enabled", "spark.jars", "spark.jars.packages", "spark.files", "spark.network.timeout",
    "spark.shuffle.service.enabled", "spark.memory.fraction", "spark.dynamicAllocation.enabled", "spark.speculation",
    "spark.kubernetes.namespace", "spark.yarn.queue", "spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.path.style.access",
    "spark.hadoop.fs.azure.account.key.x", "spark.x.password", "spark.sql.adaptive.enabled",
    "spark.sql.autoBroadcastJoinThreshold", "spark.sql.files.maxPartitionBytes", "spark.sql.codegen.wholeStage",
    "spark.sql.streaming.stateStore.providerClass", "spark.sql.streaming.minBatchesToRetain", "spark.sql.ui.explainMode",
    "spark.sql.warehouse.dir", "spark.sql.iceberg.planning.preserve-data-grouping", "my.own", "x",
)  # fmt: skip
COUNT = (
    NULLS, "spark.sql.ansi.enabled", "spark.sql.legacy.timeParserPolicy", "spark.sql.legacy.one.of.tomorrow",
    "spark.sql.extensions", "spark.sql.mapKeyDedupPolicy", "spark.sql.json.enablePartialResults",
    "spark.sql.json.filterPushdown.enabled", "spark.sql.csv.parser.columnPruning.enabled",
    "spark.sql.columnNameOfCorruptRecord", "spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles",
    "spark.files.ignoreCorruptFiles", "spark.sql.parquet.outputTimestampType", "spark.sql.parquet.mergeSchema",
    "spark.sql.parquet.inferTimestampNTZ.enabled", "spark.sql.sources.partitionColumnTypeInference.enabled",
    "spark.sql.optimizer.excludedRules", "spark.sql.optimizer.metadataOnly", "spark.sql.streaming.noDataMicroBatches.enabled",
    "spark.sql.streaming.multipleWatermarkPolicy", "spark.sql.streaming.schemaInference", "spark.sql.iceberg.merge-schema",
    "spark.sql.catalog.other", "spark.sql.setting.of.tomorrow", "spark.plugins", "spark.rapids.sql.enabled",
    "spark.hadoop.mapreduce.input.pathFilter.class", "spark.hadoop.fs.defaultFS", "spark.hadoop.fs.s3a.endpoint",
    "spark.hadoop.fs.s3a.bucket.x.endpoint",
)  # fmt: skip


@pytest.mark.parametrize("key", HARMLESS)
def test_what_changes_no_row_is_no_fact(key: str) -> None:
    assert meaning({key: "x", key.upper(): "x"}, ()) == {}


@pytest.mark.parametrize("key", COUNT)
def test_every_other_setting_is_a_fact(key: str) -> None:
    assert meaning({key: "X"}, ()) == {"conf": {key: "x" if recorded_first(key) else "X"}}


def test_defaults_that_are_known_count_and_are_no_facts_as_they_are() -> None:
    assert [key for key in DEFAULTS if changes_nothing(key)] == []
    assert meaning(DEFAULTS, ()) == {}
    assert meaning({key: f"{text}x" for key, text in DEFAULTS.items()}, ())["conf"].keys() == DEFAULTS.keys()


def test_values_are_compared_as_spark_reads_them() -> None:
    assert meaning({NULLS: "TRUE"}, ()) == meaning({NULLS.upper(): " true "}, ()) == {}
    assert meaning({NULLS: "FALSE"}, ()) == {"conf": {NULLS: "false"}}
    assert meaning({"spark.sql.storeAssignmentPolicy": "Ansi"}, ()) == {}
    # Names have a case.
    assert meaning({"spark.sql.columnNameOfCorruptRecord": "_Corrupt_Record"}, ()) != {}


def test_a_secret_is_the_same_in_each_process() -> None:
    said = [
        meaning({"spark.other.url": f"jdbc:x?p=<secret ENGINE_SECRET_X {token}/0>"}, ()) for token in ("ab12", "cd34")
    ]
    assert said[0] == said[1] == {"conf": {"spark.other.url": "jdbc:x?p=<secret ENGINE_SECRET_X>"}}


def project(root: Path, conf: str, text: str) -> Manifest:
    target = PROJECT.format(lake=".engine/lake", schema="s").replace("conf: {", f"conf: {{{conf}")
    return clean(root, {"project.yml": target, "sources/shop.yml": EVENTS, "models/m.sql": text})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "change"),
    [
        (header() + WINDOWED, Change.STATE_BREAKING),
        (PLAIN, Change.FORWARD),
        ("/*---\nmaterialized: table\n---*/\nselect to_json(named_struct('a', null)) as a", Change.REBUILT),
    ],
)
def test_another_value_is_another_query(tmp_path: Path, text: str, change: Change) -> None:
    model = project(tmp_path, "", text).model("m")
    writer = LastWriter(model.fingerprint, model.facts, Recorded(of_facts(model.facts)))
    now = project(tmp_path, f"{NULLS}: false, ", text)
    found = compare_model(now, now.model("m"), writer)
    assert (found.change, found.reasons) == (change, (f"the setting '{NULLS}' changed from its default to false",))


@pytest.mark.parametrize("key", ["spark.wap.branch", "spark.wap.id", "spark.WAP.branch"])
def test_write_audit_publish_of_a_session_is_rejected(tmp_path: Path, key: str) -> None:
    (finding,) = found(tmp_path, f"spark: {{conf: {{{key}: audit}}}}")
    assert finding.startswith("setting-wap project.yml:")


@pytest.mark.parametrize("hook", ["set spark.wap.branch = audit", "SET `spark.wap.id`=7"])
@pytest.mark.parametrize("key", ["pre_hook", "post_hook"])
def test_write_audit_publish_of_a_hook_is_rejected(tmp_path: Path, key: str, hook: str) -> None:
    text = f"/*---\nmaterialized: table\n{key}: ['{hook}']\n---*/\nselect 1 as id"
    assert [finding.code for finding in findings(tmp_path, {"models/m.sql": text})] == ["setting-wap"]
