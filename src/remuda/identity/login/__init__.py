"""Pages for browsers: login, logout, account, device authorization, passwords."""
