"""Jobs on workers that fail in every way, without any real worker."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from remnant.errors import InvalidInput, RemnantError
from remnant.records import Record
from remnant.studies.jobs.execution import Execution, Job, Outcome, Workload, run_jobs
from remnant.studies.jobs.remote import Fault, Order, other_software, run_order, software
from remnant.studies.jobs.scheduling import Distributed, OutOfMemory, Patience, WorkerLost


class Scripted:
    """Workers that run jobs in this process when asked for the result, as a script says.

    ``script`` has the faults of each job by name, used up one by one.
    """

    shares_disk = False
    threads = 1

    def __init__(self, count=2, script=None, *, last_first=False):
        self.count, self.script, self.last_first = count, script or {}, last_first
        self.started, self.ended, self.sent, self.log, self.cancelled = 0, 0, [], [], []
        self.most_running = 0
        self.orders = {}

    def __enter__(self):
        self.started += 1

    def __exit__(self, *_):
        self.ended += 1

    def facts(self):
        return {"on": "script"}

    def share(self, shared):
        self.sent.append(shared)

    def submit(self, job, *, execution, folder, most):
        assert execution.executor is None
        handle = object()
        self.orders[handle] = job, execution, most
        self.log.append((job.name, most))
        return handle

    def wait(self, handles, seconds):
        self.most_running = max(self.most_running, len(handles))
        return [handles[-1 if self.last_first else 0]]

    def result(self, handle):
        job, execution, most = self.orders.pop(handle)
        faults = self.script.get(job.name, [])
        if faults:
            fault = faults.pop(0)
            if isinstance(fault, Fault):
                return fault
            raise fault
        order = Order(execution=execution, steps=job.steps, threads=1, most=most)
        return run_order(job.work, self.sent[-1], order)

    def steps_done(self):
        return {}

    def cancel(self, handles):
        self.cancelled += handles


def work(number, shared, context):
    context.output.put_array(f"array-{number}", np.arange(number) + shared)
    context.output.update_execution({f"{number}.split": number})
    if context.progress is not None:
        context.progress(f"group {number}", 1, 1)
    return number**2


def jobs(count):
    def make(number):
        return Job(
            name=f"group {number}",
            work=lambda shared, context: work(number, shared, context),
            members=4,
            steps=10,
        )

    return [make(number) for number in range(1, count + 1)]


@pytest.fixture
def record(tmp_path):
    with Record.create(
        tmp_path / "run",
        question="prediction",
        plan={},
        plan_fingerprint="a",
        data_fingerprint="b",
        execution={},
        provenance={},
    ) as made:
        yield made


def run(record, workers, count=5, **options):
    lines, kept = [], {}
    executor = None if workers is None else Distributed(workers, say=lines.append)
    every = jobs(count)
    run_jobs(
        every,
        shared=100,
        record=record,
        execution=Execution(executor=executor),
        keep=lambda job, value: kept.__setitem__(job.name, value),
        **{"progress": None} | options,
    )
    return lines, kept


def contents(record):
    return {name: record.array(name).tolist() for name in record.array_names()}


@pytest.mark.parametrize("last_first", [False, True])
def test_any_order_leaves_what_one_after_another_leaves(record, tmp_path, last_first):
    workers = Scripted(3, last_first=last_first)
    lines, kept = run(record, workers)
    assert lines == []
    assert kept == {f"group {number}": number**2 for number in range(1, 6)}
    assert contents(record) == {
        f"array-{number}": [100 + i for i in range(number)] for number in range(1, 6)
    }
    assert record.execution == {
        "groups": "5 of 5",
        "on": "script",
        **{f"{number}.split": number for number in range(1, 6)},
    }
    assert workers.most_running == 3, "no more at a time than there are workers"
    assert workers.sent == [100], "what groups share is sent once"


def test_nothing_to_run_starts_no_worker(record):
    workers = Scripted()
    run(record, workers, count=0)
    assert (workers.started, workers.sent) == (0, [])


def test_workers_start_once_and_end_with_the_executor(record):
    workers = Scripted()
    executor = Distributed(workers)
    with executor:
        for _ in range(2):
            run_jobs(
                jobs(2),
                shared=1,
                record=record,
                execution=Execution(executor=executor),
                progress=None,
            )
        assert (workers.started, workers.ended) == (1, 0)
    assert workers.ended == 1


def test_a_lost_worker_costs_a_line_and_another_attempt(record):
    lost = WorkerLost("its worker process was killed or crashed.")
    lines, kept = run(record, Scripted(script={"group 2": [lost, lost]}))
    assert kept["group 2"] == 4
    assert lines == [
        "remnant: group 'group 2' failed: its worker process was killed or crashed. It is run "
        f"again (attempt {attempt} of 3)."
        for attempt in (2, 3)
    ]


def test_a_job_that_loses_every_worker_ends_the_study_and_the_others_are_kept(record):
    lost = WorkerLost("its machine left the cluster.")
    workers = Scripted(1, script={"group 3": [lost] * 3})
    with pytest.raises(WorkerLost, match="failed 3 times; the last time its machine left"):
        run(record, workers)
    assert record.array_names() == ["array-1", "array-2"]
    assert record.execution["groups"] == "2 of 5"
    lines, kept = run(record, Scripted(1))
    assert not lines
    assert len(kept) == 5


def test_too_little_memory_halves_the_members_of_a_pass(record):
    memory = Fault("memory", "its worker ran out of memory")
    workers = Scripted(1, script={"group 1": [memory, OutOfMemory("its machine ran out.")]})
    lines, kept = run(record, workers, count=1)
    assert [most for _, most in workers.log] == [None, 2, 1]
    assert kept == {"group 1": 1}
    assert "with 2 of 4 models at a time" in lines[0]
    assert "with 1 of 4 models at a time" in lines[1]
    words = r"failed with one model at a time: its worker ran out of memory\. Run fewer workers"
    with pytest.raises(OutOfMemory, match=words):
        run(record, Scripted(1, script={"group 1": [memory] * 3}), count=1)


def test_an_unexpected_error_is_named_without_its_text(record):
    def broken(shared, context):
        raise KeyError("my pin is 4711")

    try:
        broken(None, None)
    except KeyError as error:
        fault = Fault.of_crash(error)
    with pytest.raises(RemnantError) as caught:
        run(record, Scripted(1, script={"group 1": [fault]}), count=1)
    assert str(caught.value).startswith("Group 'group 1' failed: KeyError (its text is withheld")
    assert "4711" not in repr(fault)


def test_a_fault_of_the_study_is_raised_as_it_is_here(record):
    def diverges(shared, context):
        raise InvalidInput("Training diverged.", hint="Lower the learning rate.")

    workers = Scripted(2)
    executor = Distributed(workers)
    every = [Job(name="diverges", work=diverges), *jobs(1)]
    with pytest.raises(InvalidInput) as caught:
        run_jobs(
            every,
            shared=1,
            record=record,
            execution=Execution(executor=executor),
            progress=None,
        )
    assert str(caught.value) == "Training diverged. Lower the learning rate."
    assert len(workers.cancelled) == 1, "the other group is ended"


def test_one_bar_counts_the_updates_of_the_whole_study(record):
    shown = []
    run(
        record,
        Scripted(1),
        count=2,
        progress=lambda *state: shown.append(state),
        whole=Workload(5, 1000),
        later=Workload(1, 100),
    )
    assert {(stage, of) for stage, _, of in shown} == {("study", 1000)}
    assert [done for _, done, _ in shown] == [820, 860, 900]
    assert record.execution["groups"] == "4 of 5"


def test_a_worker_with_other_software_refuses():
    assert other_software(software(), software()) is None
    order = Order(execution=Execution(), steps=1, threads=1, versions=software() | {"torch": "0.1"})
    answer = run_order(lambda shared, context: 1 / 0, None, order)
    assert isinstance(answer, Fault)
    assert "and not 0.1" in answer.message
    with pytest.raises(InvalidInput, match="Install the same on all machines"):
        raise answer.error()


def test_memory_is_told_from_other_errors():
    def full(shared, context):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    def broken(shared, context):
        raise RuntimeError("something else")

    order = Order(execution=Execution(), steps=1, threads=1)
    assert run_order(full, None, order) == Fault("memory", "its worker ran out of memory")
    with pytest.raises(RuntimeError, match="something else"):
        run_order(broken, None, order)


def test_an_execution_that_is_sent_has_no_executor(tmp_path):
    import copy

    sent = copy.copy(Execution(device="cpu", pool_folder=Path("a"), executor=Distributed(None)))
    assert sent.executor is None
    assert sent.pool_folder == Path("a")


def test_patience_starts_anew_when_it_is_over(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    patience = Patience(10)
    for moment, lasts, exhausted in ((0, True, False), (9, True, False), (11, True, True)):
        now[0] = moment
        assert patience.exhausted(lasts) is exhausted
    assert not patience.exhausted(False)
    now[0] = 30
    assert not patience.exhausted(True)


def test_an_outcome_has_what_a_job_put_on_its_shelf():
    order = Order(execution=Execution(), steps=1, threads=1)
    notes = []
    answer = run_order(lambda shared, context: work(2, shared, context), 5, order, notes.append)
    assert isinstance(answer, Outcome)
    assert answer.value == 4
    assert answer.arrays["array-2"].tolist() == [5, 6]
    assert notes == [1]
