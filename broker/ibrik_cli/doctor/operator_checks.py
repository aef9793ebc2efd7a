"""Is there an operator that works, and do its definitions fit this version? Pure."""

from collections.abc import Iterator

from ibrik_api.definitions import KINDS, resource_schema
from ibrik_api.kubernetes import GROUP, VERSION
from ibrik_api.timestamps import parse_timestamp
from ibrik_cli.doctor.finding import Document, Finding, Seen, name_of
from ibrik_cli.pods import is_ready, pod_state

LEASE_IS_OLD_AFTER_S = 60.0
"""Four times as long as a lease lasts; also more than clocks differ."""


def definitions_fit(seen: Seen) -> Iterator[Finding]:
    if "definitions" in seen.unseen:
        return
    found = {d["metadata"]["name"]: d for d in seen.definitions}
    wanted = {f"{kind.plural}.{GROUP}": kind for kind in KINDS}
    missing = [name for name in wanted if name not in found]
    if missing:
        yield Finding(
            "problem",
            f"the definitions {', '.join(missing)} are not in the cluster",
            "Install the chart with crds.enabled: helm upgrade --install ibrik … "
            "--namespace ibrik-system",
        )
        return
    other = [n for n, kind in wanted.items() if _schema_of(found[n]) != resource_schema(kind)]
    if other:
        charts = sorted({_chart_of(found[name]) for name in other})
        yield Finding(
            "warning",
            f"the definitions {', '.join(other)} ({', '.join(charts)}) are not those of ibrik "
            f"{seen.version}",
            "Upgrade the chart to this version, or use the ibrik of the chart's version",
        )
    else:
        yield Finding("fine", f"definitions are those of {seen.version}")


def _schema_of(definition: Document) -> Document | None:
    versions = definition["spec"]["versions"]
    served: Document = next((v for v in versions if v["name"] == VERSION), {})
    schema: Document | None = (served.get("schema") or {}).get("openAPIV3Schema")
    return schema


def _chart_of(definition: Document) -> str:
    labels = definition["metadata"].get("labels") or {}
    return str(labels.get("helm.sh/chart", "of an unknown chart"))


def operator_works(seen: Seen) -> Iterator[Finding]:
    if "operator" in seen.unseen:
        return
    if not seen.operators:
        yield Finding(
            "problem",
            "there is no operator: nothing that is applied is carried out",
            "Install it: helm install ibrik … --namespace ibrik-system --create-namespace",
        )
    for deployment in seen.operators:
        yield from _operator(seen, deployment)


def _operator(seen: Seen, deployment: Document) -> Iterator[Finding]:
    name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
    wished = deployment["spec"].get("replicas", 1)
    ready = (deployment.get("status") or {}).get("readyReplicas", 0)
    if wished == 0:
        yield Finding(
            "problem",
            f"operator {namespace}/{name} is scaled to 0: nothing that is applied is carried out",
            f"kubectl -n {namespace} scale deployment {name} --replicas=2",
        )
        return
    if ready < wished:
        unwell = [
            pod_state(pod)
            for pod in seen.operator_pods
            if pod["metadata"]["namespace"] == namespace and not is_ready(pod)
        ]
        yield Finding(
            "problem" if ready == 0 else "warning",
            f"operator {namespace}/{name}: {ready} of {wished} ready"
            + (f": {', '.join(unwell)}" if unwell else ""),
            f"kubectl -n {namespace} describe deployment {name}",
        )
    holder = _holder(seen, namespace, name)
    if ready and holder is None and "leases" not in seen.unseen:
        yield Finding(
            "problem",
            f"operator {namespace}/{name}: no replica leads, so nothing is carried out",
            f"kubectl -n {namespace} logs deployment/{name}",
        )
    elif ready:
        leader = f", leader {holder}" if holder else ""
        yield Finding("fine", f"operator {ready}/{wished}{leader}")
    version = version_of_image(deployment)
    if version not in ("", seen.version):
        yield Finding(
            "warning",
            f"operator {namespace}/{name} is version {version}, this command {seen.version}",
            "Use the ibrik of the operator's version when something looks odd",
        )


def _holder(seen: Seen, namespace: str, name: str) -> str | None:
    """Who holds the lease that is called like the operator, if it was renewed lately."""
    lease = next((each for each in seen.leases if name_of(each) == f"{namespace}/{name}"), None)
    spec = (lease or {}).get("spec") or {}
    if not spec.get("holderIdentity") or not spec.get("renewTime"):
        return None
    age_s = seen.now_s - parse_timestamp(str(spec["renewTime"])) / 1000
    return None if age_s > LEASE_IS_OLD_AFTER_S else str(spec["holderIdentity"])


def version_of_image(deployment: Document) -> str:
    """The tag of the first container's image; empty with a digest or one like `dev`."""
    containers = deployment["spec"]["template"]["spec"].get("containers") or [{}]
    image = str(containers[0].get("image", ""))
    name = image.rpartition("/")[2]
    tag = "" if "@" in name else name.partition(":")[2]
    return tag if tag[:1].isdigit() else ""
