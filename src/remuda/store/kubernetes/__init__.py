"""Kubernetes backend, for several machines: the store contract on an API server.

The API server is the source of truth. An informer per kind fills the tables of the read side, in a temporary file, so
reads do not load the API server and a restart costs one list per kind.
"""
