"""The jobs, one module each: what is to do, doing it, and what came of it."""
