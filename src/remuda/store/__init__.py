"""Store: objects with versions, indexes, watches and logs, behind one contract. Start reading at `contract`."""
