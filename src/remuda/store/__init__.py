"""The store: objects with versions, indexes, watches and logs, behind one contract. Start at `contract`."""
