"""What browsers are shown: logging in and out, connecting devices, passwords."""
