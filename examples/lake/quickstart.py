"""What this example shares with the quick start: its flights, its broker process, its screen."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "quickstart"))

import flights
import proof
import screen
from ending import run_demo
from process import IBRIK, BrokerFailed, BrokerProcess

__all__ = ["IBRIK", "BrokerFailed", "BrokerProcess", "flights", "proof", "run_demo", "screen"]
