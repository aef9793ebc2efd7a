"""Ibrik measured beside its peers, in the same run on the same machine: `python -m bench`.

One file per subject; docs/benchmarks.md has the method, the rules and the bars.
"""
