"""Settings of Sphinx for the documentation site. Nothing is loaded from the network."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pygments.lexers.special import TextLexer
from pygments.lexers.templates import SqlJinjaLexer
from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
_PROJECT = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = "Headrace"
version = release = _PROJECT["version"]
root_doc = "README"
source_suffix = {".md": "markdown"}

extensions = ["myst_parser"]
# The anchors of GitHub, so that a link with one is right in both places.
myst_heading_anchors = 4
# `{...}` in code and `[x]: y` in text are what they are.
myst_enable_extensions: list[str] = []
nitpicky = True
# Examples of errors have SQL that is not SQL.
suppress_warnings = ["misc.highlighting_failure"]

highlight_language = "none"
pygments_style = "default"
pygments_dark_style = "github-dark"

html_theme = "furo"
html_title = f"Headrace {release}"
html_static_path = [str(HERE / name) for name in ("style.css", "copy_code.js", "search_from_disk.js")]
html_css_files = ["style.css"]
html_js_files = ["copy_code.js"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5c7a", "color-brand-content": "#0b5c7a"},
    "dark_css_variables": {"color-brand-primary": "#6cc3e0", "color-brand-content": "#6cc3e0"},
}


def _search_scripts(app: Sphinx, page: str, *_: object) -> None:
    """Give the page of the search what it needs when it is opened from disk."""
    if page == "search":
        app.add_js_file("search_from_disk.js")


def setup(app: Sphinx) -> None:
    """Read SQL as Jinja templates of SQL, and CSV as text."""
    app.connect("html-page-context", _search_scripts)
    app.add_lexer("sql", SqlJinjaLexer)
    app.add_lexer("csv", TextLexer)
