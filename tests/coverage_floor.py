"""`python tests/coverage_floor.py`: what may lose a message is covered, or `make test` fails.

Reads the data that `make check` left in `.coverage`. The floor holds for the log and the partition
engine; the other packages are not measured.
"""

import sys
from pathlib import Path

import coverage

ROOT = Path(__file__).resolve().parent.parent
FLOOR_PERCENT = 95.0
JUDGED = ("broker/ibrik_log", "broker/ibrik_broker/partitions")


def main() -> int:
    measured = coverage.Coverage(config_file=str(ROOT / "pyproject.toml"))
    measured.load()
    print(f"{'package':<34}{'lines':>8}{'covered':>9}")
    percents = {package: _report(measured, package) for package in JUDGED}
    low = [package for package in JUDGED if percents[package] < FLOOR_PERCENT]
    for package in low:
        print(f"{package} is below the floor of {FLOOR_PERCENT:.0f} %; see: coverage report -m")
    return 1 if low else 0


def _report(measured: coverage.Coverage, package: str) -> float:
    """Print one line of the table; the share of lines that a test ran."""
    names = [str(path) for path in sorted((ROOT / package).rglob("*.py"))]
    lines = 0
    missing = 0
    for name in names:
        _, statements, _, missed, _ = measured.analysis2(name)
        lines += len(statements)
        missing += len(missed)
    percent = 100.0 * (lines - missing) / lines if lines else 100.0
    print(f"{package:<34}{lines:>8,}{percent:>8.1f}%")
    return percent


if __name__ == "__main__":
    sys.exit(main())
