"""Rules on destinations that go beyond one field: addresses, headers, secrets, what fits together.

Pure: values in, findings out. Which addresses may be reached is no matter of spelling; the broker
decides that when it connects. URLs are read by the same library that sends to them, so that both
see the same host.
"""

import ipaddress
import re
from collections.abc import Iterator

from yarl import URL

from ibrik_api.model import FieldError, json_pointer
from ibrik_api.names import MAX_NAMESPACE_LENGTH
from ibrik_api.resources.destination import (
    KINDS,
    Destination,
    HttpDestination,
    SecretReference,
    ServiceDestination,
    TcpDestination,
)

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_UNSAFE_IN_URL = re.compile(r"[\x00-\x20\x7f\\]")
_HAS_USER = re.compile(r"[^/]*//[^/?#]*@")
_UNSAFE_IN_HOST = re.compile(r"[\x00-\x20\x7f\\/?#@:%\[\]]")
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}")
_SERVICE = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")

_FRAMING = "HTTP sets it for each request"
_OF_MESSAGE = "it comes from the message"
_OF_IBRIK = "Ibrik sets it for each attempt"
_DENIED_HEADERS = {
    "authorization": "say who the broker is with auth",
    "connection": _FRAMING,
    "content-encoding": _OF_MESSAGE,
    "content-length": _FRAMING,
    "content-type": _OF_MESSAGE,
    "cookie": "the broker has no session: say who it is with auth",
    "expect": _FRAMING,
    "host": "it is the host of the url",
    "idempotency-key": _OF_IBRIK,
    "keep-alive": _FRAMING,
    "te": _FRAMING,
    "traceparent": _OF_MESSAGE,
    "tracestate": _OF_MESSAGE,
    "trailer": _FRAMING,
    "transfer-encoding": _FRAMING,
    "upgrade": _FRAMING,
}
_DENIED_PREFIXES = {
    "ce-": _OF_MESSAGE,
    "ibrik-": _OF_IBRIK,
    "proxy-": "there is no proxy in between",
    "webhook-": _OF_IBRIK,
}


def check_destination(destination: Destination, pointer: str = "/spec") -> list[FieldError]:
    """What is wrong with `destination`, field by field; `pointer` is where it stands."""
    findings = _findings(destination)
    return [
        FieldError(
            pointer=pointer + json_pointer(*path), code="invalid-destination", detail=sentence
        )
        for path, sentence in findings
    ]


def destination_endpoint(destination: Destination) -> tuple[str, int | None]:
    """Host and port that messages go to; of a topic its name and None."""
    match destination.kind:
        case "http":
            assert destination.http
            url = URL(destination.http.url)
            return url.host or "", url.port
        case "service":
            assert destination.service
            return destination.service.name, destination.service.port
        case "tcp":
            assert destination.tcp
            return destination.tcp.host, destination.tcp.port
        case _:
            assert destination.topic
            return destination.topic.name, None


def describe_destination(destination: Destination) -> str:
    """One line for people: `POST http://host/path`, `tcp host:port` or `topic name`.

    The query of a URL stays out of it: it may hold what is nobody's business.
    """
    match destination.kind:
        case "http":
            assert destination.http
            url = URL(destination.http.url)
            return f"{destination.http.method} {url.with_query(None)}"
        case "service":
            assert destination.service
            service = destination.service
            return f"{service.method} http://{service.name}:{service.port}{service.path}"
        case "tcp":
            assert destination.tcp
            host = destination.tcp.host
            shown = f"[{host}]" if ":" in host else host
            return f"{'tcp+tls' if destination.tcp.tls else 'tcp'} {shown}:{destination.tcp.port}"
        case _:
            assert destination.topic
            return f"topic {destination.topic.name}"


_Finding = tuple[tuple[str, ...], str]


def _findings(destination: Destination) -> Iterator[_Finding]:
    given = [kind for kind in KINDS if getattr(destination, kind) is not None]
    if len(given) != 1:
        told = " and ".join(given) if given else "none"
        yield (), f"exactly one of http, service, tcp and topic is needed, there is {told}"
        return
    if destination.http is not None:
        yield from _http_findings(destination.http)
    if destination.service is not None:
        yield from _service_findings(destination.service)
    if destination.tcp is not None:
        yield from _tcp_findings(destination.tcp)
    yield from _unfitting(destination)
    yield from _secret_findings(destination)


def _http_findings(http: HttpDestination) -> Iterator[_Finding]:
    if fault := _url_fault(http.url):
        yield ("http", "url"), fault
    seen: set[str] = set()
    for name, value in http.headers.items():
        if fault := _header_fault(name, value):
            yield ("http", "headers", name), fault
        elif name.lower() in seen:
            yield ("http", "headers", name), "it is given twice, in two spellings: keep one"
        seen.add(name.lower())


def _url_fault(text: str) -> str | None:
    if _UNSAFE_IN_URL.search(text):
        return "it has a space, a backslash or a control character: write it as %XX"
    if not text.lower().startswith(("http://", "https://")):
        return "it has to begin with http:// or https://"
    if _HAS_USER.match(text):
        return "it holds a user or a password: take them out and use auth"
    if "#" in text:
        return "it has a fragment, which is never sent: leave out # and what follows"
    try:
        return _parsed_fault(URL(text))
    except ValueError as error:
        return f"it is no URL: {str(error)[:200]}"


def _parsed_fault(url: URL) -> str | None:
    """What is wrong in a URL of good shape; raises ValueError from its parts, which are lazy."""
    if not url.port:
        return "its port has to be from 1 to 65535"
    return _host_fault(url.host or "")


def _host_fault(host: str) -> str | None:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        pass  # a name, then
    else:
        return "an address with a zone (%) cannot be used" if "%" in host else None
    if not host:
        return "there is no host"
    if _UNSAFE_IN_HOST.search(host):
        return "the host holds a character that no name has: write a name or an address only"
    try:
        encoded = URL.build(scheme="http", host=host).raw_host or ""
    except ValueError as error:
        return f"the host is no name: {str(error)[:200]}"
    if len(encoded) > 253 or not all(map(_LABEL.fullmatch, encoded.removesuffix(".").split("."))):
        return "the host is no name: letters, digits, - and _, 1 to 63 between dots, at most 253"
    return None


def _header_fault(name: str, value: str) -> str | None:
    lower = name.lower()
    if not _TOKEN.fullmatch(name):
        return "it is no header name: use letters, digits and -"
    if lower in _DENIED_HEADERS:
        return f"it may not be set: {_DENIED_HEADERS[lower]}"
    for prefix, reason in _DENIED_PREFIXES.items():
        if lower.startswith(prefix):
            return f"headers that begin with {prefix} may not be set: {reason}"
    if not _HEADER_VALUE.fullmatch(value):
        return "its value may hold printable ASCII characters only, and no line end"
    return None


def _service_findings(service: ServiceDestination) -> Iterator[_Finding]:
    if len(service.name) > MAX_NAMESPACE_LENGTH or not _SERVICE.fullmatch(service.name):
        # A dot would lead out of the namespace.
        yield (
            ("service", "name"),
            "it is no name of a Service: a-z 0-9 and -, beginning with a letter, at most 63",
        )
    if _UNSAFE_IN_URL.search(service.path) or "#" in service.path:
        yield ("service", "path"), "it has a space, a control character, \\ or #: write it as %XX"


def _tcp_findings(tcp: TcpDestination) -> Iterator[_Finding]:
    if fault := _host_fault(tcp.host):
        yield ("tcp", "host"), fault


def _unfitting(destination: Destination) -> Iterator[_Finding]:
    kind, auth = destination.kind, destination.auth
    is_http = kind in ("http", "service")
    if auth.bearer is not None and auth.basic is not None:
        yield ("auth",), "bearer and basic exclude each other: keep one"
    if not is_http and (auth.bearer is not None or auth.basic is not None):
        yield ("auth",), f"a {kind} destination has no authorization: leave auth out"
    if not is_http and destination.signing is not None:
        yield ("signing",), f"only HTTP requests are signed: leave signing out for {kind}"
    if destination.tls.ca_secret_ref is not None and not _is_encrypted(destination):
        yield ("tls",), "the connection is not encrypted: use https:// or tcp.tls, or leave tls out"


def _is_encrypted(destination: Destination) -> bool:
    if destination.http is not None:
        return destination.http.url.lower().startswith("https://")
    return destination.tcp is not None and destination.tcp.tls


def _secret_findings(destination: Destination) -> Iterator[_Finding]:
    auth, signing = destination.auth, destination.signing
    references: dict[tuple[str, ...], SecretReference | None] = {
        ("auth", "bearer", "secretRef"): auth.bearer.secret_ref if auth.bearer else None,
        ("auth", "basic", "secretRef"): auth.basic.secret_ref if auth.basic else None,
        ("tls", "caSecretRef"): destination.tls.ca_secret_ref,
        ("signing", "secretRef"): signing.secret_ref if signing else None,
    }
    for path, reference in references.items():
        if reference is not None and (fault := _secret_fault(reference)):
            yield path, fault
    if auth.basic is not None and not re.fullmatch(r"[^:\x00-\x1f\x7f]+", auth.basic.username):
        yield ("auth", "basic", "username"), "it may hold neither : nor a control character"


def _secret_fault(reference: SecretReference) -> str | None:
    forms = [reference.file, reference.env, reference.name]
    if sum(form is not None for form in forms) != 1:
        return "exactly one of file, env, and name with key is needed"
    if (reference.name is None) != (reference.key is None):
        return "name and key belong together: give both, or neither"
    return None
