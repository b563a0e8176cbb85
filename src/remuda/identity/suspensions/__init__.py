"""Suspensions of persons everywhere, by platform administrators."""
