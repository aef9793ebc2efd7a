"""Who publishes: registered publishers, their tokens, and a gatekeeper that vouches for them.

Beside the partitions, which know nothing of it. The HTTP door asks before it reads a body.
"""
