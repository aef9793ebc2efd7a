"""The two Services of a pool, its disruption budget, and the optional NetworkPolicy. Pure."""

from collections.abc import Mapping
from typing import Any

from ibrik_api.kubernetes import (
    ADMIN_PORT,
    HTTP_PORT,
    TCP_PORT,
    archive_selector,
    headless_service_name,
    object_name,
    pod_selector,
)
from ibrik_operator.desired.common import child
from ibrik_operator.desired.spec import pool_spec
from ibrik_operator.keys import Document

DATA_PORTS = {"http": HTTP_PORT, "tcp": TCP_PORT}


def client_service(pool: Document) -> dict[str, Any]:
    """Where producers and consumers connect; the admin door is not here."""
    name = pool["metadata"]["name"]
    is_tcp_open = pool_spec(pool).listeners.tcp.enabled
    ports = {name: port for name, port in DATA_PORTS.items() if name != "tcp" or is_tcp_open}
    return {
        **child(pool, "v1", "Service", object_name(name)),
        "spec": {
            "type": "ClusterIP",
            "selector": pod_selector(name),
            "ports": [_port(name, number) for name, number in ports.items()],
        },
    }


def headless_service(pool: Document) -> dict[str, Any]:
    """The pods one by one, also those that are not ready, for the set and for whoever looks."""
    name = pool["metadata"]["name"]
    ports = {**DATA_PORTS, "admin": ADMIN_PORT}
    return {
        **child(pool, "v1", "Service", headless_service_name(name)),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": pod_selector(name),
            "ports": [_port(name, number) for name, number in ports.items()],
        },
    }


def disruption_budget(pool: Document) -> dict[str, Any]:
    """One broker at a time, whatever the size of the pool."""
    name = pool["metadata"]["name"]
    return {
        **child(pool, "policy/v1", "PodDisruptionBudget", object_name(name)),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": pod_selector(name)}},
    }


def network_policy(pool: Document, metrics_from: Mapping[str, str]) -> dict[str, Any]:
    """The data doors are open to the cluster, the admin door to the pool and the operator.

    Metrics are behind the admin door, which asks for a token for all else: who is in a namespace
    with all the labels of `metrics_from` reaches it too. Without labels nobody else does.
    """
    name = pool["metadata"]["name"]
    selector = {"matchLabels": pod_selector(name)}
    operator = {
        "namespaceSelector": {},
        "podSelector": {"matchLabels": {"app.kubernetes.io/component": "operator"}},
    }
    archive = [{"podSelector": {"matchLabels": archive_selector(name)}}]
    jobs = archive if pool_spec(pool).archive is not None else []
    monitoring = [{"namespaceSelector": {"matchLabels": dict(metrics_from)}}]
    admitted = [{"podSelector": selector}, operator, *jobs, *(monitoring if metrics_from else [])]
    return {
        **child(pool, "networking.k8s.io/v1", "NetworkPolicy", object_name(name)),
        "spec": {
            "podSelector": selector,
            "policyTypes": ["Ingress"],
            "ingress": [
                {"ports": [_open(number) for number in DATA_PORTS.values()]},
                {"from": admitted, "ports": [_open(ADMIN_PORT)]},
            ],
        },
    }


def _port(name: str, number: int) -> dict[str, Any]:
    return {"name": name, "port": number, "targetPort": name, "protocol": "TCP"}


def _open(number: int) -> dict[str, Any]:
    return {"protocol": "TCP", "port": number}
