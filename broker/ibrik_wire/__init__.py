"""The TCP protocol without I/O: bytes in, commands out; replies in, bytes out."""
