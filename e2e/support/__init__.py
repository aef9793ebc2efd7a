"""What the tests on a cluster share: the cluster, a namespace of it, a pod to talk from."""
