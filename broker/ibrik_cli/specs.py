"""From options to specs: destinations, starts, places to seek to, retries. Pure.

Only what the options themselves leave open is judged here; the broker judges the rest.
"""

import json
from collections.abc import Sequence
from typing import Any

from ibrik_cli.failures import WRONG_USAGE, Failure

Spec = dict[str, Any]
ENDS = ("earliest", "latest")
LONGEST_DATE = len("2026-11-27")


def given(**wishes: Any) -> Spec:
    """Those that were said; what was not takes the broker's default."""
    return {name: value for name, value in wishes.items() if value not in (None, {}, [])}


def only_one(what: str, **choices: Any) -> str:
    """The name of the only choice that was made."""
    names = [name for name, value in choices.items() if value]
    if len(names) == 1:
        return names[0]
    options = ", ".join(f"--{name}" for name in choices)
    told = f"not {len(names)}" if names else "there is none"
    raise Failure(f"{what}: write one of {options}, {told}", WRONG_USAGE)


def http_destination(url: str, method: str | None, headers: Sequence[str]) -> Spec:
    return given(url=url, method=method, headers=parse_headers(headers))


def tcp_destination(text: str) -> Spec:
    """`host:port`, or `[address]:port` of IPv6."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise Failure(f"--tcp {text}: expected host:port", WRONG_USAGE)
    return {"host": host.removeprefix("[").removesuffix("]"), "port": int(port)}


def parse_headers(pairs: Sequence[str]) -> dict[str, str]:
    headers = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not name or not separator:
            raise Failure(f"--header {pair}: expected NAME=VALUE", WRONG_USAGE)
        headers[name] = value
    return headers


def secret_reference(option: str, file: str | None, env: str | None) -> Spec | None:
    """Where the broker finds a secret; None when neither was said."""
    if file and env:
        raise Failure(f"--{option}-file or --{option}-env, not both", WRONG_USAGE)
    if file:
        return {"secretRef": {"file": file}}
    return {"secretRef": {"env": env}} if env else None


def parse_start(text: str) -> Spec:
    """Where a subscription begins: an end of the log, an offset (or one a partition), a time."""
    if text in ENDS:
        return {"from": text}
    kind = "offset" if is_offsets(text) else "timestamp"
    return {"from": kind, "value": text}


def parse_place(text: str) -> Spec:
    """Where to seek to, as the broker is asked."""
    if text in ENDS:
        return {"from": text}
    if not is_offsets(text):
        return {"timestamp": text}
    offsets = [int(offset) for offset in text.split(",")]
    return {"offset": offsets[0]} if len(offsets) == 1 else {"offsets": offsets}


def parse_replay_place(text: str) -> str | Spec:
    """The same for a replay, which also begins behind a message that is named by its id."""
    if text in ENDS:
        return text
    is_id = ":" not in text and text.count("-") >= 2 and len(text) > LONGEST_DATE
    return {"id": text} if is_id else parse_place(text)


def letter_filter(reason: str | None, status: int | None, expression: str | None) -> str | None:
    """Which dead letters are meant, as CEL."""
    tests = [f"({expression})"] if expression else []
    if reason is not None:
        tests.append(f'headers["dlq-reason"] == {json.dumps(reason)}')
    if status is not None:
        tests.append(f'headers["dlq-status"] == "{status}"')
    return " && ".join(tests) or None


def is_offsets(text: str) -> bool:
    return text.replace(",", "").isdigit() and all(text.split(","))


def parse_retry(text: str) -> Spec:
    """A preset, or how many attempts."""
    return {"maxAttempts": int(text)} if text.isdigit() else {"preset": text}
