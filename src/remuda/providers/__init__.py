"""Providers of cloud resources: their contract, their implementations and the policy of calls to them."""
