"""What this example shares with the quick start: its broker process, its screen, its checks."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "quickstart"))

import proof
import screen
from ending import run_demo
from process import IBRIK, BrokerFailed, BrokerProcess

__all__ = ["IBRIK", "BrokerFailed", "BrokerProcess", "proof", "run_demo", "screen"]
