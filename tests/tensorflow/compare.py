# SPDX-License-Identifier: Apache-2.0
"""Runs graphs with Python's TensorFlow and with run_graph, and compares every bit of the values and of the checkpoints.

    python compare.py DATA PROGRAM WORK [--kills N] [--estimator DIR] [NAME...]

DATA holds make.py, which makes five graphs and runs them in Python on this machine; more_graphs.py does the same for the others. PROGRAM
is run_graph; WORK is a directory for both. NAME is a graph, or "more" for all graphs of more_graphs.py; by default, all are compared.
With --kills, run_graph is killed N times in a row while it trains each graph of make.py, and continued, and must end with the same bits.
With --estimator, DIR is the directory of tf1_estimator after 20 more steps, which Python must restore.
The exit code is 0 if everything is equal.
"""
import json, os, random, re, shutil, subprocess, sys, time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import more_graphs
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
data, program, work = sys.argv[1:4]
make = more_graphs.load_make(data)
five = {build.__name__: more_graphs.Graph(build) for build in (make.mlp, make.adam_resource, make.queue, make.words, make.parameter_server)}
five["queue"].no_resume = "the input of a queue has no position"
five["queue"].ends = True
more = more_graphs.GRAPHS
failures = []


def check(holds, what):
    print(("ok    " if holds else "WRONG ") + what, flush=True)
    if not holds:
        failures.append(what)


def normal(text):
    """Writes each hexadecimal float in a text as Python does, so that equal texts have equal bits."""
    return re.sub(r"0x[0-9a-f.]+p[+-][0-9]+", lambda found: float.fromhex(found[0]).hex(), text)


def values_of(output):
    """Returns the values of each line of run_graph, by step."""
    lines = {}
    for line in output.split("\n")[:-1]:
        step, *fetches = line.split("\t")
        lines[int(step)] = [[normal(one) for one in fetch.split(",")] if fetch else [] for fetch in fetches]
    return lines


def expected_of(reference, step_size):
    return {(i + 1) * step_size: [[normal(str(one)) for one in fetch] for fetch in line] for i, line in enumerate(reference["values"])}


def first_difference(got, expected):
    """Says where the values of two runs differ first; empty if they are equal."""
    for step in sorted(got.keys() | expected.keys()):
        for where, lines, others in (("only in Python", got, expected), ("only in C++", expected, got)):
            if step not in lines and others:
                return f"; step {step} is {where}"
        for i, (ours, theirs) in enumerate(zip(got[step], expected[step], strict=True)):
            if ours != theirs:
                k = next((k for k, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1]), min(len(ours), len(theirs)))
                return f"; step {step}, fetch {i}, element {k}: {ours[k:k + 1]}, but {theirs[k:k + 1]} in Python"
    return ""


def read_tensor(reader, name):
    """Returns a tensor of a checkpoint, or None if it has strings in parts, which TensorFlow's reader cannot read."""
    try:
        return reader.get_tensor(name)
    except ValueError as failure:
        if "Dtype string not supported" not in str(failure):
            raise
        return None


def tensors_of(prefix):
    """Returns the tensors of a checkpoint by name, without stepwell's own; none if there is no checkpoint."""
    if not os.path.exists(prefix + ".index"):
        return {}
    reader = tf.train.load_checkpoint(prefix)
    return {name: read_tensor(reader, name) for name in reader.get_variable_to_shape_map() if not name.startswith("stepwell/")}


def run(graph, run_dir, steps, *options):
    done = subprocess.run([program, graph, "--steps", str(steps), "--run-dir", run_dir, *options], capture_output=True, encoding="utf-8",
                          timeout=300)
    if done.returncode != 0:
        check(False, f"{graph}: run_graph ends with {done.returncode}: {done.stderr}")
    return done.stdout


def equal_arrays(a, b):
    """Compares bytes, types and shapes. Strings are compared by value, because their arrays contain addresses."""
    return a.dtype == b.dtype and a.shape == b.shape and (np.array_equal(a, b) if a.dtype == object else a.tobytes() == b.tobytes())


def equal_tensors(a, b):
    """Compares tensors by name. A tensor that one side could not read is not compared; restored_by_python() returns its parts."""
    return a.keys() == b.keys() and all(a[n] is None or b[n] is None or equal_arrays(np.asarray(a[n]), np.asarray(b[n])) for n in a)


def restored_by_python(prefix, meta=None):
    """Imports a .meta, restores a checkpoint with TensorFlow's Saver, and returns the values of all global variables by name."""
    with tf.Graph().as_default():
        saver = tf1.train.import_meta_graph(meta or prefix + ".meta", clear_devices=True)
        with tf1.Session() as session:
            saver.restore(session, prefix)
            return session.run({v.name: v for v in tf1.global_variables()})


def check_restore(name, ours, pythons):
    """Python's Saver must restore the same values from our checkpoint with our .meta as from Python's checkpoint with Python's .meta."""
    expected = restored_by_python(pythons, os.path.dirname(pythons) + "/model.ckpt-0.meta")
    try:
        equal, failure = equal_tensors(restored_by_python(ours), expected), ""
    except (tf.errors.OpError, ValueError, OSError) as error:
        equal, failure = False, "; " + " ".join(str(error).split())[:400]
    check(equal, f"{name}: Python's Saver restores our checkpoint with our .meta" + failure)


def make_graphs(names):
    """Makes graphs with Python's TensorFlow, in new processes: the first session of a process sets the number of its threads."""
    for script, known in (([data + "/make.py"], five), ([more_graphs.__file__, data], more)):
        chosen = [name for name in names if name in known]
        for name in chosen:
            shutil.rmtree(f"{work}/{name}", ignore_errors=True)
        if chosen:
            subprocess.run([sys.executable, *script, work, *chosen], check=True, timeout=300)


def compare(name, kind):
    graph, run_dir = f"{work}/{name}", f"{work}/{name}.run"
    shutil.rmtree(run_dir, ignore_errors=True)
    reference = json.load(open(graph + "/reference.json"))
    steps = reference["steps"]
    got = values_of(run(graph, run_dir, steps + 5 if kind.ends else steps))
    difference = first_difference(got, expected_of(reference, kind.step_size))
    check(not difference, f"{name}: {len(reference['values'])} steps have the bits of Python's" + difference)
    ours, pythons = f"{run_dir}/model.ckpt-{steps}", f"{graph}/model.ckpt-{steps}"
    expected = tensors_of(pythons)
    if kind.extra_step:
        expected["global_step"] = np.int64(steps)
    check(equal_tensors(tensors_of(ours), expected), f"{name}: the last checkpoint equals Python's")
    if kind.no_restore:
        print(f"--    {name}: Python's Saver does not restore our checkpoint: {kind.no_restore}", flush=True)
    else:
        check_restore(name, ours, pythons)
    if not kind.no_resume:
        resume(name, steps, got, expected)


def resume(name, steps, values, tensors):
    """Trains in two halves, by two processes."""
    graph, run_dir = f"{work}/{name}", f"{work}/{name}.run"
    shutil.rmtree(run_dir)
    first = values_of(run(graph, run_dir, steps // 2, "--hooks", "none"))
    second = values_of(run(graph, run_dir, steps, "--hooks", "none"))
    check({**first, **second} == values and len(first) == len(second) == len(values) // 2,
          f"{name}: resumed in a second process with the same bits")
    # Our run goes on from Python's own checkpoint directory format.
    ours = f"{run_dir}/model.ckpt-{steps}"
    check(tf.train.latest_checkpoint(run_dir) == ours, f"{name}: TensorFlow's latest_checkpoint finds ours")
    check(equal_tensors(tensors_of(ours), tensors), f"{name}: the last checkpoint of the second process is equal, too")


def killed(name, kills):
    graph, run_dir = f"{work}/{name}", f"{work}/{name}.killed"
    steps = 40 * kills
    shutil.rmtree(run_dir, ignore_errors=True)
    shutil.rmtree(run_dir + ".whole", ignore_errors=True)
    expected = values_of(run(graph, run_dir + ".whole", steps, "--hooks", "none"))
    instants, got = random.Random(7), {}
    for kill in range(kills):
        command = [program, graph, "--steps", str(steps), "--run-dir", run_dir, "--hooks", "none", "--checkpoint-steps", "3"]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(instants.randint(1, 15)):
            line = child.stdout.readline()
            if line.endswith("\n"):
                got.update(values_of(line))
        time.sleep(instants.random() * 0.03)  # checkpoints are durable some milliseconds after their step
        while kill == kills - 1 and child.poll() is None and tf.train.latest_checkpoint(run_dir) is None:
            time.sleep(0.01)  # the last process must have something to continue from
        child.kill()
        rest, _ = child.communicate()
        got.update(values_of(rest[:rest.rfind("\n") + 1]))
    last = run(graph, run_dir, steps, "--hooks", "none", "--checkpoint-steps", "3")
    got.update(values_of(last))
    check(all(got[step] == expected[step] for step in got),
          f"{name}: killed {kills} times, and each of the {len(got)} printed steps has the same bits")
    check(equal_tensors(tensors_of(f"{run_dir}/model.ckpt-{steps}"), tensors_of(f"{run_dir}.whole/model.ckpt-{steps}")),
          f"{name}: killed {kills} times, and the last checkpoint has the same bits")
    check(len(values_of(last)) < steps, f"{name}: the last process continued from a checkpoint")


names = sys.argv[4:]
kills = 0
if names[:1] == ["--kills"]:
    kills, names = int(names[1]), names[2:]
if names[:1] == ["--estimator"]:
    restored = restored_by_python(names[1] + "/model.ckpt-10020")
    check(restored["global_step:0"] == 10020, "tf1_estimator: Python restores it at step 10020")
    names = names[2:]
names = [one for name in names or [*five, "more"] for one in (more if name == "more" else [name])]
make_graphs(names)
for name in names:
    compare(name, {**five, **more}[name])
    if kills and name in five and not five[name].no_resume:
        killed(name, kills)
print(f"{len(failures)} failures" if failures else "all equal")
sys.exit(1 if failures else 0)
