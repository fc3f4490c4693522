"""What commands print on a terminal and in a pipe, and how far several studies have come."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import click
import pytest

from remnant.cli import terminal as streams
from remnant.cli.studies_bar import StudiesBar
from remnant.records import Record, finding_row
from remnant.report.paint import END, RED

CODE = "from remnant.cli.main import main; main()"
HEAD = "A few words"
SENTENCE = "Of 25 models more than half react to the patch, which is a long sentence in one line."


@pytest.fixture
def finding(tmp_path):
    """The folder of a stored finding without its tables."""
    folder = tmp_path / "choices"
    with Record.create(
        folder,
        question="prediction",
        plan={},
        plan_fingerprint="0" * 64,
        data_fingerprint="0" * 64,
        execution={},
        provenance={},
    ) as record:
        record.put_result("verdict", finding_row(headline=HEAD, sentence=SENTENCE, advice="Do it."))
        record.finish()
    return folder


def on_a_terminal(*arguments, width, **variables):
    """What a command writes to a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    kept = {key: os.environ[key] for key in os.environ if key not in ("COLUMNS", "NO_COLOR")}
    done = subprocess.Popen(
        [sys.executable, "-c", CODE, *map(str, arguments)],
        stdout=theirs, stderr=theirs, stdin=theirs, env=kept | {"TERM": "xterm"} | variables,
    )  # fmt: skip
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        written += part
    os.close(ours)
    assert done.wait(timeout=600) == 0
    return written.decode().replace("\r\n", "\n")


def test_a_terminal_gets_a_coloured_box_of_its_width(finding):
    text = on_a_terminal("show", finding, width=60)
    assert "\x1b[1;34m┌ FINDING " in text
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert "\x1b" not in plain
    lines = plain.splitlines()
    assert max(map(len, lines)) == 60
    assert " ".join(" ".join(line.lstrip("│ ") for line in lines).split()).count(SENTENCE) == 1
    quiet = on_a_terminal("show", finding, "-q", width=60)
    assert " ".join(quiet.split()) == f"\x1b[1;34mFINDING\x1b[0m: {SENTENCE}"


def test_no_colour_is_a_box_without_colour(finding):
    text = on_a_terminal("show", finding, width=70, NO_COLOR="1")
    assert text.startswith("┌ FINDING ")
    assert "\x1b" not in text
    assert "\x1b" not in on_a_terminal("show", finding, width=70, TERM="dumb")


def test_a_pipe_gets_plain_lines_of_80_columns_whatever_the_terminal(finding):
    done = subprocess.run(
        [sys.executable, "-c", CODE, "show", finding],
        capture_output=True, text=True, check=True, timeout=600,
        env=os.environ | {"COLUMNS": "50"},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[0].startswith("FINDING: A few words. Of 25 models")
    assert 50 < max(map(len, lines)) <= 80


def test_verbose_has_more_and_quiet_has_one_line(finding, command):
    usual, more = command("show", finding).out, command("show", finding, "-v").out
    assert more.startswith(usual.rstrip("\n"))
    assert command("show", finding, "--quiet").out == f"FINDING: {SENTENCE}\n"
    both = command("show", finding, "-v", "-q")
    assert (both.code, both.out) == (2, "")
    assert "--verbose and --quiet are both given. Pass one of them." in both.err


def test_what_is_marked_is_a_colour_on_a_terminal_and_nothing_elsewhere():
    class Screen(io.StringIO):
        def isatty(self):
            return True

    shown, piped = Screen(), io.StringIO()
    for stream in (shown, piped):
        streams.EscapedStream(stream).write(f"{RED}a\x1b[0m{END}")
    assert shown.getvalue() == "\x1b[1;31ma\\u001b[0m\x1b[0m"
    assert piped.getvalue() == "a\\u001b[0m"


def test_an_outcome_is_printed_at_once_and_what_follows_is_held(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)

    def fails():
        with streams.held_output():
            streams.show_now("stored")
            click.echo("not yet true")
            assert stream.getvalue() == "stored\n"
            raise ValueError("later")

    with pytest.raises(ValueError, match="later"):
        fails()
    assert stream.getvalue() == "stored\n"
    with streams.held_output():
        click.echo("held")
        streams.show_now("now")
        assert stream.getvalue() == "stored\nheld\nnow\n"
    assert stream.getvalue() == "stored\nheld\nnow\n"


@pytest.fixture
def bar(monkeypatch):
    """A bar of studies, and the clock that it reads."""
    now = [0.0]

    def make(names, seconds=None, *, shown=None):
        if shown is not None:
            monkeypatch.setattr(sys, "stderr", shown)
        return StudiesBar(names, seconds, clock=lambda: now[0]), now

    return make


def test_the_time_left_for_all_follows_the_studies_that_are_done(bar):
    made, now = bar(["a", "b", "c"], [2.0, 4.0, 6.0])
    made.begin()
    assert made.named() == "a, 1 of 3, about 12 s left for all"
    now[0] = 1.0
    assert made.seconds_left() == 11.0
    now[0] = 4.0  # twice as slow
    made.end()
    made.begin()
    assert made.seconds_left() == pytest.approx(2 * (4 + 6))
    now[0] = 100.0  # far slower yet: what follows is not less than was thought
    assert made.seconds_left() == pytest.approx(12)
    made.end()
    made.begin()
    assert made.named().startswith("c, 3 of 3, about ")


def test_without_known_times_the_first_study_says_how_long_the_others_take(bar):
    made, now = bar(["a", "b", "c"])
    made.begin()
    assert made.named() == "a, 1 of 3"
    now[0] = 5.0
    made.end()
    made.begin()
    assert made.named() == "b, 2 of 3, about 10 s left for all"


def test_a_log_gets_a_line_when_each_of_several_studies_begins(bar, capsys):
    made, now = bar(["a", "b"])
    for _ in range(2):
        made.begin()
        made("training", 1, 10)
        now[0] += 3.0
        made.end()
    assert capsys.readouterr().err.splitlines() == [
        "a, 1 of 2",
        "b, 2 of 2, about 3 s left for all",
    ]
    alone, _ = bar(["a"])
    alone.begin()
    alone.end()
    assert capsys.readouterr().err == "", "a single short run says nothing to a log"


def test_a_terminal_shows_the_study_before_its_first_step(bar):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = Terminal()
    made, _ = bar(["exposure", "b"], [1.0, 2.0], shown=shown)
    with made:
        made.begin()
        assert "exposure, 1 of 2, about 3 s left for all" in shown.getvalue()
        made("training 1 of 3", 5, 10)
        assert "left for all: training 1 of 3" in shown.getvalue()
