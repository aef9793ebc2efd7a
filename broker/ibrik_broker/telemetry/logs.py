"""Structured logs: one event per line, JSON for machines, a calm console for a terminal.

A line is a fixed message and fields (`topic`, `partition`, `offset`); context that belongs to a
whole request or connection is bound with `structlog.contextvars`. Never payloads, keys or tokens.
Called once by `app.py`; every other module only calls `get_logger`.
"""

import logging
import sys
from typing import TextIO, cast

import structlog
from structlog.typing import FilteringBoundLogger, Processor


def configure_logging(*, level: str, form: str, stream: TextIO | None = None) -> None:
    """Send every log line of this process to `stream` (standard error when None).

    `level` is debug, info, warning or error; `form` is json, console or auto (console when the
    stream is a terminal). The standard library's loggers (aiohttp, sqlalchemy) go the same way.
    """
    stream = stream or sys.stderr
    is_console = form == "console" or (form == "auto" and stream.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if is_console:
        shared[-1] = structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False)
        rendering: list[Processor] = [structlog.dev.ConsoleRenderer(colors=stream.isatty())]
    else:
        rendering = [
            structlog.processors.format_exc_info,
            structlog.processors.EventRenamer("message"),
            structlog.processors.JSONRenderer(),
        ]
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
            foreign_pre_chain=shared,
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # One line per HTTP request is what metrics are for; SQL text may hold what people store.
    for chatty in ("aiohttp.access", "sqlalchemy", "aiosqlite", "alembic"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def get_logger(layer: str) -> FilteringBoundLogger:
    """The logger of one layer, e.g. `ibrik.tcp`."""
    return cast("FilteringBoundLogger", structlog.stdlib.get_logger(layer))
