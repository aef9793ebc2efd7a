"""The alerts are held to the metrics that exist, and each says what to do."""

import re

import pytest
import yaml

from tests.support.helm import CHART, ROOT

ALERTS = [
    rule
    for group in yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
METRIC = re.compile(r"^\| `(ibrik_\w+)` \| (\w+) \|[^|]*\| ([^|]*) \|", re.MULTILINE)
# What Prometheus adds to what it scrapes.
ADDED_LABELS = {"namespace", "pod"}


def metrics() -> dict[str, tuple[str, set[str]]]:
    """Kind and labels of every metric that the reference names."""
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    return {
        name: (kind, set(re.findall(r"`(\w+)`", labels)))
        for name, kind, labels in METRIC.findall(text)
    }


def known_series() -> dict[str, set[str]]:
    series: dict[str, set[str]] = {}
    for name, (kind, labels) in metrics().items():
        if kind == "histogram":
            series |= {f"{name}_{part}": labels | {"le"} for part in ("bucket", "count", "sum")}
        else:
            series[name] = labels
    return series


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_asks_only_for_what_is_measured(alert: dict[str, str]) -> None:
    asked = set(re.findall(r"\bibrik_\w+", alert["expr"]))
    assert asked
    assert asked - known_series().keys() == set()
    labels = set.union(*(known_series()[name] for name in asked)) | ADDED_LABELS
    for group in re.findall(r"by \(([^)]*)\)", alert["expr"]):
        assert set(group.split(", ")) <= labels


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_says_what_is_wrong_and_what_to_do(alert: dict[str, dict[str, str]]) -> None:
    assert alert["labels"]["severity"] in {"critical", "warning"}
    assert set(alert["annotations"]) == {"summary", "description"}
    shown = " ".join(alert["annotations"].values())
    groups = re.findall(r"by \(([^)]*)\)", str(alert["expr"]))
    kept = {label for group in groups for label in group.split(", ")}
    for label in re.findall(r"\$labels\.(\w+)", shown):
        assert label in (kept or ADDED_LABELS)


def test_no_two_alerts_have_one_name() -> None:
    names = [alert["alert"] for alert in ALERTS]
    assert len(names) == len(set(names))
