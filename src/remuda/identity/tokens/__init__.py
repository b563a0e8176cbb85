"""Tokens: signing, checking, revoking."""
