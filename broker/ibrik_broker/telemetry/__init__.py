"""Structured logs and metrics: declared here, used everywhere."""
