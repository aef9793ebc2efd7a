"""A broker shared by the tests of one module, and a client for it."""

from collections.abc import AsyncIterator, Iterator

import pytest

import ibrik_client
from tests.support.broker import Broker, running_broker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("client")) as running:
        yield running


@pytest.fixture
async def ibrik(broker: Broker) -> AsyncIterator[ibrik_client.Client]:
    async with ibrik_client.connect(broker.http_url, admin_url=broker.admin_url) as client:
        yield client
