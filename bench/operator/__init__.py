"""What the operator does with many resources: a real API server, controllers, and real brokers."""
