# SPDX-License-Identifier: Apache-2.0
"""Runs graphs with Python's TensorFlow and with run_graph, and compares every bit of the values and of the checkpoints.

    python compare.py DATA PROGRAM WORK [--kills N] [--estimator DIR] [NAME...]

DATA holds make.py, which makes the graphs and runs them in Python on this machine; PROGRAM is run_graph; WORK is a directory for both.
With --kills, run_graph is killed N times in a row while it trains, and continued, and must end with the same bits.
With --estimator, DIR is the directory of tf1_estimator after 20 more steps, which Python must restore.
The exit code is 0 if everything is equal.
"""
import importlib.util, json, os, random, shutil, subprocess, sys, time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
data, program, work = sys.argv[1:4]
spec = importlib.util.spec_from_file_location("make", data + "/make.py")
make = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make)
graphs = {"mlp": make.mlp, "adam_resource": make.adam_resource, "queue": make.queue, "words": make.words, "parameter_server": make.parameter_server}
failures = []


def check(holds, what):
    print(("ok    " if holds else "WRONG ") + what, flush=True)
    if not holds:
        failures.append(what)


def number(text):
    return float.fromhex(text) if text.startswith(("0x", "-0x")) else text


def values_of(output):
    """The values of each line of run_graph, by step."""
    lines = {}
    for line in output.splitlines():
        step, *fetches = line.split("\t")
        lines[int(step)] = [[number(one) for one in fetch.split(",")] for fetch in fetches]
    return lines


def expected_of(reference):
    return {i + 1: [[number(str(one)) for one in fetch] for fetch in line] for i, line in enumerate(reference["values"])}


def tensors_of(prefix):
    reader = tf.train.load_checkpoint(prefix)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map() if not name.startswith("stepwell/")}


def run(graph, run_dir, steps, *more):
    done = subprocess.run([program, graph, "--steps", str(steps), "--run-dir", run_dir, *more], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        print(done.stderr, flush=True)
    check(done.returncode == 0, f"{graph}: run_graph ends with 0")
    return done.stdout


def equal_tensors(a, b):
    return a.keys() == b.keys() and all(np.asarray(a[n]).tobytes() == np.asarray(b[n]).tobytes() or
                                        (np.asarray(a[n]).dtype == object and np.array_equal(a[n], b[n])) for n in a)


def restored_by_python(graph, prefix):
    """Imports the .meta of a checkpoint, restores it with TensorFlow's Saver, and returns the global step."""
    with tf.Graph().as_default():
        saver = tf1.train.import_meta_graph(prefix + ".meta", clear_devices=True)
        with tf1.Session() as session:
            saver.restore(session, prefix)
            return int(session.run(tf1.train.get_global_step()))


def compare(name):
    graph, run_dir = f"{work}/{name}", f"{work}/{name}.run"
    for directory in (graph, run_dir):
        shutil.rmtree(directory, ignore_errors=True)
    subprocess.run([sys.executable, data + "/make.py", work, name], check=True, timeout=300)
    reference = json.load(open(graph + "/reference.json"))
    steps = reference["steps"]
    got = values_of(run(graph, run_dir, steps + 5 if name == "queue" else steps))
    expected = expected_of(reference)
    check(json.dumps({k: str(v) for k, v in got.items()}) == json.dumps({k: str([[str(o) if not isinstance(o, float) else o for o in f] for f in v]) for k, v in expected.items()}),
          f"{name}: {steps} steps have the bits of Python's")
    ours = f"{run_dir}/model.ckpt-{steps}"
    check(equal_tensors(tensors_of(ours), tensors_of(f"{graph}/model.ckpt-{steps}")), f"{name}: the last checkpoint equals Python's")
    check(restored_by_python(graph, ours) == steps, f"{name}: Python's Saver restores our checkpoint with our .meta")
    if name == "queue":
        return
    # In two halves, by two processes.
    shutil.rmtree(run_dir)
    first = values_of(run(graph, run_dir, steps // 2, "--hooks", "none"))
    second = values_of(run(graph, run_dir, steps, "--hooks", "none"))
    check({**first, **second} == got and len(first) == steps // 2, f"{name}: resumed in a second process with the same bits")
    # Our run goes on from Python's own checkpoint directory format.
    check(tf.train.latest_checkpoint(run_dir) == ours, f"{name}: TensorFlow's latest_checkpoint finds ours")


def killed(name, kills):
    graph, run_dir = f"{work}/{name}", f"{work}/{name}.killed"
    steps = 40 * kills
    shutil.rmtree(run_dir, ignore_errors=True)
    shutil.rmtree(run_dir + ".whole", ignore_errors=True)
    expected = values_of(run(graph, run_dir + ".whole", steps, "--hooks", "none"))
    instants, got = random.Random(7), {}
    for kill in range(kills):
        child = subprocess.Popen([program, graph, "--steps", str(steps), "--run-dir", run_dir, "--hooks", "none", "--checkpoint-steps", "3"],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
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
    check(all(got[step] == expected[step] for step in got), f"{name}: killed {kills} times, and each of the {len(got)} printed steps has the same bits")
    check(equal_tensors(tensors_of(f"{run_dir}/model.ckpt-{steps}"), tensors_of(f"{run_dir}.whole/model.ckpt-{steps}")),
          f"{name}: killed {kills} times, and the last checkpoint has the same bits")
    check(len(values_of(last)) < steps, f"{name}: the last process continued from a checkpoint")


names = sys.argv[4:]
kills = 0
if names[:1] == ["--kills"]:
    kills, names = int(names[1]), names[2:]
if names[:1] == ["--estimator"]:
    check(restored_by_python("tf1_estimator", names[1] + "/model.ckpt-10020") == 10020, "tf1_estimator: Python restores it at step 10020")
    names = names[2:]
for name in names or graphs:
    compare(name)
    if kills and name != "queue":  # the input of a queue has no position
        killed(name, kills)
print(f"{len(failures)} failures" if failures else "all equal")
sys.exit(1 if failures else 0)
