"""What carries one message to one destination: HTTP, TCP, another topic.

A sender makes one attempt and says how it ended. When to try, how often, and what follows is
decided by its callers.
"""
