"""Files of tests whose program is not there are not collected: there is nothing they could say.

What starts Spark lies in `test_spark_*.py` and needs Java; `test_s3*.py` need the store that
`make test` installs.
"""

import shutil
from collections.abc import AsyncIterator, Iterator

import pytest

import ibrik_client
from ibrik_client import Client
from tests.support.broker import Broker, running_broker
from tests.support.s3 import PYTHON

collect_ignore_glob = []
if shutil.which("java") is None:
    collect_ignore_glob.append("test_spark_*.py")
if not PYTHON.exists():
    collect_ignore_glob.append("test_s3*.py")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
async def ibrik(broker: Broker) -> AsyncIterator[Client]:
    async with ibrik_client.connect(broker.http_url, admin_url=broker.admin_url) as client:
        yield client
