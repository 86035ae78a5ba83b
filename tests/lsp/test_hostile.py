"""Somebody else's project in an editor: nothing of it runs, nothing leaves it, no server is asked, bombs are findings."""

import asyncio
import os
import sys

import pytest
from lsprotocol import types

from tests.lsp.conftest import connected
from tests.security.answering import answering
from tests.security.hostile_project import CALLABLE, SECRET, SHADOWED, disguises, write
from tests.security.test_hostile_project import REPOSITORY, contents

pytestmark = pytest.mark.slow

BOMBS = {
    "loops": "select {% for i in range(99999) %}{% for j in range(99999) %}{{ i }}{% endfor %}{% endfor %} as a\n",
    "text": "select '{{ 'x' * 999999999 }}' as a\n",
    "doubled": "{% set ns = namespace(t='x') %}{% for i in range(60) %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}select 1 as a\n",
}
REMOTE = """\
  remote:
    catalog: {{type: rest, name: lake, uri: "{url}", warehouse: w, token: "{{{{ env_var('ENGINE_SECRET_DB') }}}}"}}
    schema: dev
"""


async def everything(editor, file, text):
    """What the server answers about a file, as one text."""
    client, answers = editor.client, []
    document = types.TextDocumentIdentifier(editor.uri(file))
    whole = types.Range(types.Position(0, 0), types.Position(9, 0))
    for line, column in [(0, 9), (0, 18), (0, len(text.split("\n")[0]))]:
        at = {"text_document": document, "position": types.Position(line, column)}
        answers += [
            await client.text_document_hover_async(types.HoverParams(**at)),
            await client.text_document_completion_async(types.CompletionParams(**at)),
            await client.text_document_definition_async(types.DefinitionParams(**at)),
        ]
    found = list(client.diagnostics.get(document.uri, []))
    action = types.CodeActionParams(document, whole, types.CodeActionContext(found))
    answers += [
        await client.text_document_document_symbol_async(types.DocumentSymbolParams(document)),
        await client.text_document_inlay_hint_async(types.InlayHintParams(document, whole)),
        await client.text_document_code_action_async(action),
    ]
    return str(answers)


@pytest.mark.nightly_cases("templates")
@pytest.mark.parametrize("kind", ["names and links", "templates"])
def test_a_hostile_project_is_only_read(tmp_path, kind):
    root, outside, home, log = (tmp_path / name for name in ("work/project", "work/outside", "home", "events"))
    (outside / "precious").mkdir(parents=True)
    (outside / "precious" / "file.txt").write_text("select 'precious' as a")
    home.mkdir()
    write(root, outside, kind)
    (root / ".pyiceberg.yaml").unlink()
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "ENGINE_SECRET_DB": SECRET, "PYTHONPATH": str(REPOSITORY)}
    command = (sys.executable, "-P", "-m", "tests.security.audited", str(log), "lsp", "--target", "remote")
    texts, said = {}, []

    async def session():
        async with connected(root, *command, cwd=root, env=env) as editor:
            for path in sorted((root / "models").glob("*.sql"))[:9]:
                file = path.relative_to(root).as_posix()
                if not path.is_symlink():
                    editor.open(file)
                    said.append(await everything(editor, file, editor.texts[file]))
            editor.open("models/fine.sql", "select 1 as a\n")
            for name, bomb in BOMBS.items():
                editor.type("models/fine.sql", bomb)
                found = await editor.diagnostics(
                    "models/fine.sql", lambda found: any(one.severity == 1 for one in found)
                )
                texts[name] = {one.code for one in found}
                editor.type("models/fine.sql", "select 1 as a\n")
                await editor.diagnostics("models/fine.sql", lambda found: not found)
            outside_uri = (outside / "precious" / "file.txt").as_uri()
            at = {"text_document": types.TextDocumentIdentifier(outside_uri), "position": types.Position(0, 9)}
            said.append(await editor.client.text_document_hover_async(types.HoverParams(**at)))
            return {uri: list(found) for uri, found in editor.client.diagnostics.items()}

    with answering() as server:
        project = root / "project.yml"
        project.write_text(project.read_text() + REMOTE.format(url=server.url))
        before = contents(tmp_path / "work")
        diagnostics = asyncio.run(session())
        assert server.asked == []
    printed = "\n".join(map(str, [*said, diagnostics]))
    assert texts == {name: {"template-too-large"} for name in BOMBS}
    if kind == "names and links":
        links = {uri.removeprefix(root.as_uri() + "/"): [d.code for d in found] for uri, found in diagnostics.items()}
        assert "path-outside" in links["models/linked.sql"], links
    assert "precious' as a" not in printed
    assert not [name for name, form in disguises(SECRET).items() if form in printed]
    assert "Traceback" not in printed
    assert contents(tmp_path / "work") == before
    events = log.read_text().splitlines()
    own = [line for line in events if line.startswith(f"exec {root}") or CALLABLE.partition(".")[0] in line]
    started = [line for line in events if not line.startswith("exec ") and "dlopen (None,)" not in line]
    assert own + started == []
    assert not any(f"{module} of the project" in printed for module in SHADOWED)
