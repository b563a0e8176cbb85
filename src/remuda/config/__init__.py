"""Configuration: one TOML file, overridden by the environment, overridden by the command line."""
