"""Turns the readings of all sources into what `prometheus_client` exposes, at a scrape."""

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from ibrik_broker.telemetry.metrics import Histogram, MetricSpec, Reading, Source


class BrokerCollector(Collector):
    """Asks every source at a scrape and groups the readings by metric."""

    def __init__(self, sources: Sequence[Source] = ()) -> None:
        self._sources = list(sources)

    def add(self, source: Source) -> None:
        self._sources.append(source)

    def read(self) -> list[Reading]:
        """What all sources say now; on the event loop, whose things they are."""
        return [reading for source in self._sources for reading in source()]

    def collect(self) -> Iterator[Metric]:
        return _families(self.read())


def expose(readings: Iterable[Reading]) -> bytes:
    """Readings as Prometheus wants them. Ten thousand take a while: call it from a thread."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Taken(readings))
    return generate_latest(registry)


class _Taken(Collector):
    def __init__(self, readings: Iterable[Reading]) -> None:
        self._readings = readings

    def collect(self) -> Iterator[Metric]:
        return _families(self._readings)


def _families(readings: Iterable[Reading]) -> Iterator[Metric]:
    families: dict[str, Metric] = {}
    for spec, labels, value in readings:
        family = families.get(spec.name)
        if family is None:
            family = families[spec.name] = _family(spec)
        _add(family, labels, value)
    yield from families.values()


def _family(spec: MetricSpec) -> Metric:
    match spec.kind:
        case "counter":
            return CounterMetricFamily(spec.name, spec.meaning, labels=spec.labels)
        case "gauge":
            return GaugeMetricFamily(spec.name, spec.meaning, labels=spec.labels)
        case "histogram":
            return HistogramMetricFamily(spec.name, spec.meaning, labels=spec.labels)


def _add(family: Metric, labels: tuple[str, ...], value: float | Histogram) -> None:
    if isinstance(family, HistogramMetricFamily):
        assert isinstance(value, Histogram), f"{family.name} is declared as a histogram"
        family.add_metric(labels, _cumulative(value), value.total)
        return
    assert isinstance(family, CounterMetricFamily | GaugeMetricFamily), family.name
    assert not isinstance(value, Histogram), f"{family.name} is not declared as a histogram"
    family.add_metric(labels, value)


def _cumulative(histogram: Histogram) -> list[tuple[str, float]]:
    """Prometheus' buckets: each counts all observations up to its bound, the last is +Inf."""
    bounds = [*map(str, histogram.buckets), "+Inf"]
    running = 0
    buckets: list[tuple[str, float]] = []
    for bound, count in zip(bounds, histogram.counts, strict=True):
        running += count
        buckets.append((bound, float(running)))
    return buckets
