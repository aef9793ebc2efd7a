"""The contract: what crosses a process. Resource models, HTTP bodies, names, errors.

Imported by every program; imports none of them.
"""

__version__ = "0.1.0"
