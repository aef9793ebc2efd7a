"""`ibrik quality run`: what is wrong or odd in the records of a data folder."""

import typer

from ibrik_cli.options import DataFolder, JobOutput, OnlyTopics, ReportOutput, examples

app = typer.Typer(help="What is wrong or odd in the log.", no_args_is_help=True)


@app.callback()
def quality() -> None:
    """Keeps `run` a command of its own, while it is the only one."""


@app.command(epilog=examples("ibrik quality run ./data", "ibrik quality run ./data -t orders"))
def run(data: DataFolder, topic: OnlyTopics = None, output: ReportOutput = JobOutput.TABLE) -> int:
    """Look for damage, gaps and times that go back in sealed records; count nulls and sizes.

    A broker may run on the folder meanwhile. Exit 1 when something is wrong.
    """
    from ibrik_cli.jobs import run_job, topic_arguments

    return run_job("quality", data, [*topic_arguments(topic), "--output", output])
