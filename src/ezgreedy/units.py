"""How are times, sizes and numbers of things shown? As a reader would say them."""

_DURATIONS = (("years", 31_557_600.0), ("days", 86_400.0), ("h", 3600.0))
_SIZES = (("TB", 1e12), ("GB", 1e9))


def duration(seconds: float) -> str:
    """A time in words: `45 s`, `10 min`, `2.5 h`, `3.5 days`, `31.7 years`."""
    for unit, length in _DURATIONS:
        if seconds >= 1.5 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def size(num_bytes: float) -> str:
    """A number of bytes in words: `0.4 MB`, `500 MB`, `7.1 GB`, `1.2 TB`."""
    for unit, length in _SIZES:
        if num_bytes >= length:
            return f"{num_bytes / length:.1f} {unit}"
    megabytes = num_bytes / 1e6
    return f"{megabytes:.0f} MB" if megabytes >= 10 else f"{megabytes:.1f} MB"


def counted(count: int, noun: str) -> str:
    """`1 seed`, `2 seeds`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
