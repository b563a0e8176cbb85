"""Errors about availability: temporary failures, and stores that cannot be opened without an operator."""

from pathlib import Path

from remuda.kernel.errors.objects import RemudaError

# ruff: noqa: N818  the names say what happened; the suffix "Error" would add nothing


class Unavailable(RemudaError):
    """Raised when a dependency does not work at the moment; wait and retry."""

    code = "unavailable"
    status = 503
    retry = True


class StorageFull(Unavailable):
    """Raised when the disk is full; free some space, and writes succeed again."""

    code = "storage_full"

    def __init__(self, path: str) -> None:
        super().__init__(f"The disk that holds {path} is full: free some space, then try again.")
        self.path = path


class StorageFailing(Unavailable):
    """Raised when the disk fails a read or a write; check the disk if that persists."""

    code = "storage_failing"

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"The disk failed while using {path} ({cause}): try again, and check the disk if it persists.")
        self.path, self.cause = path, cause


class TimedOut(Unavailable):
    """Raised when a response is not ready in time; read first, because the request may have been processed."""

    code = "timed_out"

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"The response was not ready within {limit_s:g} s: read the resource before trying again.")


class ServerUnreachable(Unavailable):
    """Raised when another server does not respond; retry, then check its address and the network."""

    code = "server_unreachable"

    def __init__(self, server: str, cause: str) -> None:
        super().__init__(
            f"The server {server} cannot be reached ({cause}): try again, and check its address if it persists."
        )
        self.server, self.cause = server, cause


class OutcomeUnknown(Unavailable):
    """Raised when a write was sent and no response arrived; read first, because it may have happened."""

    code = "outcome_unknown"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"No response to {what} arrived, and it may still take effect: check the result before you retry."
        )
        self.what = what


class Unusable(RemudaError):
    """Raised when a store cannot be opened; waiting does not help, the operator has to act."""

    code = "unusable"
    status = 503


class StoreLocked(Unusable):
    """Raised when another process has the store open; stop that one, or choose another directory."""

    code = "store_locked"

    def __init__(self, path: str) -> None:
        super().__init__(f"Another process has the store {path} open: stop it, or use another directory (--data).")
        self.path = path


class StoreDamaged(Unusable):
    """Raised when the content of a store is inconsistent; restore it from a backup."""

    code = "store_damaged"

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"The store {path} is damaged ({cause}): keep a copy of it and restore a backup.")
        self.path, self.cause = path, cause


class StoreTooOld(Unusable):
    """Raised when an unreleased revision has written the data; start with an empty data directory."""

    code = "store_too_old"

    def __init__(self, path: Path, *, found: int, known: int) -> None:
        super().__init__(
            f"The data in {path.parent} ({path.name}) has format {found}, and this program reads format {known}."
            f" No released version wrote format {found}: start with an empty data directory,"
            " or run the revision that wrote it."
        )
        self.path, self.found, self.known = path, found, known


class StoreTooNew(Unusable):
    """Raised when a later release has written the data; run that release or a newer one."""

    code = "store_too_new"

    def __init__(self, path: Path, *, found: int, known: int) -> None:
        super().__init__(
            f"The data in {path.parent} ({path.name}) has format {found}, and this program reads format {known}."
            " A later release wrote it: run that release or a newer one, or use another data directory."
        )
        self.path, self.found, self.known = path, found, known


class StoreForeign(Unusable):
    """Raised when the file is not a store. It is left unchanged: choose another directory."""

    code = "store_foreign"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"The file {path} was not written by Remuda and is left unchanged: use another directory (--data)."
        )
        self.path = path


class StoreClosed(Unusable):
    """Raised when a store is used after it was closed, for example by a request during shutdown."""

    code = "store_closed"

    def __init__(self, path: str) -> None:
        super().__init__(f"The store {path} is closed: open it again to use it.")


class StoreInaccessible(Unusable):
    """Raised when the system denies opening or creating the store; correct the path or its permissions."""

    code = "store_inaccessible"

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"The store {path} cannot be opened ({cause}): check the path and its permissions.")
        self.path, self.cause = path, cause
