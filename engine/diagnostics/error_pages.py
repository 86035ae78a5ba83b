"""The pages of the documentation about diagnostics, made from their explanations.

`python -m engine.diagnostics.error_pages` writes them to docs/.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from engine.diagnostics.explanations import (
    DEFAULT_FILE,
    Example,
    Explanation,
    example_project,
    explanations,
    introduction,
)

_INDEX = """\
# Error codes

Every message ends with its code in brackets. `engine explain CODE` shows the cause, an example and the fix in the
terminal; it needs neither a project nor Java.

| found | when |
|---|---|
| command line | when arguments are read |
| compile | by every command that reads the project, from files alone |
| plan | before a build starts anything, without Java |
| start | when a run opens Spark, its sources and its tables; nothing of the model was written |
| run | while queries, tests and other work run; what was committed before stays |
"""
_EXAMPLES = """\
## The project of the examples

Examples are complete files; where none is named, it is `models/m.sql`. Beside them there is this project.
"""
_MADE = "These pages are made from `engine/diagnostics/` by `make docs`."


def error_pages() -> dict[str, str]:
    """The pages by their path under docs/."""
    topics = [list(group) for _, group in groupby(explanations().values(), key=lambda one: one.page)]
    pages = {f"errors/{topic[0].page}.md": _page(topic) for topic in topics}
    return {"errors.md": _index(topics), **pages}


def _index(topics: Iterable[Sequence[Explanation]]) -> str:
    lines = [_INDEX]
    for topic in topics:
        lines += [f"## {topic[0].topic}", "", "| code | level | found | what went wrong |", "|---|---|---|---|"]
        for one in topic:
            link = f"[`{one.code}`](errors/{one.page}.md#{one.code})"
            lines.append(f"| {link} | {', '.join(one.levels)} | {', '.join(one.found)} | {_cell(one.summary)} |")
        lines.append("")
    lines += [_EXAMPLES, *_blocks(example_project()), _MADE]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "&#124;")


def _page(topic: Sequence[Explanation]) -> str:
    lines = [f"# {topic[0].topic}", ""]
    if before := introduction(topic[0].page):
        lines += [before, ""]
    for one in topic:
        lines += [f"## {one.code}", "", one.summary, "", f"*{_facts(one)}*", "", one.cause, ""]
        if one.wrong:
            lines += ["Wrong:", "", *_blocks(one.wrong), "Right:", "", *_blocks(one.right)]
        else:
            lines += [f"Occurs: {one.occurs}", ""]
        lines += [f"**Fix:** {one.fix}", ""]
    lines.append("[All codes](../errors.md)")
    return "\n".join(lines) + "\n"


def _facts(one: Explanation) -> str:
    return f"{' or '.join(one.levels).capitalize()}; found: {', '.join(one.found)}"


def _blocks(examples: Iterable[Example]) -> Iterator[str]:
    for example in examples:
        if example.file != DEFAULT_FILE:
            yield f"`{example.file}`"
            yield ""
        yield f"```{example.language}\n{example.text}```"
        yield ""


def write(docs: Path) -> None:
    """Write all pages, and remove those of topics that no longer exist."""
    pages = error_pages()
    (docs / "errors").mkdir(exist_ok=True)
    for path in (docs / "errors").glob("*.md"):
        if f"errors/{path.name}" not in pages:
            path.unlink()
    for name, text in pages.items():
        (docs / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path("docs"))
