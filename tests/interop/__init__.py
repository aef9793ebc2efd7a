"""Other readers of the format read what a broker wrote: `python -m tests.interop`."""
