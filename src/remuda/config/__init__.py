"""The configuration: one TOML file, the environment over it, and the command line over both."""
