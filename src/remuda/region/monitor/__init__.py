"""Monitor of region: polls providers, projects their state into status, and reports and removes orphans."""
