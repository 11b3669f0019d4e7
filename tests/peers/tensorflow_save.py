# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 1.x: `Saver.save`, which blocks, and does not sync its files."""
import sys

import tensorflow as tf

from turns import measure_save, read_weights, take_turns

weights, directory = sys.argv[1:]
v1 = tf.compat.v1
v1.disable_eager_execution()
layers = read_weights(weights)
values = [v1.placeholder(tf.float32, layer.shape) for layer in layers]
variables = [v1.get_variable(f"layer_{i}", initializer=value, use_resource=True) for i, value in enumerate(values)]
saver = v1.train.Saver(variables, max_to_keep=None)
session = v1.Session()
session.run(v1.global_variables_initializer(), dict(zip(values, layers)))


def measure():
    return measure_save(directory + "/tensorflow/run", lambda path: saver.save(session, path + "/model.ckpt", write_meta_graph=False))


take_turns(f"TensorFlow {tf.__version__}", measure)
