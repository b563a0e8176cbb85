"""The heap of this process, after something that took much of it."""

import ctypes
import gc

__all__ = ["release"]


def release() -> None:
    """Give the kernel what is free. By itself the C library does so at some later call, which then takes 100 ms."""
    gc.collect()
    if hasattr(library := ctypes.CDLL(None), "malloc_trim"):  # glibc has it
        library.malloc_trim(0)
