"""The server: requests of an editor in, answers and diagnostics out, over stdin and stdout."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from engine import __version__
from engine.api import Project
from engine.errors import Diagnostic, EngineError, Level
from engine.lsp.answers import editor_answers, editor_commands, header_completions, hovers
from engine.lsp.answers.completions import completions
from engine.lsp.edits import code_actions, formatting, renames
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text import path_of, range_at
from engine.secrets.scrubber import scrub

# How long nobody types before all models are compiled, in seconds.
_PAUSE = 0.4
_AFTER_KEYSTROKE = 0.03
# How long an answer waits for the model that is being compiled, in seconds.
_FRESH = 0.03
_LEVELS = {
    Level.ERROR: types.DiagnosticSeverity.Error,
    Level.WARNING: types.DiagnosticSeverity.Warning,
    Level.NOTE: types.DiagnosticSeverity.Information,
}
_log = logging.getLogger("engine.lsp")


class HeadraceServer(LanguageServer):
    def __init__(self, project: Project) -> None:
        super().__init__("headrace", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Incremental)
        self.opened = OpenProject(project)
        # All models are compiled beside the one that is typed in: that takes seconds in a large project.
        self._one = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compile-model")
        self._all = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compile-project")
        # Set when the project was compiled for the first time: nothing can be answered before.
        self.compiled_once = asyncio.Event()
        self._published_files: set[str] = set()
        self._changes = 0
        self._compilation: asyncio.Task[None] | None = None
        self._typed: asyncio.Future[Any] | None = None

    async def take(self, uri: str) -> None:
        """Note the text of a file, compile its model at once, and all of the project after a pause."""
        file = self.current(types.TextDocumentIdentifier(uri))
        if file is None:
            return
        self._changes += 1
        change = self._changes
        if self._compilation is not None:
            self._compilation.cancel()
        self._compilation = asyncio.get_running_loop().create_task(self._later())
        # The first compilation loads what later ones fork with.
        await self.compiled_once.wait()
        self._typed = asyncio.ensure_future(self._compile_typed(file, change))
        await self._typed
        if change == self._changes:
            self.publish()

    async def _compile_typed(self, file: str, change: int) -> None:
        # The completion that an editor asks for at a keystroke comes next: it need not wait for a fork.
        await asyncio.sleep(_AFTER_KEYSTROKE)
        await self.work(self._compile_one, file, change)

    async def respond(self, call: Any, file: str, *arguments: Any) -> Any:
        """Answer from what is known of a model's text, which may be that of the keystroke before.

        Places are checked against the text. Where nothing is known of one, it waits for the newest for a moment.
        """
        await self.compiled_once.wait()
        if file not in self.opened.edited and self.opened.model_of(file) is not None:
            return await self.work(call, self.opened, file, *arguments)
        response = call(self.opened, file, *arguments)
        if response or self._typed is None or self._typed.done():
            return response
        await asyncio.wait({self._typed}, timeout=_FRESH)
        return call(self.opened, file, *arguments)

    def current(self, document: types.TextDocumentIdentifier) -> str | None:
        """Return the name of a file in the project, whose text is then the one that the editor has; None: outside."""
        file = self.opened.name_of(path_of(document.uri))
        if file is not None and document.uri in self.workspace.text_documents:
            self.opened.texts[file] = self.workspace.get_text_document(document.uri).source.replace("\r\n", "\n")
        return file

    def _compile_one(self, file: str, change: int) -> None:
        # Only the last of several keystrokes counts.
        if change == self._changes:
            try:
                self.opened.compile_model(file)
            except EngineError as error:
                self.opened.failure = error.diagnostics

    async def _later(self) -> None:
        await asyncio.sleep(_PAUSE)
        await self.compile_all()

    async def compile_all(self) -> None:
        """Compile the project, then the models that are open for the places in them, and publish what is wrong."""
        change = self._changes
        await self.read(self._compile_project, change)
        self.compiled_once.set()
        for file in self.opened.open_models():
            await self.work(self._compile_one, file, change)
        if change == self._changes:
            self.publish()

    def _compile_project(self, change: int) -> None:
        # Of several pauses only the last counts, but for the first compilation.
        if change == self._changes or self.opened.compiled is None:
            self.opened.compile_all()

    async def work(self, call: Any, *arguments: Any) -> Any:
        """Do something in the thread that compiles the model that is typed in, once the project is known."""
        await self.compiled_once.wait()
        return await asyncio.get_running_loop().run_in_executor(self._one, call, *arguments)

    async def read(self, call: Any, *arguments: Any) -> Any:
        """Do something that may take long, in the thread that compiles the project: the first that it does is that."""
        return await asyncio.get_running_loop().run_in_executor(self._all, call, *arguments)

    def publish(self) -> None:
        """Send the diagnostics of all files that have some, or had."""
        diagnostics = self.opened.diagnostics()
        for file in self._published_files | diagnostics.keys():
            text = self.opened.text(file)
            items = [_to_lsp(one, text) for one in diagnostics.get(file, [])]
            uri = (self.opened.root / file).as_uri()
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, items))
        self._published_files = set(diagnostics)


def _to_lsp(diagnostic: Diagnostic, text: str) -> types.Diagnostic:
    message = f"{diagnostic.message}\n{diagnostic.hint}" if diagnostic.hint else diagnostic.message
    place = (
        range_at(diagnostic.location, text)
        if diagnostic.location
        else types.Range(types.Position(0, 0), types.Position(0, 1))
    )
    return types.Diagnostic(place, message, _LEVELS[diagnostic.level], diagnostic.code, source="headrace")


def serve(project: Project, formatter: Sequence[str] = ()) -> None:
    build_server(project, formatter).start_io(*take_streams())


def build_server(project: Project, formatter: Sequence[str] = ()) -> HeadraceServer:
    server = HeadraceServer(project)

    @server.feature(types.INITIALIZED)
    async def _(_: types.InitializedParams) -> None:
        await server.compile_all()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def _(params: types.DidOpenTextDocumentParams) -> None:
        await server.take(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def _(params: types.DidChangeTextDocumentParams) -> None:
        await server.take(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def _(_: types.DidSaveTextDocumentParams) -> None:
        await server.compile_all()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def _(params: types.DidCloseTextDocumentParams) -> None:
        file = server.opened.name_of(path_of(params.text_document.uri))
        server.opened.texts.pop(file or "", None)
        await server.compile_all()

    _register_reading(server)
    _register_editing(server)
    _register_commands(server)
    if formatter:
        _register_formatting(server, formatter)
    return server


def _register_reading(server: HeadraceServer) -> None:
    opened = server.opened

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def _(params: types.HoverParams) -> types.Hover | None:
        file = server.current(params.text_document)
        return await server.respond(hovers.hover, file, params.position) if file else None

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def _(params: types.DefinitionParams) -> list[types.Location]:
        file = server.current(params.text_document)
        return await server.respond(editor_answers.definition, file, params.position) if file else []

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def _(params: types.ReferenceParams) -> list[types.Location]:
        file = server.current(params.text_document)
        return await server.read(renames.named_places, opened, file, params.position) if file else []

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def _(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        file = server.current(params.text_document)
        return await server.work(editor_answers.symbols, opened, file) if file else []

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def _(params: types.InlayHintParams) -> list[types.InlayHint]:
        file = server.current(params.text_document)
        return await server.work(editor_answers.inlay_hints, opened, file) if file else []

    legend = types.SemanticTokensLegend(list(header_completions.LEGEND), [])

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, legend)
    async def _(params: types.SemanticTokensParams) -> types.SemanticTokens:
        file = server.current(params.text_document)
        data = await server.work(header_completions.header_tokens, opened, file) if file else []
        return types.SemanticTokens(data)

    @server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    def _(params: types.FoldingRangeParams) -> list[types.FoldingRange]:
        file = server.current(params.text_document)
        return editor_answers.folding(opened, file) if file else []


def _register_editing(server: HeadraceServer) -> None:
    opened = server.opened

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[".", "'", "(", " "]))
    async def _(params: types.CompletionParams) -> list[types.CompletionItem]:
        await server.compiled_once.wait()
        file = server.current(params.text_document)
        return completions(opened, file, params.position) if file else []

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION)
    async def _(params: types.CodeActionParams) -> list[types.CodeAction]:
        file = server.current(params.text_document)
        diagnostics = params.context.diagnostics
        return await server.respond(code_actions.code_actions, file, params.range, diagnostics) if file else []

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    async def _(params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
        file = server.current(params.text_document)
        if file is None:
            return None
        diagnostics = await server.read(renames.prepared, opened, file, params.position)
        if isinstance(diagnostics, str):
            raise JsonRpcException(f"cannot be renamed: {diagnostics}", -32803)
        # The protocol has no place for what the name is of; editors show it in their log.
        message = types.LogMessageParams(types.MessageType.Info, f"rename: {diagnostics.meaning}")
        server.window_log_message(message)
        return types.PrepareRenamePlaceholder(diagnostics.range, diagnostics.written)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    async def _(params: types.RenameParams) -> types.WorkspaceEdit | None:
        file = server.current(params.text_document)
        if file is None:
            return None
        edit = await server.read(renames.renamed, opened, file, params.position, params.new_name)
        if isinstance(edit, str):
            raise JsonRpcException(f"not renamed: {edit}", -32803)
        return edit if isinstance(edit, types.WorkspaceEdit) else None


def _register_formatting(server: HeadraceServer, formatter: Sequence[str]) -> None:
    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    async def _(params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        file = server.current(params.text_document)
        edits = await server.work(formatting.formatted, server.opened, file, formatter) if file else []
        if isinstance(edits, str):
            raise JsonRpcException(f"not formatted: {edits}", -32803)
        return list(edits)


def _register_commands(server: HeadraceServer) -> None:
    opened = server.opened

    @server.command(editor_commands.EXPLAIN)
    def _(code: str) -> str:
        return editor_commands.explanation_text(code)

    @server.command(editor_commands.COMPILED_SQL)
    async def _(uri: str) -> str:
        file = server.current(types.TextDocumentIdentifier(uri))
        return str(await server.work(editor_commands.compiled_sql, opened, file)) if file else ""

    @server.command(editor_commands.PLAN)
    async def _(uri: str) -> str:
        file = server.current(types.TextDocumentIdentifier(uri))
        return scrub(await server.read(editor_commands.plan_text, opened, file)) if file else ""


def take_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return streams of stdin and stdout, and point these elsewhere: at nothing, and at stderr.

    A thread waits in a read of stdin while compilations fork. A child of `multiprocessing` closes its `sys.stdin`, and
    would wait for the lock of that thread without end. What anything prints must not be between two messages.
    """
    reads, writes = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.flush()
    os.dup2(2, 1)
    return reads, writes
