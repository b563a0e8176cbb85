"""What a caller reads when the disk, not the request, is to blame."""

import errno
from types import TracebackType

import apsw

from remuda.kernel.errors import StorageFailing, StorageFull, StoreClosed, StoreDamaged


class Storage:
    """The file behind a reader, as a context in which SQLite's errors become ours."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        """Begin to use the file."""

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Say what an error of the file means."""
        if isinstance(error, apsw.Error):
            raise storage_error(self.path, error) from None


def storage_error(path: str, error: BaseException) -> Exception:
    """Return our error for what SQLite or the system said about a file."""
    if isinstance(error, (apsw.ConnectionClosedError, apsw.CursorClosedError)):
        return StoreClosed(path)
    if isinstance(error, apsw.FullError) or (isinstance(error, OSError) and error.errno == errno.ENOSPC):
        return StorageFull(path)
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return StoreDamaged(path, str(error))
    return StorageFailing(path, str(error))
