# SPDX-License-Identifier: Apache-2.0
"""Makes small graphs, each with a feature of training programs for TensorFlow 1, and trains each with TensorFlow's own session.

    python more_graphs.py DATA WORK [NAME...]

DATA holds make.py, which computes the feeds. For every graph NAME, WORK/NAME then contains the same files as a graph of make.py.
All graphs are made by one process, since the import of TensorFlow takes longer than a graph. compare.py compares them with run_graph.

A graph is a function that returns a Training. Its docstring names the feature. Its decorator declares the checks that differ, and why.
"""
import dataclasses, importlib.util, json, math, os, socket, sys
from typing import Any, Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function
from tensorflow.python.ops import data_flow_ops
from tensorflow.python.training import moving_averages

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.logging.set_verbosity(tf1.logging.ERROR)  # no warnings about old functions
STEPS = 20


@dataclasses.dataclass
class Training:
    """The parts of a graph that run_graph must know."""
    fetches: list
    train: Any                           # the train operation
    feeds: dict                          # kind and shape of each fed tensor; see feed() in make.py
    saver: Any = None                    # by default, a Saver of all variables


@dataclasses.dataclass
class Graph:
    """A function that makes a graph, and the checks of compare.py that differ for this graph."""
    build: Callable
    no_restore: str = ""                 # the reason why Python cannot restore our checkpoint; a limit that docs/how_to/tensorflow.md names
    no_resume: str = ""                  # the reason why a second process cannot continue with the same bits
    ends: bool = False                   # the input of the graph ends after STEPS steps
    extra_step: str = ""                 # the reason why our checkpoint has a tensor global_step that Python's does not have
    step_size: int = 1                   # the increment of the global step
    servers: dict = dataclasses.field(default_factory=dict)  # the number of servers of each job; none for a graph of one process
    control_flow_v2: bool = False        # loops and conditions are functions instead of Switch and Merge


GRAPHS = {}
directory = ""                           # where the graph that is being made is saved


def graph(**options):
    """Adds a function to GRAPHS."""
    def add(build):
        GRAPHS[build.__name__] = Graph(build, **options)
        return build
    return add


# --- Parts of the graphs ---

def load_make(data):
    """Imports make.py from its directory."""
    spec = importlib.util.spec_from_file_location("make", data + "/make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    return make


def get_step():
    return tf1.train.get_or_create_global_step()


def descend(loss, rate=0.1, name="train_op"):
    """Returns a train operation for graphs whose optimizer does not matter."""
    return tf1.train.GradientDescentOptimizer(rate).minimize(loss, get_step(), name=name)


def variable(name, value, **options):
    """Returns a variable that is not trained, by default a resource variable."""
    return tf1.get_variable(name, initializer=value, trainable=False, **{"use_resource": True, **options})


def local_variable(name, value, use_resource=True):
    """Returns a variable that is initialized by local_init_op and is not saved."""
    return variable(name, tf.constant(value), collections=[tf1.GraphKeys.LOCAL_VARIABLES], use_resource=use_resource)


def uniform(seed):
    return tf1.random_uniform_initializer(-1, 1, seed=seed)


def read_inputs():
    """Returns the inputs of a linear regression, and their feeds."""
    x = tf1.placeholder(tf.float32, [None, 6], "x")
    y = tf1.placeholder(tf.float32, [None, 1], "y")
    return x, y, {x: ("float", [8, 6]), y: ("float", [8, 1])}


def fit(x, y, use_resource=True, name="w"):
    """Returns the weights and the loss of a linear regression."""
    w = tf1.get_variable(name, [x.shape[1], 1], initializer=tf1.glorot_uniform_initializer(seed=3), use_resource=use_resource)
    return w, tf.reduce_mean(tf1.squared_difference(tf.matmul(x, w), y))


def regression(use_resource=True):
    """Returns the weights, the loss and the feeds of the model around the feature of a graph."""
    x, y, feeds = read_inputs()
    w, loss = fit(x, y, use_resource)
    return w, tf1.identity(loss, "loss"), feeds


# --- Layers and randomness ---

@graph()
def batch_norm():
    """Fused batch normalization of reference variables, whose moments are UPDATE_OPS, and a condition on placeholder_with_default."""
    images = tf1.placeholder(tf.float32, [None, 64], "images")
    labels = tf1.placeholder(tf.int64, [None], "labels")
    is_training = tf1.placeholder_with_default(True, [], "is_training")
    with tf1.variable_scope("net", use_resource=False):
        kernel = tf1.get_variable("kernel", [3, 3, 1, 4], initializer=tf1.truncated_normal_initializer(stddev=0.3, seed=1))
        hidden = tf.nn.conv2d(tf.reshape(images, [-1, 8, 8, 1]), kernel, strides=1, padding="SAME")
        gamma = tf1.get_variable("gamma", [4], initializer=tf1.ones_initializer())
        beta = tf1.get_variable("beta", [4], initializer=tf1.zeros_initializer())
        moving_mean = tf1.get_variable("moving_mean", [4], initializer=tf1.zeros_initializer(), trainable=False)
        moving_variance = tf1.get_variable("moving_variance", [4], initializer=tf1.ones_initializer(), trainable=False)
        normal, mean, variance = tf1.cond(
            is_training, lambda: list(tf1.nn.fused_batch_norm(hidden, gamma, beta)),
            lambda: list(tf1.nn.fused_batch_norm(hidden, gamma, beta, moving_mean, moving_variance, is_training=False)))
        for moving, value in ((moving_mean, mean), (moving_variance, variance)):
            update = moving_averages.assign_moving_average(moving, value, 0.9, zero_debias=False)
            tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
        flat = tf.reshape(tf.nn.max_pool2d(tf.nn.relu(normal), 2, 2, "SAME"), [-1, 64])
        out = tf1.get_variable("out", [64, 10], initializer=tf1.glorot_uniform_initializer(seed=2))
    loss = tf1.losses.sparse_softmax_cross_entropy(labels, tf.matmul(flat, out)) + 1e-3 * tf.nn.l2_loss(out)
    with tf.control_dependencies(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        train = tf1.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True).minimize(loss, get_step(), name="train_op")
    with tf.control_dependencies([train]):
        mean_after = moving_mean.read_value()
    return Training([loss, mean_after], train, {images: ("float", [16, 64]), labels: ("int64", [16])})


@graph(no_resume="the generator of a stateful random operation starts again in each process")
def dropout():
    """Dropout, noise and initial weights that take their seed from the graph."""
    x, y, feeds = read_inputs()
    hidden = tf.tanh(tf.matmul(x, tf1.get_variable("hidden", [6, 8], use_resource=True)))
    hidden = tf1.nn.dropout(hidden, rate=0.4) + tf1.random_normal([8], stddev=0.1)
    _, loss = fit(hidden, y)
    return Training([loss, tf1.random_uniform([3], maxval=1000, dtype=tf.int32)], descend(loss), feeds)


@graph()
def stateless_random():
    """Dropout whose seed is the global step, so that a second process continues with the same bits."""
    x, y, feeds = read_inputs()
    kept = tf.random.stateless_uniform([8, 6], seed=tf.stack([tf.cast(get_step(), tf.int32), 7])) > 0.3
    _, loss = fit(x * tf.cast(kept, tf.float32), y)
    return Training([loss], descend(loss), feeds)


# --- Partitioned variables ---

def partitioned(use_resource):
    ids = tf1.placeholder(tf.int64, [None, 3], "ids")
    y = tf1.placeholder(tf.float32, [None, 1], "y")
    with tf1.variable_scope("parts", use_resource=use_resource):
        by_mod = tf1.get_variable("mod", [11, 4], initializer=uniform(1), partitioner=tf1.fixed_size_partitioner(3))
        by_div = tf1.get_variable("div", [10, 4], initializer=uniform(2),
                                  partitioner=tf1.min_max_variable_partitioner(max_partitions=2, min_slice_size=16))
        columns = tf1.get_variable("columns", [4, 6], initializer=uniform(3), partitioner=tf1.fixed_size_partitioner(2, axis=1))
        cube = tf1.get_variable("cube", [4, 3, 5], tf.float64, initializer=uniform(4), partitioner=tf1.fixed_size_partitioner(3, axis=2))
        out = tf1.get_variable("out", [6, 1], initializer=uniform(5))
    rows = tf1.nn.embedding_lookup(by_mod, ids, "mod") * tf1.nn.embedding_lookup(by_div, ids % 10, "div")
    guess = tf.matmul(tf.matmul(tf.reduce_sum(rows, 1), tf.convert_to_tensor(columns)), out)
    penalty = tf.cast(tf.reduce_sum(tf.square(tf.convert_to_tensor(cube))), tf.float32)
    loss = tf.reduce_mean(tf1.squared_difference(guess, y)) + 1e-3 * penalty
    train = tf1.train.AdagradOptimizer(0.1).minimize(loss, get_step(), name="train_op")
    return Training([loss], train, {ids: ("int64", [8, 3]), y: ("float", [8, 1])})


@graph()
def partitioned_reference():
    """Reference variables in parts, by rows, by columns and of doubles; Adagrad has a slot for each part."""
    return partitioned(use_resource=False)


@graph()
def partitioned_resource():
    """Resource variables in parts, by rows, by columns and of doubles; Adagrad has a slot for each part."""
    return partitioned(use_resource=True)


@graph(no_restore="TensorFlow cannot take a part of a tensor of strings")
def partitioned_string():
    """A variable of strings in two parts."""
    _, loss, feeds = regression()
    names = tf1.get_variable("names", [5], tf.string, trainable=False, use_resource=True, partitioner=tf1.fixed_size_partitioner(2),
                             initializer=lambda shape, dtype, partition_info=None: tf.fill(shape, f"part {partition_info.var_offset[0]}"))
    return Training([loss, tf1.identity(names)], descend(loss), feeds)


# --- Savers ---

@graph()
def sharded():
    """A sharded saver in one process, and the slots of a centred RMSProp."""
    _, loss, feeds = regression(use_resource=False)
    train = tf1.train.RMSPropOptimizer(0.01, momentum=0.9, centered=True).minimize(loss, get_step(), name="train_op")
    return Training([loss], train, feeds, tf1.train.Saver(sharded=True, max_to_keep=2, save_relative_paths=True))


@graph(servers={"ps": 2, "worker": 1})
def sharded_two_ps():
    """A sharded saver of variables on two parameter servers."""
    with tf1.device(tf1.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:0")):
        _, loss, feeds = regression()
        bias = tf1.get_variable("bias", [1], initializer=tf1.zeros_initializer(), use_resource=True)
        loss += tf.reduce_sum(tf.square(bias - 0.3))
        train = tf1.train.AdamOptimizer(0.01).minimize(loss, get_step(), name="train_op")
    return Training([loss], train, feeds, tf1.train.Saver(sharded=True))


@graph(extra_step="the saver gives the global step another name")
def saver_renamed():
    """A saver of three variables under other names, beside a variable that is not saved."""
    w, loss, feeds = regression(use_resource=False)
    optimizer = tf1.train.MomentumOptimizer(0.1, 0.9)
    train = optimizer.minimize(loss, get_step(), name="train_op")
    saved = {"old/weights.v1": w, "m": optimizer.get_slot(w, "momentum"), "the_step": get_step()}
    unsaved = local_variable("unsaved", 3.5, use_resource=False)
    return Training([loss, tf1.identity(unsaved)], train, feeds, tf1.train.Saver(saved, reshape=True, restore_sequentially=True))


# --- Global steps ---

def own_step(name, dtype):
    """Returns a global step that the program creates itself."""
    return variable(name, tf.constant(0, dtype), collections=[tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.GLOBAL_STEP])


@graph(extra_step="the saver gives the global step another name")
def step_int32_renamed():
    """A global step of type int32 that is saved under another name and sets the learning rate."""
    w, loss, feeds = regression()
    step = own_step("global_step", tf.int32)
    train = tf1.train.GradientDescentOptimizer(tf1.train.exponential_decay(0.1, step, 4, 0.5, staircase=True)).minimize(
        loss, step, name="train_op")
    return Training([loss], train, feeds, tf1.train.Saver({"w": w, "the/step": step}))


@graph(extra_step="the global step is in a scope", step_size=3)
def step_in_scope_by_3():
    """A global step in a scope, which grows by 3 with each run."""
    _, loss, feeds = regression()
    with tf1.variable_scope("train/inner"):
        step = own_step("my_step", tf.int64)
    with tf.control_dependencies([tf1.train.GradientDescentOptimizer(0.1).minimize(loss)]):
        train = tf1.assign_add(step, 3, name="train_op").op
    return Training([loss], train, feeds)


@graph(extra_step="the graph has no global step")
def step_none():
    """A graph without a global step."""
    _, loss, feeds = regression()
    return Training([loss], tf1.train.AdamOptimizer(0.01).minimize(loss, name="train_op"), feeds)


# --- Control flow ---

def recurrent(use_resource):
    x = tf1.placeholder(tf.float32, [4, None, 5], "x")
    y = tf1.placeholder(tf.float32, [4, 1], "y")
    weights = tf1.get_variable("cell", [5 + 6, 24], initializer=tf1.glorot_uniform_initializer(seed=1), use_resource=use_resource)
    bias = tf1.get_variable("bias", [24], initializer=tf1.zeros_initializer(), use_resource=use_resource)
    length = tf.shape(x)[1]
    inputs = tf.TensorArray(tf.float32, length).unstack(tf.transpose(x, [1, 0, 2]))

    def cell(i, memory, hidden, outputs):
        gates = tf.matmul(tf.concat([inputs.read(i), hidden], 1), weights) + bias
        a, j, f, o = tf.split(gates, 4, 1)
        memory = memory * tf.sigmoid(f + 1) + tf.sigmoid(a) * tf.tanh(j)
        hidden = tf.tanh(memory) * tf.sigmoid(o)
        return i + 1, memory, hidden, outputs.write(i, hidden)

    start = [0, tf.zeros([4, 6]), tf.zeros([4, 6]), tf.TensorArray(tf.float32, length)]
    _, _, hidden, outputs = tf1.while_loop(lambda i, *_: i < length, cell, start)
    loss = tf.reduce_mean(tf1.squared_difference(tf.reduce_sum(hidden, 1, keepdims=True), y))
    optimizer = tf1.train.AdamOptimizer(tf1.train.polynomial_decay(0.05, get_step(), 10))
    clipped = [(tf.clip_by_norm(gradient, 0.5), v) for gradient, v in optimizer.compute_gradients(loss)]
    train = optimizer.apply_gradients(clipped, get_step(), name="train_op")
    return Training([loss, outputs.stack()], train, {x: ("float", [4, 7, 5]), y: ("float", [4, 1])})


@graph()
def loop_v1():
    """An LSTM in a while_loop of Enter, Exit and NextIteration, with TensorArrays, gradients and clipping."""
    return recurrent(use_resource=False)


@graph(control_flow_v2=True)
def loop_v2():
    """An LSTM in a While operation with functions, with TensorArrays, gradients and clipping."""
    return recurrent(use_resource=True)


@graph(control_flow_v2=True)
def cond_assigns():
    """Conditions on the global step that assign a variable, and a case."""
    _, loss, feeds = regression()
    step = get_step()
    odd_steps = variable("odd_steps", tf.constant(0))
    count = tf1.cond(tf.equal(step % 2, 1), lambda: tf1.assign_add(odd_steps, 1) + 0, lambda: odd_steps.read_value() * 1)
    loss *= tf1.case([(tf.equal(step % 3, 0), lambda: tf.constant(2.0)), (tf.equal(step % 3, 1), lambda: tf.constant(0.5))],
                     default=lambda: tf.constant(1.0))
    with tf.control_dependencies([count]):
        train = descend(loss, tf1.train.piecewise_constant(step, [5, 9], [0.1, 0.05, 0.01]))
    return Training([loss, count], train, feeds)


# --- Types of elements ---

@graph()
def strings():
    """Strings that are fed, fetched and saved: growing, many, none, empty, not ASCII, and with bytes of 0."""
    tokens = tf1.placeholder(tf.string, [None], "tokens")
    one = tf1.placeholder(tf.string, None, "one")
    _, loss, feeds = regression()
    log = variable("log", tf.constant(""))
    words = variable("words", tf.constant([["a", "b"], ["\u00e9", ""]]), use_resource=False)
    many = variable("many", tf.strings.as_string(tf.range(3000)))
    none = tf1.get_variable("none", [0, 3], tf.string, initializer=tf1.zeros_initializer(), trainable=False, use_resource=True)
    zeros = variable("zeros", tf.constant([b"\x00a\x00", b"\x00"]))
    not_text = variable("not_text", tf.constant(b"\x00\xff\x01\x00"))
    longer_log = tf1.assign(log, tf.strings.join([log, tokens[0], "|"]))
    longer_words = tf1.assign(words, tf.strings.join([words, one]))
    with tf.control_dependencies([longer_log, longer_words]):
        train = descend(loss)
    fetches = [loss, tokens, tf1.identity(longer_words), tf.strings.length(many), none.read_value(), zeros.read_value(),
               tf.strings.length(not_text), tf.strings.substr(longer_log, 0, 40)]
    return Training(fetches, train, {tokens: ("bytes", [2]), one: ("bytes", []), **feeds})


def next_value(old):
    """Returns another value of the same type."""
    if old.dtype.base_dtype == tf.bool:
        return tf.logical_not(old)
    if old.dtype.is_complex:
        return tf.cast(tf.cast(old, tf.complex128) * 1.1 + 1, old.dtype.base_dtype)
    return tf.cast(tf.cast(old, tf.float64) * 1.03 + 1, old.dtype.base_dtype)


def all_types(use_resource):
    _, loss, feeds = regression(use_resource)
    types = [tf.bool, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32, tf.int64, tf.uint64, tf.float16, tf.bfloat16, tf.float32,
             tf.float64, tf.complex64, tf.complex128]
    shapes = {"scalar": [], "matrix": [2, 3], "empty": [0], "empty_cube": [3, 0, 2], "deep": [1] * 6}
    variables = []
    for dtype in types:
        start = 1.5 - 0.25j if dtype.is_complex else 3
        for name, shape in shapes.items():
            value = tf.cast(tf.fill(shape, tf.constant(start)), dtype)
            variables.append(variable(f"{dtype.name}/{name}", value, use_resource=use_resource))
    updates = [tf1.assign(v, next_value(v)) for v in variables]
    # The new values are fetched, because an update may overwrite the buffer of an old value of a reference variable.
    with tf.control_dependencies([u.op for u in updates]):
        fetches = [v.read_value() for v in variables if v.op.name.endswith(("/matrix", "/empty"))]
    with tf.control_dependencies(fetches):
        train = descend(loss)
    return Training([loss, *fetches], train, feeds)


@graph()
def types_reference():
    """Reference variables of all types: scalars, matrices, tensors of 6 dimensions and tensors without elements."""
    return all_types(use_resource=False)


@graph()
def types_resource():
    """Resource variables of all types: scalars, matrices, tensors of 6 dimensions and tensors without elements."""
    return all_types(use_resource=True)


@graph()
def complex_training():
    """A complex variable with its gradient, and trained variables of type float64, float16 and bfloat16."""
    x, y, feeds = read_inputs()
    z = variable("z", tf.complex(tf.fill([6, 1], 0.1), tf.fill([6, 1], -0.2)))
    loss = tf.reduce_mean(tf.square(tf.abs(tf.matmul(tf.cast(x, tf.complex64), z)) - y))
    gradient = tf1.gradients(loss, [z])[0]
    for dtype in (tf.float64, tf.float16, tf.bfloat16):
        v = tf1.get_variable(dtype.name, initializer=tf.constant([0.5, 2], dtype))
        loss += tf.cast(tf.reduce_sum(v * v), tf.float32)
    with tf.control_dependencies([tf1.assign_sub(z, 0.05 * gradient)]):
        train = descend(loss, 0.05)
    return Training([loss, gradient], train, feeds)


@graph()
def denormals():
    """A variable that decays below 1.2e-38, the smallest normal float; the threads of TensorFlow replace smaller results by 0."""
    _, loss, feeds = regression()
    small = variable("small", tf.constant([1.3e-38] * 3))
    before = small.read_value() * 1.0
    with tf.control_dependencies([before]):
        decay = tf1.assign(small, small * 0.9)
    with tf.control_dependencies([decay]):
        train = descend(loss)
    return Training([loss, before], train, feeds)


# --- Input ---

@graph()
def tables():
    """A table from a vocabulary file, a table from numbers to strings, and Ftrl with a sparse gradient."""
    tokens = tf1.placeholder(tf.string, [None, 2], "tokens")
    x, y, feeds = read_inputs()
    vocabulary = os.path.abspath(directory + "/vocabulary.txt")
    with open(vocabulary, "w") as out:
        out.writelines(f"token{i}\n" for i in range(40))
    ids = tf.lookup.StaticVocabularyTable(
        tf.lookup.TextFileInitializer(vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                                      tf.lookup.TextFileIndex.LINE_NUMBER), num_oov_buckets=3).lookup(tokens)
    names = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(np.arange(30, dtype=np.int64), [f"n{i}" for i in range(30)]), default_value="none").lookup(ids)
    _, loss = fit(x, y)
    embedding = tf1.get_variable("embedding", [43, 1], initializer=tf1.random_normal_initializer(seed=1), use_resource=False)
    loss += tf.reduce_mean(tf.square(tf.nn.embedding_lookup(embedding, ids)))
    train = tf1.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01).minimize(loss, get_step(), name="train_op")
    return Training([loss, ids, names], train, {tokens: ("bytes", [5, 2]), **feeds})


@graph(no_resume="a dataset starts again in each process", ends=True)
def dataset_ends():
    """A dataset in the graph, whose iterator is initialized with the tables; the training ends with it."""
    data = tf.data.Dataset.range(STEPS).map(lambda i: tf.cast(i, tf.float32))
    iterator = tf1.data.make_initializable_iterator(data)
    tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    w = tf1.get_variable("w", [], initializer=tf1.zeros_initializer())
    loss = tf.square(w - iterator.get_next())
    return Training([loss], descend(loss, 0.05), {})


def split_tokens(tokens):
    """Returns the parts of each string around the letter n, as a sparse tensor."""
    parts = tf1.strings.split(tokens, "n")
    return parts if isinstance(parts, tf.SparseTensor) else parts.to_sparse()


@graph()
def sparse():
    """Sparse tensors of strings that are split and hashed, a reordered sparse tensor, a sparse gradient, and a complex fetch."""
    tokens = tf1.placeholder(tf.string, [6], "tokens")
    x, y, feeds = read_inputs()
    w = tf1.get_variable("w", [20, 1], initializer=tf1.glorot_uniform_initializer(seed=1), use_resource=True)
    parts = split_tokens(tokens)
    buckets = tf.strings.to_hash_bucket_fast(parts.values, 20)
    loss = tf.reduce_mean(tf.gather(w, buckets)) ** 2 + tf.reduce_mean(y)
    ordered = tf.sparse.reorder(tf.SparseTensor(tf.constant([[1, 2], [0, 1]], tf.int64), tf.stack([loss, 2 * loss]), [3, 4]))
    spectrum = tf.signal.rfft(tf.reshape(x, [-1]))
    train = tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, get_step(), name="train_op")
    fetches = [loss, buckets, parts.indices, ordered.values, spectrum, tf.unique(buckets)[0]]
    return Training(fetches, train, {tokens: ("bytes", [6]), **feeds})


# --- Metrics, averages and optimizers ---

@graph(no_resume="local variables are not saved")
def metrics():
    """Metrics, whose sums are local variables."""
    x, y, feeds = read_inputs()
    w, loss = fit(x, y)
    guess = tf.sigmoid(tf.matmul(x, w))
    labels = tf.cast(y > 0.5, tf.int64)
    updates = [tf1.metrics.accuracy(labels, tf.cast(guess > 0.5, tf.int64))[1], tf1.metrics.auc(labels, guess, num_thresholds=20)[1],
               tf1.metrics.mean(loss)[1]]
    with tf.control_dependencies(updates):
        train = descend(loss)
    with tf.control_dependencies([train]):
        sums = [v.read_value() for v in tf1.local_variables()[:2]]
    return Training([loss, *updates, *sums], train, feeds)


@graph()
def moving_average():
    """ExponentialMovingAverage of a variable and of a loss, with a decay that depends on the step and a correction for the start."""
    w, loss, feeds = regression(use_resource=False)
    optimize = tf1.train.AdamOptimizer(0.02).minimize(loss, get_step())
    average = tf1.train.ExponentialMovingAverage(0.9, get_step(), zero_debias=True)
    with tf.control_dependencies([optimize]):
        train = tf.group(average.apply([w]), average.apply([loss]), name="train_op")
    with tf.control_dependencies([train]):
        after = tf1.identity(average.average(w))
    return Training([loss, after], train, feeds)


@graph()
def optimizers():
    """Seven optimizers in one graph, one with a decaying learning rate."""
    x, y, feeds = read_inputs()
    step = get_step()
    rate = tf1.train.cosine_decay(0.1, step, 15)
    kinds = [tf1.train.AdamOptimizer(0.01), tf1.train.AdadeltaOptimizer(0.5), tf1.train.RMSPropOptimizer(0.01),
             tf1.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.001), tf1.train.ProximalGradientDescentOptimizer(0.1),
             tf1.train.AdagradDAOptimizer(0.1, step), tf1.train.MomentumOptimizer(rate, 0.9)]
    losses, operations = [], []
    for i, optimizer in enumerate(kinds):
        with tf1.variable_scope(f"tower{i}"):
            w, loss = fit(x, y, use_resource=i % 2 == 0)
        losses.append(loss)
        operations.append(optimizer.minimize(loss, var_list=[w]))
    with tf.control_dependencies(operations):
        train = tf1.assign_add(step, 1, name="train_op").op
    return Training([tf.add_n(losses), tf.stack(losses), rate], train, feeds)


@graph()
def gradient_accumulation():
    """Gradients that are added in a reference variable and applied in each fourth step, inside a condition."""
    w, loss, feeds = regression(use_resource=False)
    step = get_step()
    optimizer = tf1.train.AdamOptimizer(0.05)
    total = variable("total", tf.zeros([6, 1]), use_resource=False)

    def apply():
        with tf.control_dependencies([optimizer.apply_gradients([(total / 4, w)])]):
            return tf1.group(tf1.assign(total, tf.zeros([6, 1])))

    with tf.control_dependencies([tf1.assign_add(total, tf1.gradients(loss, [w])[0])]):
        applied = tf1.cond(tf.equal(step % 4, 3), apply, lambda: tf1.group(tf.no_op()))
    with tf.control_dependencies([applied]):
        train = tf1.assign_add(step, 1, name="train_op").op
    with tf.control_dependencies([train]):
        after = total.read_value()
    return Training([loss, after], train, feeds)


@graph()
def accumulator_and_staging():
    """A gradient that passes through a ConditionalAccumulator and a StagingArea, which hold state outside of variables."""
    w, loss, feeds = regression(use_resource=False)
    accumulator = tf1.ConditionalAccumulator(tf.float32, [6, 1])
    area = data_flow_ops.StagingArea([tf.float32], [[6, 1]])
    with tf.control_dependencies([accumulator.apply_grad(tf1.gradients(loss, [w])[0], tf.constant(10**6, tf.int64))]):
        mean = accumulator.take_grad(1)
    with tf.control_dependencies([area.put([mean])]):
        gradient = tf.nest.flatten(area.get())[0]
    train = tf1.train.GradientDescentOptimizer(0.1).apply_gradients([(gradient, w)], get_step(), name="train_op")
    return Training([loss, gradient], train, feeds)


# --- Collections, functions, names and feeds ---

@graph(no_resume="local_init_op copies a variable, which a second process restores from a later step")
def scaffold():
    """A program that sets all operations of the scaffold itself; its local_init_op depends on a restored variable."""
    w, loss, feeds = regression()
    four = local_variable("four", 4.0)
    copied = local_variable("copied", 0.0)
    train = descend(loss)
    with tf.control_dependencies([tf1.local_variables_initializer()]):
        local_init = tf1.group(tf1.assign(copied, tf.reduce_sum(w) + 1), name="my/local_init")
    tf1.summary.scalar("loss", loss)
    operations = {tf1.GraphKeys.INIT_OP: tf1.group(tf1.global_variables_initializer(), name="my/init"),
                  tf1.GraphKeys.LOCAL_INIT_OP: local_init,
                  tf1.GraphKeys.READY_OP: tf1.report_uninitialized_variables(name="my/ready"),
                  tf1.GraphKeys.READY_FOR_LOCAL_INIT_OP: tf1.report_uninitialized_variables(tf1.global_variables(), "my/ready_for_local"),
                  tf1.GraphKeys.SUMMARY_OP: tf1.summary.merge_all(name="my/summaries")}
    for collection, operation in operations.items():
        tf1.add_to_collection(collection, operation)
    return Training([loss, four.read_value(), copied.read_value()], train, feeds)


@graph()
def functions():
    """Nested Defuns, a tf.function with a loop and a condition, a custom gradient, and map_fn."""
    @function.Defun(tf.float32, tf.float32)
    def inner(a, b):
        return tf.sin(a) * b

    @function.Defun(tf.float32, tf.float32, func_name="outer_function")
    def outer(a, b):
        return inner(a, b) + inner(b, a)

    @tf.function
    def series(a):
        total = tf.zeros_like(a)
        for i in tf.range(4):
            total += tf.cos(a) * tf.cast(i, tf.float32)
        if tf.reduce_sum(total) > 0:
            total *= 0.5
        return total

    @tf.custom_gradient
    def square(a):
        return tf.square(a), lambda upstream: upstream * a

    x, y, feeds = read_inputs()
    w = tf1.get_variable("w", [6, 1], initializer=tf1.glorot_uniform_initializer(seed=3), use_resource=True)
    hidden = tf.ensure_shape(outer(tf.matmul(x, w), y), [None, 1])
    loss = tf.reduce_mean(series(hidden) + square(hidden))
    mapped = tf.map_fn(lambda row: row * 2 + tf.reduce_sum(w), x, parallel_iterations=3)
    return Training([loss, mapped], descend(loss), feeds)


@graph()
def odd_names():
    """Names with dots, slashes, signs and digits at the start, outputs of index 1 and 2, and a fetch that is named twice."""
    with tf1.name_scope("A.b-c/d_e"), tf1.variable_scope("1.x/Y-z_"):
        x, y, feeds = read_inputs()
        _, loss = fit(x, y, name="w.1-2/kernel")
        loss = tf1.identity(loss, "Lo.ss>x")
    parts = tf.unstack(tf.stack([loss, loss * 2, loss * 3]))
    return Training([loss, parts[2], parts[1], parts[1]], descend(loss, name="train.op/x"), feeds)


@graph()
def inner_feeds():
    """Feeds in the middle of the graph, of output 1 of a split, of unknown shape, and of tensors that are fetched as well."""
    rows = tf1.placeholder_with_default([[0.5, 0.25]], [None, 2], "rows")
    not_fed = tf1.placeholder_with_default(3.0, None, "not_fed")
    unknown = tf1.placeholder(tf.float32, None, "unknown")
    number = tf1.placeholder(tf.int64, [], "number")
    constant = tf1.identity(tf.constant([1.0, 2.0, 3.0]))
    middle = tf1.multiply(constant, 2.0, name="middle")
    halves = tf1.split(tf.constant([1.0, 2.0, 3.0, 4.0]), 2, name="halves")
    w = tf1.get_variable("w", [2, 1], initializer=tf1.ones_initializer(), use_resource=True)
    loss = tf.reduce_mean(tf.square(tf.matmul(rows, w))) + not_fed + tf.reduce_sum(unknown) + tf.cast(number, tf.float32)
    loss += tf.reduce_sum(middle)
    fetches = [loss, rows, middle, unknown, number, tf.add(halves[1], 1), halves[1], halves[0], rows, constant]
    feeds = {rows: ("float", [5, 2]), unknown: ("float", [2, 1, 2]), number: ("int64", []), middle: ("float", [3]),
             halves[1]: ("float", [2])}
    return Training(fetches, descend(loss, 0.01), feeds)


# --- Updates that are fetched ---

def counters(use_resource, count):
    """A counter that is fetched in each step, and a counter that only the summaries of each fifth step count. `count` adds 1."""
    _, loss, feeds = regression()
    steps = variable("steps", tf.constant(0.0), use_resource=use_resource)
    summaries = variable("summaries", tf.constant(0.0), use_resource=use_resource)
    before = summaries + 100.0  # a copy, which the update of a reference variable does not overwrite
    with tf.control_dependencies([before]):
        train = descend(loss)
    with tf.control_dependencies([train]):
        tf1.summary.scalar("count", count(summaries))
    return Training([loss, count(steps), before], train, feeds)


@graph()
def counter_reference():
    """Updates of reference variables that are fetched besides the train operation and must not run in steps that do not fetch them."""
    return counters(use_resource=False, count=lambda counter: tf1.identity(tf1.assign_add(counter, 1.0)))


@graph()
def counter_function():
    """Updates inside a Defun that are fetched besides the train operation and must not run in steps that do not fetch them."""
    @function.Defun(tf.resource)
    def count(handle):
        with tf.control_dependencies([tf.raw_ops.AssignAddVariableOp(resource=handle, value=1.0)]):
            return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)

    return counters(use_resource=True, count=lambda counter: tf1.reshape(count(counter.handle), []))


# --- Training in Python ---

def text_of(make, value):
    """Like text_of() of make.py, also for complex numbers and bfloat16."""
    value = np.asarray(value)
    if value.dtype.kind == "c":
        signs = ["" if math.copysign(1, z.imag) < 0 else "+" for z in value.ravel()]
        return [f"{float(z.real).hex()}{sign}{float(z.imag).hex()}j" for z, sign in zip(value.ravel(), signs)]
    return make.text_of(value.astype(np.float32) if value.dtype == tf.bfloat16.as_numpy_dtype else value)


def start_servers(counts):
    """Starts servers in this process on free ports. The last one is a worker."""
    def free_address():
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            return f"127.0.0.1:{one.getsockname()[1]}"

    cluster = tf1.train.ClusterSpec({job: [free_address() for _ in range(count)] for job, count in counts.items()})
    return [tf1.train.Server(cluster, job_name=job, task_index=i) for job, count in counts.items() for i in range(count)]


def train_in_python(make, entry):
    """Makes a graph, trains it, and writes checkpoints and reference.json to `directory`."""
    with tf.Graph().as_default():
        tf1.set_random_seed(11)
        made = entry.build()
        saver = made.saver or tf1.train.Saver(save_relative_paths=True)
        ops = tf1.train.Scaffold(saver=saver).finalize()
        servers = start_servers(entry.servers)
        config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        last = STEPS * entry.step_size
        with tf1.Session(servers[-1].target if servers else "", config=config) as session:
            session.run(ops.init_op)
            session.run(ops.local_init_op)
            saver.save(session, directory + "/model.ckpt", global_step=0)
            lines = []
            for step in range(0, last, entry.step_size):
                feeds = {t: make.feed(kind, shape, step, i) for i, (t, (kind, shape)) in enumerate(made.feeds.items())}
                summaries = [ops.summary_op] if ops.summary_op is not None and len(lines) % 5 == 0 else []  # as in run_graph
                values = session.run([*made.fetches, made.train, *summaries], feeds)[:len(made.fetches)]
                lines.append([text_of(make, one) for one in values])
            saver.save(session, directory + "/model.ckpt", global_step=last, write_meta_graph=False)
    reference = {"fetches": [t.name for t in made.fetches], "train": made.train.name, "steps": last,
                 "feeds": [{"name": t.name, "kind": kind, "shape": shape} for t, (kind, shape) in made.feeds.items()], "values": lines}
    with open(directory + "/reference.json", "w") as out:
        json.dump(reference, out)


def main():
    global directory
    make = load_make(sys.argv[1])
    for name in sys.argv[3:] or GRAPHS:
        directory = os.path.join(sys.argv[2], name)
        os.makedirs(directory, exist_ok=True)
        (tf1.enable_control_flow_v2 if GRAPHS[name].control_flow_v2 else tf1.disable_control_flow_v2)()
        train_in_python(make, GRAPHS[name])


if __name__ == "__main__":
    main()
