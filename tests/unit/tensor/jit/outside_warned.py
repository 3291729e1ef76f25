"""State that nobody can compare from call to call."""

import collections
import datetime
import io
import itertools
import os
import threading
import time

import numpy as np

from tests.unit.tensor.jit.outside_table import Box, warned


@warned
def clock():
    return lambda x: x * time.perf_counter(), lambda: None


@warned
def time_of_day():
    return lambda x: x * datetime.datetime.now().timestamp(), lambda: None


@warned
def counter_of_itertools():
    numbers = itertools.count()
    return lambda x: x * next(numbers), lambda: None


@warned
def generator_that_goes_on():
    numbers = (n for n in range(10))
    return lambda x: x * next(numbers), lambda: None


@warned
def iterator_in_a_loop():
    numbers = iter([1.0, 2.0, 3.0, 4.0])

    def function(x):
        for number in numbers:
            return x * number
        return x

    return function, lambda: None


@warned
def file():
    handle = io.StringIO("a text")
    return lambda x: x * len(handle.read()), lambda: None


@warned
def file_that_is_opened():
    def function(x):
        with open(os.devnull) as handle:
            return x * len(handle.read())

    return function, lambda: None


@warned
def folder():
    return lambda x: x * len(os.getcwd()), lambda: None


@warned
def own_counter():
    box = Box(1)

    def function(x):
        box.rate += 1
        return x * box.rate

    return function, lambda: None


@warned
def list_that_grows():
    values = []

    def function(x):
        values.append(1)
        return x * len(values)

    return function, lambda: None


@warned
def deque_that_is_emptied():
    values = collections.deque([1.0, 2.0, 3.0])
    return lambda x: x * values.popleft(), lambda: None


@warned
def generator_without_a_seed():
    return lambda x: x * np.random.default_rng().random(), lambda: None


@warned
def generator_that_is_sent_to():
    numbers = (float(number) for number in range(9))
    return lambda x: x * numbers.send(None), lambda: None


@warned
def whether_a_lock_is_held():
    lock = threading.Lock()
    return lambda x: x * (2.0 if lock.locked() else 3.0), lambda: lock.acquire()


@warned
def how_errors_are_handled():
    return lambda x: x * len(np.geterr()["divide"]), lambda: None


@warned
def number_of_the_thread():
    return lambda x: x * (threading.get_ident() % 97), lambda: None
