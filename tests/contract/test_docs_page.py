"""The pages at /docs in a real browser without a network; collected where Chromium is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.broker import running_broker

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OFFLINE_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


def rendered(url: str, profile: Path) -> str:
    """The page's document after its scripts have run."""
    assert CHROMIUM is not None
    command = [CHROMIUM, *OFFLINE_FLAGS, f"--user-data-dir={profile}"]
    command += ["--virtual-time-budget=20000", "--dump-dom", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    return done.stdout.replace("\u200b", "").replace("<wbr>", "")


if CHROMIUM:

    @pytest.mark.slow
    def test_the_docs_of_both_doors_are_drawn_without_a_network(tmp_path: Path) -> None:
        with running_broker(tmp_path) as broker:
            data_page = rendered(f"{broker.http_url}/docs", tmp_path / "one")
            admin_page = rendered(f"{broker.admin_url}/docs", tmp_path / "two")
        assert "/v1/topics/{topic}/messages" in data_page
        assert "Publish" in data_page
        assert "/admin/v1/desired" in admin_page
