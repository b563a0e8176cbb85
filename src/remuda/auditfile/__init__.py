"""Audit file: the audit log as lines of JSON in a file that is only appended to, with a keyed hash chain."""
