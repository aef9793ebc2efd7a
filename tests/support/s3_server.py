"""A store that speaks S3, for tests: moto's server, with what it cannot do itself in front of it.

A program of its own, run by the interpreter of an environment of its own: moto's dependencies and
the operator's exclude each other. Prints the address that it listens on, and serves until its input
ends. `POST /-/expire` makes every answer that of an expired credential. After `POST /-/hold`
commits to tables wait; `GET /-/held` answers when one has arrived; `POST /-/release` lets them
pass, and `POST /-/lose` lets none of those that wait happen.
"""

import sys
import threading

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

EXPIRED = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>ExpiredToken</Code>'
    b"<Message>The provided token has expired.</Message>"
    b"<Token-0>FwoGZXIvYXdzEXAMPLE</Token-0></Error>"
)


class Front:
    """What stands before moto."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._is_expired = self._is_lost = False
        self._holds, self._held, self._released = (threading.Event() for _ in range(3))

    def __call__(self, environ, start_response):
        path = environ["PATH_INFO"]
        if path.startswith("/-/"):
            getattr(self, path.removeprefix("/-/"))()
            start_response("204 No Content", [])
            return [b""]
        body = environ["wsgi.input"]
        if self._is_expired:
            body.read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response(
                "400 Bad Request",
                [("Content-Type", "application/xml"), ("Content-Length", str(len(EXPIRED)))],
            )
            return [EXPIRED]
        if environ["REQUEST_METHOD"] == "PUT" and "/_delta_log/" in path and self._holds.is_set():
            self._held.set()
            self._released.wait()
            if self._is_lost:
                raise ConnectionError("who sent this has died")
        return self._moto(environ, start_response)

    def expire(self) -> None:
        self._is_expired = True

    def hold(self) -> None:
        self._holds.set()

    def held(self) -> None:
        self._held.wait()

    def lose(self) -> None:
        self._is_lost = True
        self.release()

    def release(self) -> None:
        self._holds.clear()
        self._released.set()


def main() -> None:
    server = make_server("127.0.0.1", 0, Front(), threaded=True)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
