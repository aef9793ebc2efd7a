"""`python -m ibrik_broker`: the broker with settings from the environment and a file alone.

People use `ibrik serve`, which adds flags and calls the same `run`.
"""

import gc
import sys


def main() -> int:
    gc.disable()  # loading makes a hundred thousand objects and no garbage; `run` turns it on
    from ibrik_broker.app import EXIT_FAILED, run
    from ibrik_broker.settings import SettingsError, load_settings

    try:
        settings = load_settings()
    except SettingsError as error:
        sys.stderr.write(f"error: {error}\n")
        return EXIT_FAILED
    return run(settings)


if __name__ == "__main__":
    sys.exit(main())
