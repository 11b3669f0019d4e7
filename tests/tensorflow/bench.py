# SPDX-License-Identifier: Apache-2.0
"""Makes a regression graph, and prints the time of a step of Python's MonitoredTrainingSession over it. Makes a graph with 256 MiB of
variables, and prints the time of its Saver: python bench.py REGRESSION.meta LARGE.meta"""
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

tf.reset_default_graph()
layers = [tf.get_variable(f"layer{i}", [2048, 2048], use_resource=True, initializer=tf.random_normal_initializer(seed=i)) for i in range(16)]
step = tf.train.get_or_create_global_step()
with tf.control_dependencies([layer.assign_sub(layer * 1e-6) for layer in layers]):
    train = tf.assign_add(step, 1, name="count")
tf.add_to_collection("train_op", train.op)
saver = tf.train.Saver()
tf.train.export_meta_graph(sys.argv[2], saver_def=saver.as_saver_def())
with tempfile.TemporaryDirectory() as directory, tf.Session(config=config) as session:
    session.run(tf.global_variables_initializer())
    copies, saves = [], []
    source, target = np.ones(256 << 20, np.uint8), np.ones(256 << 20, np.uint8)
    for i in range(8):
        session.run(train)
        begun = time.perf_counter()
        saver.save(session, directory + "/model.ckpt", write_meta_graph=False)
        saved = time.perf_counter()
        np.copyto(target, source)
        saves.append(saved - begun)
        copies.append(time.perf_counter() - saved)
save, copy = statistics.median(saves[1:]), statistics.median(copies[1:])
print(f"Python: Saver.save of 256 MiB stops training for {save * 1e3:.1f} ms, {save / copy:.2f} memcpy")
