"""The `ibrik` command line. Imports the other packages lazily; nothing imports it."""
