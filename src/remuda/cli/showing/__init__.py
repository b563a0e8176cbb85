"""How commands show what they found: tables for people, JSON, YAML and names for everybody else."""
