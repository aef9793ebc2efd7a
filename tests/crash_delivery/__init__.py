"""SIGKILL of a real broker while it delivers to failing sinks, and a check of what arrived.

`python -m tests.crash_delivery --runs 100`. Not collected by pytest, but for the tests of its pure
parts.
"""
