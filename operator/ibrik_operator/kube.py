"""The one door to the API server: read, apply, delete, say what happened.

Documents go in and come out as JSON has them; no type and no exception of the client library
leaves this file. Whatever fails is one of five errors, of which `KubeUnavailable` means "later".
"""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple, Self

import aiohttp
from kubernetes.aio import client
from kubernetes.aio import config as client_config

from ibrik_api.kubernetes import FIELD_MANAGER, GROUP, VERSION
from ibrik_operator import metrics
from ibrik_operator.keys import Document, Key

TIMEOUT_S = 30
MAX_CALLS = 32
"""Calls under way at once; the others wait their turn."""
PAGE = 500
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
SERVICE_HOST = "KUBERNETES_SERVICE_HOST"


class KubeError(Exception):
    """The API server did not do it; the text is its own sentence."""


class KubeUnavailable(KubeError):
    """No answer, or one that means: later. `after_s` is the server's Retry-After."""

    def __init__(self, message: str, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


class KubeConflict(KubeError):
    """Somebody changed the object since it was read."""


class KubeExists(KubeConflict):
    """There is an object of this name already.

    A POST may meet other conflicts, such as a quota that somebody else counts at this moment.
    """


class KubeForbidden(KubeError):
    """A right is missing, a quota is used up, or an admission policy says no."""


class KubeInvalid(KubeError):
    """The object is not what the server accepts."""


class Kind(NamedTuple):
    group: str
    version: str
    plural: str
    is_namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        root = f"/apis/{self.group}" if self.group else "/api"
        place = ["namespaces", namespace] if self.is_namespaced and namespace else []
        return "/".join([root, self.version, *place, self.plural, name, subresource]).rstrip("/")


KINDS = {
    "BrokerPool": Kind(GROUP, VERSION, "brokerpools"),
    "Topic": Kind(GROUP, VERSION, "topics"),
    "Subscription": Kind(GROUP, VERSION, "subscriptions"),
    "Channel": Kind(GROUP, VERSION, "channels"),
    "StatefulSet": Kind("apps", "v1", "statefulsets"),
    "Service": Kind("", "v1", "services"),
    "ConfigMap": Kind("", "v1", "configmaps"),
    "Secret": Kind("", "v1", "secrets"),
    "ServiceAccount": Kind("", "v1", "serviceaccounts"),
    "Pod": Kind("", "v1", "pods"),
    "PersistentVolumeClaim": Kind("", "v1", "persistentvolumeclaims"),
    "Event": Kind("", "v1", "events"),
    "Namespace": Kind("", "v1", "namespaces", is_namespaced=False),
    "PodDisruptionBudget": Kind("policy", "v1", "poddisruptionbudgets"),
    "NetworkPolicy": Kind("networking.k8s.io", "v1", "networkpolicies"),
    "StorageClass": Kind("storage.k8s.io", "v1", "storageclasses", is_namespaced=False),
    "Deployment": Kind("apps", "v1", "deployments"),
    "CronJob": Kind("batch", "v1", "cronjobs"),
    "Job": Kind("batch", "v1", "jobs"),
    "ScheduledSparkApplication": Kind(
        "sparkoperator.k8s.io", "v1beta2", "scheduledsparkapplications"
    ),
    "SparkApplication": Kind("sparkoperator.k8s.io", "v1beta2", "sparkapplications"),
}
"""Every kind that the operator reads or writes."""


class Kube:
    def __init__(self, api: client.ApiClient) -> None:
        self.api = api
        """The library's client, for the election of a leader."""
        self._slots = asyncio.Semaphore(MAX_CALLS)

    @classmethod
    async def connect(cls) -> Self:
        """As the service account of this pod, or as KUBECONFIG says."""
        configuration = client.Configuration()
        if SERVICE_HOST in os.environ and "KUBECONFIG" not in os.environ:
            client_config.load_incluster_config(  # type: ignore[no-untyped-call]
                client_configuration=configuration
            )
        else:
            await client_config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=os.environ.get("KUBECONFIG"),
                client_configuration=configuration,
                persist_config=False,
            )
        return cls(client.ApiClient(configuration))

    async def close(self) -> None:
        await self.api.close()  # type: ignore[no-untyped-call]

    async def get(self, key: Key) -> Document | None:
        """The object as it is now, or None."""
        return await self._call("GET", _path(key), is_absence_fine=True)

    async def list(self, kind: str, namespace: str = "", labels: str = "") -> list[Document]:
        """All objects of a kind, in pages; each says its kind, as single ones do."""
        query = [("limit", str(PAGE))] + ([("labelSelector", labels)] if labels else [])
        found: list[Document] = []
        token = ""
        while True:
            more = [("continue", token)] if token else []
            page = await self._call("GET", KINDS[kind].path(namespace), query=query + more)
            assert page is not None
            said = {"apiVersion": KINDS[kind].api_version, "kind": kind}
            found += ({**said, **item} for item in page["items"])
            token = page["metadata"].get("continue") or ""
            if not token:
                return found

    async def serves(self, kind: str) -> bool:
        """Whether the API server knows this kind; those of others come and go."""
        at = KINDS[kind]
        path = f"/apis/{at.group}/{at.version}"
        known = await self._call("GET", path, is_absence_fine=True)
        return any(one["name"] == at.plural for one in (known or {}).get("resources") or ())

    async def apply(self, document: Document, *, dry_run: bool = False) -> Document:
        """Server-side apply: our fields become as they are here, and are ours.

        Raises:
            KubeInvalid: With the server's sentence.
            KubeForbidden: Right, quota or admission policy.
        """
        applied = await self._apply(document, dry_run=dry_run)
        assert applied is not None
        return applied

    async def apply_status(self, document: Document) -> Document | None:
        """Server-side apply of the status alone; None when the object is gone.

        Raises:
            KubeConflict: Another object has this name by now, or others write it all the time.
        """
        key = Key.of(document)
        body = {
            "apiVersion": KINDS[key.kind].api_version,
            "kind": key.kind,
            "metadata": {"name": key.name, "namespace": key.namespace},
            "status": document["status"],
        }
        uid = document["metadata"].get("uid")
        if uid is not None:  # An object of the same name that came later is another one.
            body["metadata"]["uid"] = uid
        return await self._apply(body, subresource="status")

    async def create(self, document: Document) -> Document:
        """Make it; KubeExists when there is one of this name."""
        key = Key.of(document)
        made = await self._call(
            "POST", KINDS[key.kind].path(key.namespace), body=document, kind=key.kind
        )
        assert made is not None
        return made

    async def patch(self, key: Key, changes: Mapping[str, Any]) -> Document | None:
        """Merge patch; None when the object is gone. KubeConflict by metadata.resourceVersion."""
        return await self._call(
            "PATCH",
            _path(key),
            query=[("fieldManager", FIELD_MANAGER)],
            body=changes,
            content_type=MERGE,
            is_absence_fine=True,
            kind=key.kind,
        )

    async def set_finalizers(self, document: Document, finalizers: Sequence[str]) -> None:
        """Exactly these; KubeConflict when the document is not the newest one."""
        metadata = {
            "finalizers": list(finalizers),
            "resourceVersion": document["metadata"]["resourceVersion"],
        }
        await self.patch(Key.of(document), {"metadata": metadata})

    async def delete(
        self, key: Key, *, uid: str | None = None, propagation: str = "Background"
    ) -> None:
        """Delete it, or this very one of the name; gone already is fine.

        `propagation` Orphan leaves what belongs to it.
        """
        options: dict[str, Any] = {"propagationPolicy": propagation}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        await self._call("DELETE", _path(key), body=options, is_absence_fine=True, kind=key.kind)

    async def _apply(
        self, document: Document, *, subresource: str = "", dry_run: bool = False
    ) -> Document | None:
        key = Key.of(document)
        query = [("fieldManager", FIELD_MANAGER), ("force", "true")]
        return await self._call(
            "PATCH",
            _path(key, subresource),
            query=query + ([("dryRun", "All")] if dry_run else []),
            body=document,
            content_type=APPLY,
            is_absence_fine=subresource == "status",
            kind=key.kind,
        )

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        is_absence_fine: bool = False,
        kind: str = "",
    ) -> Document | None:
        headers = {"Accept": "application/json", "Content-Type": content_type}
        async with self._slots:
            try:
                request = await self.api.param_serialize(
                    method,
                    path,
                    query_params=list(query),
                    header_params=headers,
                    body=body,
                    auth_settings=["BearerToken"],
                )
                answer = await self.api.call_api(
                    *request, _request_timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)
                )
                content: bytes = await answer.read()  # type: ignore[no-untyped-call]
            except (TimeoutError, aiohttp.ClientError, OSError) as error:
                raise KubeUnavailable(f"{method} {path}: {error or type(error).__name__}") from None
        if method != "GET":
            metrics.api_writes.labels(kind, method.lower(), str(answer.status)).inc()
        if answer.status == HTTPStatus.NOT_FOUND and is_absence_fine:
            return None
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise _error(answer.status, answer.headers.get("Retry-After"), content)
        document: Document = json.loads(content)
        return document


def _path(key: Key, subresource: str = "") -> str:
    return KINDS[key.kind].path(key.namespace, key.name, subresource)


def _error(status: int, retry_after: str | None, content: bytes) -> KubeError:
    """The server's own sentence, in the class that says what to do about it."""
    try:
        told = json.loads(content)
        message, reason = str(told["message"]), told.get("reason")
    except (ValueError, KeyError, TypeError, AttributeError):
        message, reason = f"HTTP {status} {content[:200].decode(errors='replace')}", None
    if status == HTTPStatus.CONFLICT:
        return KubeExists(message) if reason == "AlreadyExists" else KubeConflict(message)
    if status in {HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED}:
        return KubeForbidden(message)
    if status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT} or status >= 500:
        return KubeUnavailable(message, _seconds(retry_after))
    return KubeInvalid(message)


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdigit() else None
