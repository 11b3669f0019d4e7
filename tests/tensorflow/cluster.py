# SPDX-License-Identifier: Apache-2.0
"""Runs the example cluster with four processes, and kills and restarts some of them: python cluster.py PROGRAM WORK [SCENARIO...]

Needs no TensorFlow in Python. The exit code is 0 if all scenarios end as expected.
"""
import os, re, shutil, signal, socket, subprocess, sys, time

program, work = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
failures = []


def check(holds, what):
    print(("ok    " if holds else "WRONG ") + what, flush=True)
    if not holds:
        failures.append(what)


def free_address():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % one.getsockname()[1]


class cluster:
    def __init__(self, name, steps):
        self.directory = f"{work}/{name}"
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)
        self.steps, self.addresses, self.tasks = steps, [free_address() for _ in range(4)], {}
        for task in ("ps 0", "chief 0", "worker 0", "worker 1"):
            self.start(task)

    def start(self, task):
        out = open(f"{self.directory}/{task.replace(' ', '')}.log", "a")
        self.tasks[task] = subprocess.Popen([program, *task.split(), *self.addresses, "--steps", str(self.steps), "--run-dir", self.directory + "/run"],
                                            stdout=out, stderr=subprocess.STDOUT)

    def log(self, task):
        return open(f"{self.directory}/{task.replace(' ', '')}.log").read()

    def wait_for_checkpoint(self, step, seconds=60):
        end = time.time() + seconds
        while time.time() < end:
            try:
                last = max((int(found) for found in re.findall(r"model\.ckpt-(\d+)\"", open(self.directory + "/run/checkpoint").read())), default=0)
            except OSError:
                last = 0
            if last >= step:
                return last
            time.sleep(0.02)
        return None

    def wait_for_text(self, task, text, seconds=60):
        end = time.time() + seconds
        while text not in self.log(task) and time.time() < end:
            time.sleep(0.02)

    def signal(self, task, number):
        self.tasks[task].send_signal(number)
        if number == signal.SIGKILL:
            self.tasks[task].wait()

    def ended(self, task, seconds=300):
        try:
            return self.tasks[task].wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def close(self):
        for task in self.tasks.values():
            task.kill()
            task.wait()


def plain():
    made = cluster("plain", 1000)
    check([made.ended(task) for task in ("chief 0", "worker 0", "worker 1")] == [0, 0, 0], "plain: chief and workers end with 0")
    counts = [int(found) for task in ("chief 0", "worker 0", "worker 1") for found in re.findall(r"did (\d+) steps", made.log(task))]
    check(len(counts) == 3 and sum(counts) >= 1000, f"plain: {counts} steps are at least 1000 together")
    made.close()


def worker_killed():
    made = cluster("worker_killed", 20000)
    made.wait_for_checkpoint(500)
    made.signal("worker 1", signal.SIGKILL)
    check([made.ended(task) for task in ("chief 0", "worker 0")] == [0, 0], "worker killed: the others go on to the end")
    made.close()


def chief_killed():
    made = cluster("chief_killed", 20000)
    before = made.wait_for_checkpoint(500)
    made.signal("chief 0", signal.SIGKILL)
    made.start("chief 0")
    check(made.ended("chief 0") == 0, "chief killed and started again: it goes on to the end")
    begins = [int(found) for found in re.findall(r"begins after step (\d+)", made.log("chief 0"))]
    check(len(begins) == 2 and begins[1] >= before, f"chief killed: it continues from its checkpoint, {begins}")
    made.close()


def worker_stays_dead():
    made = cluster("worker_stays_dead", 20000)
    made.wait_for_checkpoint(500)
    for task in ("worker 1", "chief 0"):
        made.signal(task, signal.SIGKILL)
    made.start("chief 0")
    check([made.ended(task, 120) for task in ("chief 0", "worker 0")] == [0, 0],
          "worker stays dead: a chief that is started again needs only the servers of its graph")
    made.close()


def ps_killed():
    made = cluster("ps_killed", 20000)
    made.wait_for_checkpoint(500)
    made.signal("ps 0", signal.SIGKILL)
    made.start("ps 0")
    check([made.ended(task) for task in ("chief 0", "worker 0", "worker 1")] == [0, 0, 0], "ps killed and started again: all go on to the end")
    made.close()


def ps_stopped():
    made = cluster("ps_stopped", 10**9)
    made.wait_for_text("worker 0", "begins after step")  # TensorFlow waits without a limit for the servers of a session that it opens
    made.wait_for_text("worker 1", "begins after step")
    made.wait_for_checkpoint(made.wait_for_checkpoint(0) + 1000)
    begun = time.time()
    made.signal("ps 0", signal.SIGSTOP)
    codes = [made.ended(task, 60) for task in ("chief 0", "worker 0", "worker 1")]
    check(codes == [1, 1, 1], f"ps stopped: chief and workers end with an error, {codes} after {time.time() - begun:.0f} s")
    named = ["no answer from /job:ps/task:0" in made.log(task) for task in ("chief 0", "worker 0", "worker 1")]
    check(all(named), f"ps stopped: the errors name the task, {named}")
    made.close()


scenarios = {one.__name__: one for one in (plain, worker_killed, chief_killed, worker_stays_dead, ps_killed, ps_stopped)}
for name in sys.argv[3:] or scenarios:
    scenarios[name]()
print(f"{len(failures)} failures" if failures else "all as expected")
sys.exit(1 if failures else 0)
