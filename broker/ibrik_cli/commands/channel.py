"""`ibrik channel create | ls | describe | delete | test | pause | resume | attempts | stats`."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ibrik_cli.failures import REFUSED
from ibrik_cli.options import (
    DEFAULT_SERVER,
    ChannelName,
    Namespace,
    Output,
    OutputOption,
    Server,
    TokenFile,
    examples,
)

if TYPE_CHECKING:
    from ibrik_client import Client

app = typer.Typer(
    help="Create, test, pause and watch channels: named places to deliver to.",
    no_args_is_help=True,
)


@app.command(
    epilog=examples(
        "ibrik channel create billing --url http://127.0.0.1:9000/hook --signing-file billing",
        "ibrik channel create printer --tcp printer.lan:9100",
    )
)
def create(
    channel: ChannelName,
    *,
    url: Annotated[str | None, typer.Option("--url", help="HTTP endpoint.")] = None,
    method: Annotated[str | None, typer.Option(help="POST, PUT or PATCH; with --url.")] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="NAME=VALUE", help="Sent with each message; no secrets."),
    ] = None,
    tcp: Annotated[
        str | None, typer.Option("--tcp", metavar="HOST:PORT", help="Program that speaks TCP.")
    ] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="Topic of this broker.")] = None,
    signing_file: Annotated[
        str | None,
        typer.Option(help="Sign with the secrets in this file of the broker's credentials folder."),
    ] = None,
    signing_env: Annotated[
        str | None,
        typer.Option(help="Sign with this variable of the broker: IBRIK_SECRET_…"),
    ] = None,
    bearer_file: Annotated[
        str | None, typer.Option(help="Token to send: file in the broker's credentials folder.")
    ] = None,
    bearer_env: Annotated[
        str | None, typer.Option(help="Token to send: variable of the broker, IBRIK_SECRET_…")
    ] = None,
    timeout: Annotated[str | None, typer.Option(help="Time for one attempt: 15s")] = None,
    concurrency: Annotated[int | None, typer.Option(help="Messages on their way at once.")] = None,
    rate: Annotated[int | None, typer.Option(help="Messages a second at most.")] = None,
    output: OutputOption = Output.TABLE,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Create a channel to an HTTP endpoint, a TCP program or another topic."""
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_change
    from ibrik_cli.specs import given, only_one, secret_reference, tcp_destination
    from ibrik_cli.specs import http_destination as http

    only_one("the destination", url=url, tcp=tcp, topic=topic)
    bearer = secret_reference("bearer", bearer_file, bearer_env)
    spec = given(
        http=http(url, method, header or []) if url else None,
        tcp=tcp_destination(tcp) if tcp else None,
        topic={"name": topic} if topic else None,
        signing=secret_reference("signing", signing_file, signing_env),
        auth={"bearer": bearer} if bearer else None,
        timeout=timeout,
        limits=given(concurrency=concurrency, rate=rate),
    )
    created = run_with_client(
        server, lambda c: c.admin.create_channel(channel, spec), token_file=token_file
    )
    print_change(created, "created", output)


@app.command("ls", epilog=examples("ibrik channel ls", "ibrik channel ls --host 127.0.0.1 -o json"))
def list_(
    *,
    kind: Annotated[str | None, typer.Option(help="http, service, tcp or topic.")] = None,
    host: Annotated[str | None, typer.Option(help="Only those to this host.")] = None,
    namespace: Namespace = None,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> None:
    """List the channels with their circuits."""
    from ibrik_cli.channels import channel_listing
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_listing

    found = run_with_client(
        server, lambda c: c.admin.channels(kind=kind, host=host, namespace=namespace)
    )
    print_listing(channel_listing(found), output)


@app.command(
    epilog=examples("ibrik channel describe billing", "ibrik channel describe billing -o yaml")
)
def describe(
    channel: ChannelName,
    *,
    namespace: Namespace = None,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Show one channel: what it shall be, and what the broker observes."""
    from ibrik_cli.channels import describe as describe_channel
    from ibrik_cli.manifests import Place
    from ibrik_cli.session import run_with_client

    run_with_client(server, lambda c: describe_channel(c, Place(channel, namespace), output))


@app.command(
    epilog=examples("ibrik channel delete billing", "ibrik channel delete billing -n shop")
)
def delete(
    channel: ChannelName,
    *,
    namespace: Namespace = None,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Delete a channel that no subscription delivers to."""
    from ibrik_cli.session import run_with_client

    run_with_client(
        server,
        lambda c: c.admin.delete_channel(channel, namespace=namespace),
        token_file=token_file,
    )
    sys.stdout.write(f"channel.ibrik.dev/{channel} deleted\n")


@app.command(
    "test", epilog=examples("ibrik channel test billing", "ibrik channel test billing -o json")
)
def probe(
    channel: ChannelName,
    *,
    namespace: Namespace = None,
    output: OutputOption = Output.TABLE,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> int:
    """Send one signed test message (type ibrik.test); exit 1 when it is not delivered."""
    from ibrik_cli.channels import print_probe
    from ibrik_cli.session import run_with_client

    result = run_with_client(
        server, lambda c: c.admin.test_channel(channel, namespace=namespace), token_file=token_file
    )
    return 0 if print_probe(channel, result, output) else REFUSED


@app.command(epilog=examples("ibrik channel pause billing", "ibrik channel pause billing -n shop"))
def pause(
    channel: ChannelName,
    *,
    namespace: Namespace = None,
    output: OutputOption = Output.TABLE,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Hold deliveries back; the backlog stays."""
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_change

    changed = run_with_client(
        server, lambda c: c.admin.pause_channel(channel, namespace=namespace), token_file=token_file
    )
    print_change(changed, "paused", output)


@app.command(
    epilog=examples("ibrik channel resume billing", "ibrik channel resume billing -n shop")
)
def resume(
    channel: ChannelName,
    *,
    namespace: Namespace = None,
    output: OutputOption = Output.TABLE,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Go on, whatever stopped it: a pause, an open circuit, an endpoint that was gone."""
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_change

    changed = run_with_client(
        server,
        lambda c: c.admin.resume_channel(channel, namespace=namespace),
        token_file=token_file,
    )
    print_change(changed, "resumed", output)


@app.command(
    epilog=examples(
        "ibrik channel attempts billing", "ibrik channel attempts billing --status 503 --max 20"
    )
)
def attempts(
    channel: ChannelName,
    *,
    status: Annotated[int | None, typer.Option(help="Only those answered with it: 503")] = None,
    error: Annotated[str | None, typer.Option(help="Only those that ended so: timeout")] = None,
    since: Annotated[str | None, typer.Option(help="Only those since this time, RFC 3339.")] = None,
    max_rows: Annotated[int, typer.Option("--max", min=1, help="The newest so many.")] = 50,
    namespace: Namespace = None,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> None:
    """List attempts that failed, the newest first. What was delivered leaves no row."""
    from ibrik_cli.channels import attempt_listing
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_listing

    async def work(client: "Client") -> Any:
        return await client.admin.channel_attempts(
            channel, limit=max_rows, status=status, error=error, since=since, namespace=namespace
        )

    print_listing(attempt_listing(run_with_client(server, work)), output)


@app.command(epilog=examples("ibrik channel stats billing", "ibrik channel stats billing -o json"))
def stats(
    channel: ChannelName,
    *,
    namespace: Namespace = None,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Show how deliveries went since the broker started."""
    from ibrik_cli.channels import stats_listing
    from ibrik_cli.session import run_with_client
    from ibrik_cli.showing import print_listing

    found = run_with_client(server, lambda c: c.admin.channel_stats(channel, namespace=namespace))
    print_listing(stats_listing(found), output, is_single=True)
