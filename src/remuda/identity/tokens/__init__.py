"""Tokens: the keys that sign them, what they say, the sessions behind them, and what was revoked before its time."""
