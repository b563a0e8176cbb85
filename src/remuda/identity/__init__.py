"""The identity service: who there is, what they may do, and how much of everything they may use."""
