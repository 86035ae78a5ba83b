"""A real client over stdio: each test starts `engine lsp` on a copy of a project."""

import asyncio
import shutil
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.protocol import default_converter
from pytest_lsp import LanguageClient
from pytest_lsp.client import register_lsp_features

from engine import Project
from engine.lsp.opened.open_project import OpenProject

ROOT = Path(__file__).parents[2]
# It writes and compiles the functions that read and write each kind of message, at the first of its kind.
CONVERTER = default_converter()


class Editor:
    """A client of the server, and the project that it has open."""

    def __init__(self, client: LanguageClient, root: Path) -> None:
        self.client, self.root, self.texts, self.version = client, root, {}, 1

    def uri(self, file: str) -> str:
        return (self.root / file).as_uri()

    def open(self, file: str, text: str | None = None) -> None:
        self.texts[file] = (self.root / file).read_text() if text is None else text
        item = types.TextDocumentItem(self.uri(file), "sql", self.version, self.texts[file])
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def type(self, file: str, text: str) -> None:
        self.texts[file] = text
        self.version += 1
        whole = types.TextDocumentContentChangeWholeDocument(text)
        document = types.VersionedTextDocumentIdentifier(self.version, self.uri(file))
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))

    def at(self, file: str, words: str, offset: int = 0) -> dict:
        """The document and the position of the first of some words in it."""
        before = self.texts[file][: self.texts[file].index(words) + offset]
        line = before.count("\n")
        position = types.Position(line, len(before) - before.rfind("\n") - 1)
        return {"text_document": types.TextDocumentIdentifier(self.uri(file)), "position": position}

    async def diagnostics(self, file: str, until, seconds: float = 60.0) -> list:
        """The diagnostics of a file, once they are as they should be."""
        for _ in range(int(seconds * 20)):
            found = self.client.diagnostics.get(self.uri(file), [])
            if until(found):
                return list(found)
            await asyncio.sleep(0.05)
        raise AssertionError(f"diagnostics of {file}: {self.client.diagnostics}")


@asynccontextmanager
async def connected(root: Path, *command: str, **process):
    """An editor with a server on the project."""
    client = LanguageClient(converter_factory=lambda: CONVERTER)
    register_lsp_features(client)
    await client.start_io(*(command or (sys.executable, "-m", "engine", "lsp", "--project-dir", str(root))), **process)
    try:
        await client.initialize_session(types.InitializeParams(types.ClientCapabilities(), root_uri=root.as_uri()))
        yield Editor(client, root)
        await client.shutdown_session()
    except BaseException:
        # It would wait for the end of the session.
        client._server.kill()
        raise
    finally:
        await client.stop()


def example(root: Path) -> Path:
    """A copy of the example."""
    for name in ("project.yml", "models", "macros", "sources"):
        source = ROOT / name
        shutil.copytree(source, root / name) if source.is_dir() else shutil.copy(source, root / name)
    shutil.copytree(ROOT / "tests/models", root / "tests/models")
    return root


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ENGINE_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "project"
    root.mkdir()
    return example(root)


def compiled(root: Path) -> OpenProject:
    found = OpenProject(Project(root))
    found.compile_all()
    assert not found.manifest.errors
    return found


@pytest.fixture(scope="module")
def example_opened(tmp_path_factory: pytest.TempPathFactory):
    """The example, compiled, for tests that only read it."""
    folder = tmp_path_factory.mktemp("example")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENGINE_CACHE", str(folder / "cache"))
        (folder / "project").mkdir()
        yield compiled(example(folder / "project"))
