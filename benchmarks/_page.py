"""Draws docs/benchmarks.md, its pictures and the section of README.md from the newest results of each kind.

python -m benchmarks._page
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from benchmarks._commands import RESULTS, ROOT
from benchmarks.incremental import CHANGES

PAGE = ROOT / "docs/benchmarks.md"
README = ROOT / "README.md"
IMAGES = ROOT / "docs/images"
# What each piece of work is, for readers.
WORKS = {
    "nothing_new": "ten models with nothing new; the script only opens a session",
    "append": "20,000 rows passed on",
    "window": "20,000 rows, an hourly window",
    "upsert": "20,000 rows merged by key",
    "forty_batches": "40 micro-batches of dedup and an hourly window; the script uses Iceberg's own sink",
    "ten_models": "ten hourly windows in one build; ten scripts",
    "pipelines": "two tables of one row; the peer is Spark Declarative Pipelines",
}
GROWTH = {"append": "rows passed on", "window": "an hourly window", "upsert": "merged into 100,000 keys"}
_WAYS = {"engine": "`engine start`", "script": "script"}
CATALOGS = {"sqlite": "SQLite", "jdbc": "PostgreSQL", "rest": "REST (the reference server over SQLite)"}
_STOP_SECONDS = 5.0
_WIDTH, _LEFT, _ROW = 720, 150, 34
_STYLE = """<style>
.card{fill:#fbfcfd;stroke:#d5dbe1}.t{fill:#1d2a36}.s{fill:#51606f}
.peer{fill:#5b6b7b;fill-opacity:.22}.ours{fill:#0f7b74}.goal{stroke:#b35c00;stroke-width:2}
text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
@media(prefers-color-scheme:dark){.card{fill:#161c23;stroke:#36424e}.t{fill:#e6edf3}.s{fill:#a9b6c3}
.peer{fill:#94a3b2;fill-opacity:.25}.ours{fill:#3fc1b6}.goal{stroke:#f0a04b}}
</style>"""


def main() -> None:
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))


def pages() -> dict[Path, str]:
    """The page and its pictures, by path."""
    streams, records, tables, hour = map(_newest, ("streams", "records", "tables", "hour"))
    (long,) = hour["results"]
    # A kind that was not measured yet has no section.
    kinds = {
        _kafka: "kafka", _compiled: "compile", _site: "docs", _layout: "layout", _unit_tests: "unit-tests",
        _state: "state-size",
    }  # fmt: skip
    parts = (_kafka, _compiled, _scale, _live, _refreshed, _state, _editor, _site, _layout, _unit_tests)
    later = [part for part in parts if part not in kinds or any(RESULTS.glob(f"*-{kinds[part]}.json"))]
    return {
        README: _with_section(README.read_text(encoding="utf-8"), _readme_section(streams)),
        PAGE: _page(streams, records, tables, hour, long) + "".join(part() for part in later),
        IMAGES / "benchmark-ratios.svg": _ratios(streams["results"]),
        IMAGES / "benchmark-hour.svg": _tenths(long["batch_seconds"]),
    }


def _with_section(text: str, section: str) -> str:
    """A page whose section of the same title is replaced."""
    title = section[: section.index("\n")]
    before, _, rest = text.partition(f"{title}\n")
    return f"{before}{section}\n{rest[rest.index('## ') :]}"


def _readme_section(streams: Mapping[str, Any]) -> str:
    machine, rows = streams["machine"], [_in_readme(WORKS[one["work"]], one["ratio"]) for one in streams["results"]]
    for kind, name in (("kafka", "a million records of Kafka, {work}"), ("compile", "1,000 models compiled, {work}")):
        if document := _newest_or_none(kind):
            rows += [
                _in_readme(f"{name.format(work=one['work'])} ([results]({document['file']}))", one["ratio"])
                for one in document["results"]
                if one["ratio"] is not None
            ]
    return f"""## Benchmarks

Each command from a new process to its end, in turns with a PySpark script that was written by hand for the same job;
the median of {streams["turns"]} turns ([results]({streams["file"]}), [all benchmarks](docs/benchmarks.md)).
{machine["cores"]} cores, load before {machine["load_before"]}. The scripts run with PySpark's default settings and
without the class archive of Java, which Headrace's first build writes; ten scripts are ten processes.

{_table(("job", "seconds of Headrace, as a part of the script's"), rows)}
"""


def _in_readme(work: str, ratio: float) -> list[str]:
    faster, slower = f"{1 / ratio:.{0 if ratio < 0.1 else 1}f}x faster", f"{100 * (ratio - 1):.0f} % slower"
    return [work, f"{ratio:.2f} ({faster if ratio < 1 else slower})"]


def _newest_or_none(kind: str) -> dict[str, Any] | None:
    return _newest(kind) if any(RESULTS.glob(f"*-{kind}.json")) else None


def _newest(kind: str) -> dict[str, Any]:
    path = max(RESULTS.glob(f"*-{kind}.json"))
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document | {"file": path.relative_to(ROOT).as_posix()}


def _page(
    streams: Mapping[str, Any],
    records: Mapping[str, Any],
    tables: Mapping[str, Any],
    hour: Mapping[str, Any],
    long: Mapping[str, Any],
) -> str:
    return f"""# Benchmarks

Made by `python -m benchmarks._page` from the results of `make bench`; [benchmarks](../benchmarks/README.md) says how
each is measured. Every figure is a whole command, from a new process to its end.

## Beside plain PySpark scripts

{_conditions(streams)} Each build and its script ran in turns; the ratio is the median of {streams["turns"]}.

![Seconds of each build as a part of those of its script](images/benchmark-ratios.svg)

{_table(("work", "`engine build`", "peer", "ratio", "by processor time", "aim"), map(_compared, streams["results"]))}

## Records

{_conditions(records)} One model reads them all from files into a new table.

{_table(("records", "work", "seconds", "seconds of processor"), map(_read, records["results"]))}

## Tables

{_conditions(tables)} Streaming tables of one small source in one lake. "One edited": a build of all
after the filter of one has changed.

{_table(("tables", "build", "seconds", "seconds of processor"), map(_built, tables["results"]))}

## An hour of input

{_conditions(hour)} Other work kept both cores busy for most of it.

{long["batches"]:,} micro-batches of dedup and a window of a minute, one for each second of event time, in one process
of {round(long["seconds"] / 60)} minutes. The median of a micro-batch, by tenths of the run:

![Seconds of a micro-batch by tenths of the run](images/benchmark-hour.svg)

{_table(("tenth", "seconds", "heap after a full collection, MB", "memory of all processes, MB"), _by_tenth(long))}

What is left below `.engine/` afterwards:

{_table(("files of", "number", "MB"), _left(long))}
"""


def _kafka() -> str:
    document = _newest("kafka")
    rows = []
    for one in document["results"]:
        ours, theirs = (_least(pair[side] for pair in one["pairs"]) for side in (0, 1))
        rows.append([one["work"], f"{ours:.1f} s", f"{theirs:.1f} s", f"{one['ratio']:.2f}", f"{one['cpu_ratio']:.2f}"])
    columns = ("work", "fastest `engine build`", "fastest script", "ratio of seconds", "by processor time")
    return f"""
## A million records of Kafka

{_conditions(document)} JSON records of a real broker on the
same machine go into a table partitioned by day, in four micro-batches. "Warm session": the stream alone, in a session
that is open. The script checks no record, counts none and marks no commit. The ratio is the median of
{document["turns"]} turns.

{_table(columns, rows)}
"""


def _compiled() -> str:
    document = _newest("compile")
    alone = [one for one in document["results"] if not one["theirs"]]
    beside = [one for one in document["results"] if one["theirs"]]
    rows = [[one["work"], f"{one['models'] or '':,}" if one["models"] else "", f"{_least(one['ours']):.2f}",
             f"{_least(one['ours'], 'cpu'):.2f}", f"{max(run['size'] for run in one['ours'])}"]
            for one in alone]  # fmt: skip
    peers = [[one["work"], f"{_least(one['ours']):.2f}", f"{_least(one['theirs']):.2f}", f"{one['ratio']:.2f}"]
             for one in beside]  # fmt: skip
    return f"""
## Compile

{_conditions(document)} Each model has two references, two
CTEs, a join, a macro, a watermark, column descriptions and a data test. The time includes column lineage, Spark's rules
for streaming queries, the manifest and the compiled SQL. The fastest of {document["turns"]} runs; memory is that of
the largest process.

{_table(("work", "models", "seconds", "seconds of processor", "MB"), rows)}

Other tools on 1,000 models of the same shape, in turns with `engine compile`. `dbt parse` (dbt-core 1.10) neither
parses the SQL nor knows columns; `sqlmesh info` (0.236) does both.

{_table(("work", "`engine compile`, s", "peer, s", "ratio"), peers)}
"""


def _least(runs: Iterable[Mapping[str, float]], of: str = "seconds") -> float:
    return min(run[of] for run in runs)


def _site() -> str:
    document = _newest("docs")
    rows = [[one["work"], _with_unit(min(one["values"]), one["unit"])] for one in document["results"]]
    return f"""
## The lineage site

{_conditions(document)} 1,000 models of 7 columns and two references
each, in Chromium without a graphics card. The fastest of {document["turns"]} runs.

{_table(("work", "measured"), rows)}
"""


def _layout() -> str:
    document = _newest("layout")
    results = document["results"]
    ours = [one["crossings"]["headrace"] for one in results]
    rows = []
    for name in results[0]["crossings"]:
        crossings = [one["crossings"][name] for one in results]
        fewer = sum(a < b for a, b in zip(ours, crossings, strict=True))
        more = sum(a > b for a, b in zip(ours, crossings, strict=True))
        compared = ["", ""] if name == "headrace" else [str(fewer), str(more)]
        seconds = sum(one["seconds"][name] for one in results)
        rows.append([name, f"{sum(crossings):,}", *compared, f"{seconds:.2f} s"])
    nodes = [one["nodes"] for one in results]
    head = ("layout", "pairs of links that cross", "Headrace has fewer", "Headrace has more", "time of all graphs")
    return f"""
## The layout of the graph

{_conditions(document)} The graphs of {len(results)} public dbt
projects of {min(nodes):,} to {max(nodes):,} nodes. igraph gets the layers of Headrace's layout, or chooses its own.

{_table(head, rows)}
"""


def _unit_tests() -> str:
    document = _newest("unit-tests")
    rows = [[str(one["tests"]), f"{one['seconds']:.0f}", f"{one['cpu']:.0f}", f"{statistics.median(one['each']):.1f}"]
            for one in document["results"]]  # fmt: skip
    return f"""
## Unit tests

{_conditions(document)} `engine test` with unit tests of three
streaming models (stateless, dedup, hourly window), two or three steps each, four side by side.

{_table(("tests", "seconds", "seconds of processor", "seconds of a test (median)"), rows)}
"""


def _state() -> str:
    document = _newest("state-size")
    rows = [[one["work"], f"{one['keys']:,}", f"{one['rows']:,}", f"{one['disk_mb']:.0f}",
             f"{one['disk_mb'] * 2**20 / one['rows']:.0f}", str(one["resident_mb"])]
            for one in document["results"]]  # fmt: skip
    return f"""
## State

{_conditions(document)} One build of a new model with
two state partitions in RocksDB and a Java heap of 1 GB, 100,000 new keys in each micro-batch. The dedup has a bigint
key; the windows and the join have a text of 32 hexadecimal digits. The disk includes the versions that Spark keeps.
Memory is the peak of all processes of the build together.

{_table(("work", "keys", "rows in state", "MB on disk", "bytes a row", "memory, MB"), rows)}
"""


def _with_unit(value: float, unit: str) -> str:
    return f"{value:.0f} {unit}" if unit in ("ms", "files") else f"{value:.2f} {unit}"


def _scale() -> str:
    plan, batches, commits, workers = (_newest(f"scale-{kind}") for kind in ("plan", "batches", "commits", "workers"))
    local = _newest("scale-local")
    return f"""
## A thousand tables in a local catalog

{_conditions(local)} `engine plan` of streaming tables with nothing
new, from command to end; the median of five runs, and the fastest. The aim is a second. A machine that other work
slows down to half its speed takes twice as long: two versions are compared in turns.

{_table(("tables", "seconds", "seconds of processor"), _planned_here(local["results"]))}

## Thousands of tables in a REST catalog

{_conditions(plan)} `engine plan` of streaming tables with nothing
new, against Iceberg's reference server on the same machine. A proxy that delays each answer stands for a distant
catalog, and counts the requests; it is a Python process that shares the cores. Other work kept both cores busy, here
and below: requests and seconds of processor count, not the clock's.

{_table(("tables", "catalog", "seconds", "seconds of processor", "requests"), map(_planned, plan["results"]))}

## Micro-batches with a distant catalog

{_conditions(batches)} What one more
micro-batch adds to a build.

{_table(("work", "catalog", "seconds", "requests", "which"), map(_batch, batches["results"]))}

## Commits an hour

{_conditions(commits)} Commits that change a property
through Iceberg's own interface in Spark's JVM, each writer to a table of its own; server and writers share the machine.
One writer of each catalog was measured first, while Java was still compiling.

{_table(("catalog", "writers", "commits an hour"), map(_committed, commits["results"]))}

## Threads of Spark

{_conditions(workers)} A million records in
an hourly window, in one process. There are two cores, so that more threads than two cannot help.

{_table(("threads", "seconds", "seconds of processor"), map(_worked, workers["results"]))}
"""


def _live() -> str:
    document, topics, grown = _newest("live"), _newest("live-topics"), _newest("live-turns")
    files = max(one["files"] for one in document["results"])
    return f"""
## Streams that keep running

{_conditions(document)} {document["results"][0]["models"]} models,
each with a folder of its own, kept up to date by `engine start`, and by a PySpark driver whose queries have
processing-time triggers of one second. Idle: processor time of all processes as a part of one core. One file: {files}
files, each renamed into a random folder, to the commit of its rows. The aims are 1 % idle, 1 s at the median and 2 s at
the 95th percentile, 3 s beside a backlog of thousands of files in another model.

{_live_table(document)}

{_conditions(topics)} The same with a topic of one broker on this
machine in place of each folder, and with one record sent. Kafka's consumer waits for half a second behind the end of a
topic before Spark's next question is answered; the engine sets that wait to 10 ms (docs/kafka.md).

{_live_table(topics)}

{_polls(_newest("topic-polls"))}

{_stops(_newest("stop"))}
{_conditions(grown)} What grows with many
turns: 20 models, each of which always has a file to read, maintained every 25 commits, with snapshots that expire after
a minute, so that days pass in an hour; the live page is open in Chromium all the time. The machine had other work,
which the seconds of a turn show (builds and test suites on both cores, most of all after 5,000 turns); in a run of the
day before a turn took 1.43 s at the 1,000th and 1.42 s at the 10,000th. Python's memory grew by 10 kB with each turn in
that run. That was no object that stayed: memory that was free lay in 16 arenas of the C library, each for its own
threads (31 MB between 43 MB in use). `engine start` has had two since, and gives free pages back each minute. What
grows in MB is the list of the files that were read, which Spark keeps for each source; a turn takes 0.09 ms for each
file in its folder (0.89 s with 10 files, 0.98 s with 1,000, 1.48 s with 6,000).

{_grown_table(grown)}
"""


def _polls(document: Mapping[str, Any]) -> str:
    (one,) = document["results"]
    return f"""{_conditions(document)} A part of that way alone, without
Spark: a record of one of {one["topics"]} topics starts the run of its model after {one["p50"]:.3f} s at
the median and {one["p95"]:.3f} s at the 95th percentile ({one["records"]} records). Waiting for records takes
{one["idle"]:.2%} of a core."""


def _stops(document: Mapping[str, Any]) -> str:
    took = sorted(one["seconds"] for one in document["results"])
    within = sum(seconds <= _STOP_SECONDS for seconds in took)
    return f"""{_conditions(document)} {len(took)} processes of
`engine start` were asked to end at random moments of their first 40 seconds, half by `engine stop` and half by SIGTERM:
while they compiled, while Java started or stood still, in long micro-batches, with a broker that does not answer.
{within} had ended within {_STOP_SECONDS:.0f} s, with their Java; the median is {statistics.median(took):.1f} s, and the
slowest {took[-1]:.1f} s. No row was missing afterwards or there twice.
"""


def _grown_table(document: Mapping[str, Any]) -> str:
    names = (
        "turns",
        "minutes",
        "turn, s",
        "files",
        "MB",
        "data files",
        "Python, MB",
        "Java, MB",
        "page, MB",
        "elements",
    )
    rows = [
        [f"{one['turns']:,}", f"{one['minutes']:.0f}", _seconds(one["turn"]), f"{one['files']:,}",
         f"{one['bytes'] / 1e6:.0f}", f"{one['data_files']:,}", f"{one['python']:,}", f"{one['java']:,}",
         f"{one['heap']:.1f}", f"{one['elements']:,}"]
        for one in document["results"]
    ]  # fmt: skip
    return _table(names, rows)


def _live_table(document: Mapping[str, Any]) -> str:
    rows = [
        [_WAYS[one["way"]], one["work"], _share(one["idle"]), *(_seconds(one[key]) for key in ("p50", "p95", "most")),
         f"{one['memory']:,}"]
        for one in document["results"]
    ]  # fmt: skip
    return _table(("", "work", "idle", "p50, s", "p95, s", "most, s", "memory, MB"), rows)


def _refreshed() -> str:
    document = _newest("incremental")
    results = [one for one in document["results"] if one["work"] in {change.work for change in CHANGES}]
    rows = [
        [f"{one['rows']:,}", one["work"], f"`{one['table']}`", one["said"], _seconds(one["seconds"]),
         _seconds(one["full"]), f"{one['ratio']:.1f}x"]
        for one in results
    ]  # fmt: skip
    least = max(one["seconds"] for one in document["results"] if one["table"] == "one_row")
    columns = ("orders", "what changed", "table", "what the build did", "refreshed, s", "in full, s", "faster")
    return f"""
## Tables that are refreshed from what changed

{_conditions(document)} One table of orders, merged by its key, partitioned by
day (100 days); tables over it, each with `refresh: auto` and with `refresh: full`: `by_day` is partitioned by day,
`by_customer` groups, `ranked_by_day` numbers the orders of each day and country, and
`changes` is a log of changes (`history: changes`), for which "in full" is that all rows are compared.
The orders of each customer are close together in time. Seconds are those that the build reports for the table, in a
process that keeps its Java running; the last column is the median of {document["turns"]} rounds. A table of one row
that reads nothing takes {least:.2f} s.

The aims are 20 times as fast where no column that is read changed, and 10 times for one partition of 100. To find that
nothing changed takes some hundredths of a second, and a partition some tenths, whatever the table costs in full: the
first is reached where the whole table takes a second, the second where it takes more than about four. Plain groups of
1,000,000 rows take less than a second in full. Rows of single keys are not replaced: in
this measurement, the last with it, tables of which some keys had changed were built 0.9 to 1.0 times as fast as in
full, in each of eight rows, so it was removed.

{_table(columns, rows)}
"""


def _share(part: float | None) -> str:
    return f"{part:.1%}" if part is not None else ""


def _seconds(value: float | None) -> str:
    return f"{value:.2f}" if value is not None else ""


def _editor() -> str:
    document = _newest("editor")
    (result,) = document["results"]
    hour = _newest("editor-long")
    (long,) = hour["results"]
    rows = [[name, *(f"{result['milliseconds'][name][part]:.0f}" for part in ("p50", "p95", "p99"))]
            for name in ("completion", "hover", "nothing")]  # fmt: skip
    memory = result["memory"]
    return f"""
## The editor

{_conditions(document)} {result["keystrokes"]:,} keystrokes in one of 1,000
models, one each {result["interval"]} seconds, over a client of `engine lsp`. A request that does nothing shows how long
this machine lets an answer wait. The aim is 100 ms at the 95th percentile, and 250 MB.

{_table(("answer", "p50, ms", "p95, ms", "p99, ms"), rows)}

A keystroke took {result["processor"]:.0f} ms of processor, with the compilation of its model and, after pauses, of all
models. Memory by tenths of the session: {", ".join(map(str, memory))} MB. Nothing was written to the project.

{_conditions(hour)} {long["keystrokes"]:,} keystrokes in about an hour, a pause of
{long["interval"]} seconds after each, so that all 1,000 models were compiled as often, on a machine that was busy with
other work. Memory by tenths: {", ".join(map(str, long["memory"]))} MB.
"""


def _planned_here(results: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    for models in sorted({result["models"] for result in results}):
        runs = [result["measured"] for result in results if result["models"] == models]
        seconds = [run["seconds"] for run in runs]
        cpu = statistics.median(run["cpu"] for run in runs)
        yield [f"{models:,}", f"{statistics.median(seconds):.2f} (fastest: {min(seconds):.2f})", f"{cpu:.2f}"]


def _planned(result: Mapping[str, Any]) -> list[str]:
    measured, delay = result["measured"], result["delay"]
    where = "direct" if delay is None else "by the proxy" if not delay else f"by the proxy, {delay * 1000:.0f} ms"
    asked = f"{sum(result['requests'].values()):,}" if delay is not None else ""
    return [f"{result['models']:,}", where, f"{measured['seconds']:.1f}", f"{measured['cpu']:.1f}", asked]


def _batch(result: Mapping[str, Any]) -> list[str]:
    requests = result["requests"]
    which = ", ".join(f"{count:g} `{kind}`" for kind, count in requests.items())
    where = f"{result['delay'] * 1000:.0f} ms" if result["delay"] else "near"
    return [result["work"], where, f"{result['seconds']:.2f}", f"{sum(requests.values()):.1f}", which]


def _committed(result: Mapping[str, Any]) -> list[str]:
    return [CATALOGS[result["catalog"]], str(result["writers"]), f"{result['an_hour']:,}"]


def _worked(result: Mapping[str, Any]) -> list[str]:
    measured = result["measured"]
    return [str(result["workers"]), f"{measured['seconds']:.1f}", f"{measured['cpu']:.1f}"]


def _conditions(document: Mapping[str, Any]) -> str:
    machine, versions = document["machine"], document["versions"]
    names = {"headrace": "Headrace", "pyspark": "PySpark", "python": "Python", "java": "Java"}
    return (
        f"Measured at {document['at']} on {machine['cores']} cores ({machine['processor']}), load before "
        f"{machine['load_before']}; {', '.join(f'{name} {versions[key]}' for key, name in names.items())} "
        f"([results](../{document['file']}))."
    )


def _compared(result: Mapping[str, Any]) -> list[str]:
    aim = f"{result['goal']}" + ("" if result["ratio"] <= result["goal"] else " (missed)")
    seconds = [f"{result[side]['seconds']:.1f} s" for side in ("ours", "theirs")]
    return [WORKS[result["work"]], *seconds, f"{result['ratio']:.2f}", f"{result['cpu_ratio']:.2f}", aim]


def _read(result: Mapping[str, Any]) -> list[str]:
    return _built({**result, "work": GROWTH[result["work"]]})


def _built(result: Mapping[str, Any]) -> list[str]:
    measured = result["measured"]
    return [f"{result['size']:,}", result["work"], f"{measured['seconds']:.1f}", f"{measured['cpu']:.1f}"]


def _by_tenth(hour: Mapping[str, Any]) -> Iterable[list[str]]:
    for number, seconds in enumerate(hour["batch_seconds"]):
        yield [str(number + 1), f"{seconds:.2f}", f"{hour['heap_mb'][number]}", f"{hour['resident_mb'][number]}"]


def _left(hour: Mapping[str, Any]) -> Iterable[list[str]]:
    for kind, number in sorted(hour["files"].items()):
        yield [kind, f"{number:,}", f"{hour['megabytes'][kind]:.1f}"]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _ratios(results: Sequence[Mapping[str, Any]]) -> str:
    """A bar a piece of work: the peer's time is the whole width."""
    whole = _WIDTH - _LEFT - 70
    parts = []
    for number, result in enumerate(results):
        y = 36 + _ROW * number
        ours, goal = (min(1.0, result[key]) * whole for key in ("ratio", "goal"))
        name = escape(result["work"].replace("_", " "))
        parts += [
            f'<text class="t" x="{_LEFT - 10}" y="{y + 15}" text-anchor="end">{name}</text>',
            f'<rect class="peer" x="{_LEFT}" y="{y}" width="{whole}" height="20" rx="3"/>',
            f'<rect class="ours" x="{_LEFT}" y="{y}" width="{ours:.0f}" height="20" rx="3"/>',
            f'<line class="goal" x1="{_LEFT + goal:.0f}" y1="{y - 3}" x2="{_LEFT + goal:.0f}" y2="{y + 23}"/>',
            f'<text class="s" x="{_WIDTH - 60}" y="{y + 15}">{result["ratio"]:.2f}</text>',
        ]
    title = "Seconds of engine build (dark) as a part of its script's (light); the line is the aim"
    return _svg(title, 44 + _ROW * len(results), parts)


def _tenths(seconds: Sequence[float]) -> str:
    most = max(seconds)
    step = (_WIDTH - _LEFT - 20) / len(seconds)
    parts = []
    for number, value in enumerate(seconds):
        x, width, height = 60 + step * number, step * 0.7, 110 * value / most
        middle = f'x="{x + width / 2:.0f}" text-anchor="middle"'
        parts += [
            f'<rect class="ours" x="{x:.0f}" y="{160 - height:.0f}" width="{width:.0f}" height="{height:.0f}" rx="2"/>',
            f'<text class="s" {middle} y="{152 - height:.0f}">{value:.2f}</text>',
            f'<text class="s" {middle} y="178">{number + 1}</text>',
        ]
    return _svg("Seconds of a micro-batch, the median of each tenth of the run", 190, parts)


def _svg(title: str, height: int, parts: Iterable[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
            f"<title>{escape(title)}</title>",
            _STYLE,
            f'<rect class="card" x=".5" y=".5" width="{_WIDTH - 1}" height="{height - 1}" rx="8"/>',
            f'<text class="s" x="16" y="22">{escape(title)}</text>',
            *parts,
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    main()
