"""The log of one partition and the layout of the volume that holds it.

Synchronous, single writer, standard library plus the batch codec and crc32c. No asyncio, no HTTP.
"""
