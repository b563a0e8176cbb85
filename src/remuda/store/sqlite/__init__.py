"""SQLite backend: one file, one writer, group commit.

The tables of the read side are the source of truth. Writes are validated and applied on the event loop, in short
slices; only COMMIT, which waits for the disk, runs in a thread.
"""
