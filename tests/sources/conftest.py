"""One broker and one registry for all tests of sources; each starts when the first of them asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.parts.kafka import Broker
from tests.parts.kafka import running as broker_running
from tests.parts.registry import RegistryPart, running


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryPart]:
    """A real registry. Subjects are of the tests that register them; ids go up."""
    with running(tmp_path_factory.mktemp("registry")) as part:
        yield part


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real broker; tests name topics of their own."""
    with broker_running(tmp_path_factory.mktemp("broker")) as part:
        yield part
