"""The `ibrik` command line. Imports the other packages lazily; nothing imports it.

`main` assembles, `commands/` has one module per noun or verb, `output` and `failures` say how
things look. Command modules import only typer and the standard library at their top, so that
`--help` and completion stay instant.
"""
