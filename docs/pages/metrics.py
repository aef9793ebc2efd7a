"""The page of metrics, from the declarations in `ibrik_broker.telemetry.metrics`."""

from ibrik_broker.telemetry.metrics import describe_metrics
from pages.markdown import page


def pages() -> dict[str, str]:
    return {
        "reference/metrics.md": page(
            "Metrics",
            "What `/metrics` on the admin port answers, for Prometheus. Which of them deserve an\n"
            "alarm is in [Operate](../guides/operate.md#is-it-well).",
            describe_metrics(),
        )
    }
