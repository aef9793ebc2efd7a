"""Resources from files: YAML with several documents, JSON, folders, standard input."""

import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from ibrik_cli.failures import Failure

ENDINGS = (".yaml", ".yml", ".json")
MAX_FILE_BYTES = 16 * 1024 * 1024
Resource = dict[str, Any]


class Place(NamedTuple):
    """Where a resource is at a broker."""

    name: str
    namespace: str | None = None
    """None: that of what is made over HTTP."""


def load_resources(sources: Sequence[str]) -> list[Resource]:
    """Every resource in these files, folders (by name, not below) and `-`, in order."""
    found: list[Resource] = []
    for source in sources:
        for name, content in _texts(source):
            found += parse_resources(name, content)
    if not found:
        raise Failure(f"no resource in {', '.join(sources)}")
    return found


def parse_resources(name: str, content: str) -> list[Resource]:
    import yaml

    try:
        documents = [d for d in yaml.safe_load_all(content) if d is not None]
    except yaml.YAMLError as error:
        raise Failure(f"{name}: {' '.join(str(error).split())}") from error
    resources: list[Resource] = []
    for document in documents:
        is_list = isinstance(document, dict) and document.get("kind") == "List"
        for resource in document.get("items", []) if is_list else [document]:
            _check(name, resource)
            resources.append(resource)
    return resources


def display_name(resource: Resource) -> str:
    """As kubectl writes it: `topic.ibrik.dev/flights`."""
    metadata = resource.get("metadata") or {}
    return f"{str(resource.get('kind', '')).lower()}.ibrik.dev/{metadata.get('name', '')}"


def place_of(resource: Resource) -> Place:
    """How the broker finds the resource again: by this name, in this namespace."""
    is_topic = resource.get("kind") == "Topic"
    name = topic_name_of(resource) if is_topic else str(resource["metadata"]["name"])
    return Place(name, None if is_topic else resource["metadata"].get("namespace"))


def topic_name_of(resource: Resource) -> str:
    """The name that the broker knows a Topic resource by."""
    spec = resource.get("spec") or {}
    return str(spec.get("topicName") or resource["metadata"]["name"])


def deletion_of(resource: Resource) -> Resource:
    """The same resource with a wish to delete it, as Kubernetes marks one."""
    now = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="seconds")
    metadata = dict(resource["metadata"])
    # The generation is the broker's own answer here, not a newer wish.
    for key in ("generation", "resourceVersion", "creationTimestamp"):
        metadata.pop(key, None)
    metadata["deletionTimestamp"] = now.replace("+00:00", "Z")
    return {k: v for k, v in resource.items() if k != "status"} | {"metadata": metadata}


def _texts(source: str) -> Iterator[tuple[str, str]]:
    if source == "-":
        yield "standard input", sys.stdin.read()
        return
    path = Path(source)
    if not path.exists():
        raise Failure(f"{source}: no such file or folder")
    paths = sorted(p for p in path.iterdir() if p.suffix in ENDINGS) if path.is_dir() else [path]
    if not paths:
        raise Failure(f"{source}: no file that ends in {', '.join(ENDINGS)}")
    for each in paths:
        if each.stat().st_size > MAX_FILE_BYTES:
            raise Failure(f"{each}: larger than {MAX_FILE_BYTES // 2**20} MiB")
        try:
            yield str(each), each.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise Failure(f"{each}: not UTF-8 text") from error


def _check(name: str, resource: Any) -> None:
    """Only what is needed to name the resource; the broker judges the rest."""
    if not isinstance(resource, dict):
        raise Failure(f"{name}: expected a resource with apiVersion, kind and metadata")
    for field in ("apiVersion", "kind"):
        if not isinstance(resource.get(field), str):
            raise Failure(f"{name}: a resource without {field}")
    metadata = resource.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise Failure(f"{name}: a {resource['kind']} without metadata.name")
