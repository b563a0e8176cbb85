"""Instances: their API, their rules, their create saga, and the controller that converges their servers."""
