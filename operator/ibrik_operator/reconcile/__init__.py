"""One file for each kind: gather, decide, apply, write the status. What is decided is pure."""
