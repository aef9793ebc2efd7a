"""The page of metrics, from what the broker and the operator declare in their `metrics.py`."""

from prometheus_client.metrics import MetricWrapperBase

from ibrik_broker.telemetry.metrics import describe_metrics
from ibrik_operator import metrics as operator
from pages.markdown import page, table


def pages() -> dict[str, str]:
    return {
        "reference/metrics.md": page(
            "Metrics",
            "## Brokers",
            "What `/metrics` on the admin port answers, for Prometheus. Which of them deserve an\n"
            "alarm is in [Operate](../guides/operate.md#is-it-well).",
            describe_metrics(),
            "## The operator",
            "What `/metrics` on its port 8080 answers.",
            table(("metric", "kind", "unit", "labels", "meaning"), sorted(map(_row, _declared()))),
        )
    }


def _declared() -> list[MetricWrapperBase]:
    return [one for one in vars(operator).values() if isinstance(one, MetricWrapperBase)]


def _row(declared: MetricWrapperBase) -> tuple[str, str, str, str, str]:
    (metric,) = declared.describe()
    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    unit = "seconds" if name.endswith("_seconds") else ""
    labels = ", ".join(f"`{label}`" for label in declared._labelnames)
    return f"`{name}`", metric.type, unit, labels, metric.documentation
