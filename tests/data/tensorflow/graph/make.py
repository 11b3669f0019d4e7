# SPDX-License-Identifier: Apache-2.0
"""Makes the graphs of this folder with TensorFlow, and runs each the way TensorFlow's own users do, as a reference.

    python make.py DIR [NAME...]      (tensorflow-cpu from PyPI)

For every graph NAME it leaves in DIR/NAME
  model.ckpt-0.{index,data,meta}  initial values, MetaGraphDef with collections and SaverDef
  model.ckpt-N.*                  after N training steps by Session.run, one thread
  reference.json                  fetch and feed names, one line a step: fetched values as hexadecimal floats
Feeds are computed, not stored: see `feed` below; float32 arithmetic, so that any language makes the same bits.
Steps are bit-identical on one machine with one thread; between CPUs they differ in the last bits (compare to 1e-5).
"""
import json, os, sys
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3"); os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np, tensorflow as tf
tf1 = tf.compat.v1
tf1.disable_eager_execution()
STEPS = 20

def feed(kind, shape, step, seed):
    """Element k (row-major) of a feed at a step: r = (k*31 + step*17 + seed*7) mod 97; float: r/97, int64: r mod 10, bytes: b"token<r>"."""
    r = (np.arange(int(np.prod(shape)), dtype=np.int64) * 31 + step * 17 + seed * 7) % 97
    if kind == "float": return (r.astype(np.float32) / np.float32(97)).reshape(shape)
    if kind == "int64": return (r % 10).reshape(shape)
    if kind == "bytes": return np.array([b"token%d" % v for v in r], dtype=object).reshape(shape)
    raise ValueError(kind)

def mlp():
    """Reference variables, momentum, collections of a full Scaffold, summaries of every old kind."""
    x, y = tf1.placeholder(tf.float32, [None, 64], "images"), tf1.placeholder(tf.int64, [None], "labels")
    with tf1.variable_scope("hidden"):
        w = tf1.get_variable("kernel", [64, 32], initializer=tf1.glorot_uniform_initializer(seed=1), use_resource=False); b = tf1.get_variable("bias", [32], initializer=tf1.zeros_initializer(), use_resource=False)
        h = tf.nn.relu(tf.matmul(x, w) + b)
    with tf1.variable_scope("logits"):
        w2 = tf1.get_variable("kernel", [32, 10], initializer=tf1.glorot_uniform_initializer(seed=2), use_resource=False); b2 = tf1.get_variable("bias", [10], initializer=tf1.zeros_initializer(), use_resource=False)
        logits = tf1.identity(tf.matmul(h, w2) + b2, "out")
    loss = tf1.identity(tf1.losses.sparse_softmax_cross_entropy(y, logits), "loss")
    accuracy = tf1.reduce_mean(tf1.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32), name="accuracy")
    tf1.summary.scalar("loss_summary", loss); tf1.summary.histogram("hidden_kernel", w); tf1.summary.image("digits", tf.reshape(x, [-1, 8, 8, 1]), 2)
    train = tf1.train.MomentumOptimizer(0.05, 0.9).minimize(loss, global_step=tf1.train.get_or_create_global_step(), name="train_op")
    return [loss, accuracy], train, {x: ("float", [16, 64]), y: ("int64", [16])}

def adam_resource():
    """Resource variables, Adam's slots, a partitioned variable, a clipped gradient, a Print and an Assert that passes."""
    x, y = tf1.placeholder(tf.float32, [8, 12], "x"), tf1.placeholder(tf.float32, [8, 1], "y")
    with tf1.variable_scope("tower", use_resource=True):
        w = tf1.get_variable("embedding", [12, 6], partitioner=tf1.fixed_size_partitioner(3), initializer=tf1.truncated_normal_initializer(seed=3))
        h = tf.tanh(tf.matmul(x, tf.convert_to_tensor(w))); v = tf1.get_variable("out", [6, 1], initializer=tf1.truncated_normal_initializer(seed=4))
    with tf.control_dependencies([tf1.Assert(tf.reduce_all(tf.math.is_finite(x)), [x], name="x_is_finite")]): out = tf.matmul(h, v)
    loss = tf1.identity(tf.reduce_mean(tf1.squared_difference(out, y)), "loss"); opt = tf1.train.AdamOptimizer(0.01)
    g, vs = zip(*opt.compute_gradients(loss)); g, norm = tf.clip_by_global_norm(g, 1.0); tf1.identity(norm, "gradient_norm")
    train = opt.apply_gradients(zip(g, vs), global_step=tf1.train.get_or_create_global_step(), name="train_op")
    tf1.summary.scalar("loss_summary", loss)
    return [loss, tf1.get_default_graph().get_tensor_by_name("gradient_norm:0")], train, {x: ("float", [8, 12]), y: ("float", [8, 1])}

def queue():
    """A queue runner in the QUEUE_RUNNERS collection feeds the training; the queue closes after 40 examples (OutOfRange ends the loop)."""
    limit = tf1.train.limit_epochs(tf.constant(np.arange(40, dtype=np.float32) / 40), num_epochs=1, name="epoch")
    q = tf1.FIFOQueue(8, [tf.float32], [[]], name="examples"); tf1.train.add_queue_runner(tf1.train.QueueRunner(q, [q.enqueue_many([tf1.reshape(limit, [-1])])]))
    x = q.dequeue_many(2, name="batch"); w = tf1.get_variable("w", initializer=0.5, use_resource=True)
    loss = tf1.identity(tf.reduce_mean(tf.square(x * w - 2 * x)), "loss")
    train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf1.train.get_or_create_global_step(), name="train_op"); tf1.summary.scalar("loss_summary", loss)
    return [loss], train, {}

def words():
    """Strings: a hash table initialised by local_init_op, a string placeholder, an embedding with sparse gradients, a string variable."""
    tokens = tf1.placeholder(tf.string, [6], "tokens")
    table = tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer([f"token{i}" for i in range(50)], np.arange(50, dtype=np.int64)), num_oov_buckets=5)
    e = tf1.get_variable("embedding", [55, 4], initializer=tf1.random_uniform_initializer(-1, 1, seed=5), use_resource=True)
    ids = tf1.identity(table.lookup(tokens), "ids"); loss = tf1.identity(tf.reduce_mean(tf.square(tf.nn.embedding_lookup(e, ids))), "loss")
    name = tf1.get_variable("label", initializer=tf.constant(["run of words", "\u00e9t\u00e9"]), trainable=False, use_resource=True); tf1.identity(tf.strings.join(["<", name, ">"]), "shown")
    train = tf1.train.AdagradOptimizer(0.1).minimize(loss, global_step=tf1.train.get_or_create_global_step(), name="train_op"); tf1.summary.scalar("loss_summary", loss)
    return [loss, ids], train, {tokens: ("bytes", [6])}

def parameter_server():
    """Variables and global step on /job:ps/task:0, the rest on /job:worker/task:0: for servers, not for one process."""
    with tf1.device(tf1.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:0")):
        x, y = tf1.placeholder(tf.float32, [16, 8], "x"), tf1.placeholder(tf.float32, [16, 1], "y")
        w = tf1.get_variable("w", [8, 1], initializer=tf1.zeros_initializer(), use_resource=True); step = tf1.train.get_or_create_global_step()
        loss = tf1.identity(tf.reduce_mean(tf1.squared_difference(tf.matmul(x, w), y)), "loss")
        train = tf1.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=step, name="train_op")
    return [loss], train, {x: ("float", [16, 8]), y: ("float", [16, 1])}

def servers():
    """A ps and a worker in this process, on free ports of the loopback; the target of the worker."""
    import socket
    def free():
        with socket.socket() as s: s.bind(("127.0.0.1", 0)); return "127.0.0.1:%d" % s.getsockname()[1]
    cluster = tf1.train.ClusterSpec({"ps": [free()], "worker": [free()]})
    return [tf1.train.Server(cluster, job_name=j, task_index=0) for j in ("ps", "worker")]

def text_of(a):
    a = np.asarray(a)
    if a.dtype.kind == "f": return [float(v).hex() for v in a.ravel()]
    return [v.decode() if isinstance(v, bytes) else int(v) for v in a.ravel()]

def make(name, build, d):
    os.makedirs(d, exist_ok=True)
    with tf.Graph().as_default() as g:
        tf1.set_random_seed(11)
        fetches, train, feeds = build(); scaffold = tf1.train.Scaffold(saver=tf1.train.Saver(save_relative_paths=True)); scaffold.finalize()
        cfg = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        cluster = servers() if name == "parameter_server" else []
        with tf1.Session(cluster[1].target if cluster else "", config=cfg) as s:
            s.run(scaffold.init_op); s.run(scaffold.local_init_op)
            assert len(s.run(scaffold.ready_op)) == 0
            scaffold.saver.save(s, d + "/model.ckpt", global_step=0)
            coordinator = tf1.train.Coordinator(); threads = tf1.train.start_queue_runners(s, coordinator); lines = []
            for step in range(STEPS):
                f = {k: feed(kind, shape, step, i) for i, (k, (kind, shape)) in enumerate(feeds.items())}
                got = s.run([*fetches, train], f); lines.append([text_of(v) for v in got[:-1]])
            ended = ""
            if name == "queue":
                try: s.run(train)
                except tf.errors.OutOfRangeError as e: ended = type(e).__name__
            scaffold.saver.save(s, d + "/model.ckpt", global_step=tf1.train.get_global_step(), write_meta_graph=False)
            coordinator.request_stop(); coordinator.join(threads, stop_grace_period_secs=5)
        json.dump({"tensorflow": tf.__version__, "fetches": [t.name for t in fetches], "train": train.name, "steps": STEPS, "ends_with": ended,
                   "feeds": [{"name": k.name, "kind": kind, "shape": shape} for k, (kind, shape) in feeds.items()], "values": lines}, open(d + "/reference.json", "w"), indent=0)

if __name__ == "__main__":
    graphs = {"mlp": mlp, "adam_resource": adam_resource, "queue": queue, "words": words, "parameter_server": parameter_server}
    for name in sys.argv[2:] or graphs: make(name, graphs[name], os.path.join(sys.argv[1], name)); print("made", name)
