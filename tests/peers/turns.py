# SPDX-License-Identifier: Apache-2.0
"""What the peers share: the protocol with compare.py, the weights, and the time of a loop.

A peer prints "ready VERSION". Then it does one measurement for each line of standard input and prints its seconds.
"""
import os
import shutil
import sys
import time

LAYERS = 8


def take_turns(version, measure):
    """Calls `measure` for each line of standard input; what libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    print("ready", version, file=answers)
    for _ in sys.stdin:
        print(*measure(), file=answers)


def read_weights(path):
    """Returns the layers of the file as arrays of NumPy."""
    import numpy

    return numpy.split(numpy.fromfile(path, dtype=numpy.float32), LAYERS)


def seconds_of(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure_save(directory, save, finish=None):
    """Saves into a new directory. Returns the time for which `save` blocks, and the time until `finish` returns."""
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(os.path.dirname(directory), exist_ok=True)
    start = time.perf_counter()
    pending = save(directory)
    stall = time.perf_counter() - start
    if finish:
        finish(pending)
    return stall, time.perf_counter() - start


def measure_steps(count, monitored, bare):
    """Returns the seconds of a step in `monitored(count)` above those in `bare(count)`."""
    alone = seconds_of(lambda: bare(count))
    return ((seconds_of(lambda: monitored(count)) - alone) / count,)
