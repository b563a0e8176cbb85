"""What people see of a Remuda in a browser: for now one page, with their instances as they are."""
