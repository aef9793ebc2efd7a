"""A kind cluster with the chart: how soon a pool is there, and what its network costs."""
