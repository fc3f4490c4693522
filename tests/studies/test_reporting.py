"""Records to pages and reports: what can be read, what is passed over, what is named as damaged."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from remnant.errors import RecordError, RemnantWarning
from remnant.records import Record
from remnant.records.listing import SHADOW_POOL
from remnant.records.outcomes import RULES
from remnant.records.typed import Absent, Result
from remnant.report.blocks import Block, Check, Tile, Tiles
from remnant.report.terminal import summary
from remnant.studies.registry import QUESTIONS, Question
from remnant.studies.reporting import read_page, read_pages, write_report
from remnant.studies.shared import result_parts
from remnant.studies.shared.pages import RunFacts, closing, headline, scope_section

TITLE = "Exposure of keys"


@dataclass(frozen=True)
class Exposed:
    highest: float


@dataclass(frozen=True, repr=False)
class KeysResult(Result):
    verdict: result_parts.Gate | Absent
    exposure: Exposed | Absent
    scope: result_parts.Tested | Absent


def beside(result: KeysResult) -> tuple[Check, ...]:
    return (Check(name="scales", status="agrees", text="scales agree"),)


def page(result: KeysResult, run: RunFacts) -> Iterator[Block]:
    yield headline(result.verdict, {"PASS": "Within the limit"}, checks=beside(result))
    if isinstance(result.exposure, Exposed):
        yield Tiles((Tile("Highest exposure", f"{result.exposure.highest:.2f} bits"),))
    yield scope_section(result.scope)
    yield from closing(run)


@pytest.fixture(autouse=True)
def _own_question(monkeypatch):
    question = Question(
        title="How exposed are keys?",
        result=f"{__name__}:KeysResult",
        page=f"{__name__}:page",
        heading=f"{__name__}:TITLE",
        beside=f"{__name__}:beside",
    )
    monkeypatch.setitem(QUESTIONS, "exposure", question)


@pytest.fixture
def make_keys(tmp_path):
    def make(
        name="run",
        *,
        question="exposure",
        highest: Any = 2.5,
        finish=True,
        execution=None,
        threads=None,
    ):
        with Record.create(
            tmp_path / name,
            question=question,
            plan={"question": question, "plan": {"seed": 0}, "model": {"kind": "lstm"}},
            plan_fingerprint="3f9c2d7be4a1905c6f",
            data_fingerprint="a71e0055d2cc81f0b3",
            execution={"device": "cpu"} | (execution or {}),
            provenance={"python": "3.11.7", "versions": {"remnant": "0.2.0"}}
            | ({} if threads is None else {"threads": threads}),
        ) as record:
            sentence = "Every key is under 10 bits."
            record.put_result("verdict", {"outcome": "PASS", "sentence": sentence, "rules": RULES})
            record.put_result("exposure", {"highest": highest})
            record.put_result("scope", {"tested": ["one model"], "not_tested": ["other text"]})
            if finish:
                record.finish()
        return record.folder

    return make


def test_a_record_becomes_a_page(make_keys):
    found = read_page(Record.open(make_keys("my keys")))
    assert (found.title, found.name, found.complete) == (TITLE, "my keys", True)
    assert found.command == "remnant run 'my keys.toml' --out 'my keys'"
    assert found.recipe.startswith('question = "exposure"\n\n[plan]\nseed = 0\n')
    audited = dict(found.audited)
    assert audited.pop("Date").endswith(" (UTC)")
    assert audited == {"Model": "kind lstm", "Remnant": "0.2.0"}
    lines = ["  controls: scales agree", "  Highest exposure: 2.50 bits"]
    assert summary(found).splitlines()[1:] == lines


@pytest.mark.parametrize(
    ("execution", "threads", "options"),
    [
        ({"on": "ray", "workers": 2}, 1, "--threads 1"),
        ({"device": "cuda", "compiled": True}, 4, "--device cuda --compiled --threads 4"),
        ({"device": "cuda:0, cuda:2", "compiled": False}, 8, "--device cuda:0,2 --threads 8"),
        ({"device": "; rm -rf ~"}, "8; rm -rf ~", ""),
    ],
)
def test_the_command_repeats_what_changes_numbers(make_keys, execution, threads, options):
    found = read_page(Record.open(make_keys("keys", execution=execution, threads=threads)))
    assert found.command.split() == f"remnant run keys.toml {options} --out keys".split()
    assert found.options == options


def test_runs_with_different_options_are_repeated_one_by_one(make_keys, tmp_path):
    make_keys("all/a", threads=1)
    make_keys("all/b", threads=1)
    same = write_report(tmp_path / "all").read_text(encoding="utf-8")
    assert "remnant run a.toml b.toml --threads 1 --out all" in same
    make_keys("all/c", threads=2)
    differing = write_report(tmp_path / "all").read_text(encoding="utf-8")
    assert "remnant run b.toml --threads 1 --out all/b &amp;&amp; remnant run c.toml" in differing
    assert "c.toml --threads 2 --out all/c" in differing


def test_the_report_of_a_run_and_of_several(make_keys, tmp_path):
    folder = make_keys("all/a")
    assert write_report(folder) == folder / "report.html"
    make_keys("all/b")
    make_keys("all/pool", question=SHADOW_POOL, finish=False)
    assert [found.name for found in read_pages(tmp_path / "all")] == ["a", "b"]
    path = write_report(tmp_path / "all", tmp_path / "other.html")
    document = path.read_text(encoding="utf-8")
    assert "Report on 2 runs" in document
    assert "remnant run a.toml b.toml --out all" in document
    with pytest.raises(RecordError, match="cannot be written"):
        write_report(folder, tmp_path / "nowhere" / "x.html")


def test_a_run_with_runs_under_it_comes_first(make_keys):
    folder = make_keys("demo")
    make_keys("demo/a")
    assert [found.name for found in read_pages(folder)] == ["demo", "a"]


def test_damaged_runs_are_named_in_the_report_and_in_warnings(make_keys, tmp_path):
    make_keys("all/a")
    make_keys("all/b", highest="much")
    fault = r"malformed result 'exposure': exposure\.highest is a str, no finite number"
    with pytest.raises(RecordError, match=fault):
        read_pages(tmp_path / "all")
    with pytest.warns(RemnantWarning, match=f"The run b is not in the report: .*{fault}"):
        path = write_report(tmp_path / "all")
    assert "cannot be read" in path.read_text(encoding="utf-8")
    with pytest.raises(RecordError, match=fault):
        write_report(tmp_path / "all" / "b")


def test_what_is_no_run_of_ours_says_what_it_is(make_keys, tmp_path):
    with pytest.raises(RecordError, match="is a pool of shadow models’ scores, and no run"):
        read_page(Record.open(make_keys("pools/pool", question=SHADOW_POOL)))
    with pytest.raises(RecordError, match="asks the question 'weather'; a report can be made for"):
        read_page(Record.open(make_keys("w", question="weather")))
    with pytest.raises(RecordError, match="does not exist"):
        write_report(tmp_path / "no-run")
    with pytest.raises(RecordError):
        read_pages(tmp_path / "pools")


def test_reading_pages_loads_no_torch():
    statement = "import sys, remnant.studies.reporting; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", statement], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
