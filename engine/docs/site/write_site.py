"""Writing the site: a folder that opens from the file system, fetches nothing, and runs only its own scripts.

A browser lets a page of the file system load scripts, but not read files. So all data is in .js files that call
one function, and the big parts are loaded when they are looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from engine.compile.nodes.exposure import Exposure
from engine.compile.nodes.manifest import Model
from engine.compile.nodes.sink import Sink
from engine.docs.site.column_trace import own_columns
from engine.docs.site.differences import RemovedNode
from engine.docs.site.pages import node_record
from engine.docs.site.shared_page_data import (
    Facts,
    SiteNode,
    change_records,
    index_record,
    lineage_records,
    macro_records,
    run_records,
)
from engine.secrets.scrubber import scrub_record, scrubber
from engine.target_folder import TargetFolder

PAGE = "index.html"
_DATA = "data"
# Characters that are not shown, or change how a line is shown, as JSON escapes them: the site writes them out.
_HIDDEN = re.compile(r"(?<!\\)((?:\\\\)*)\\u(061c|200[bef]|202[a-e]|2060|206[6-9]|feff)")
# What the sites of larger projects had: only the numbered bundles are more or fewer.
_OURS = re.compile(r"nodes[0-9]{1,6}\.js")
_BUNDLE_NAME = re.compile(r"nodes(?:0|[1-9][0-9]{0,5})")
_SHARED: Mapping[str, Callable[[Facts], Any]] = {
    "index": index_record,
    "lineage": lambda facts: list(lineage_records(facts)),
    "texts": lambda facts: list(text_records(facts)),
    "macros": macro_records,
    "runs": run_records,
    "changes": change_records,
}
# So many nodes share a file; core.js knows the number. A file costs more to make than a node.
_BUNDLE = 25


def write_site(facts: Facts, folder: Path) -> Path:
    """Write the site of a project.

    Args:
        facts: what the site shows; broken nodes are shown and marked.
        folder: where to, target/docs; it is made if need be. What else is in it stays.

    Returns:
        The first page, `folder`/index.html.

    Raises ProjectError: `target-link`, `target-unwritable`.
    """
    with TargetFolder(folder.parent, keep_mode=True) as target:
        for name, content in _static():
            target.write(f"{folder.name}/{name}", content)
        clean, data = scrubber(), f"{folder.name}/{_DATA}"
        written = {_write(target, data, name, scrub_record(record, clean)) for name, record in _records(facts)}
        for name in target.names(data):
            if _OURS.fullmatch(name) and name not in written:
                target.remove(f"{data}/{name}")
    return folder / PAGE


def data_script(name: str, record: Any) -> bytes:
    """Return a record as a script. ASCII only, so that it is the same in every encoding and to every parser."""
    text = json.dumps(record, separators=(",", ":")).replace("</", "<\\/")
    text = _HIDDEN.sub(r"\1\\\\u\2", text)
    return f'headrace.put("{name}",{text});\n'.encode("ascii")


def _static() -> Iterator[tuple[str, bytes]]:
    for file in (resources.files("engine.docs") / "static").iterdir():
        if file.is_file():
            yield file.name, file.read_bytes()


def _records(facts: Facts) -> Iterator[tuple[str, Any]]:
    names = (*_SHARED, *(f"nodes{number}" for number in range(-(-len(facts.nodes) // _BUNDLE))))
    for name in names:
        yield name, data_record(facts, name)


def data_record(facts: Facts, name: str) -> Any:
    """Return the record of a data file by its name; None: the site has no such file."""
    if (shared := _SHARED.get(name)) is not None:
        return shared(facts)
    if not _BUNDLE_NAME.fullmatch(name):
        return None
    first = int(name.removeprefix("nodes")) * _BUNDLE
    return [node_record(facts, node) for node in facts.nodes[first : first + _BUNDLE]] or None


def _write(target: TargetFolder, folder: str, name: str, record: Any) -> str:
    file = f"{name}.js"
    target.write(f"{folder}/{file}", data_script(name, record))
    return file


def text_records(facts: Facts) -> Iterator[list[list[str]]]:
    """Yield for each node, in the order of their numbers, its texts: what each is, its column if any, the text."""
    for node in facts.nodes:
        yield [[text_kind, column, text] for text_kind, column, text in _texts(facts, node) if text.strip()]


def _texts(facts: Facts, node: SiteNode) -> Iterator[tuple[str, str, str]]:
    if isinstance(node, RemovedNode):
        yield "SQL", "", node.sql
        return
    yield "description", "", node.description
    if isinstance(node, Exposure):
        yield "exposure", "", " ".join([node.label, node.url, *(str(value) for value in node.owner.values())])
        return
    if isinstance(node, Sink):
        yield "sink", "", node.place
        return
    for column in own_columns(node):
        yield "description", column.name, column.description
    for test in facts.tests.get(node.id, ()):
        yield "test", test.column or "", f"{test.name} {test.description}"
    for unit_test in facts.unit_tests.get(node.id, ()):
        yield "unit test", "", f"{unit_test.name} {unit_test.description}"
    if isinstance(node, Model):
        yield "SQL", "", node.raw_sql
