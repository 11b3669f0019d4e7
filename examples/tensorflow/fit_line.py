# SPDX-License-Identifier: Apache-2.0
# Makes the graph that fit_line.cpp trains: python fit_line.py line.meta
import sys
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
x, y = tf.placeholder(tf.float32, [None], "x"), tf.placeholder(tf.float32, [None], "y")
w, b = tf.get_variable("w", [], use_resource=True), tf.get_variable("b", [], use_resource=True)
loss = tf.reduce_mean(tf.square(w * x + b - y), name="loss")
step = tf.train.get_or_create_global_step()
tf.train.GradientDescentOptimizer(0.1).minimize(loss, step, name="train_op")  # also adds it to the collection train_op
tf.summary.scalar("mean_square", loss)
tf.add_to_collection("summary_op", tf.summary.merge_all())
tf.train.export_meta_graph(sys.argv[1], saver_def=tf.train.Saver().as_saver_def())
