"""Benchmark of `remuda up` as users run it: a process of its own, over sockets, with its log, metrics and limits."""
