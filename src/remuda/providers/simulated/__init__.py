"""A cloud of its own: a state machine with its own storage, reached only through the contract of providers.

::

    provider.Provider ──► rooms (tenancies, networks, ports, servers, images, balancers, filestorage, consoles)
                             │ every call passes
                             ▼
                           desk ── latency, faults, what a stale read would show
                             │ effects
                             ▼
                           storage ── one SQLite file: transactions, the log of changes, what is due when
                             ▲
    operator ────────────────┘  out of band: stop, fail, migrate, vanish

How something is follows from stored times and the cloud's clock: what was booting when the process died goes on
booting. Delete our store, and it still has its servers.
"""
