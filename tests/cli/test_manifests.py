"""Resources from files: documents, lists, folders; what is no resource is named with its file."""

from pathlib import Path

import pytest

from ibrik_cli.failures import Failure
from ibrik_cli.manifests import display_name, load_resources, parse_resources, topic_name_of

TOPIC = "apiVersion: ibrik.dev/v1beta1\nkind: Topic\nmetadata: {name: %s}\n"


def test_a_file_may_hold_several_documents(tmp_path: Path) -> None:
    path = tmp_path / "topics.yaml"
    path.write_text("---\n" + TOPIC % "a" + "---\n\n---\n" + TOPIC % "b")
    assert [display_name(r) for r in load_resources([str(path)])] == [
        "topic.ibrik.dev/a",
        "topic.ibrik.dev/b",
    ]


def test_a_folder_is_read_by_name(tmp_path: Path) -> None:
    (tmp_path / "2.yaml").write_text(TOPIC % "second")
    (tmp_path / "1.json").write_text(
        '{"apiVersion":"ibrik.dev/v1beta1","kind":"Topic","metadata":{"name":"first"}}'
    )
    (tmp_path / "notes.txt").write_text("not for us")
    assert [r["metadata"]["name"] for r in load_resources([str(tmp_path)])] == ["first", "second"]


def test_a_list_is_its_items() -> None:
    content = (
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: x, kind: Topic, metadata: {name: a}}"
    )
    assert [r["metadata"]["name"] for r in parse_resources("x", content)] == ["a"]


def test_the_brokers_name_may_differ() -> None:
    resource = {"metadata": {"name": "a"}, "spec": {"topicName": "b"}}
    assert topic_name_of(resource) == "b"
    assert topic_name_of({"metadata": {"name": "a"}}) == "a"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("a: [", "expected"),
        ("- 1", "expected a resource"),
        ("kind: Topic", "without apiVersion"),
        ("apiVersion: x", "without kind"),
        ("apiVersion: x\nkind: Topic", "Topic without metadata.name"),
        ("apiVersion: x\nkind: Topic\nmetadata: {name: 7}", "Topic without metadata.name"),
    ],
)
def test_what_is_no_resource_is_refused_by_file(content: str, fault: str) -> None:
    with pytest.raises(Failure, match=f"bad.yaml: .*{fault}"):
        parse_resources("bad.yaml", content)


def test_nothing_found_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("---\n")
    with pytest.raises(Failure, match="no resource"):
        load_resources([str(tmp_path / "empty.yaml")])
    (tmp_path / "folder").mkdir()
    with pytest.raises(Failure, match="no file that ends in"):
        load_resources([str(tmp_path / "folder")])
