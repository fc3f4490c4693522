"""How far a command has come, on a terminal and in a log."""

from __future__ import annotations

import io
import sys

from remnant.progress import ProgressBar


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
        "training 2 of 3: 30 %, 10 steps/s, 3 min left",
        "training 2 of 3: 60 %, 10 steps/s, 2 min left",
        "training 2 of 3: 90 %, 10 steps/s, 20 s left",
    ]


def test_what_was_done_before_a_study_was_resumed_does_not_count_as_speed(capsys, monkeypatch):
    now = [0.0]
    with ProgressBar(clock=lambda: now[0]) as bar:
        bar("study", 9_000, 10_000)
        now[0] = 60.0
        bar("study", 9_000, 10_000)
        now[0] = 120.0
        bar("study", 9_600, 10_000)
    assert capsys.readouterr().err.splitlines() == [
        "study: 90 %",
        "study: 96 %, 5 steps/s, 2 min left",
    ]
    monkeypatch.setattr(sys, "stderr", Terminal())
    with ProgressBar() as bar:
        bar("study", 9_000, 10_000)
        assert (bar._bar.n, bar._bar.initial) == (9_000, 9_000)


def test_a_terminal_gets_a_bar_of_the_part_at_hand(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    with ProgressBar() as bar:
        bar("training", 5, 10)
        bar("measuring", 1, 4)
    assert "training" in shown.getvalue()
    assert "measuring" in shown.getvalue()
    assert "training: 50 %\n" not in shown.getvalue(), "no lines beside a bar"
