"""Jobs: claimed once, with heartbeats, cancelled, and run again if their process ends."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rankgauge.core.progress import report
from rankgauge.store import Jobs, jobs as module
from rankgauge.store.jobs import ATTEMPTS


@pytest.fixture
def jobs(where, monkeypatch):
    monkeypatch.setattr(module, "EVERY", 0.02)
    with Jobs(where) as jobs:
        yield jobs


def run_and_wait(jobs, number, act):
    """Run a job that takes too long, while something happens to it."""
    with jobs.running(number):
        act()
        time.sleep(10)


def test_a_store_without_jobs_has_none(where):
    assert Jobs(where).jobs() == []


def test_an_equal_job_that_waits_is_not_added_again(jobs):
    first = jobs.add(["bench"], author="Ann")
    assert jobs.add(["bench"], author="Bob") == first
    assert jobs.add(["bench", "--only", "bm25"], author="Bob").id != first.id
    with jobs.running(first.id):
        assert jobs.add(["bench"], author="Bob").id > first.id


def test_a_job_is_run_by_one_of_many_that_want_it(jobs):
    job, both = jobs.add(["bench"], author="Ann"), threading.Barrier(8)

    def claim(_):
        both.wait()
        with jobs.running(job.id) as claimed:
            return claimed is not None

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(claim, range(8))) == 1


def test_progress_is_stored_while_it_runs(jobs):
    job = jobs.add(["bench"], author="Ann")
    with jobs.running(job.id):
        report(1, 4, "dense")
        while jobs.job(job.id).beat < 2:
            time.sleep(0.01)
        now = jobs.job(job.id)
        assert (now.state, now.share, now.message, now.open) == ("running", 0.25, "dense", True)
    done = jobs.job(job.id)
    assert (done.state, done.share, done.message, done.open) == ("done", 1.0, "", False)


def test_an_error_is_stored_with_the_job(jobs):
    job = jobs.add(["bench"], author="Ann")
    with pytest.raises(ValueError, match="no such file"), jobs.running(job.id):
        raise ValueError("no such file")
    assert (jobs.job(job.id).state, jobs.job(job.id).message) == ("failed", "no such file")


def test_a_waiting_job_is_cancelled_at_once_and_a_running_one_interrupted(jobs):
    waiting, running = (jobs.add([name], author="Ann") for name in ("a", "b"))
    jobs.cancel(waiting.id, by="Bob")
    assert (jobs.job(waiting.id).state, jobs.job(waiting.id).message) == ("cancelled", "cancelled by Bob")
    with pytest.raises(KeyboardInterrupt):
        run_and_wait(jobs, running.id, lambda: jobs.cancel(running.id, by="Bob"))
    assert (jobs.job(running.id).state, jobs.job(running.id).message) == ("cancelled", "cancelled by Bob")
    jobs.cancel(running.id, by="Ann")
    assert jobs.job(running.id).message == "cancelled by Bob"


def test_a_released_job_is_run_again_but_not_forever(jobs):
    job = jobs.add(["bench"], author="Ann")
    for attempt in range(1, ATTEMPTS + 1):
        jobs.change(job.id, {"state": "waiting"}, state="running", attempt=attempt)  # by a process that ends
        lost = jobs.job(job.id)
        jobs.change(job.id, {}, beat=attempt)  # a heartbeat after it was read
        jobs.release(lost)
        assert jobs.job(job.id).state == "running"
        jobs.release(jobs.job(job.id))
        assert jobs.job(job.id).state == ("waiting" if attempt < ATTEMPTS else "interrupted")


def test_a_job_that_was_begun_since_is_not_refused(jobs):
    job = jobs.add(["bench"], author="Ann")
    jobs.change(job.id, {}, attempt=1)  # begun and released
    jobs.refuse(job, "no memory")
    assert jobs.job(job.id).state == "waiting"
    jobs.refuse(jobs.job(job.id), "no memory")
    assert (jobs.job(job.id).state, jobs.job(job.id).message) == ("failed", "no memory")


def test_a_process_that_was_thought_dead_is_interrupted_and_changes_nothing(jobs):
    job = jobs.add(["bench"], author="Ann")
    with pytest.raises(KeyboardInterrupt):
        run_and_wait(jobs, job.id, lambda: jobs.change(job.id, {"attempt": 1}, attempt=2))  # another process runs it
    assert (jobs.job(job.id).state, jobs.job(job.id).attempt) == ("running", 2)


def test_open_jobs_are_found_among_many_later_ones(jobs):
    running, waiting = (jobs.add([name], author="Ann") for name in ("a", "b"))
    jobs.change(running.id, {}, state="running", attempt=1)
    later = [jobs.add(["query", str(number)], author="Ann", state="done").id for number in range(5)]
    assert [job.id for job in jobs.jobs(2)] == [*later[:-3:-1], waiting.id, running.id]


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_job_that_was_released_while_its_process_did_not_react_waits(jobs, attempt):
    job = jobs.add(["bench"], author="Ann")
    with pytest.raises(KeyboardInterrupt):
        run_and_wait(jobs, job.id, lambda: jobs.change(job.id, {"attempt": 1}, state="waiting", attempt=attempt))
    assert jobs.job(job.id).open


def test_a_program_that_exits_fails_its_job_with_a_short_message(jobs):
    job = jobs.add(["bench"], author="Ann")
    with pytest.raises(SystemExit), jobs.running(job.id):
        raise SystemExit("x" * 1_000_000 + " the end")
    ended = jobs.job(job.id)
    assert (ended.state, len(ended.message), ended.message[-7:]) == ("failed", 2_000, "the end")


def test_a_process_that_does_not_react_to_an_interrupt_ends(jobs, where):
    job = jobs.add(["bench"], author="Ann")
    code = """if True:
        import signal, sys, time
        from rankgauge.store import Jobs, jobs as module
        module.EVERY = module._PATIENCE = 0.05
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with Jobs(sys.argv[1]) as jobs, jobs.running(int(sys.argv[2])):
            print("running", flush=True)
            time.sleep(60)
        """
    command = [sys.executable, "-c", code, where, str(job.id)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "running\n"
        jobs.cancel(job.id, by="Ann")
        assert process.wait(20) == 1
    jobs.release(jobs.job(job.id))
    assert jobs.job(job.id).state == "cancelled"
