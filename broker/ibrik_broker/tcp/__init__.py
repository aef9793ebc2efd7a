"""The TCP door: `ibrik_wire` on asyncio transports."""
