"""Health: what a probe and a scrape get from a real port."""

import asyncio

import aiohttp
import pytest

from ibrik_operator.health import Health, serve
from ibrik_operator.settings import HttpSettings
from tests.support.apiserver import free_port
from tests.support.fast_loop import run_fast


class Asked:
    is_ready = True
    is_lease_known = True

    def __init__(self) -> None:
        self.health = Health(lambda: self.is_ready, lambda: self.is_lease_known)

    async def ask(self, *paths: str) -> list[tuple[int, str]]:
        port = free_port()
        close = await serve(HttpSettings(port=port), self.health)
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
                answers = []
                for path in paths:
                    async with session.get(path) as answer:
                        answers.append((answer.status, await answer.text()))
                return answers
        finally:
            await close()


async def test_a_healthy_one_says_so_and_shows_its_metrics() -> None:
    live, ready, metrics = await Asked().ask("/healthz", "/readyz", "/metrics")
    assert live == (200, "alive\n")
    assert ready == (200, "ready\n")
    assert metrics[0] == 200
    assert "ibrik_operator_queue_depth" in metrics[1]


async def test_one_that_starts_is_alive_and_not_ready() -> None:
    asked = Asked()
    asked.is_ready = False
    live, ready = await asked.ask("/healthz", "/readyz")
    assert (live[0], ready) == (200, (503, "starting\n"))


async def test_one_that_hears_nothing_of_the_lease_is_not_alive() -> None:
    asked = Asked()
    asked.is_lease_known = False
    (live,) = await asked.ask("/healthz")
    assert live[0] == 503
    assert "Lease" in live[1]


@pytest.mark.parametrize(("late_s", "status"), [(5.0, 200), (60.0, 503)])
def test_a_loop_that_is_late_is_not_alive(late_s: float, status: int) -> None:
    async def main() -> None:
        asked = Asked()
        watching = asyncio.ensure_future(asked.health.watch_loop())
        await asyncio.sleep(0.5)
        asyncio.get_running_loop().stall(late_s)  # type: ignore[attr-defined]
        await asyncio.sleep(0.1)
        answer = await asked.health.live(None)  # type: ignore[arg-type]
        watching.cancel()
        assert answer.status == status

    run_fast(main)
