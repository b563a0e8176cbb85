"""The benchmark of two revisions: one client drives the programs of both, and what they cost is compared.

Nothing in here imports `remuda`: the client knows the programs only by their command line and their HTTP API.
"""
