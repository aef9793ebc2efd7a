"""Logs are one JSON object a line; metrics are declared once and read at the scrape."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog
from prometheus_client import CollectorRegistry, generate_latest

from ibrik_broker.telemetry import metrics
from ibrik_broker.telemetry.collector import BrokerCollector
from ibrik_broker.telemetry.logs import configure_logging, get_logger


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def test_an_event_is_one_json_line_with_its_fields_and_context(stream: io.StringIO) -> None:
    configure_logging(level="info", form="auto", stream=stream)
    with structlog.contextvars.bound_contextvars(topic="orders"):
        get_logger("ibrik.log").info("segment rolled", partition=0, base_offset=7)
    line = json.loads(stream.getvalue())
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "message": "segment rolled",
        "level": "info",
        "logger": "ibrik.log",
        "topic": "orders",
        "partition": 0,
        "base_offset": 7,
    }


def test_the_standard_librarys_loggers_go_the_same_way(stream: io.StringIO) -> None:
    configure_logging(level="info", form="json", stream=stream)
    logging.getLogger("aiohttp.server").warning("odd\nrequest")
    assert json.loads(stream.getvalue())["message"] == "odd\nrequest"
    assert stream.getvalue().count("\n") == 1


def test_lines_below_the_level_are_not_written(stream: io.StringIO) -> None:
    configure_logging(level="warning", form="json", stream=stream)
    get_logger("ibrik").info("quiet")
    assert stream.getvalue() == ""


def test_an_exception_stays_on_one_line_of_json(stream: io.StringIO) -> None:
    configure_logging(level="info", form="json", stream=stream)
    try:
        raise RuntimeError("a disk")
    except RuntimeError:
        get_logger("ibrik").exception("failed")
    assert stream.getvalue().count("\n") == 1
    assert "RuntimeError: a disk" in json.loads(stream.getvalue())["exception"]


def test_a_person_gets_a_console_line(stream: io.StringIO) -> None:
    configure_logging(level="info", form="console", stream=stream)
    get_logger("ibrik").info("broker ready", topics=3)
    assert "broker ready" in stream.getvalue()
    assert "topics=3" in stream.getvalue()


def exposition(*readings: metrics.Reading) -> list[str]:
    registry = CollectorRegistry()
    registry.register(BrokerCollector([lambda: readings]))
    return generate_latest(registry).decode().splitlines()


def test_readings_are_grouped_into_one_family_per_metric() -> None:
    lines = exposition(
        metrics.Reading(metrics.APPENDED_RECORDS, ("orders", "0"), 5),
        metrics.Reading(metrics.READY, (), 1),
        metrics.Reading(metrics.APPENDED_RECORDS, ("orders", "1"), 7),
    )
    assert 'ibrik_appended_records_total{partition="0",topic="orders"} 5.0' in lines
    assert 'ibrik_appended_records_total{partition="1",topic="orders"} 7.0' in lines
    assert "ibrik_ready 1.0" in lines
    assert sum(line.startswith("# TYPE ibrik_appended_records") for line in lines) == 1


def test_a_histogram_exposes_cumulative_buckets() -> None:
    histogram = metrics.Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.observe(value)
    lines = exposition(metrics.Reading(metrics.GROUP_RECORDS, (), histogram))
    assert 'ibrik_group_records_bucket{le="1.0"} 2.0' in lines
    assert 'ibrik_group_records_bucket{le="2.0"} 3.0' in lines
    assert 'ibrik_group_records_bucket{le="+Inf"} 4.0' in lines
    assert "ibrik_group_records_sum 12.0" in lines
    assert "ibrik_group_records_count 4.0" in lines


def test_every_metric_has_a_unit_in_its_name_a_meaning_and_a_row_in_the_page() -> None:
    page = metrics.describe_metrics()
    for spec in metrics.METRICS:
        assert spec.name.startswith("ibrik_")
        assert spec.meaning.endswith(".")
        assert (spec.kind == "counter") == spec.name.endswith("_total")
        assert bool(spec.buckets) == (spec.kind == "histogram")
        assert f"`{spec.name}`" in page
