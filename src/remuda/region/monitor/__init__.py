"""Looks at providers now and then: for what no event tells, and for what should not be there."""
