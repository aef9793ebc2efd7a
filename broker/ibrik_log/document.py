"""Small files with a checksum: `{"kind", "version", "crc32c", "body"}` as JSON (docs/formats/).

The checksum is that of the body written with sorted keys and without spaces. Written whole by
`files.replace_file`; anything unreadable is an UnreadableDocument, which never means "empty".
"""

import json
from typing import Any, cast

from crc32c import crc32c

from .errors import UnreadableDocument

Body = dict[str, Any]


def encode_document(kind: str, version: int, body: Body) -> bytes:
    text = _canonical(body)
    frame = {"kind": kind, "version": version, "crc32c": f"{crc32c(text):08x}"}
    return json.dumps(frame, separators=(",", ":"))[:-1].encode() + b',"body":' + text + b"}\n"


def decode_document(content: bytes, kind: str, version: int) -> Body:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnreadableDocument(f"no {kind} document: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("body"), dict):
        raise UnreadableDocument(f"no {kind} document")
    if document.get("kind") != kind or document.get("version") != version:
        raise UnreadableDocument(
            f"expected {kind} version {version}, "
            f"found {document.get('kind')} version {document.get('version')}"
        )
    if document.get("crc32c") != f"{crc32c(_canonical(document['body'])):08x}":
        raise UnreadableDocument(f"the checksum of the {kind} document is wrong")
    return cast("Body", document["body"])


def _canonical(body: Body) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
