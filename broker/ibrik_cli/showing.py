"""How resources of all kinds are shown: lists, one in full, what became of a change."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ibrik_cli.manifests import Resource, display_name
from ibrik_cli.options import Output
from ibrik_cli.output import emit, print_json, print_yaml


class Listing(NamedTuple):
    """Documents, and the table that shows them."""

    documents: Sequence[Mapping[str, Any]]
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    empty: str = ""
    """What is said when there is none: how to make one."""


def print_listing(listing: Listing, output: Output, *, is_single: bool = False) -> None:
    emit(
        listing.documents,
        output,
        columns=listing.columns,
        rows=listing.rows,
        empty=listing.empty,
        is_single=is_single,
    )


def print_listings(listings: Sequence[Listing], output: Output) -> None:
    """Several kinds: a table each, or all documents in one list."""
    if len(listings) == 1:
        print_listing(listings[0], output)
        return
    if output is not Output.TABLE:
        every = [document for listing in listings for document in listing.documents]
        print_listing(Listing(every, (), ()), output)
        return
    for index, listing in enumerate(listings):
        sys.stdout.write("\n" if index else "")
        print_listing(listing, output)


def print_document(document: Any, output: Output, lines: Iterable[str]) -> None:
    """A document as JSON or YAML, or these lines of text."""
    match output:
        case Output.JSON:
            print_json(document)
        case Output.YAML:
            print_yaml(document)
        case Output.TABLE:
            for line in lines:
                sys.stdout.write(f"{line}\n")


def print_change(resource: Resource, verb: str, output: Output) -> None:
    """What became of one resource: `channel.ibrik.dev/billing created`."""
    print_document(resource, output, [f"{display_name(resource)} {verb}"])


def resource_lines(
    resource: Resource, name: str, *, id_key: str, status: Iterable[str]
) -> list[str]:
    """One resource in full: who it is, its spec a line a leaf, `status`, its conditions."""
    metadata, observed = resource["metadata"], resource.get("status") or {}
    heads = (
        ("Name", name),
        ("Namespace", metadata.get("namespace")),
        ("Created", metadata.get("creationTimestamp")),
        ("Id", observed.get(id_key)),
    )
    lines = [f"{label + ':':<12}{text}" for label, text in heads if text]
    lines += ["Spec:", *(f"  {line}" for line in flat_lines(resource.get("spec", {})))]
    if shown := [f"  {line}" for line in status]:
        lines += ["Status:", *shown]
    for condition in observed.get("conditions", []):
        words = " ".join((condition["type"], condition["status"], condition["reason"]))
        message = condition.get("message")
        lines.append(f"{words}: {message}" if message else words)
    return lines


def status_lines(resource: Resource, *left_out: str) -> list[str]:
    """The status, a line a leaf, without what is shown elsewhere."""
    status = resource.get("status") or {}
    hidden = ("conditions", "observedGeneration", *left_out)
    return flat_lines({k: v for k, v in status.items() if k not in hidden and v is not None})


def flat_lines(content: Any, prefix: str = "") -> list[str]:
    """`retention.time: 7d`: one line a leaf, which a person can search."""
    if isinstance(content, dict):
        lines = []
        for key, value in content.items():
            lines += flat_lines(value, f"{prefix}.{key}" if prefix else str(key))
        return lines
    if isinstance(content, bool):
        content = str(content).lower()
    return [f"{prefix}: {content}"]


def fault_of(resource: Resource) -> str | None:
    """The reason why the resource is not ready; None when it is."""
    for condition in (resource.get("status") or {}).get("conditions", []):
        if condition["type"] == "Ready":
            return None if condition["status"] == "True" else str(condition["reason"])
    return None
