"""Which topics there are, and what is wished of them: joins rows, folders and the engine."""
