# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 1.x: a step through MonitoredTrainingSession, which saves nothing, above the same step of a Session."""
import tensorflow as tf

from turns import measure_steps, take_turns

v1 = tf.compat.v1
v1.disable_eager_execution()
v1.logging.set_verbosity(v1.logging.ERROR)
step = v1.train.get_or_create_global_step()
train = v1.assign_add(step, 1)
bare = v1.Session()
bare.run(v1.global_variables_initializer())
monitored = v1.train.MonitoredTrainingSession(hooks=[v1.train.StopAtStepHook(last_step=1 << 60)])


def run(session, count):
    for _ in range(count):
        session.run(train)


take_turns(f"TensorFlow {tf.__version__}", lambda: measure_steps(2000, lambda n: run(monitored, n), lambda n: run(bare, n)))
