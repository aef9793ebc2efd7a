"""Write what is made from the code; with --check, only compare and fail on a difference.

Called by `make generate` and, with --check, by `make check`. The pages of the documentation, the
CustomResourceDefinitions and their copy in the chart are made by the modules in `docs/pages/`; this
file compares and writes. The folders `docs/errors/` and `docs/reference/` and the definitions hold
nothing else: a file there that nobody makes any more is removed, and --check reports it.
"""

import argparse
import difflib
import sys
from collections.abc import Mapping
from pathlib import Path, PurePath

from pages import (
    chart,
    cli,
    conditions,
    decisions,
    definitions,
    errors,
    metrics,
    openapi,
    resources,
    settings,
    topic,
)

ROOT = Path(__file__).resolve().parent.parent
GENERATED = (
    "crds/*.yaml",
    "docs/adr/README.md",
    "docs/errors/*",
    "docs/reference/*",
    "helm/ibrik/files/crds/*.yaml",
    "helm/ibrik/values.schema.json",
)
MAKERS = {
    "docs": (
        chart,
        cli,
        conditions,
        decisions,
        errors,
        metrics,
        openapi,
        resources,
        settings,
        topic,
    ),
    "crds": (definitions,),
}
SHOWN_DIFF_LINES = 12


def make_pages() -> dict[str, str]:
    """All generated files: path from the root of the repository → content."""
    pages = {
        f"{folder}/{path}": content
        for folder, makers in MAKERS.items()
        for maker in makers
        for path, content in maker.pages().items()
    }
    pages |= {f"helm/ibrik/{path}": content for path, content in chart.chart_files().items()}
    assert all(any(PurePath(path).match(pattern) for pattern in GENERATED) for path in pages)
    return pages


def read_pages(root: Path) -> dict[str, str]:
    """What is on the disk now in the generated places."""
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for pattern in GENERATED
        for path in sorted(root.glob(pattern))
    }


def summarize(expected: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """What differs, page by page, with the first lines of each difference."""
    lines: list[str] = []
    for path in sorted(expected.keys() | found.keys()):
        if path not in found:
            lines.append(f"missing: {path}")
        elif path not in expected:
            lines.append(f"made by nobody: {path}")
        elif expected[path] != found[path]:
            lines.append(f"differs: {path}")
            diff = difflib.unified_diff(
                found[path].splitlines(), expected[path].splitlines(), n=0, lineterm=""
            )
            lines += [f"    {line}" for line in list(diff)[2:SHOWN_DIFF_LINES]]
    return lines


def write(root: Path, expected: Mapping[str, str], found: Mapping[str, str]) -> None:
    for path in found.keys() - expected.keys():
        (root / path).unlink()
    for path, content in expected.items():
        if found.get(path) != content:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Write what is made from the code.")
    parser.add_argument("--check", action="store_true", help="compare only; fail on a difference")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository, for tests")
    options = parser.parse_args()
    expected, found = make_pages(), read_pages(options.root)
    changes = summarize(expected, found)
    if options.check and changes:
        sys.stderr.write("\n".join((*changes, "Run: make generate", "")))
        return 1
    if not options.check:
        write(options.root, expected, found)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
