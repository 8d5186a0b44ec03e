"""What a process that does nothing but train asks of its libraries."""

import ctypes

import torch

# mallopt's names for what it sets, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST_KEPT, _MOST_KEPT = 1 << 25, 1 << 30  # bytes; the first is all that glibc allows


def prepare_process(threads: int) -> None:
    """Sets torch's threads, and has the memory of gradients kept from one update to the next.

    Not for a process that others also use: both settings hold for all of it.
    """
    torch.set_num_threads(threads)
    keep_freed_memory()


def keep_freed_memory() -> bool:
    """Has glibc's allocator keep what is freed for what is asked next; tells whether it will.

    By default it returns large blocks to the system at once, and every update of a network has
    its gradients' pages given and cleared anew.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return False
    kept = set_option(_MMAP_THRESHOLD, _LARGEST_KEPT) == 1
    return kept and set_option(_TRIM_THRESHOLD, _MOST_KEPT) == 1
