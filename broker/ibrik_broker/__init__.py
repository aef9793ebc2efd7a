"""The broker program. `app` wires; doors sit above engines, engines above stores."""
