"""The operator: turns Ibrik's resources into Kubernetes objects and calls of the brokers."""
