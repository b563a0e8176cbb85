"""Basic types that every other package uses: time, randomness, ids, errors, conditions, tags, secrets, canonical JSON.

A module belongs here if it knows nothing about storage, networks or the services, and needs only the standard library,
msgspec or cryptography. Time and randomness are ports, so that a simulation controls both. Only `sealing` and `files`
touch the file system, because sealing keys must live outside every store.
"""
