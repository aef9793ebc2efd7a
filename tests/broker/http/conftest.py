"""The doors that most tests here use."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.broker.http.rig import Rig, running_doors


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with running_doors(tmp_path) as rig:
        yield rig
