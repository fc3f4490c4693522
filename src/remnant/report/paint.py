"""Marks of colours within text, which only the stream of a terminal turns into colours.

Unicode keeps these characters for use within a program. They are taken out of all other text, so
that no name or sentence can colour itself.
"""

from __future__ import annotations

RED, GREEN, YELLOW, BLUE, END = (chr(0xFDD0 + place) for place in range(5))
OF_OUTCOMES = {"FAIL": RED, "PASS": GREEN, "INCONCLUSIVE": YELLOW, "FINDING": BLUE}
SEQUENCES = {
    ord(RED): "\x1b[1;31m",
    ord(GREEN): "\x1b[1;32m",
    ord(YELLOW): "\x1b[1;33m",
    ord(BLUE): "\x1b[1;34m",
    ord(END): "\x1b[0m",
}
"""What a terminal is sent for each mark, for ``str.translate``."""
NO_MARKS = dict.fromkeys(SEQUENCES)
"""Takes the marks out, for ``str.translate``."""
