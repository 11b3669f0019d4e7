# SPDX-License-Identifier: Apache-2.0
"""Orbax: an asynchronous save of JAX arrays. They are immutable, so that Orbax copies nothing on a CPU."""
import sys
from importlib.metadata import version

import jax
import orbax.checkpoint as ocp

from turns import measure_save, read_weights, take_turns

weights, directory = sys.argv[1:]
tree = {f"layer_{i}": jax.block_until_ready(jax.numpy.array(layer)) for i, layer in enumerate(read_weights(weights))}
checkpointer = ocp.StandardCheckpointer()


def measure():
    return measure_save(directory + "/orbax", lambda path: checkpointer.save(path, tree), lambda _: checkpointer.wait_until_finished())


take_turns(f"Orbax {version('orbax-checkpoint')} (JAX {jax.__version__})", measure)
