"""How far a command has come, on a terminal and in a log."""

from __future__ import annotations

import io
import sys

from remnant.cli.progress import ProgressBar


class Terminal(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_log_gets_a_line_a_minute_and_none_before(capsys):
    now = [0.0]
    with ProgressBar(clock=lambda: now[0]) as bar:
        for step in range(0, 2000, 10):
            now[0] = 0.1 * step
            bar("training 2 of 3", step, 2000)
    assert capsys.readouterr().err.splitlines() == [
        f"training 2 of 3: {share} %" for share in (30, 60, 90)
    ]


def test_a_terminal_gets_a_bar_of_the_part_at_hand(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    with ProgressBar() as bar:
        bar("training", 5, 10)
        bar("measuring", 1, 4)
    assert "training" in shown.getvalue()
    assert "measuring" in shown.getvalue()
    assert "training: 50 %\n" not in shown.getvalue(), "no lines beside a bar"
