"""Letters and figures of five by five cells, and text made of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput

SIDE = 5
# Read each glyph downwards: five rows of five cells, ink where there is an x.
_DRAWN = """
A .xxx. x...x xxxxx x...x x...x
B xxxx. x...x xxxx. x...x xxxx.
C .xxxx x.... x.... x.... .xxxx
D xxx.. x..x. x...x x..x. xxx..
E xxxxx x.... xxx.. x.... xxxxx
F xxxxx x.... xxx.. x.... x....
G .xxxx x.... x..xx x...x .xxxx
H x...x x...x xxxxx x...x x...x
I xxxxx ..x.. ..x.. ..x.. xxxxx
J ..xxx ...x. ...x. x..x. .xx..
K x...x x..x. xxx.. x..x. x...x
L x.... x.... x.... x.... xxxxx
M x...x xx.xx x.x.x x...x x...x
N x...x xx..x x.x.x x..xx x...x
O .xxx. x...x x...x x...x .xxx.
P xxxx. x...x xxxx. x.... x....
Q .xxx. x...x x.x.x x..x. .xx.x
R xxxx. x...x xxxx. x..x. x...x
S .xxxx x.... .xxx. ....x xxxx.
T xxxxx ..x.. ..x.. ..x.. ..x..
U x...x x...x x...x x...x .xxx.
V x...x x...x .x.x. .x.x. ..x..
W x...x x...x x.x.x xx.xx x...x
X x...x .x.x. ..x.. .x.x. x...x
Y x...x .x.x. ..x.. ..x.. ..x..
Z xxxxx ...x. ..x.. .x... xxxxx
0 .xxx. x..xx x.x.x xx..x .xxx.
1 ..x.. .xx.. ..x.. ..x.. .xxx.
2 xxxx. ....x .xxx. x.... xxxxx
3 xxxx. ....x ..xx. ....x xxxx.
4 x..x. x..x. xxxxx ...x. ...x.
5 xxxxx x.... xxxx. ....x xxxx.
6 .xxx. x.... xxxx. x...x .xxx.
7 xxxxx ....x ...x. ..x.. ..x..
8 .xxx. x...x .xxx. x...x .xxx.
9 .xxx. x...x .xxxx ....x .xxx.
"""


def _drawn() -> dict[str, NDArray[np.bool_]]:
    glyphs = {" ": np.zeros((SIDE, SIDE), dtype=np.bool_)}
    for line in _DRAWN.split("\n"):
        if line:
            name, *rows = line.split()
            glyphs[name] = np.array([[cell == "x" for cell in row] for row in rows])
    return glyphs


GLYPHS = _drawn()


def written(text: str, *, gap: int = 1) -> NDArray[np.bool_]:
    """Where there is ink: shape ``(5, width)``, the glyphs of ``text`` side by side.

    Args:
        text: Capital letters, figures and blanks, with ink somewhere.
        gap: Empty columns between two glyphs.

    Raises:
        InvalidInput: Nothing to write, a character without a glyph (the others are not shown), or a
            gap below zero.

    Example:
        >>> for row in written("HI"):
        ...     print("".join("x" if ink else "." for ink in row))
        x...x.xxxxx
        x...x...x..
        xxxxx...x..
        x...x...x..
        x...x.xxxxx
    """
    if not isinstance(text, str) or not text.strip(" "):
        raise InvalidInput(
            "text holds nothing to write.", hint="Use A to Z, 0 to 9, and blanks between."
        )
    unknown = sorted(set(text) - GLYPHS.keys())
    if unknown:
        raise InvalidInput(
            f"text holds {len(unknown)} kind(s) of character without a glyph, such as "
            f"{unknown[0]!r}.",
            hint="Use capitals A to Z, 0 to 9 and blanks; or draw an array of your own.",
        )
    if isinstance(gap, bool) or not isinstance(gap, (int, np.integer)) or gap < 0:
        raise InvalidInput(f"gap={gap!r} is not a whole number of at least 0.")
    between = np.zeros((SIDE, int(gap)), dtype=np.bool_)
    parts = [part for letter in text for part in (between, GLYPHS[letter])]
    return np.concatenate(parts[1:], axis=1)
