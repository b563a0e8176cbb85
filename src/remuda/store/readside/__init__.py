"""The read side: objects, indexes and recent changes as SQLite tables, shared by both backends.

Under SQLite the tables are the truth; under Kubernetes informers fill them. Reads are SQL on the loop's own connection
plus a bounded cache; no statement stays open over an await, and nothing is loaded at start.
"""
