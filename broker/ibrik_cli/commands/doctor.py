"""`ibrik doctor`: what is wrong, in plain words, and what to do next."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ibrik_cli.failures import DONE, REFUSED, WRONG_USAGE, Failure
from ibrik_cli.options import DEFAULT_ADMIN, AdminAddress, Output, OutputOption, examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ibrik_cli.cluster import Cluster
    from ibrik_cli.doctor.finding import Finding, Seen

LOG_LINES_SHOWN = 5


def register(app: typer.Typer) -> None:
    app.command(
        epilog=examples(
            "ibrik doctor",
            "ibrik --context kind-e2e doctor --all-namespaces",
            "ibrik --context kind-e2e doctor --bundle ibrik.zip",
        )
    )(doctor)


def doctor(
    context: typer.Context,
    *,
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Every namespace of the cluster.")
    ] = False,
    bundle: Annotated[
        Path | None,
        typer.Option("--bundle", help="Write what was seen into this zip; no secrets are in it."),
    ] = None,
    output: OutputOption = Output.TABLE,
    admin: AdminAddress = DEFAULT_ADMIN,
) -> int:
    """Look at operator, pools, brokers and resources; say what is wrong and what to do next.

    At the cluster of --context or of your kubeconfig; at one broker with --admin, or when there is
    no kubeconfig. Exit 1 when something is wrong.
    """
    import asyncio

    from ibrik_cli.doctor.bundle import write_bundle
    from ibrik_cli.doctor.checks import BROKER_CHECKS, examine, is_well
    from ibrik_cli.doctor.looking import Looker, look_at_broker
    from ibrik_cli.output import say

    cluster = choose_cluster(context)
    if cluster is None and all_namespaces:
        raise Failure("--all-namespaces is for a cluster: name it with --context", WRONG_USAGE)
    if cluster is None:
        seen = asyncio.run(look_at_broker(admin))
        findings = examine(seen, BROKER_CHECKS)
        say(f"looked at {admin}")
    else:
        seen = asyncio.run(Looker(cluster, is_everywhere=all_namespaces).look())
        findings = examine(seen)
        say(f"looked at the cluster of {cluster.text}; a broker alone: ibrik doctor --admin URL")
    show(findings, seen, output)
    if bundle is not None:
        write_bundle(bundle, seen, findings)
        say(f"written to {bundle}; look through it before you pass it on")
    return DONE if is_well(findings) else REFUSED


def choose_cluster(context: typer.Context) -> "Cluster | None":
    """The one that is named, or else that of the kubeconfig, unless a broker is named."""
    from ibrik_cli.cluster import Cluster, chosen

    named = chosen()
    source = context.get_parameter_source("admin")
    is_broker_named = source is not None and source.name != "DEFAULT"
    if named is not None or is_broker_named:
        return named
    file = os.environ.get("KUBECONFIG", "").partition(os.pathsep)[0]
    return Cluster() if Path(file or "~/.kube/config").expanduser().is_file() else None


def show(findings: "Sequence[Finding]", seen: "Seen", output: Output) -> None:
    """What is wrong first; what is fine in a few words at the end."""
    from ibrik_cli.doctor.finding import MARKS
    from ibrik_cli.output import print_json, print_yaml
    from ibrik_cli.records import readable

    if output is not Output.TABLE:
        document = {
            "version": seen.version,
            "well": all(finding.level != "problem" for finding in findings),
            "findings": [finding.document() for finding in findings],
        }
        (print_json if output is Output.JSON else print_yaml)(document)
        return
    for level in ("problem", "warning"):
        for finding in (f for f in findings if f.level == level):
            sys.stdout.write(f"{MARKS[level]} {readable(finding.text.encode())}\n")
            sys.stdout.write(f"  {finding.remedy}\n" if finding.remedy else "")
    for pod, lines in seen.logs.items():
        if lines:
            sys.stdout.write(f"last lines of {pod}:\n")
            sys.stdout.writelines(
                f"  {readable(line.encode())}\n" for line in lines[-LOG_LINES_SHOWN:]
            )
    for finding in (f for f in findings if f.level == "fine"):
        remedy = f". {finding.remedy}" if finding.remedy else ""
        sys.stdout.write(f"{MARKS['fine']} {readable(finding.text.encode())}{remedy}\n")
