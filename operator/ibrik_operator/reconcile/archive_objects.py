"""Brings the objects that archive one slot to what they shall be; one pool for each instance.

The schedule of Spark's operator stays also while it does not serve it, since only its status tells
that it does by now; a CronJob does the work meanwhile.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ibrik_api.kubernetes import ARCHIVE_LABEL, ARCHIVE_NOW, lake_claim_name
from ibrik_api.quantities import format_quantity
from ibrik_operator import faults
from ibrik_operator.archives import ArchiveState, Slot
from ibrik_operator.conditions.archive import Scheduling, Starter
from ibrik_operator.conditions.condition import Violation
from ibrik_operator.conditions.reasons import Reason
from ibrik_operator.decisions.archiving import (
    Remedy,
    failed_job,
    failed_run,
    is_unheard,
    refused_schedule,
    remedy,
    starter,
)
from ibrik_operator.decisions.drift import is_as_desired
from ibrik_operator.decisions.growth import too_small
from ibrik_operator.desired.archive import (
    archive_of,
    cron_job,
    lake_claim,
    single_job,
    slot_name,
    spark_run,
    spark_schedule,
)
from ibrik_operator.desired.broker_set import Defaults
from ibrik_operator.desired.common import stamped
from ibrik_operator.keys import Document, Key
from ibrik_operator.kube import KubeExists, KubeForbidden, KubeInvalid
from ibrik_operator.reconcile.context import Context

SPARK, CRON_JOB = "ScheduledSparkApplication", "CronJob"
Objects = dict[str, Document]
"""By name."""


class ArchiveObjects:
    def __init__(self, context: Context, pool: Document) -> None:
        self._context = context
        self._pool = pool
        self._name, self._namespace = pool["metadata"]["name"], pool["metadata"]["namespace"]
        settings = context.settings
        self._defaults = Defaults(
            settings.broker_image, settings.image_pull_secrets, settings.spark_image
        )
        self._is_installed = False
        self._found: dict[str, Objects] = {SPARK: {}, CRON_JOB: {}}
        self._jobs: list[Document] = []

    async def read(self) -> None:
        """What there is now. Raises KubeForbidden."""
        kube, labels = self._context.kube, f"{ARCHIVE_LABEL}={self._name}"
        self._is_installed = await kube.serves(SPARK)
        for kind in (SPARK, CRON_JOB) if self._is_installed else (CRON_JOB,):
            listed = await kube.list(kind, self._namespace, labels)
            self._found[kind] = {one["metadata"]["name"]: one for one in listed}
        if self._found[CRON_JOB]:
            self._jobs = await kube.list("Job", self._namespace, labels)

    def found(self) -> list[Document]:
        return [one for objects in self._found.values() for one in objects.values()]

    async def bring_about(self, slot: Slot, state: ArchiveState) -> Scheduling:
        """Make a slot so; what Kubernetes does not accept becomes an obstacle."""
        try:
            return await self._bring_about(slot, state)
        except KubeForbidden as error:
            violation = Violation(Reason.FORBIDDEN, f"{slot_name(self._pool, slot)}: {error}")
        except KubeInvalid as error:
            violation = Violation(Reason.INVALID, f"{slot_name(self._pool, slot)}: {error}")
        return Scheduling(is_installed=self._is_installed, obstacle=violation)

    async def remove(self, found: Document) -> None:
        """Its runs go on to their end."""
        await self._context.kube.delete(
            Key.of(found), uid=found["metadata"]["uid"], propagation="Orphan"
        )
        faults.reach("archive-schedule-deleted")

    async def _bring_about(self, slot: Slot, state: ArchiveState) -> Scheduling:
        await self._apply_claim(slot)
        name = slot_name(self._pool, slot)
        known = self._found[SPARK].get(name)
        is_unheard_long = self._is_unheard_long(name, known, state)
        who = starter(known, is_installed=self._is_installed, is_unheard_long=is_unheard_long)
        slot = await self._run_what_is_asked(slot, who)
        run = None
        if self._is_installed:
            known, run = await self._heal(known, state)
            await self._apply(spark_schedule(self._pool, slot, self._defaults), known)
        await self._keep_cron_job(slot, who)
        failed = failed_run(slot.job, run, self._namespace)
        if who is Starter.CRON_JOB:
            jobs = [one for one in self._jobs if one["metadata"]["name"].startswith(name)]
            failed = failed_job(slot.job, jobs, self._namespace)
        refused = None if known is None or who is not Starter.SPARK else refused_schedule(known)
        return Scheduling(who, self._is_installed, refused, run=failed)

    async def _heal(
        self, known: Document | None, state: ArchiveState
    ) -> tuple[Document | None, Document | None]:
        """The schedule as it is then, and its last run."""
        if known is None:
            return None, None
        kube, name = self._context.kube, known["metadata"]["name"]
        last = (known.get("status") or {}).get("lastRunName")
        run = await kube.get(Key("SparkApplication", self._namespace, last)) if last else None
        start_ms = self._context.settings.archive.start_ms
        needed = remedy(known, run, self._context.now_ms(), start_ms=start_ms)
        was_late = name in state.late
        state.late.discard(name)
        if needed is Remedy.END_RUN and run is not None:
            await kube.delete(Key.of(run), uid=run["metadata"]["uid"])
        elif needed is Remedy.REPLACE and was_late:
            await self.remove(known)
            known = None
        elif needed is Remedy.REPLACE:
            state.late.add(name)  # It may begin just now.
        return known, run

    async def _keep_cron_job(self, slot: Slot, who: Starter) -> None:
        known = self._found[CRON_JOB].get(slot_name(self._pool, slot))
        if who is Starter.CRON_JOB or (who is Starter.UNDECIDED and known is not None):
            await self._apply(cron_job(self._pool, slot, self._defaults), known)
        elif known is not None:
            await self.remove(known)

    async def _run_what_is_asked(self, slot: Slot, who: Starter) -> Slot:
        """The slot with the wish that was carried out last."""
        done = self._asked(slot)
        if not slot.asked or slot.asked in done:
            return slot
        if who is Starter.UNDECIDED:
            return replace(slot, asked=next(iter(done), ""))
        build = spark_run if who is Starter.SPARK else single_job
        await self._create(build, slot)
        return slot

    async def _create(
        self, build: Callable[[Document, Slot, Defaults], dict[str, Any]], slot: Slot
    ) -> None:
        try:
            await self._context.kube.create(build(self._pool, slot, self._defaults))
        except KubeExists:
            return  # Made by one that ended before it could say so.
        faults.reach("archive-run-created")

    def _asked(self, slot: Slot) -> set[str]:
        name = slot_name(self._pool, slot)
        known = [objects[name] for objects in self._found.values() if name in objects]
        annotations = [one["metadata"].get("annotations") or {} for one in known]
        return {one[ARCHIVE_NOW] for one in annotations if ARCHIVE_NOW in one}

    def _is_unheard_long(self, name: str, known: Document | None, state: ArchiveState) -> bool:
        if not is_unheard(known):
            state.unheard_ms.pop(name, None)
            return False
        now_ms = self._context.now_ms()
        since_ms = state.unheard_ms.setdefault(name, now_ms)
        return now_ms - since_ms >= self._context.settings.archive.unheard_ms

    async def _apply_claim(self, slot: Slot) -> None:
        wish = archive_of(self._pool).target.claim
        if wish is None:
            return
        key = Key(
            "PersistentVolumeClaim", self._namespace, lake_claim_name(self._name, slot.ordinal)
        )
        known = self._context.world.get(key) or await self._context.kube.get(key)
        if known is None:
            await self._context.kube.apply(lake_claim(self._pool, slot.ordinal, wish))
            faults.reach("archive-claim-applied")
        elif too_small([known], wish.size):
            size = {"requests": {"storage": format_quantity(wish.size)}}
            await self._context.kube.patch(key, {"spec": {"resources": size}})

    async def _apply(self, document: Mapping[str, Any], known: Document | None) -> None:
        wished = stamped(document)
        if is_as_desired(wished, known):
            return
        await self._context.kube.apply(wished)
        faults.reach("archive-schedule-applied")
