"""Delivery: what carries a topic's messages to its subscriptions, by push, pull or stream.

A *flow* is one delivery of one topic to one place; the dispatcher owns all flows. Knows nothing of
HTTP routes or resources: the catalogue (`ibrik_broker.registrations`) says what is wished.
"""
