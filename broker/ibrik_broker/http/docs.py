"""/docs: Swagger UI from files that lie beside this module, and /openapi.json, which it shows.

Nothing is loaded from anywhere else; the page's policy forbids it to try.
"""

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from aiohttp import web

from ibrik_broker.http.operations import JSON

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
FILES = {
    "/docs": ("index.html", "text/html"),
    "/docs/start.js": ("start.js", "text/javascript"),
    "/docs/swagger-ui-bundle.js": ("swagger-ui-bundle.js", "text/javascript"),
    "/docs/swagger-ui.css": ("swagger-ui.css", "text/css"),
}


def add_docs(app: web.Application, build: Callable[[], dict[str, Any]]) -> None:
    """Serve the document, built when first asked for, and the page that shows it."""
    encode = cache(lambda: msgspec.json.encode(build()))

    async def openapi(_request: web.Request) -> web.Response:
        return web.Response(body=encode(), content_type=JSON)

    async def page(request: web.Request) -> web.Response:
        name, media_type = FILES[request.path]
        content = (files("ibrik_broker.http") / "swagger" / name).read_bytes()
        headers = {
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-cache",
        }
        return web.Response(body=content, content_type=media_type, charset="utf-8", headers=headers)

    async def swagger(_request: web.Request) -> web.Response:
        return web.Response(status=308, headers={"Location": "/docs"})

    app.router.add_get("/openapi.json", openapi)
    app.router.add_get("/swagger", swagger)
    for path in FILES:
        app.router.add_get(path, page)
