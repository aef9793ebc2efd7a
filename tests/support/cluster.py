"""How tests talk to an API server: documents in and out, as one user; watches; the audit log.

Any kind works by its apiVersion and kind, which the server is asked for once. Nothing is guessed
and only a 429 is retried, when the server says: what it refuses is a `Refused` with its sentence.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
import yaml

from tests.support.apiserver import ApiServer
from tests.support.kube_assets import asset

Document = dict[str, Any]
WAIT_TIMEOUT_S = 60
FIELD_MANAGER = "tests"
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_PATIENCE = urllib3.Retry(
    5, connect=0, read=0, redirect=0, other=0, status_forcelist=[429], allowed_methods=None,
    raise_on_status=False,
)  # fmt: skip


class Refused(Exception):
    """What the API server answered instead of doing it; the text is its sentence."""

    def __init__(self, status: int, answer: Document) -> None:
        super().__init__(answer.get("message", ""))
        self.status = status
        self.reason = answer.get("reason", "")
        self.causes: list[Document] = (answer.get("details") or {}).get("causes") or []


@dataclass(frozen=True, slots=True)
class Kind:
    """Where objects of one kind are."""

    prefix: str
    plural: str
    is_namespaced: bool


@dataclass(frozen=True, slots=True)
class Write:
    """A write that the API server answered, from its audit log."""

    user: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    status: int
    agent: str


@dataclass
class Cluster:
    """One user of one API server."""

    server: ApiServer
    token: str
    user: str = "admin"
    _kinds: dict[tuple[str, str], Kind] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._pool = urllib3.PoolManager(
            ca_certs=str(self.server.ca_file), retries=_PATIENCE, maxsize=64, timeout=WAIT_TIMEOUT_S
        )
        self.kubeconfig = self.server.kubeconfig(self.token, self.user.replace(":", "-"))

    # --- objects --------------------------------------------------------------------------------

    def create(self, document: Document, *, dry_run: bool = False) -> Document:
        query = {"fieldManager": FIELD_MANAGER} | _dry_run(dry_run)
        return self.request("POST", self._folder_of(document), document, query=query)

    def replace(self, document: Document, subresource: str = "") -> Document:
        """PUT, with the resourceVersion that the document has."""
        path = self._path_of(document, subresource)
        return self.request("PUT", path, document, query={"fieldManager": FIELD_MANAGER})

    def apply(
        self,
        document: Document,
        *,
        manager: str = FIELD_MANAGER,
        force: bool = False,
        dry_run: bool = False,
        subresource: str = "",
    ) -> Document:
        """Server-side apply."""
        query = {"fieldManager": manager, "force": str(force).lower()} | _dry_run(dry_run)
        path = self._path_of(document, subresource)
        return self.request("PATCH", path, document, content_type=_APPLY, query=query)

    def patch(
        self,
        kind: str,
        name: str,
        change: Document,
        namespace: str = "",
        *,
        subresource: str = "",
    ) -> Document:
        """A merge patch; `kind` as `apiVersion/Kind`, such as `v1/Pod`."""
        path = self._path(kind, namespace, name, subresource)
        return self.request("PATCH", path, change, content_type=_MERGE)

    def get(self, kind: str, name: str, namespace: str = "", subresource: str = "") -> Document:
        return self.request("GET", self._path(kind, namespace, name, subresource))

    def find(self, kind: str, name: str, namespace: str = "") -> Document | None:
        """The object, or None when there is none."""
        try:
            return self.get(kind, name, namespace)
        except Refused as refused:
            if refused.status == 404:
                return None
            raise

    def objects(
        self, kind: str, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> list[Document]:
        query = {"labelSelector": labels, "fieldSelector": fields}
        found = self.request("GET", self._path(kind, namespace), query=query)
        items: list[Document] = found["items"]
        return items

    def delete(
        self,
        kind: str,
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        propagation: str = "Background",
        is_forced: bool = False,
    ) -> None:
        """Ask for the deletion, of pods by force or with their grace; what is gone is fine."""
        options: Document = {"propagationPolicy": propagation}
        if is_forced:
            options["gracePeriodSeconds"] = 0
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        try:
            self.request("DELETE", self._path(kind, namespace, name), options)
        except Refused as refused:
            if refused.status != 404:
                raise

    # --- waiting --------------------------------------------------------------------------------

    def wait(
        self,
        kind: str,
        name: str,
        namespace: str,
        until: Callable[[Document], object],
        *,
        timeout_s: int = WAIT_TIMEOUT_S,
    ) -> Document:
        """The object as soon as `until` says so of it; it need not be there yet."""
        last: Document | None = None
        for event, seen in self.watch(kind, namespace, name=name, timeout_s=timeout_s):
            last = None if event == "DELETED" else seen
            if last is not None and until(last):
                return last
        raise AssertionError(
            f"{kind} {namespace}/{name} is not so after {timeout_s} s:\n{yaml.safe_dump(last)}"
        )

    def wait_gone(
        self, kind: str, name: str, namespace: str = "", *, timeout_s: int = WAIT_TIMEOUT_S
    ) -> None:
        seen = self.find(kind, name, namespace)
        if seen is None:
            return
        since = seen["metadata"]["resourceVersion"]
        for event, _ in self.watch(kind, namespace, name=name, since=since, timeout_s=timeout_s):
            if event == "DELETED":
                return
        raise AssertionError(
            f"{kind} {namespace}/{name} is still there after {timeout_s} s:\n"
            f"{yaml.safe_dump(self.find(kind, name, namespace))}"
        )

    def watch(
        self,
        kind: str,
        namespace: str = "",
        *,
        name: str = "",
        labels: str = "",
        since: str = "",
        timeout_s: int = WAIT_TIMEOUT_S,
    ) -> Iterator[tuple[str, Document]]:
        """Events, those of what is there first; ends after `timeout_s`."""
        query = {
            "watch": "1",
            "timeoutSeconds": str(timeout_s),
            "labelSelector": labels,
            "fieldSelector": f"metadata.name={name}" if name else "",
            "resourceVersion": since,
        }
        answer = self._send("GET", self._path(kind, namespace), query=query, is_stream=True)
        try:
            for line in _lines(answer):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise Refused(event["object"].get("code", 0), event["object"])
                yield event["type"], event["object"]
        finally:
            answer.close()

    # --- around ---------------------------------------------------------------------------------

    def kubectl(self, *arguments: str, stdin: str = "", check: bool = True) -> str:
        """Standard output of `kubectl`; with `check=False` both outputs together."""
        ended = subprocess.run(
            (asset("kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=WAIT_TIMEOUT_S,
            check=False,
            # Its cache of discovery is kept with the server that it is of.
            env=os.environ | {"KUBECACHEDIR": str(self.server.folder / "kubectl")},
        )
        if check:
            assert ended.returncode == 0, ended.stderr
            return ended.stdout
        return ended.stdout + ended.stderr

    def new_namespace(self, name: str, labels: dict[str, str] | None = None) -> str:
        """A namespace with the account that pods of it have by default."""
        metadata = {"name": name, "labels": labels or {}}
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        return name

    def service_account(
        self, name: str, namespace: str, rules: list[Document], *, is_cluster_wide: bool = True
    ) -> "Cluster":
        """A user of its own with these rights, in the whole cluster or in its namespace."""
        account = {"name": name, "namespace": namespace}
        self.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
        prefix = "Cluster" if is_cluster_wide else ""
        role = f"{namespace}-{name}" if is_cluster_wide else name
        head = {"apiVersion": "rbac.authorization.k8s.io/v1"}
        metadata = {"name": role} if is_cluster_wide else account
        self.apply(head | {"kind": f"{prefix}Role", "metadata": metadata, "rules": rules})
        group = "rbac.authorization.k8s.io"
        self.apply(
            head
            | {
                "kind": f"{prefix}RoleBinding",
                "metadata": metadata,
                "roleRef": {"apiGroup": group, "kind": f"{prefix}Role", "name": role},
                "subjects": [{"kind": "ServiceAccount"} | account],
            }
        )
        return self.as_service_account(name, namespace)

    def as_service_account(self, name: str, namespace: str) -> "Cluster":
        """The same server as an account that is there, with a token as pods get one."""
        path = self._path("v1/ServiceAccount", namespace, name, "token")
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = self.request("POST", path, request)["status"]["token"]
        user = f"system:serviceaccount:{namespace}:{name}"
        return Cluster(self.server, token, user, self._kinds)

    def writes(self, user: str | None = None, since: int = 0) -> list[Write]:
        """Writes by `user`, or by all, after position `since` of the audit log."""
        with self.server.audit_log.open("rb") as log:
            log.seek(since)
            # The last line may be half written yet.
            events = [json.loads(line) for line in log if line.endswith(b"\n")]
        return [
            _write(event)
            for event in events
            if event["stage"] == "ResponseComplete" and user in (None, event["user"]["username"])
        ]

    def audit_position(self) -> int:
        """Where the last whole line of the audit log ends now."""
        content = self.server.audit_log.read_bytes()
        return content.rfind(b"\n") + 1

    # --- below ----------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> Document:
        answer = self._send(method, path, body, content_type=content_type, query=query)
        document: Document = answer.json()
        return document

    def _send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        query: dict[str, str] | None = None,
        is_stream: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        answer = self._pool.request(
            method,
            f"{self.server.url}{path}?{urlencode(_given(query or {}))}",
            body=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": content_type},
            preload_content=not is_stream,
        )
        if answer.status >= 400:
            raise Refused(answer.status, json.loads(answer.data))
        return answer

    def _path_of(self, document: Document, subresource: str = "") -> str:
        metadata = document["metadata"]
        kind = f"{document['apiVersion']}/{document['kind']}"
        return self._path(kind, metadata.get("namespace", ""), metadata["name"], subresource)

    def _folder_of(self, document: Document) -> str:
        kind = f"{document['apiVersion']}/{document['kind']}"
        return self._path(kind, document["metadata"].get("namespace", ""))

    def _path(self, kind: str, namespace: str, name: str = "", subresource: str = "") -> str:
        api_version, _, kind_name = kind.rpartition("/")
        place = self._kind(api_version, kind_name)
        steps = [place.prefix]
        if place.is_namespaced and namespace:
            steps += ["namespaces", namespace]
        steps.append(place.plural)
        return "/".join([*steps, *filter(None, (name, subresource))])

    def _kind(self, api_version: str, name: str) -> Kind:
        if (api_version, name) not in self._kinds:
            prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            for resource in self.request("GET", prefix)["resources"]:
                if "/" not in resource["name"]:
                    known = Kind(prefix, resource["name"], resource["namespaced"])
                    self._kinds[api_version, resource["kind"]] = known
        return self._kinds[api_version, name]


def documents_of(path: Path) -> list[Document]:
    """The documents of a YAML file."""
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def condition(document: Document, type_: str) -> Document:
    """The condition of that type, or an empty one."""
    conditions = document.get("status", {}).get("conditions") or []
    return next((found for found in conditions if found["type"] == type_), {})


def _write(event: Document) -> Write:
    place = event.get("objectRef", {})
    return Write(
        user=event["user"]["username"],
        verb=event["verb"],
        resource=place.get("resource", ""),
        subresource=place.get("subresource", ""),
        namespace=place.get("namespace", ""),
        name=place.get("name", ""),
        status=event["responseStatus"]["code"],
        agent=event.get("userAgent", ""),
    )


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Whole lines of a stream, each as soon as it is there."""
    rest = b""
    for piece in answer.stream(decode_content=False):
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole


def _given(query: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in query.items() if value}


def _dry_run(is_asked: bool) -> dict[str, str]:
    return {"dryRun": "All"} if is_asked else {}
