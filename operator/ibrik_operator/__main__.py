"""`python -m ibrik_operator`: the operator, with settings from the environment."""

import asyncio
import logging
import sys

import structlog

from ibrik_operator.app import run
from ibrik_operator.settings import SettingsError, load_settings


def main() -> int:
    try:
        settings = load_settings()
        settings.default_pool()
    except SettingsError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    _configure_logging(settings.logging.level)
    asyncio.run(run(settings))
    return 0


def _configure_logging(level: str) -> None:
    """One JSON object a line, to standard error; kopf's chatter from warnings on."""
    shared: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        structlog.processors.EventRenamer("message"),
    ]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
            foreign_pre_chain=shared,
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for chatty in ("kopf", "aiohttp", "asyncio", "kubernetes"):
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


if __name__ == "__main__":
    sys.exit(main())
