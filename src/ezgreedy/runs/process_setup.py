"""How does a process that only trains set up its libraries?"""

import ctypes

import torch

# Parameters of mallopt, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST_KEPT, _MOST_KEPT = 1 << 25, 1 << 30  # bytes; the first is the most that glibc allows


def prepare_process(threads: int) -> None:
    """Sets torch's threads, and keeps the memory of gradients from one update to the next.

    Not for a process shared with other code: both settings apply to the whole process.
    """
    torch.set_num_threads(threads)
    keep_freed_memory()


def keep_freed_memory() -> bool:
    """Makes glibc's allocator keep freed memory for reuse; returns whether it will.

    By default it returns large blocks to the system immediately, so every update of a network
    gets new, cleared pages for its gradients.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return False
    kept = set_option(_MMAP_THRESHOLD, _LARGEST_KEPT) == 1
    return kept and set_option(_TRIM_THRESHOLD, _MOST_KEPT) == 1
