"""The table of errors and a page per code, from `ibrik_api.errors.CODES`."""

from ibrik_api.errors import CODES, ErrorCode
from pages.markdown import duration_ms, page, table

# Where the reader of an error page finds the longer story; paths are relative to docs/errors/.
SEE_ALSO: dict[str, tuple[tuple[str, str], ...]] = {
    "buffer-full": (("Back pressure", "../concepts/backpressure.md"),),
    "storage-full": (("Disk full", "../guides/operate.md#disk-full"),),
    "storage-failed": (
        ("When the flush fails", "../concepts/acknowledgement.md#when-the-flush-fails"),
    ),
    "corrupt-range": (("Corrupt ranges", "../guides/operate.md#corrupt-ranges"),),
    "offset-below-start": (("Reading", "../concepts/reading.md#no-silent-jumps"),),
    "offset-above-end": (("Reading", "../concepts/reading.md#no-silent-jumps"),),
    "idempotency-mismatch": (("Deduplication", "../concepts/deduplication.md"),),
    "out-of-order-sequence": (("Sequences", "../concepts/deduplication.md"),),
    "unknown-producer": (("Sequences", "../concepts/deduplication.md"),),
    "unknown-command": (("TCP", "../guides/tcp.md"),),
    "unknown-topic": (("Your first topic", "../guides/first-topic.md"),),
    "unsupported-field": (("Topic", "../reference/topic.md"),),
    "volume-in-use": (("Operate", "../guides/operate.md#data-folder-is-in-use"),),
    "unknown-format": (("Upgrade", "../guides/operate.md#upgrade"),),
}
# Only a start is refused with these: there is no door yet that could answer.
START = frozenset(
    {
        "database-of-another-cluster",
        "foreign-file",
        "newer-database",
        "permission-denied",
        "unknown-format",
        "volume-in-use",
    }
)
# In the table, but nothing answers with them in this version. A test keeps this list true.
RESERVED = frozenset({"uri-too-long"})


def pages() -> dict[str, str]:
    unknown = sorted({*SEE_ALSO, *START, *RESERVED} - set(CODES))
    assert not unknown, f"docs/pages/errors.py names codes that do not exist: {unknown}"
    rows = sorted(CODES.values(), key=lambda row: row.code)
    return {"reference/errors.md": _index(rows)} | {
        f"errors/{row.code}.md": _one(row) for row in rows
    }


def _index(rows: list[ErrorCode]) -> str:
    return page(
        "Errors",
        "Every refusal has a `code`. Over HTTP it is in the problem document (RFC 9457), over TCP\n"
        "it is the word after `ERR`. Codes do not change; texts may.",
        "**Retry** says whether the same request can succeed later without a change.",
        table(
            ("code", "status", "title", "retry"),
            (
                (_link(r), str(r.status), r.title, _retry_word(r))
                for r in rows
                if r.code not in START | RESERVED
            ),
        ),
        "## A broker that does not start",
        "It says why in one sentence on standard error, and ends with exit code 1.",
        table(("code", "title"), ((_link(r), r.title) for r in rows if r.code in START)),
        "## Reserved",
        "Nothing answers with these in this version.",
        table(("code", "title"), ((_link(r), r.title) for r in rows if r.code in RESERVED)),
    )


def _one(row: ErrorCode) -> str:
    links = "\n".join(f"* [{title}]({path})" for title, path in SEE_ALSO.get(row.code, ()))
    return page(
        row.code,
        f"## What happened\n\n{row.title}. {_where(row)}",
        f"## Why\n\n{row.cause}",
        f"## What to do\n\n{row.advice}",
        f"## Retry\n\n{_retry_sentence(row)}",
        f"## See also\n\n{links}\n* [All errors](../reference/errors.md)"
        if links
        else "[All errors](../reference/errors.md)",
    )


def _link(row: ErrorCode) -> str:
    return f"[`{row.code}`](../errors/{row.code}.md)"


def _where(row: ErrorCode) -> str:
    if row.code in START:
        return "The broker said so on standard error and did not start (exit code 1)."
    if row.code in RESERVED:
        return "This code is reserved: nothing answers with it in this version."
    return f"The request was refused (HTTP status {row.status})."


def _retry_word(row: ErrorCode) -> str:
    if not row.retryable:
        return "no"
    return "yes" if row.retry_after_ms is None else f"after {duration_ms(row.retry_after_ms)}"


def _retry_sentence(row: ErrorCode) -> str:
    if row.code in START:
        return "Starting again without a change ends in the same way."
    if not row.retryable:
        return "The same request will be refused again. Change something first."
    wait = (
        "a moment"
        if row.retry_after_ms is None
        else f"as long as `Retry-After` says (usually {duration_ms(row.retry_after_ms)})"
    )
    return f"The same request may succeed later. Wait {wait}, then send it again, with the same id."
