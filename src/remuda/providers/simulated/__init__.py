"""Simulated cloud: a state machine with its own storage, used only through the contract of providers.

::

    provider.Provider ──► capabilities (tenancies, networks, ports, servers, images, balancers, filestorage, consoles)
                             │ every call
                             ▼
                          gateway ── latency, faults, stale reads
                             │ writes
                             ▼
                          database ── one SQLite file: transactions, change log, due times
                             ▲
    operator ────────────────┘  out of band: stop, fail, migrate, vanish

An object's state follows from stored times and the cloud's clock: a server that was booting when the process died
continues to boot. The cloud keeps its servers even if Remuda's own store is deleted.
"""
