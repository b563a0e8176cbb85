"""The benchmark of the API kernel."""
