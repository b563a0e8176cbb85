"""Read side: objects, indexes and recent changes as SQLite tables, shared by both backends.

Under SQLite the tables are the source of truth; under Kubernetes informers fill them. Reads are SQL on the event loop's
own connection plus a bounded cache. No statement stays open across an await, and nothing is loaded at start.
"""
