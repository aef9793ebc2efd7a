"""Single bit flips in sealed segments: `python -m tests.bitflips --flips 10000`."""
