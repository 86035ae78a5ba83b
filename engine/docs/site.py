"""Writing the lineage page: one HTML file that opens from the file system and fetches nothing."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from engine.compile.manifest import Manifest
from engine.docs.last_run import read_results
from engine.docs.pages import make_page
from engine.secrets import PREFIX, scrub

_PAGE = "index.html"


def write_site(manifest: Manifest, folder: Path, *, results: Mapping[str, Any] | None = None) -> Path:
    """Write the lineage page of a compiled project.

    Args:
        manifest: the project; broken nodes are shown and marked.
        folder: where to; it is made if need be.
        results: what target/run_results.json holds, if there was a run.

    Returns:
        The page's file, `folder`/index.html.
    """
    environment = _environment()
    css = _style(environment)
    template = environment.get_template(_PAGE)
    html = template.render(page=make_page(manifest, read_results(results)), css=css, policy=_policy(css))
    folder.mkdir(parents=True, exist_ok=True)
    page, part = folder / _PAGE, folder / f".{_PAGE}.part"
    # Half a surrogate pair, which YAML's \u escapes can make, has no UTF-8 form.
    part.write_bytes(html.encode("utf-8", errors="replace"))
    part.replace(page)
    return page


def _environment() -> Environment:
    """Not the sandbox of models: these templates are the package's own, and all values are escaped."""
    return Environment(
        loader=PackageLoader("engine.docs", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_scrubber(),
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _scrubber() -> Callable[[Any], Any]:
    secrets = {key: value for key, value in os.environ.items() if key.startswith(PREFIX)}

    def scrubbed(value: Any) -> Any:
        if not isinstance(value, str) or isinstance(value, Markup):
            return value
        return scrub(value, secrets)

    return scrubbed


def _style(environment: Environment) -> Markup:
    # The package's own file; in a style element text is not escaped.
    return Markup(environment.get_template("style.css").render())  # noqa: S704


def _policy(css: str) -> str:
    """Nothing may be loaded or run; the one style element is admitted by its hash.

    ('self' would not do: browsers do not agree on what it means for a file.)
    """
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
