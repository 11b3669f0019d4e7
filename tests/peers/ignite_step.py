# SPDX-License-Identifier: Apache-2.0
"""Ignite: a step of an Engine with one handler, above the same loop without it."""
import ignite
from ignite.engine import Engine, Events

from turns import measure_steps, take_turns


def step(engine, batch):
    return batch


engine = Engine(step)
engine.add_event_handler(Events.ITERATION_COMPLETED(every=1 << 30), lambda engine: None)


def bare(count):
    for batch in range(count):
        step(None, batch)


def monitored(count):
    engine.run(range(count), max_epochs=1)


take_turns(f"Ignite {ignite.__version__}", lambda: measure_steps(20000, monitored, bare))
