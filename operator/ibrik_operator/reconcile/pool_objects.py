"""Brings the objects of one pool to what they shall be: Secret, settings, Services, claims, set.

Each is applied only when it differs. What Kubernetes refuses is remembered as a fault, so that the
rest is still applied.
"""

import base64
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

from ibrik_api.kubernetes import (
    ROTATE_ADMIN_TOKEN,
    admin_secret_name,
    claim_name,
    credentials_secret_name,
    object_name,
    pool_labels,
)
from ibrik_api.quantities import format_quantity
from ibrik_operator import faults
from ibrik_operator.conditions.condition import Violation
from ibrik_operator.conditions.reasons import Reason
from ibrik_operator.decisions.dependents import CREDENTIALS
from ibrik_operator.decisions.drift import holds, is_as_desired
from ibrik_operator.decisions.growth import class_of, too_small, unsupported
from ibrik_operator.decisions.tokens import has_archive, lacks_archive_token, renewed
from ibrik_operator.desired.common import stamped
from ibrik_operator.desired.config import config_map, service_account
from ibrik_operator.desired.network import (
    client_service,
    disruption_budget,
    headless_service,
    network_policy,
)
from ibrik_operator.desired.secrets import admin_secret
from ibrik_operator.documents import is_terminating
from ibrik_operator.keys import Document, Key
from ibrik_operator.kube import KubeForbidden, KubeInvalid
from ibrik_operator.reconcile.context import Context

FIXED = ("serviceName", "podManagementPolicy", "selector", "volumeClaimTemplates")
"""Fields of a set that Kubernetes never changes: a set with others is made anew around its pods."""


class PoolObjects:
    def __init__(self, context: Context, pool: Document) -> None:
        self._context = context
        self._pool = pool
        self._name = pool["metadata"]["name"]
        self._namespace = pool["metadata"]["namespace"]
        self.fault: Violation | None = None
        """The first object that Kubernetes did not accept."""
        self.template_fault: Violation | None = None
        """What it says of the set, which is made from what a person wrote about pods."""
        self.is_set_settled = False
        """The set is as desired, and its controller has seen that: pods come as they shall be."""

    async def apply_all(self) -> None:
        """Everything but the set, in the order in which pods need it."""
        await self._apply_admin_secret()
        if self._known("Secret", credentials_secret_name(self._name)) is None:
            self._context.enqueue(Key(CREDENTIALS, self._namespace, self._name))
        for wished in self._others():
            await self._apply(wished)
        faults.reach("pool-objects-applied")
        policy = self._known("NetworkPolicy", object_name(self._name))
        if policy is not None and not self._context.settings.network_policies:
            await self._context.kube.delete(Key.of(policy), uid=policy["metadata"]["uid"])

    async def label_claims(self, claims: Sequence[Document], replicas: int) -> None:
        """A claim that a person made for the set gets the labels that the set's own have.

        Such as one around a volume that was kept. Only what has them is watched, and grows.
        """
        known = {claim["metadata"]["name"] for claim in claims}
        names = [claim_name(self._name, ordinal) for ordinal in range(replicas)]
        for name in names:
            key = Key("PersistentVolumeClaim", self._namespace, name)
            claim = None if name in known else await self._context.kube.get(key)
            if claim is None or _is_labelled(claim, self._name):
                continue  # Not made yet, or on its way into the world.
            wish = {"metadata": {"labels": pool_labels(self._name)}}
            try:
                await self._context.kube.patch(key, wish)
            except KubeForbidden as error:
                self._note(key, Violation(Reason.FORBIDDEN, f"{name}: {error}"))
                continue
            faults.reach("pool-claim-labelled")

    async def grow(self, claims: Sequence[Document], wished_bytes: int) -> Violation | None:
        """Let claims ask for more, where their class allows it; else why not."""
        for claim in too_small(claims, wished_bytes):
            if not await self._can_grow(class_of(claim)):
                return unsupported(self._name, self._namespace, class_of(claim), claim)
            wish = {"spec": {"resources": {"requests": {"storage": format_quantity(wished_bytes)}}}}
            try:
                await self._context.kube.patch(Key.of(claim), wish)
            except KubeForbidden as error:  # A quota, or a class that nobody may look at.
                return Violation(Reason.FORBIDDEN, f"{claim['metadata']['name']}: {error}")
            faults.reach("pool-claim-grown")
        return None

    async def apply_set(
        self, wished: dict[str, Any], known: Document | None, *, keeps_claims: bool
    ) -> None:
        """`keeps_claims`: volumes of the size that they have, since they cannot grow."""
        if known is not None and is_terminating(known):
            return  # Its end is news that leads here again.
        if known is not None and keeps_claims:
            wished["spec"]["volumeClaimTemplates"] = known["spec"]["volumeClaimTemplates"]
        stamp = stamped(wished)
        if known is not None and not _has_fixed(stamp, known):
            # Pods stay, and the next set takes them over as they are.
            await self._context.kube.delete(
                Key.of(known), uid=known["metadata"]["uid"], propagation="Orphan"
            )
            faults.reach("pool-set-orphaned")
            return
        if await self._apply(stamp):
            faults.reach("pool-set-applied")
            return
        seen = ((known or {}).get("status") or {}).get("observedGeneration", 0)
        self.is_set_settled = (
            known is not None
            and self.template_fault is None
            and self.fault is None
            and seen >= known["metadata"].get("generation", 0)
        )

    def _others(self) -> Iterator[dict[str, Any]]:
        pool = self._pool
        yield stamped(config_map(pool))
        yield stamped(service_account(pool))
        yield stamped(headless_service(pool))
        yield stamped(client_service(pool))
        yield stamped(disruption_budget(pool))
        settings = self._context.settings
        if settings.network_policies:
            yield stamped(network_policy(pool, settings.metrics_namespace_labels))

    async def _apply(self, wished: dict[str, Any]) -> bool:
        """Whether it was applied now."""
        key = Key.of(wished)
        if is_as_desired(wished, self._context.world.get(key)):
            return False
        try:
            await self._context.kube.apply(wished)
        except KubeForbidden as error:
            self._note(key, Violation(Reason.FORBIDDEN, f"{key.kind} {key.name}: {error}"))
            return False
        except KubeInvalid as error:
            is_of_pods = key.kind == "StatefulSet"
            reason = Reason.POD_TEMPLATE_INVALID if is_of_pods else Reason.INVALID
            self._note(key, Violation(reason, str(error), is_stalled=True))
            return False
        return True

    def _note(self, key: Key, violation: Violation) -> None:
        if violation.reason == Reason.POD_TEMPLATE_INVALID:
            self.template_fault = violation
        else:
            self.fault = self.fault or violation

    async def _apply_admin_secret(self) -> None:
        """The token is made once, and anew when the annotation of the pool asks for it."""
        wish = (self._pool["metadata"].get("annotations") or {}).get(ROTATE_ADMIN_TOKEN)
        name = admin_secret_name(self._name)
        known = self._known("Secret", name)
        if renewed(known, wish) is None and not lacks_archive_token(known, self._pool):
            return
        # The world may be too old, and a token that is in use must not be lost.
        now = await self._context.kube.get(Key("Secret", self._namespace, name))
        is_rotated = renewed(now, wish)
        if is_rotated is None and not lacks_archive_token(now, self._pool):
            return
        held = ((now or {}).get("data") or {}).items()
        tokens = {name: base64.b64decode(value).decode() for name, value in held if value}
        if is_rotated is not None:
            former = tokens.get("current")
            tokens = {"current": secrets.token_urlsafe(32)}
            if is_rotated and former:
                tokens["previous"] = former
        if has_archive(self._pool):
            tokens["archive"] = secrets.token_urlsafe(32)
        document = admin_secret(self._pool, tokens)
        done = ((now or {}).get("metadata") or {}).get("annotations") or {}
        rotation = wish if is_rotated is not None else done.get(ROTATE_ADMIN_TOKEN)
        if rotation is not None:
            document["metadata"]["annotations"][ROTATE_ADMIN_TOKEN] = rotation
        if await self._apply_secret(document):
            if is_rotated is None:
                faults.reach("archive-token-made")
            else:
                faults.reach("pool-secret-applied")

    async def _apply_secret(self, document: dict[str, Any]) -> bool:
        try:
            await self._context.kube.apply(document)
        except KubeForbidden as error:
            key = Key.of(document)
            self._note(key, Violation(Reason.FORBIDDEN, f"{key.kind} {key.name}: {error}"))
            return False
        return True

    async def _can_grow(self, class_name: str) -> bool:
        """Without the right to read classes: the API server says it when it is asked."""
        try:
            found = await self._context.kube.get(Key("StorageClass", "", class_name))
        except KubeForbidden:
            return True
        return found is not None and bool(found.get("allowVolumeExpansion"))

    def _known(self, kind: str, name: str) -> Document | None:
        return self._context.world.get(Key(kind, self._namespace, name))


def _is_labelled(claim: Document, pool: str) -> bool:
    labels = claim["metadata"].get("labels") or {}
    return pool_labels(pool).items() <= labels.items()


def _has_fixed(wished: Document, known: Document) -> bool:
    return all(holds(wished["spec"][name], known["spec"].get(name)) for name in FIXED)
