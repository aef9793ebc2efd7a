"""`vacuum`: delete files of tables that no version of the last days needs.

That are files that another one stands for, and files of runs that did not come to their commit. A
run that is under way has such files too, so that young ones stay. What bears no name of ours is
named and left: in doubt nothing is deleted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ibrik_api.durations import parse_duration
from ibrik_spark.errors import ExitCode, JobError, WrongOption
from ibrik_spark.files import is_ours
from ibrik_spark.reports import Part, Report, carried_out
from ibrik_spark.table import Handle, tables_in

JOB = "vacuum"
HOUR_MS = 3_600_000
LEAST_MS = 24 * HOUR_MS  # far more than any run takes from its first file to its commit
MAX_NAMED = 20  # files that a report names of one table


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says."""

    target: str
    topics: Sequence[str] = ()
    keep: str = "7d"
    is_plan: bool = False


class VacuumReport(Report):
    """The report of this job as people read it: a line a table, then what is wrong."""

    __slots__ = ()

    def table(self) -> str:
        lines: list[str] = []
        for part in self.parts:
            facts = part.facts
            if "files" in facts:
                verb = "would be deleted" if facts["isPlan"] else "deleted"
                lines.append(f"{part.topic}  {facts['files']:,} files {verb}")
            lines += [f"  not ours, left: {path}" for path in facts.get("foreign", ())]
        return "".join(f"{line}\n" for line in lines + self.sentences())


def run(options: Options) -> Report:
    """Delete what nobody needs. Raises nothing that was foreseen: the report says it."""
    return carried_out(VacuumReport, JOB, lambda _started: _parts(options))


def _parts(options: Options) -> list[Part]:
    keep_ms = _kept_ms(options.keep)
    handles = tables_in(options.target, options.topics)
    return [_vacuum(options, handle, keep_ms) for handle in handles]


def _kept_ms(text: str) -> int:
    keep_ms = parse_duration(text)
    if keep_ms < LEAST_MS:
        raise WrongOption(
            f"--keep {text}: at least 24h are kept, since the files of a run that is under way are "
            "in no version yet, and readers may be reading an older one"
        )
    return keep_ms


def _vacuum(options: Options, handle: Handle, keep_ms: int) -> Part:
    """Only a table that is whole: of another one an older version may be wanted back."""
    facts: dict[str, Any] = {"topicId": handle.topic.topic_id, "isPlan": options.is_plan}
    code, detail = ExitCode.NOTHING_TO_DO, ""
    try:
        handle.prove()
        live = {file.path for file in handle.live_files()}
        unneeded = [path for path in handle.unneeded(-(-keep_ms // HOUR_MS)) if path not in live]
        ours = [path for path in unneeded if is_ours(path)]
        foreign = sorted(set(unneeded) - set(ours))
        facts |= {"files": 0, "foreign": foreign[:MAX_NAMED], "foreignFiles": len(foreign)}
        if ours:
            code = ExitCode.DONE
        for path in ours:
            if not options.is_plan:
                handle.store.delete(path)
            facts["files"] += 1
    except JobError as error:
        code, detail = error.exit_code, str(error)
    return Part(handle.topic.name, code, 0, detail, facts)
