"""Write the reference pages from the code; with --check, only compare and fail on a difference.

Called by `make generate` and, with --check, by `make check`. The pages are made by the modules in
`docs/pages/`; this file compares and writes. The folders `errors/` and `reference/` hold nothing
else: a page there that nobody makes any more is removed, and --check reports it.
"""

import argparse
import difflib
import sys
from collections.abc import Mapping
from pathlib import Path, PurePath

from pages import cli, decisions, errors, metrics, openapi, settings, topic

DOCS = Path(__file__).resolve().parent
GENERATED = ("adr/README.md", "errors/*", "reference/*")
MAKERS = (cli, decisions, errors, metrics, openapi, settings, topic)
SHOWN_DIFF_LINES = 12


def make_pages() -> dict[str, str]:
    """All generated pages: path under `docs/` → content."""
    pages: dict[str, str] = {}
    for maker in MAKERS:
        pages |= maker.pages()
    assert all(any(PurePath(path).match(pattern) for pattern in GENERATED) for path in pages)
    return pages


def read_pages(docs: Path) -> dict[str, str]:
    """What is on the disk now in the generated folders."""
    return {
        path.relative_to(docs).as_posix(): path.read_text(encoding="utf-8")
        for pattern in GENERATED
        for path in sorted(docs.glob(pattern))
    }


def summarize(expected: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """What differs, page by page, with the first lines of each difference."""
    lines: list[str] = []
    for path in sorted(expected.keys() | found.keys()):
        if path not in found:
            lines.append(f"missing: docs/{path}")
        elif path not in expected:
            lines.append(f"made by nobody: docs/{path}")
        elif expected[path] != found[path]:
            lines.append(f"differs: docs/{path}")
            diff = difflib.unified_diff(
                found[path].splitlines(), expected[path].splitlines(), n=0, lineterm=""
            )
            lines += [f"    {line}" for line in list(diff)[2:SHOWN_DIFF_LINES]]
    return lines


def write(docs: Path, expected: Mapping[str, str], found: Mapping[str, str]) -> None:
    for path in found.keys() - expected.keys():
        (docs / path).unlink()
    for path, content in expected.items():
        if found.get(path) != content:
            (docs / path).parent.mkdir(parents=True, exist_ok=True)
            (docs / path).write_text(content, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the reference pages from the code.")
    parser.add_argument("--check", action="store_true", help="compare only; fail on a difference")
    parser.add_argument("--docs", type=Path, default=DOCS, help="the folder, for tests")
    options = parser.parse_args()
    expected, found = make_pages(), read_pages(options.docs)
    changes = summarize(expected, found)
    if options.check and changes:
        sys.stderr.write("\n".join((*changes, "Run: make generate", "")))
        return 1
    if not options.check:
        write(options.docs, expected, found)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
