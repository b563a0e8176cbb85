"""The identity service: users, permissions, tokens and quotas."""
