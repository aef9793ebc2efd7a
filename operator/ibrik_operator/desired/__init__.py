"""What shall be: one pure function for each object of Kubernetes, and the documents for brokers."""
