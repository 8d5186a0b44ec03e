"""How much work is a call? Lines of Python executed, which no other load on the machine changes."""

import sys


def lines_executed(call, within):
    """Number of lines that a call executes in files whose path contains a string."""
    count = 0

    def count_lines(frame, event, _):
        nonlocal count
        count += event == "line"
        return count_lines

    def enter(frame, event, _):
        return count_lines if within in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(before)
    return count
