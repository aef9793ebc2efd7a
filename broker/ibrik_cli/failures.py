"""How the command line fails: one line, what to do next, an exit code; a trace with --debug."""

import sys
from collections.abc import Callable
from typing import Any

import typer

DONE, REFUSED, WRONG_USAGE = 0, 1, 2
SECRET_OPTIONS = ("--secret", "--token", "--admin-token", "--password", "--signing-secret")
"""No command has them: everybody on a machine can read the arguments of a process."""


class Failure(Exception):
    """A refusal of the command line itself; the text is the line that the person reads."""

    def __init__(self, text: str, exit_code: int = REFUSED) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def run_guarded(call: Callable[[], Any], *, debug: bool) -> int:
    """The exit code of `call`; what it raises becomes one line on standard error."""
    try:
        result = call()
    except typer.TyperException as error:
        if debug:
            raise
        _say(usage_line(error))
        return error.exit_code
    except typer.Abort:
        return REFUSED
    except BrokenPipeError:
        # The reader (`| head`) has enough. Python would complain once more when it flushes.
        sys.stdout = open_nowhere()
        return DONE
    except Exception as error:
        if debug:
            raise
        _say(failure_line(error))
        return error.exit_code if isinstance(error, Failure) else REFUSED
    return result if isinstance(result, int) else DONE


def open_nowhere() -> Any:
    import io

    return io.StringIO()


def usage_line(error: typer.TyperException) -> str:
    """A wrong option or argument, with the nearest right one."""
    option = getattr(error, "option_name", None)
    near = getattr(error, "possibilities", None)
    if option in SECRET_OPTIONS:
        return (
            f"{option} is not taken: everybody here could read it in the list of processes. Put it "
            "in a file or in the environment; --help says which options name these"
        )
    if option is not None and near is not None:
        return f"unknown option {option}{_hint(near)}"
    if option is not None and type(error).__name__ == "NoSuchOption":
        return f"unknown option {option}"
    text = " ".join(error.format_message().split())
    return text[:1].lower() + text[1:].removesuffix(".")


def failure_line(error: Exception) -> str:
    """What any other exception says to a person: its sentence, and the next step if known."""
    if isinstance(error, ExceptionGroup):
        return failure_line(error.exceptions[0])
    text = " ".join(str(error).split()) or type(error).__name__
    if _is_said_for_people(error):
        return text + _next_step(error)
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {(error.strerror or text).lower()}"
    return f"unexpected {type(error).__name__}: {text} (run again with --debug for the trace)"


def _next_step(error: Exception) -> str:
    from ibrik_cli.cluster import chosen
    from ibrik_client.errors import Unavailable

    if not isinstance(error, Unavailable) or error.code:
        return ""
    if (cluster := chosen()) is not None:
        return f". See what is wrong with: {cluster.doctor}"
    return ". Is the broker running? Start one with: ibrik serve --dev"


def _is_said_for_people(error: Exception) -> bool:
    """Errors of our own libraries carry sentences; others do not."""
    return type(error).__module__.startswith("ibrik_")


def _hint(names: list[str]) -> str:
    return f" (did you mean {names[0]}?)" if names else ""


def _say(line: str) -> None:
    sys.stderr.write(f"error: {line}\n")
