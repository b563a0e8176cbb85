"""Requests to servers that users name, protected against server-side request forgery.

`addresses` parses a URL and decides which IP addresses are allowed. `fetch` resolves a name once, checks every address,
and connects to exactly a checked address: for the first request and again for each redirect.
"""
