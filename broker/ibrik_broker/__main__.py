"""`python -m ibrik_broker`: the broker with settings from the environment and a file alone.

People use `ibrik serve`, which adds flags and calls the same `run`.
"""

import sys

from ibrik_broker.app import EXIT_FAILED, run
from ibrik_broker.settings import SettingsError, load_settings


def main() -> int:
    try:
        settings = load_settings()
    except SettingsError as error:
        sys.stderr.write(f"error: {error}\n")
        return EXIT_FAILED
    return run(settings)


if __name__ == "__main__":
    sys.exit(main())
