"""The documentation is held to the code: names have sections, links lead on, commands work."""

import json
import re
import shutil
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import yaml
from typer.core import TyperCommand, TyperGroup

from ibrik_api.definitions import KINDS
from ibrik_api.errors import CODES
from ibrik_api.resources.topic import Topic
from ibrik_api.resources.topic_rules import check_spec
from ibrik_broker.settings.source import (
    CLIENT_VARIABLES,
    SECRET_PREFIX,
    known_names,
    load_settings,
    variable_of,
)
from ibrik_broker.telemetry.metrics import METRICS
from ibrik_cli.main import app
from ibrik_operator import settings as operator
from ibrik_operator.conditions.reasons import REASONS
from ibrik_operator.metrics import REGISTRY as OPERATORS
from tests.support.broker import running_broker
from tests.support.transcripts import Block, Reader, is_as_shown, runnable_blocks, steps

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(
    [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("examples/*/README.md")],
    key=lambda page: page.relative_to(ROOT).as_posix(),
)
RUNNABLE = [page for page in PAGES if runnable_blocks(page.read_text(encoding="utf-8"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
HOST = re.compile(r"\b(?:[a-z0-9-]+\.)+(?:com|dev|io|net|org)\b")
# Hosts that prose may name. Registries and mirrors are not among them: which one a machine uses is
# its own affair.
HOSTS = {"cloudevents.io", "ibrik.dev", "topic.ibrik.dev", "kafka.apache.org", "msgpack.org"}
HOSTS |= {"kubernetes.io"}  # It begins the names of labels.
HOSTS |= {f"{kind.plural}.ibrik.dev" for kind in KINDS}
# Shown in order to be refused.
MISTYPED = {"IBRIK_LOG__SEGMENT_BYTE"}
# Files whose names look like settings.
FILES = {"metadata.db"}
ADR_PARTS = ("**Context.**", "**Decision.**", "**Consequences.**", "**Alternatives.**")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    return LINK.findall(CODE.sub("", prose(page)))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(prose(page)))
    return {heading.strip().replace(" ", "-") for heading in kept}


def commands(command: TyperCommand | TyperGroup, path: str) -> Iterator[str]:
    yield path
    if isinstance(command, TyperGroup):
        for name, child in command.commands.items():
            if not child.hidden:
                yield from commands(child, f"{path} {name}")


def test_every_error_code_has_a_page_and_a_row() -> None:
    index = (DOCS / "reference/errors.md").read_text(encoding="utf-8")
    assert [code for code in CODES if not (DOCS / f"errors/{code}.md").is_file()] == []
    assert [code for code in CODES if f"| [`{code}`]" not in index] == []


def test_what_the_errors_page_calls_reserved_is_answered_by_nothing() -> None:
    page = (DOCS / "reference/errors.md").read_text(encoding="utf-8")
    at_start, reserved = page.partition("## A broker that does not start")[2].split("## Reserved")
    sources = [p for p in ROOT.glob("*/ibrik_*/**/*.py") if p.name != "errors.py"]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    unused = {code for code in CODES if f'"{code}"' not in text}
    assert unused == {code for code in CODES if f"`{code}`" in reserved} | {
        code for code in unused if f"`{code}`" in at_start
    }


def test_every_setting_has_a_section() -> None:
    page = (DOCS / "reference/settings.md").read_text(encoding="utf-8")
    assert [name for name in known_names() if f"### `{name}`\n" not in page] == []


def test_every_setting_of_the_operator_has_a_section() -> None:
    page = (DOCS / "reference/operator-settings.md").read_text(encoding="utf-8")
    assert [name for name in operator.names() if f"### `{name}`\n" not in page] == []
    assert [one for one in operator.variables() if f"`{one}` · " not in page] == []


def test_the_guide_to_trouble_leads_to_every_reason() -> None:
    linked = links(DOCS / "guides/troubleshooting.md")
    missing = [one for one in REASONS if f"../reference/conditions.md#{one.lower()}" not in linked]
    assert missing == []


def test_every_metric_has_a_row() -> None:
    page = (DOCS / "reference/metrics.md").read_text(encoding="utf-8")
    assert [metric.name for metric in METRICS if f"| `{metric.name}` |" not in page] == []


def test_every_command_has_a_section() -> None:
    page = (DOCS / "reference/cli.md").read_text(encoding="utf-8")
    paths = commands(typer.main.get_command(app), "ibrik")
    assert [path for path in paths if f"## `{path}`\n" not in page] == []


def test_a_page_that_differs_from_the_code_is_noticed(tmp_path: Path) -> None:
    copy = tmp_path / "docs"
    shutil.copytree(DOCS, copy)
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds/topics.yaml").write_text("kind: Topic\n", encoding="utf-8")
    (copy / "reference/settings.md").write_text("# Settings\n", encoding="utf-8")
    (copy / "errors/no-such-code.md").write_text("# no-such-code\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, DOCS / "generate.py", "--check", "--root", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "differs: docs/reference/settings.md" in done.stderr
    assert "differs: crds/topics.yaml" in done.stderr
    assert "missing: crds/channels.yaml" in done.stderr
    assert "made by nobody: docs/errors/no-such-code.md" in done.stderr


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = (page.parent / path).resolve() if path else page
        is_there = target.exists() and (not anchor or anchor in anchors(target))
        broken += [] if is_there else [link]
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_has_one_title(page: Path) -> None:
    assert len(re.findall(r"^# ", prose(page), re.MULTILINE)) == 1


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_page_names_a_registry(page: Path) -> None:
    assert set(HOST.findall(page.read_text(encoding="utf-8"))) - HOSTS == set()


def operators_metrics() -> set[str]:
    """A counter is shown with `_total` and declared without."""
    families = list(OPERATORS.collect())
    return {one.name + ("_total" if one.type == "counter" else "") for one in families}


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent.name != "adr"], ids=name_of)
def test_a_page_names_only_what_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    metrics = {metric.name for metric in METRICS} | operators_metrics()
    packages = {path.name for path in ROOT.glob("*/ibrik_*")}
    known = {variable_of(name) for name in known_names()} | {*operator.variables()}
    known |= CLIENT_VARIABLES | MISTYPED
    groups = {name.split(".")[0] for name in known_names() if "." in name}
    dotted = set(re.findall(rf"`((?:{'|'.join(groups)})\.[a-z_]+)", text))
    if page.name in {
        "resources.md",
        "topic.md",
    }:  # there they are fields of the schema that made the page
        dotted = set()
    assert dotted - set(known_names()) - FILES == set()
    words = set(re.findall(r"\bibrik_[a-z_]+", text)) - metrics - packages
    variables = set(re.findall(r"\bIBRIK_[A-Z_]+", text)) - known
    assert words | {name for name in variables if not name.startswith(SECRET_PREFIX)} == set()


def test_decisions_have_their_four_parts_and_a_number_of_their_own() -> None:
    decisions = [page for page in PAGES if page.parent == DOCS / "adr" and page.stem != "README"]
    lacking = {
        name_of(page): [part for part in ADR_PARTS if part not in page.read_text(encoding="utf-8")]
        for page in decisions
    }
    assert {name: parts for name, parts in lacking.items() if parts} == {}
    numbers = Counter(page.name[:4] for page in decisions)
    assert [number for number, count in numbers.items() if count > 1] == []


def test_every_word_of_the_glossary_stands_there_once_and_in_order() -> None:
    words = re.findall(r"^\| \*\*(.+?)\*\*", prose(DOCS / "glossary.md"), re.MULTILINE)
    assert words == sorted(set(words))


def test_an_ellipsis_in_a_transcript_stands_for_anything() -> None:
    assert is_as_shown('{…"offset":0…}', '{"topic":"a","offset":0,"id":"x"}')
    assert is_as_shown("first\n…\nlast", "first\none\ntwo\nlast")
    assert is_as_shown("first\n…\nlast", "first\nlast")
    assert is_as_shown("a  b", "a     b\r\n")
    assert not is_as_shown("OK 1", "OK 12")
    assert not is_as_shown("OK 1", "")


def test_a_transcript_is_commands_with_what_they_print() -> None:
    page = "text\n<!-- run -->\n```console\n$ one\n1\n$ two\n```\n```console\n$ not run\n```\n"
    [block] = runnable_blocks(page)
    assert [(step.command, step.expected) for step in steps(block)] == [("one", "1"), ("two", "")]


def test_the_pages_for_newcomers_are_run() -> None:
    run = {name_of(page) for page in RUNNABLE}
    assert {"README.md", "docs/guides/first-topic.md", "docs/guides/tcp.md"} <= run


@pytest.mark.parametrize("file", sorted(ROOT.glob("examples/*/config.*")), ids=name_of)
def test_the_settings_of_an_example_are_taken(file: Path) -> None:
    assert load_settings({"config": str(file)}).config == file


@pytest.mark.parametrize("file", sorted(ROOT.glob("examples/*/topic.yaml")), ids=name_of)
def test_the_topic_of_an_example_is_served(file: Path) -> None:
    topic = Topic.parse(yaml.safe_load(file.read_text(encoding="utf-8")))
    check_spec(topic.spec)


@pytest.mark.slow
def test_both_doors_serve_the_documents_that_are_committed(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        for url, name in ((broker.http_url, "openapi"), (broker.admin_url, "openapi-admin")):
            with urllib.request.urlopen(f"{url}/openapi.json") as answer:
                served = json.load(answer)
            committed = (DOCS / f"reference/{name}.json").read_text(encoding="utf-8")
            assert served == json.loads(committed)


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNABLE, ids=name_of)
def test_a_page_can_be_followed_to_the_letter(page: Path, tmp_path: Path) -> None:
    blocks: list[Block] = runnable_blocks(page.read_text(encoding="utf-8"))
    with running_broker(tmp_path / "broker", IBRIK_DEV="true") as broker:
        home = tmp_path / "home"
        home.mkdir()
        reader = Reader(home, broker)
        for block in blocks:
            reader.follow(block)
