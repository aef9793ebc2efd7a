"""`python -m bench.bare_handler PORT`: the broker's HTTP library and loop without a broker."""

import sys

import uvloop
from aiohttp import web

ANSWER = (
    b'{"topic":"orders","partition":0,"offset":1234567,"id":"b7e6-0-1234567",'
    b'"timestamp":"2026-01-01T00:00:00.000Z","durability":"none"}'
)


async def answer(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(status=201, body=ANSWER, content_type="application/json")


def main() -> None:
    app = web.Application()
    app.router.add_post("/v1/topics/{topic}/messages", answer)
    web.run_app(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        access_log=None,
        print=None,
        loop=uvloop.new_event_loop(),
    )


if __name__ == "__main__":
    main()
