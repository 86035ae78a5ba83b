"""`engine lsp` while somebody types: a client over stdio, a project of many models, an answer at each keystroke.

`python -m benchmarks.editor [--models 1000] [--keystrokes 1000] [--interval 0.1]`: types a query into a model, deletes
it, and types it again; asks for a completion at each keystroke, for a hover at every fifth, and waits for the answer.
A request that does nothing, at every fifth too, shows how long the machine lets an answer wait. Memory is the
resident set of the server, without its short-lived children.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from benchmarks._commands import keep
from benchmarks.projects import headrace

_TYPED = (
    "select a.id, a.kind, a.amount * 2 as twice, size, case when a.most > 3 then 1 else 0 end as many\n"
    "from {{ ref('m3') }} as a\n"
)
_HOVER_EACH = 5


@dataclass(frozen=True, slots=True)
class EditorResult:
    """What was measured.

    Attributes:
        keystrokes: how many.
        interval: seconds from one to the next, at least.
        milliseconds: p50, p95 and p99 by what was asked for.
        memory: MB of the server, the median of each tenth.
        processor: milliseconds of processor for each keystroke, children and compilations of all models included.
    """

    keystrokes: int
    interval: float
    milliseconds: dict[str, dict[str, float]]
    memory: list[int]
    processor: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--keystrokes", type=int, default=1000)
    parser.add_argument("--interval", type=float, default=0.1, help="seconds from one keystroke to the next, at least")
    parser.add_argument("--keep", action="store_true", help="keep the result in benchmarks/results")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        root.mkdir()
        os.environ["ENGINE_CACHE"] = str(Path(folder) / "cache")
        headrace(asked.models, root)
        before = _files(root)
        model = root / "models/f10/m10.sql"
        header = model.read_text(encoding="utf-8").partition("---*/\n")[0] + "---*/\n"
        result = asyncio.run(_session(root, model, header, asked.keystrokes, asked.interval))
        if _files(root) != before:
            raise SystemExit("the server wrote to the project")
    print(json.dumps(asdict(result), indent=1))
    if asked.keep:
        keep("editor", [result], 1)


def _files(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


class _Editor:
    """A document that is typed in, and the client that sends it."""

    def __init__(self, client: LanguageClient, uri: str, text: str) -> None:
        self.client, self.uri, self.version = client, uri, 1
        self.lines = text.split("\n")
        client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "sql", 1, text)))

    @property
    def end(self) -> types.Position:
        return types.Position(len(self.lines) - 1, len(self.lines[-1]))

    def change(self, begin: types.Position, end: types.Position, text: str) -> None:
        self.version += 1
        part = types.TextDocumentContentChangePartial(types.Range(begin, end), text)
        document = types.VersionedTextDocumentIdentifier(self.version, self.uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [part]))

    def type(self, letter: str) -> None:
        end = self.end
        self.change(end, end, letter)
        if letter == "\n":
            self.lines.append("")
        else:
            self.lines[-1] += letter

    def at(self, position: types.Position) -> dict[str, object]:
        return {"text_document": types.TextDocumentIdentifier(self.uri), "position": position}


async def _session(root: Path, model: Path, header: str, keystrokes: int, interval: float) -> EditorResult:
    client = LanguageClient("benchmark", "1")
    seen: dict[str, float] = {}

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)  # type: ignore[untyped-decorator]
    def _(params: types.PublishDiagnosticsParams) -> None:
        seen[params.uri] = time.monotonic()

    await client.start_io(sys.executable, "-P", "-m", "engine", "lsp", "--project-dir", str(root))
    begin = time.monotonic()
    await client.initialize_async(types.InitializeParams(types.ClientCapabilities(), root_uri=root.as_uri()))
    client.initialized(types.InitializedParams())
    editor = _Editor(client, model.as_uri(), header)
    await client.text_document_completion_async(types.CompletionParams(**editor.at(editor.end)))  # type: ignore[arg-type]
    waited = time.monotonic() - begin
    print(f"load {os.getloadavg()[0]:.1f}; first answer, with the first compilation, after {waited:.1f} s")
    process = client._server  # noqa: SLF001
    assert process is not None
    server = process.pid
    try:
        return await _typing(editor, server, keystrokes, interval)
    finally:
        os.kill(server, signal.SIGTERM)
        await client.stop()  # type: ignore[no-untyped-call]


async def _typing(editor: _Editor, server: int, keystrokes: int, interval: float) -> EditorResult:
    seconds: dict[str, list[float]] = {"completion": [], "hover": [], "nothing": []}
    memory: list[float] = []
    spent = _processor(server)
    first = editor.end
    nothing = types.ExecuteCommandParams("headrace.explain", [""])
    for number in range(keystrokes):
        letter = _TYPED[number % len(_TYPED)]
        if number and number % len(_TYPED) == 0:
            editor.change(first, editor.end, "")
            editor.lines = editor.lines[: first.line + 1]
            editor.lines[-1] = editor.lines[-1][: first.character]
        begin = time.monotonic()
        editor.type(letter)
        at = editor.at(editor.end)
        await editor.client.text_document_completion_async(types.CompletionParams(**at))  # type: ignore[arg-type]
        seconds["completion"].append(time.monotonic() - begin)
        if number % _HOVER_EACH == 0:
            begin = time.monotonic()
            place = editor.at(types.Position(first.line, min(8, editor.end.character)))
            await editor.client.text_document_hover_async(types.HoverParams(**place))  # type: ignore[arg-type]
            seconds["hover"].append(time.monotonic() - begin)
        if number % _HOVER_EACH == 1:
            begin = time.monotonic()
            await editor.client.workspace_execute_command_async(nothing)
            seconds["nothing"].append(time.monotonic() - begin)
        memory.append(_resident(server))
        await asyncio.sleep(max(0.0, interval - (time.monotonic() - begin)))
    tenth = max(1, keystrokes // 10)
    spent = _processor(server) - spent
    return EditorResult(
        keystrokes,
        interval,
        {name: _percentiles(taken) for name, taken in seconds.items()},
        [round(statistics.median(memory[at : at + tenth])) for at in range(0, keystrokes, tenth)],
        round(spent * 1000 / keystrokes, 1),
    )


def _percentiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {f"p{part}": round(ordered[len(ordered) * part // 100] * 1000, 1) for part in (50, 95, 99)}


def _processor(pid: int) -> float:
    """Seconds of processor that a process and its ended children took."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> float:
    """The resident set of a process, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    return 0.0


if __name__ == "__main__":
    main()
