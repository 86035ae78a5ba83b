"""The import of a Flare job: inputs become sources, steps models, outputs tables; what is lost has its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.project.yaml_section import is_name, is_table_name
from engine.project.yaml_text import yaml_text
from engine_import.flare.output_keys import output_keys
from engine_import.flare.read_job import JobPart, job_spec, read_jobs
from engine_import.flare.step_functions import function_select
from engine_import.output.compiled_project import compile_errors
from engine_import.output.import_report import ImportOutcome, ImportReport, Item, plain
from engine_import.output.new_project import NewProject, check_empty

_ADDRESS = re.compile(r"dataos://([\w-]+)(?::([\w.-]*))?(?:/([^?#]*))?(?:[?#].*)?")


@dataclass(frozen=True, slots=True)
class Address:
    """Where data is.

    Attributes:
        depot: a system, such as a broker or a catalog.
        collection: a namespace in it.
        dataset: a topic or table.
    """

    depot: str
    collection: str
    dataset: str


_END = {"WHERE", "GROUP", "ORDER", "HAVING", "UNION", "LIMIT", "ON", "USING", "LATERAL", "WINDOW", "SELECT", "CLUSTER"}


_SOURCE = "flare"
_BROKER = "localhost:9092"
_MANAGED = "checkpoints are managed in the target's state folder, one for each streaming table"
_WITHOUT_STREAM = "an input with isStream: false is read in full in each build, without a checkpoint"
_TRIGGER = "engine build reads all there is and stops, as with available_now"
_WORDS = {
    "logLevel": "use --log-level",
    "triggerDuration": "a build runs once; for long-running use write 'trigger: every 20 seconds' in the header",
    "batchMode": "every micro-batch is written by foreachBatch, with one commit",
    "driver": "set spark.driver_memory in the target",
    "executor": "set spark.conf in the target",
    "sparkConf": "set spark.conf in the target",
    "commands": "persist and unpersist are not supported",
    "classpath": "set spark.jars in spark.conf of the target",
    "assertions": "write data tests or expectations in the header of the model",
    "actions": "use engine maintain",
    "incremental": "list the input under streams: a stream reads only new data",
    "query": "write the query as a model",
}  # fmt: skip


@dataclass(slots=True)
class FlareImport:
    """The state of an import.

    Attributes:
        tables: the tables of the source, by name of the input.
        references: what stands for a name of an input or step in SQL, by that name in lower case.
        streams: inputs that are read as streams, by that name.
        outputs: the model that writes a data set, by its collection and name.
    """

    report: ImportReport
    files: NewProject = field(default_factory=NewProject)
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    references: dict[str, str] = field(default_factory=dict)
    streams: dict[str, str] = field(default_factory=dict)
    connections: dict[str, Any] = field(default_factory=dict)
    registries: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)

    def lost(self, part: JobPart, reason: str) -> None:
        name = ".".join(str(key) for key in part.path if isinstance(key, str))[-80:]
        self.report.items.append(
            Item("setting", plain(name), ImportOutcome.NOT_IMPORTED, origin=part.place, reason=plain(reason))
        )


def import_flare(file: Path, out: Path) -> ImportReport:
    """Import the jobs of a file into a new folder.

    Raises:
        UsageError: the folder is not empty.
        ProjectError: `import-unreadable`, or what is wrong with the YAML; `target-link`, `target-unwritable`.
    """
    check_empty(out)
    jobs = read_jobs(file)
    name = plain_name(jobs[0].child("name").text() or file.stem)
    done = FlareImport(ImportReport("Flare", name))
    for job in jobs:
        _import_job(done, job)
    _write_settings(done, name)
    done.files.write(out)
    _judge(done, out)
    done.files.files = {"import-report.json": done.report.to_json(), "import-report.md": done.report.to_markdown()}
    done.files.write_more(out)
    return done.report


def _import_job(done: FlareImport, job: JobPart) -> None:
    about = {key: job.child(key).text() for key in ("title", "description")}
    job.child("name")
    spec = job_spec(job)
    tags = [tag for tag in (job.child("tags").value or []) if isinstance(tag, str)]
    job.child("tags").whole()
    streaming = spec.child("streaming")
    for part in spec.child("inputs").items():
        _import_input(done, part)
    _streaming(done, streaming)
    explain = spec.child("explain").value is True
    outputs = {part.child("name").text(): part for part in spec.child("outputs").items()}
    shared: dict[str, Any] = {**about, "tags": tags, **({"explain": True} if explain else {})}
    if streaming.child("triggerMode").text().casefold() == "once":
        shared["trigger"] = "once"
    for step in spec.child("steps").items():
        _import_step(done, step, shared, outputs)
    for part in job.left():
        key = str(part.path[-1])
        done.lost(part, _WORDS.get(key, "there is no counterpart"))


def _import_input(done: FlareImport, part: JobPart) -> None:
    name = part.child("name").text()
    table = table_name(name)
    dataset = part.child("dataset")
    address = read_address(dataset.text())
    stream = part.child("isStream")
    form = part.child("format").text().casefold()
    registry = part.child("schemaRegistryUrl")
    key = f"{address.collection}.{address.dataset}" if address else ""
    if key in done.outputs:
        done.references[name.casefold()] = f"{{{{ ref('{done.outputs[key]}') }}}}"
        if stream.value is True:
            done.streams[name.casefold()] = done.outputs[key]
        return
    declared: dict[str, Any] = {"name": table}
    if address is None:
        declared |= {"format": form or "parquet", "path": dataset.text()}
        done.lost(dataset, "the address is not one of dataos://: set format, path and schema of the source")
    elif "kafka" in (address.depot.casefold(), form) or registry.text():
        declared |= _kafka(done, part, address.depot, address.dataset)
    elif form in ("", "iceberg"):
        declared |= {"format": "iceberg", "table": f"{plain_name(address.collection)}.{table_name(address.dataset)}"}
    else:
        declared |= {"format": form, "path": f"{address.depot}/{address.collection}/{address.dataset}"}
        done.lost(dataset, "where a depot is, only DataOS knows: set the path and the schema of the source")
    is_kafka = declared["format"] == "kafka"
    is_stream = stream.value is True or (stream.value is None and is_kafka)
    if is_stream:
        done.streams[name.casefold()] = f"{_SOURCE}.{table}"
    elif is_kafka:
        declared["stream"] = False
    for option in part.child("options").entries():
        _option(done, option, declared)
    done.tables[table] = declared
    done.references[name.casefold()] = f"{{{{ source('{_SOURCE}', '{table}') }}}}"
    done.report.items.append(Item("input", plain(name), ImportOutcome.IMPORTED, f"sources/{_SOURCE}.yml", part.place))


def _kafka(done: FlareImport, part: JobPart, depot: str, topic: str) -> dict[str, Any]:
    connection = plain_name(depot)
    done.connections[connection] = {"bootstrap_servers": _BROKER}
    note = f"the broker of the depot {depot}: set bootstrap_servers of the connection '{connection}' in project.yml"
    if note not in done.report.notes:
        done.report.notes.append(plain(note))
    declared: dict[str, Any] = {"format": "kafka", "topic": topic, "connection": connection}
    url = part.child("schemaRegistryUrl").text()
    if url:
        done.registries["main"] = {"url": url}
        value: dict[str, Any] = {"format": "avro", "schema_registry": "main"}
        if subject := part.child("schemaSubject").text():
            value["subject"] = subject
        declared["value"] = value
    else:
        done.lost(part.child("dataset"), "the columns of the topic are not in the job: set 'schema' of the source")
    return declared


def _option(done: FlareImport, option: tuple[str, JobPart], declared: dict[str, Any]) -> None:
    key, part = option
    if key == "startingOffsets" and declared["format"] == "kafka" and part.text() in ("earliest", "latest"):
        declared["starting_offsets"] = part.text()
    elif key == "maxOffsetsPerTrigger" and part.text().isdigit():
        declared["max_offsets_per_trigger"] = int(part.text())
    elif key == "failOnDataLoss":
        declared["fail_on_data_loss"] = part.text().casefold() != "false" and part.value is not False
    elif declared["format"] in ("json", "csv", "parquet", "orc", "avro", "text"):
        declared.setdefault("options", {})[key] = part.value
    else:
        done.lost(part, "this option of the reader has no counterpart")


def _streaming(done: FlareImport, streaming: JobPart) -> None:
    if streaming.value is None:
        return
    mode = streaming.child("triggerMode")
    if mode.text().casefold() == "once" and not done.streams:
        done.lost(mode, _WITHOUT_STREAM)
    elif mode.value is not None and mode.text().casefold() != "once":
        done.lost(mode, f"{_TRIGGER}; 'trigger: every 30 seconds' in the header is for long-running use")
    location = streaming.child("checkpointLocation")
    if location.value is not None:
        done.lost(location, _MANAGED if done.streams else f"{_MANAGED}; {_WITHOUT_STREAM}")
    for key in ("triggerDuration", "batchMode"):
        if (part := streaming.child(key)).value is not None:
            done.lost(part, _WORDS[key])


def _import_step(done: FlareImport, step: JobPart, shared: dict[str, Any], outputs: dict[str, JobPart]) -> None:
    queries: dict[str, tuple[str, JobPart, set[str]]] = {}
    sinks = {part.child("sequenceName").text(): part for part in step.child("sink").items()}
    for part in step.child("sequence").items():
        name = part.child("name").text()
        sql, reads = _query(done, part)
        queries[name] = (sql, part, reads)
        target = table_name(sinks[name].child("datasetName").text() or name) if name in sinks else table_name(name)
        done.references[name.casefold()] = f"{{{{ ref('{target}') }}}}"
        if name in sinks:
            _table(done, (target, sql, reads), sinks[name], shared, outputs)
        else:
            header = {"description": part.child("doc").text(), "materialized": "ephemeral", "streams": sorted(reads)}
            _model(done, target, header, sql, part)
            if reads:
                done.streams[name.casefold()] = target
    for name, sink in sinks.items():
        if name not in queries:
            done.lost(sink, f"the sink names the sequence '{name}', which is not a step")


def _query(done: FlareImport, part: JobPart) -> tuple[str, set[str]]:
    if part.child("sqlFile").value is not None:
        done.lost(part.child("sqlFile"), "the SQL is in another file: write it into the model")
    original = part.child("sql").text().strip().rstrip(";")
    sql = with_references(original, done.references)
    reads = {stream for name, stream in done.streams.items() if stream and done.references[name] in sql}
    layers = [sql]
    for function in part.child("functions").items():
        select, reason = function_select(function, f"step_{len(layers)}")
        if select:
            layers.append(select)
        else:
            done.lost(function.child("name"), reason)
        function.whole()
    if len(layers) == 1:
        return sql or "select 1 as unknown", reads
    indented = [layer.replace("\n", "\n    ") for layer in layers]
    steps = ",\n".join(f"step_{n} as (\n    {layer}\n)" for n, layer in enumerate(indented[:-1], 1))
    return f"with {steps}\n{layers[-1]}", reads


def _table(
    done: FlareImport,
    query: tuple[str, str, set[str]],
    sink: JobPart,
    shared: dict[str, Any],
    outputs: dict[str, JobPart],
) -> None:
    name, sql, reads = query
    header: dict[str, Any] = {**shared, "streams": sorted(reads)}
    if not reads:
        header.pop("trigger", None)
        header["materialized"] = "table"
    for key in ("title", "description"):
        header[key] = sink.child(key).text() or header.get(key, "")
    own = [tag for tag in (sink.child("tags").value or []) if isinstance(tag, str)]
    sink.child("tags").whole()
    header["tags"] = list(dict.fromkeys([*header.get("tags", ()), *own]))
    output = outputs.get(sink.child("outputName").text())
    if output is not None:
        address = read_address(output.child("depot").text())
        if address is not None:
            done.outputs[f"{address.collection}.{sink.child('datasetName').text()}"] = name
            done.lost(output.child("depot"), "tables are written to the catalog and schema of the target")
        if (location := output.child("checkpointLocation")).value is not None:
            done.lost(location, _MANAGED)
    kind = sink.child("outputType")
    if kind.text().casefold() not in ("", "iceberg"):
        done.lost(kind, "every table is an Iceberg table: read it from there, or write it on with another tool")
    header |= output_keys(sink.child("outputOptions"), done.lost, streamed=bool(reads))
    _model(done, name, header, sql, sink)


def _model(done: FlareImport, name: str, header: dict[str, Any], sql: str, part: JobPart) -> None:
    kept = {key: value for key, value in header.items() if value not in ("", [], {}, None)}
    file = done.files.add(f"models/{name}.sql", f"/*---\n{yaml_text(kept)}---*/\n{sql}\n")
    done.report.items.append(Item("model", name, ImportOutcome.IMPORTED, file, part.place))


def _write_settings(done: FlareImport, name: str) -> None:
    if done.tables:
        source = {"name": _SOURCE, "description": "Inputs of the Flare job.", "tables": list(done.tables.values())}
        done.files.add(f"sources/{_SOURCE}.yml", yaml_text({"sources": [source]}))
    target: dict[str, Any] = {"schema": name}
    if done.connections:
        target["connections"] = done.connections
    if done.registries:
        target["schema_registries"] = done.registries
    done.files.add("project.yml", yaml_text({"name": name, "target": "dev", "targets": {"dev": target}}))
    done.files.files[".gitignore"] = "/target/\n/.engine/\n"


def _judge(done: FlareImport, out: Path) -> None:
    errors = compile_errors(out, {})
    items = []
    for item in done.report.items:
        found = errors.of(item.file) if item.kind in ("model", "input") and item.file else []
        if found and item.kind == "model":
            first = found[0]
            place = f"line {first.location.line}: " if first.location else ""
            reason = plain(f"{place}{first.message}. {first.hint}")
            item = replace(item, outcome=ImportOutcome.FAILS, reason=reason, code=first.code)  # noqa: PLW2901
        elif item.kind == "model":
            item = replace(item, outcome=ImportOutcome.COMPILES)  # noqa: PLW2901
        items.append(item)
    done.report.items = items
    done.report.notes += [
        plain(str(error)) for error in errors.elsewhere(item.file for item in items if item.kind == "model")
    ]


def with_references(sql: str, names: Mapping[str, str]) -> str:
    """Return the SQL with names of inputs and steps replaced where a relation is named: after FROM, JOIN and commas.

    Args:
        sql: of a step; one that cannot be read stays as it is.
        names: what stands for a name in lower case.
    """
    from sqlglot.errors import TokenError

    from engine.compile.sql.dialect import tokenize

    try:
        tokens = tokenize(sql)
    except TokenError:
        return sql
    parts, at, depth = [], 0, 0
    # Whether a comma at a depth separates relations.
    listing: dict[int, bool] = {}
    expected = False
    for number, token in enumerate(tokens):
        word = token.text.upper()
        depth += (word == "(") - (word == ")")
        following = tokens[number + 1].text if number + 1 < len(tokens) else ""
        if expected and token.text.casefold() in names and following not in (".", "("):
            parts += [sql[at : token.start], names[token.text.casefold()]]
            at = token.end + 1
        expected = word in ("FROM", "JOIN") or (word == "," and listing.get(depth, False))
        if word == "FROM":
            listing[depth] = True
        elif word in _END or word == "(":
            listing[depth] = False
    return "".join([*parts, sql[at:]])


def read_address(text: str) -> Address | None:
    """Read an address; None if it has another form."""
    found = _ADDRESS.fullmatch(text.strip())
    return Address(found[1], found[2] or "", found[3] or "") if found else None


def table_name(text: str) -> str:
    name = re.sub(r"[^a-z0-9_]+", "_", text.casefold()).strip("_")[:100] or "unnamed"
    return name if is_table_name(name) else f"m_{name}"


def plain_name(text: str) -> str:
    name = re.sub(r"[^a-z0-9_]+", "_", text.casefold()).strip("_")[:100] or "unnamed"
    return name if is_name(name) else f"s_{name}"
