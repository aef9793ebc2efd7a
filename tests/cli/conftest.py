"""A broker shared by one module, and the `ibrik` command as a person runs it: another process."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.broker import Broker, running_broker

IBRIK = str(Path(sys.executable).with_name("ibrik"))
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("cli")) as running:
        yield running


@pytest.fixture
def ibrik(broker: Broker, tmp_path: Path) -> Command:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("IBRIK_")}
    environment |= {"IBRIK_SERVER": broker.http_url, "IBRIK_ADMIN_URL": broker.admin_url}

    def run(*arguments: str, given: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [IBRIK, *arguments],
            input=given,
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run
