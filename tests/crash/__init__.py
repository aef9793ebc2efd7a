"""SIGKILL of a real broker under load, and a check of every acknowledgement it ever gave.

`python -m tests.crash --runs 200`. Not collected by pytest, but for the checker's own tests.
"""
