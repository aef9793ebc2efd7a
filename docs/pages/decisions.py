"""The index of the decisions in `docs/adr/`, by number."""

from pathlib import Path

from pages.markdown import page

ADR = Path(__file__).resolve().parent.parent / "adr"


def pages() -> dict[str, str]:
    lines = (
        f"* [{_title(path)}]({path.name})" for path in sorted(ADR.glob("[0-9][0-9][0-9][0-9]-*.md"))
    )
    return {
        "adr/README.md": page(
            "Decisions",
            "One page per decision: context, decision, consequences, alternatives. A decision is\n"
            "not edited later; another one supersedes it. Numbers have gaps.",
            "\n".join(lines),
        )
    }


def _title(path: Path) -> str:
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
