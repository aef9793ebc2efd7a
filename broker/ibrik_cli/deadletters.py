"""What the commands show of dead letters; used by `deadletter`."""

from collections.abc import Sequence
from typing import Any

from ibrik_cli.manifests import Resource
from ibrik_cli.output import count_text, messages_text
from ibrik_cli.showing import Listing

COLUMNS = ("LETTER", "MESSAGE", "STATE", "REASON", "ATTEMPTS", "LAST ATTEMPT", "VALUE")
NOTHING = "-"
SHOWN_CHARACTERS = 60


def letter_listing(letters: Sequence[Resource], subscription: str) -> Listing:
    return Listing(
        letters,
        COLUMNS,
        [letter_row(letter) for letter in letters],
        empty=f"no dead letters of {subscription}",
    )


def letter_row(letter: Resource) -> list[str]:
    status = f" {letter['status']}" if letter.get("status") else ""
    return [
        f"{letter['partition']}/{letter['offset']}",
        place_text(letter["origin"]),
        str(letter["state"]),
        f"{letter['reason']}{status}",
        count_text(letter["attempts"]),
        str(letter.get("last_attempt") or NOTHING),
        value_text(letter),
    ]


def place_text(origin: Resource) -> str:
    return f"{origin['topic']}/{origin['partition']}/{origin['offset']}"


def value_text(letter: Resource) -> str:
    """The begin of the payload, on one line."""
    import json

    from ibrik_cli.records import readable

    if "value_base64" in letter and "value" not in letter:
        text = f"base64:{letter['value_base64']}"
    else:
        value: Any = letter.get("value")
        text = readable(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def redrive_lines(result: Resource, *, is_dry: bool) -> list[str]:
    """`12 messages redriven`, and why others were not."""
    verb = "would be redriven" if is_dry else "redriven"
    lines = [f"{messages_text(result['redriven'])} {verb}"]
    if result.get("waiting"):
        lines.append(f"{messages_text(result['waiting'])} on the way already")
    if result.get("expired"):
        lines.append(
            f"{messages_text(result['expired'])} gone from the topic; the dead letters stay"
        )
    return lines


def added(total: Resource | None, result: Resource) -> Resource:
    """The counts of several requests together."""
    if total is None:
        return result
    counts = {n: total[n] + result[n] for n in ("matched", "redriven", "waiting", "expired")}
    return result | counts
