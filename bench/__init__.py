"""Benchmarks: what we do, beside what could be done at best, measured in the same run."""
