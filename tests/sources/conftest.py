"""One registry for all tests of sources; it starts when the first of them asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services.registry import RegistryPart, running


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryPart]:
    """A real registry. Subjects are of the tests that register them; ids go up."""
    with running(tmp_path_factory.mktemp("registry")) as part:
        yield part
        part.stop(kill=True)
