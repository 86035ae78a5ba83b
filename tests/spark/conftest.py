"""These tests start JVMs and sessions of their own: the shared session makes room for them."""

from __future__ import annotations

import pytest

from tests.lab import LabSession


@pytest.fixture(autouse=True)
def _no_shared_session(lab_session: LabSession) -> None:
    lab_session.close()
