"""The texts of the pages as a script, by section: for excerpts of a search in a site that is opened from disk."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

# Not of a page's own text.
_LEFT_OUT = {"script", "style"}


class _Sections(HTMLParser):
    """The sections of a page's article, each with the text up to the next one."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[str]]] = []
        self._inside = False
        self._without = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin the article, or a section of it."""
        said = dict(attrs)
        self._inside = self._inside or (tag == "article" and said.get("role") == "main")
        self._without += tag in _LEFT_OUT
        if self._inside and tag == "section":
            self.found.append((said.get("id") or "", []))

    def handle_endtag(self, tag: str) -> None:
        """End what was begun."""
        self._inside = self._inside and tag != "article"
        self._without -= tag in _LEFT_OUT

    def handle_data(self, data: str) -> None:
        """Keep the text of a section; the sign beside a heading is none."""
        if self._inside and not self._without and self.found and data != "¶":
            self.found[-1][1].append(data)


def write_texts(site: Path) -> None:
    """Write the texts of a site's pages to its `_static/page_texts.js`."""
    texts = {}
    for path in sorted(site.rglob("*.html")):
        parser = _Sections()
        parser.feed(path.read_text(encoding="utf-8"))
        if parser.found:
            name = path.relative_to(site).with_suffix("").as_posix()
            texts[name] = [(id_, " ".join("".join(words).split())) for id_, words in parser.found]
    script = f"window.PAGE_TEXTS = {json.dumps(texts, ensure_ascii=True, separators=(',', ':'))};\n"
    (site / "_static" / "page_texts.js").write_text(script, encoding="utf-8")
