"""The generated pages, a module for each kind: `pages()` gives path under `docs/` → content."""
