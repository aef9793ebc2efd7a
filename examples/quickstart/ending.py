"""How every demo is run and ends: broker stopped, a line that says how it went, an exit code."""

import asyncio
import subprocess
import time
from collections.abc import Callable, Coroutine
from typing import Any

import proof
import screen
from process import BrokerFailed, BrokerProcess

import ibrik_client
from ibrik_log.errors import LogError


def run_demo(
    broker: BrokerProcess,
    work: Callable[[], Coroutine[Any, Any, None]],
    *,
    without_source: str,
    foreseen: tuple[type[Exception], ...] = (),
    afterwards: Callable[[], None] | None = None,
) -> int:
    """0 when `work` ends well and so does the broker, 1 when not, 130 on Ctrl-C.

    `without_source` is said when the command that brings the data fails; `foreseen` are errors of
    this demo alone whose text is enough.
    """
    began_s = time.monotonic()
    failures = (proof.CheckFailed, BrokerFailed, ibrik_client.IbrikError, LogError, *foreseen)
    try:
        broker.clear()
        asyncio.run(work())
        code = broker.stop()
        proof.check(code == 0, f"the broker ended with exit code {code}")
    except failures as error:
        return _failed(str(error))
    except subprocess.CalledProcessError:
        return _failed(f"{without_source}; it says why above")
    except ExceptionGroup as group:
        return _failed(str(group.exceptions[0]))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 130
    finally:
        broker.stop()
    if afterwards is not None:
        afterwards()
    screen.line("")
    screen.good(f"all of it in {time.monotonic() - began_s:.0f} s")
    return 0


def _failed(why: str) -> int:
    screen.line(f"FAILED: {why}")
    return 1
