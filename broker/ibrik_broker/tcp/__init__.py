"""The TCP door: `ibrik_wire` on asyncio transports.

`door` listens and owns every connection; `connection` is one client; `pipeline` keeps replies in
the order of commands; `publish` and `fetch` carry commands to the engine.
"""
