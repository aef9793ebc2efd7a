"""Errors of connections as answers: translated here, once, for HTTP and TCP.

The sentences are made from what kind of error it is. The texts of libraries stay out: they may
hold addresses with secrets in them. Unknown errors are logged.
"""

import logging
import socket
import ssl

import aiohttp

from ibrik_broker.delivery.guard import EgressDenied

logger = logging.getLogger("ibrik.delivery")

# The first row that fits decides.
_ROWS: tuple[tuple[tuple[type[BaseException], ...], str, str], ...] = (
    ((ssl.SSLCertVerificationError,), "tls-failed", "the certificate is not accepted: {reason}"),
    ((ssl.SSLError,), "tls-failed", "no TLS with {host}: {reason}"),
    ((EgressDenied,), "egress-denied", "{reason}"),
    # Several addresses, denied for several reasons, come joined into one error.
    ((PermissionError,), "egress-denied", "no address of {host} may be connected to"),
    ((socket.gaierror, UnicodeError, aiohttp.InvalidURL), "dns-failed", "{host} has no address"),
    ((TimeoutError,), "timeout", "no whole answer within {timeout_s:g} s"),
    (
        (aiohttp.ClientPayloadError, aiohttp.ClientResponseError),
        "broken-answer",
        "what {host} answered is no whole HTTP answer",
    ),
    (
        (OSError, EOFError, aiohttp.ClientConnectionError),
        "connect-failed",
        "no connection with {host}: {reason}",
    ),
)


def failure(error: Exception, host: str, timeout_s: float) -> tuple[str, str]:
    """The kind of an error, one of `answers.ERRORS`, and the sentence for people."""
    cause = _cause(error)
    for kinds, name, text in _ROWS:
        if isinstance(cause, kinds):
            return name, text.format(host=host, timeout_s=timeout_s, reason=_reason(cause))
    logger.error("sender broke", exc_info=error)
    return "crashed", f"the broker failed to send ({type(error).__name__}): its log says more"


def _cause(error: Exception) -> BaseException:
    """What lies below an error of the HTTP client."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return socket.gaierror()
        case aiohttp.ClientConnectorCertificateError():
            return error.certificate_error
        case aiohttp.ClientConnectorError():
            return error.os_error
    return error


def _reason(cause: BaseException) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return cause.verify_message
    if isinstance(cause, ssl.SSLError):
        return cause.reason or "the handshake failed"
    text = cause.strerror if isinstance(cause, OSError) else None
    return text or "it ended before the answer"
