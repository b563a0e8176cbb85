"""Tools for maintainers of this repository. The package is not installed."""
