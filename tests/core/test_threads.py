"""Threads give the same results in the same order, and stop when their consumer does."""

import os
import threading

import pytest

import rankgauge as rg
from rankgauge.core.threads import LARGE_FILE, check_stopped, default_jobs, map_in_threads
from rankgauge.formats import InFormat

CORES = len(getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0))


@pytest.mark.parametrize("jobs", [1, 2, 7])
def test_results_are_in_the_order_of_the_items(jobs):
    waits = [threading.Event() for _ in range(20)]

    def answer(number):
        # Of each two neighbors, the second finishes first.
        if jobs > 1 and number % 2 == 0:
            waits[number + 1].wait(10)
        waits[number].set()
        return number * number

    assert list(map_in_threads(answer, range(20), jobs)) == [n * n for n in range(20)]


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_items_are_taken_in_the_calling_thread_and_few_ahead(jobs):
    taken = []

    def items():
        for number in range(100):
            taken.append(threading.current_thread())
            yield number

    results = map_in_threads(lambda number: number, items(), jobs)
    assert next(results) == 0
    assert len(taken) <= jobs + 1
    assert set(taken) == {threading.main_thread()}
    assert list(results) == list(range(1, 100))


@pytest.mark.parametrize("jobs", [1, 3])
def test_the_error_is_that_of_the_first_item_that_has_one(jobs):
    later = threading.Event()

    def answer(number):
        if number == 2:
            if jobs > 1:
                later.wait(10)
            raise rg.InputError("two", where="items", fix="leave it out")
        if number == 3:
            later.set()
            raise ValueError("three")
        return number

    with pytest.raises(rg.InputError, match="two"):
        list(map_in_threads(answer, range(6), jobs))


@pytest.mark.parametrize("nested", [False, True])
def test_an_interrupt_ends_all_threads(nested):
    begun, ended = threading.Barrier(3), []

    def answer(number):
        try:
            begun.wait(10)
            while True:
                check_stopped()
        finally:
            ended.append(number)

    def answers(numbers):
        return list(map_in_threads(answer, numbers, 2))

    def items():
        yield from [(0, 1)] if nested else (0, 1)
        begun.wait(10)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(map_in_threads(answers if nested else answer, items(), 2))
    assert sorted(ended) == [0, 1]


def test_the_default_number_of_threads_is_1_unless_a_file_is_large(tmp_path):
    path = tmp_path / "a.run"
    with path.open("wb") as stream:
        stream.truncate(LARGE_FILE - 1)
        assert default_jobs([{"q": ["d"]}, "-", path, tmp_path, str(tmp_path / "none")]) == 1
        stream.truncate(LARGE_FILE)
        assert default_jobs([{"q": ["d"]}, str(path)]) == CORES
        assert default_jobs([InFormat(path, "trec")]) == CORES


@pytest.mark.parametrize("jobs", [0, -1, 1.5, True, "2", None, 10**9])
def test_a_number_of_threads_that_is_not_possible_is_refused(jobs):
    with pytest.raises(rg.InputError, match=r"jobs=.* is not valid\s+fix: .* from 1 to 1,024"):
        map_in_threads(abs, [1], jobs)
    runs = {"a": {"q": ["d"]}, "b": {"q": ["e"]}}
    with pytest.raises(rg.InputError, match=r"jobs=.* is not valid"):
        rg.compare({"q": {"d"}}, runs, "RR", jobs=jobs)
    with pytest.raises(rg.InputError, match=r"jobs=.* is not valid"):
        rg.evaluate({"q": {"d"}}, runs["a"], "RR", jobs=jobs)
