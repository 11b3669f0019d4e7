# SPDX-License-Identifier: Apache-2.0
"""Makes a regression graph, and prints the time of a step of Python's MonitoredTrainingSession over it: python bench.py FILE.meta"""
import os, statistics, sys, tempfile, time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
x, y = tf.placeholder(tf.float32, [None], "x"), tf.placeholder(tf.float32, [None], "y")
w, b = tf.get_variable("w", [], use_resource=True), tf.get_variable("b", [], use_resource=True)
loss = tf.reduce_mean(tf.square(w * x + b - y), name="loss")
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step(), name="train_op")
tf.train.export_meta_graph(sys.argv[1], saver_def=tf.train.Saver().as_saver_def())
hooks = [tf.train.NanTensorHook(loss), tf.train.LoggingTensorHook([loss], every_n_iter=10**9)]
config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
feeds = {x: np.zeros(4, np.float32), y: np.zeros(4, np.float32)}
with tempfile.TemporaryDirectory() as directory:
    with tf.train.MonitoredTrainingSession(checkpoint_dir=directory, hooks=hooks, config=config, save_summaries_steps=10**9,
                                           log_step_count_steps=10**9) as session:
        times = []
        for _ in range(21):
            begun = time.perf_counter()
            for _ in range(200):
                session.run(train, feeds)
            times.append((time.perf_counter() - begun) / 200)
print(f"Python: MonitoredTrainingSession, step of {sys.argv[1]}: {statistics.median(times[1:]) * 1e6:.2f} us")
