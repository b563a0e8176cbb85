"""Servers: their API, their actions, and the controller that creates, rebuilds and replaces them at the provider."""
