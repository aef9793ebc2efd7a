"""The few shapes of Markdown that the generated pages share."""

from collections.abc import Iterable, Sequence

NOTICE = "<!-- Written by docs/generate.py from the code. Do not edit; run: make generate -->\n"


def page(title: str, *parts: str) -> str:
    """A whole page: the notice, one title, parts with an empty line between them."""
    blocks = (f"# {title}", *(part.strip("\n") for part in parts if part))
    return NOTICE + "\n\n".join(blocks) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
    return "\n".join(lines)


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def one_line(text: str) -> str:
    return " ".join(text.split())


def size(count: int) -> str:
    """A number of bytes as people write it: 268435456 is 256 MiB. Odd numbers stay as they are."""
    for unit, factor in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count and count % factor == 0:
            return f"{count // factor} {unit}"
    return f"{count} bytes"


def duration_ms(count: int) -> str:
    """Milliseconds as people write them: 600000 is 10 min."""
    for unit, factor in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if count and count % factor == 0:
            return f"{count // factor} {unit}"
    return f"{count} ms"
