"""The queue: each key at most once, none twice at once, and longer pauses after each failure."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from ibrik_operator.brokers import BrokersUnavailable
from ibrik_operator.keys import Key
from ibrik_operator.kube import KubeConflict, KubeUnavailable
from ibrik_operator.queue import FIRST_PAUSE_S, LONGEST_PAUSE_S, WorkQueue
from tests.support.fast_loop import run_fast

ORDERS, CLICKS = Key("Topic", "shop", "orders"), Key("Topic", "shop", "clicks")
SECOND = 1.0
Answer = Callable[[int], float | None]
"""What the n-th visit of a key answers or raises."""


class Visits:
    """A queue, and when it visited which key."""

    def __init__(self, answer: Answer = lambda _visit: None, **given: int) -> None:
        self.at: dict[Key, list[float]] = {}
        self._answer = answer
        self.queue = WorkQueue(self.visit, jitter=lambda: 1.0, **given)

    async def visit(self, key: Key) -> float | None:
        self.at.setdefault(key, []).append(asyncio.get_running_loop().time())
        return self._answer(len(self.at[key]))

    async def run_for(self, seconds: float) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.queue.run()


def raising(error: Exception, times: int) -> Answer:
    def answer(visit: int) -> float | None:
        if visit <= times:
            raise error
        return None

    return answer


def test_a_key_that_is_added_again_and_again_is_visited_once() -> None:
    async def main() -> None:
        visits = Visits()
        for _ in range(5):
            visits.queue.add(ORDERS)
        assert len(visits.queue) == 1
        await visits.run_for(SECOND)
        assert visits.at == {ORDERS: [0.0]}
        assert visits.queue.is_idle

    run_fast(main)


def test_of_two_times_the_earlier_one_counts() -> None:
    async def main() -> None:
        visits = Visits()
        visits.queue.add(ORDERS, 50.0)
        visits.queue.add(ORDERS, 20.0)
        visits.queue.add(ORDERS, 30.0)
        await visits.run_for(100.0)
        assert visits.at[ORDERS] == pytest.approx([20.0])

    run_fast(main)


def test_a_later_visit_that_is_planned_does_not_hold_up_news() -> None:
    async def main() -> None:
        visits = Visits()
        visits.queue.add(ORDERS, 500.0)
        visits.queue.add(CLICKS, 400.0)
        asyncio.get_running_loop().call_later(7.0, visits.queue.add, ORDERS)
        await visits.run_for(100.0)
        assert visits.at[ORDERS] == pytest.approx([7.0])
        assert CLICKS not in visits.at
        assert visits.queue.is_idle
        assert len(visits.queue) == 1

    run_fast(main)


def test_a_visit_that_asks_for_another_gets_it_in_time() -> None:
    async def main() -> None:
        visits = Visits(lambda visit: 60.0 if visit < 3 else None)
        visits.queue.add(ORDERS)
        await visits.run_for(1_000.0)
        assert visits.at[ORDERS] == pytest.approx([0.0, 60.0, 120.0])

    run_fast(main)


def test_a_key_is_never_visited_twice_at_once_but_once_more_when_news_came_meanwhile() -> None:
    async def main() -> None:
        running, most, visits = 0, 0, 0

        async def visit(_key: Key) -> None:
            nonlocal running, most, visits
            visits, running = visits + 1, running + 1
            most = max(most, running)
            await asyncio.sleep(10)
            running -= 1

        queue = WorkQueue(visit)
        loop = asyncio.get_running_loop()
        for second in (0, 1, 2, 3):
            loop.call_later(second, queue.add, ORDERS)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(100):
                await queue.run()
        assert (visits, most) == (2, 1)

    run_fast(main)


def test_no_more_keys_are_visited_at_once_than_there_are_workers() -> None:
    async def main() -> None:
        running, most = 0, 0

        async def visit(_key: Key) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(1)
            running -= 1

        queue = WorkQueue(visit, workers=3)
        for number in range(10):
            queue.add(Key("Topic", "shop", f"topic-{number}"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(100):
                await queue.run()
        assert (most, queue.ended) == (3, 10)

    run_fast(main)


@pytest.mark.parametrize(
    "error",
    [
        KubeUnavailable("503"),
        KubeConflict("409"),
        BrokersUnavailable("no pod is ready"),
        RuntimeError("a mistake of ours"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_each_failure_doubles_the_pause_and_success_forgets_them(error: Exception) -> None:
    async def main() -> None:
        visits = Visits(raising(error, 4))
        visits.queue.add(ORDERS)
        await visits.run_for(100.0)
        assert visits.at[ORDERS] == pytest.approx([0.0, 1.0, 3.0, 7.0, 15.0])
        visits._answer = raising(error, 6)
        visits.queue.add(ORDERS)
        await visits.run_for(100.0)
        assert visits.at[ORDERS][6] - visits.at[ORDERS][5] == pytest.approx(FIRST_PAUSE_S)

    run_fast(main)


def test_the_pause_never_exceeds_five_minutes() -> None:
    async def main() -> None:
        visits = Visits(raising(KubeUnavailable("503"), 10_000))
        visits.queue.add(ORDERS)
        await visits.run_for(50 * LONGEST_PAUSE_S)
        at = visits.at[ORDERS]
        pauses = [after - before for before, after in pairwise(at)]
        assert max(pauses) == pytest.approx(LONGEST_PAUSE_S)
        assert pauses[-1] == pytest.approx(LONGEST_PAUSE_S)

    run_fast(main)


def test_the_api_server_may_ask_for_a_longer_pause() -> None:
    async def main() -> None:
        visits = Visits(raising(KubeUnavailable("429", after_s=42.0), 1))
        visits.queue.add(ORDERS)
        await visits.run_for(100.0)
        assert visits.at[ORDERS] == pytest.approx([0.0, 42.0])

    run_fast(main)


def test_one_that_fails_does_not_hold_up_the_others() -> None:
    async def main() -> None:
        async def visit(key: Key) -> None:
            if key == ORDERS:
                raise RuntimeError("broken")
            seen.append(key)

        seen: list[Key] = []
        queue = WorkQueue(visit, workers=1)
        queue.add(ORDERS)
        queue.add(CLICKS)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await queue.run()
        assert seen == [CLICKS]

    run_fast(main)
