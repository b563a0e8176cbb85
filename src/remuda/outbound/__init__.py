"""Asking servers that other people name, without becoming a way into the inside.

`targets` reads an address as it is written, `reach` says which numbers may be spoken to, and `guarded` resolves a name
once, checks every number it stands for, and connects to exactly the number it has checked: for the first request and
again for each redirect.
"""
