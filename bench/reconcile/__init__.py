"""The benchmark of reconciling."""
