"""Options that several commands share, each declared once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

DEFAULT_SERVER = "http://127.0.0.1:8080"
DEFAULT_ADMIN = "http://127.0.0.1:8081"


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class JobOutput(StrEnum):
    """How data jobs print their report."""

    TABLE = "table"
    JSON = "json"


Server = Annotated[
    str,
    typer.Option("--server", envvar="IBRIK_SERVER", help="Address of the broker's HTTP door."),
]
AdminAddress = Annotated[
    str,
    typer.Option("--admin", envvar="IBRIK_ADMIN_URL", help="Address of the broker's admin door."),
]
AdminTokenFile = Annotated[
    Path | None,
    typer.Option(
        "--admin-token-file",
        envvar="IBRIK_ADMIN_TOKEN_FILE",
        help="File whose first line is the admin token.",
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        envvar="IBRIK_TOKEN_FILE",
        help="File whose first line is the token; IBRIK_TOKEN holds one as well.",
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Namespace, when it is not that of the HTTP door."),
]
OutputOption = Annotated[
    Output, typer.Option("--output", "-o", envvar="IBRIK_OUTPUT", help="How to print the result.")
]
Files = Annotated[
    list[str],
    typer.Option(
        "--filename", "-f", help="YAML or JSON file, folder of them, or - for standard input."
    ),
]
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")]
ChannelName = Annotated[str, typer.Argument(metavar="CHANNEL", help="Name of the channel.")]
SubscriptionName = Annotated[
    str, typer.Argument(metavar="SUBSCRIPTION", help="Name of the subscription.")
]
DataFolder = Annotated[
    Path, typer.Argument(metavar="DATA", help="Data folder of a broker; it is only read.")
]
OnlyTopics = Annotated[
    list[str] | None, typer.Option("--topic", "-t", help="Only this topic; may repeat.")
]
ReportOutput = Annotated[JobOutput, typer.Option("--output", "-o", help="How to print the report.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it; there is no way back.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")]


def examples(*lines: str) -> str:
    """The examples under a command's help; one a line."""
    return "Examples:\n\n" + "\n\n".join(f"  {line}" for line in lines)
