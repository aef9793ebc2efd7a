"""What a broker says of itself, over the probes and metrics of its admin door: no token needed."""

import re
from dataclasses import replace

from ibrik_cli.doctor.finding import BrokerSeen
from ibrik_client import IbrikError
from ibrik_client.transport import Transport

ANSWER_WITHIN_S = 10.0
SAMPLE = re.compile(r"^(ibrik_\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
VERSION = re.compile(r'version="([^"]*)"')


async def ask(seen: BrokerSeen, url: str) -> BrokerSeen:
    """`seen` with what the broker at this address answers, or with why it does not."""
    try:
        async with Transport(url, timeout_s=ANSWER_WITHIN_S) as transport:
            await transport.request("GET", "/healthz")
            metrics = (await transport.request("GET", "/metrics")).body.decode(errors="replace")
    except IbrikError as error:
        return replace(seen, fault=" ".join(str(error).split()))
    return read_metrics(seen, metrics)


def read_metrics(seen: BrokerSeen, metrics: str) -> BrokerSeen:
    """The few figures that the doctor judges."""
    figures: dict[str, float] = {}
    version = ""
    for name, labels, value in SAMPLE.findall(metrics):
        figures[name] = figures.get(name, 0.0) + float(value)
        if name == "ibrik_build_info" and (found := VERSION.search(labels)):
            version = found[1]
    free_bytes = figures.get("ibrik_storage_free_bytes")
    return replace(
        seen,
        version=version,
        is_ready=figures.get("ibrik_ready", 0.0) >= 1,
        free_bytes=None if free_bytes is None else int(free_bytes),
        is_storage_full=figures.get("ibrik_storage_full", 0.0) >= 1,
        damaged_records=int(figures.get("ibrik_damaged_records", 0.0)),
    )
