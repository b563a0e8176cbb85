"""The words every other package speaks: time, chance, ids, errors, conditions, tags, secrets and canonical JSON.

A module may live here when it knows nothing about storage, networks or the services above it, and when all it needs
beyond its arguments is the standard library, msgspec or cryptography. Time and chance are ports, so that a simulation
can own both. The one module that touches a file is ``keyfile``, because a sealing key must live outside every store.
"""
