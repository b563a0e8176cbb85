"""The embedded backend: one SQLite file, one writer, group commit.

The tables of the read side are the truth here. Writes are judged and applied on the loop, in small slices; only COMMIT,
the part that waits for the disk, runs elsewhere.
"""
