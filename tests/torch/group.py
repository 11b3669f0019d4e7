# SPDX-License-Identifier: Apache-2.0
"""Starts groups of processes that c10d connects, and kills, stops and replaces some: python group.py PROGRAM WORK [SCENARIO...]

PROGRAM is torch_group_process. TEST_TRAINING names the example libtorch_group, for the scenarios trained and restarted. Needs no LibTorch in Python;
restarted needs torchrun (TEST_TORCHRUN). The exit code is 0 if all scenarios end as expected.
TEST_KILLS is the number of kills of the scenario kills for each rank, TEST_STORM that of the scenario storm.
"""
import os, random, re, shutil, signal, socket, statistics, subprocess, sys, threading, time

program, work = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
failures = []
training, torchrun = os.environ.get("TEST_TRAINING"), os.environ.get("TEST_TORCHRUN")
kills = int(os.environ.get("TEST_KILLS", "10"))
storm_kills = int(os.environ.get("TEST_STORM", "40"))


def check(holds, what):
    print(("ok    " if holds else "WRONG ") + what, flush=True)
    if not holds:
        failures.append(what)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class process:
    """One rank. `lines` holds the lines that it has printed."""

    def __init__(self, rank, size, port, words, settings, of=None, host="127.0.0.1", prefix=()):
        variables = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}
        if size:
            variables.update(RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR=host, MASTER_PORT=str(port))
        variables.update({name: str(value) for name, value in settings.items()})
        variables.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
        self.rank, self.lines, self.begun = rank, [], time.time()
        self.child = subprocess.Popen([*prefix, of or program, *words], env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.child.stdout:
            self.lines.append(line.rstrip("\n"))

    def code(self, seconds):
        """The exit code, or None if the process has not ended in time."""
        try:
            code = self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self.reader.join(5)
        return code

    def kill(self, number=signal.SIGKILL):
        self.child.send_signal(number)
        if number == signal.SIGKILL:
            self.child.wait()

    def matches(self, pattern):
        return [found for line in list(self.lines) if (found := re.match(pattern, line))]

    def steps(self):
        return [(int(one[1]), one[2], float(one[3])) for one in self.matches(r"step (\d+) value (\w+) at ([\d.]+)")]

    def tail(self):
        return "\n".join(f"      {self.rank}: {line}" for line in self.lines[-12:])


class job:
    def __init__(self, name, size, *words, of=None, **settings):
        self.directory = f"{work}/{name}"
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)
        self.size, self.port, self.settings, self.of = size, free_port(), settings, of
        self.words = [word.replace("STATE", self.directory + "/state") for word in words]
        self.former, self.ranks = [], []
        for rank in range(size):
            self.ranks.append(self.started(rank))

    def started(self, rank):
        return process(rank, self.size, self.port, self.words, self.settings, self.of)

    def replace(self, rank):
        self.former.append(self.ranks[rank])
        self.ranks[rank] = self.started(rank)

    def codes(self, seconds):
        end = time.time() + seconds
        return [one.code(max(0, end - time.time())) for one in self.ranks]

    def wait_for_step(self, step, seconds=60, ranks=None):
        end = time.time() + seconds
        while time.time() < end:
            if all(any(one[0] >= step for one in self.ranks[rank].steps()) for rank in ranks or range(self.size)):
                return True
            time.sleep(0.005)
        return False

    def close(self):
        for one in self.ranks + self.former:
            if one.child.poll() is None:
                one.kill()

    def tails(self):
        return "\n".join(one.tail() for one in self.ranks)


def undisturbed(steps, cache={}):
    """The value after each step of a training that nothing disturbs."""
    if steps not in cache:
        alone = job("alone", 1, "train", str(steps), "STATE")
        check(alone.codes(120) == [0], f"one process trains {steps} steps")
        cache[steps] = {step: value for step, value, _ in alone.ranks[0].steps()}
    return cache[steps]


def check_steps(run, steps, what):
    right = undisturbed(steps)
    wrong = [(one.rank, step) for one in run.ranks + run.former for step, value, _ in one.steps() if value != right[step]]
    check(not wrong, f"{what}: each step is as undisturbed" + ("" if not wrong else f": not {wrong[:5]}"))


def bits_of_sums(run):
    return [[one.group(0) for one in rank.matches(r"sum .*")] for rank in run.ranks]


def sums():
    for size in (1, 2, 4):
        run = job(f"sums-{size}", size, "sums")
        codes = run.codes(120)
        check(codes == [0] * size, f"{size} processes add: {codes}" + ("" if codes == [0] * size else "\n" + run.tails()))
        all_sums = bits_of_sums(run)
        strip = [[re.sub(r" error .*", "", line) for line in lines] for lines in all_sums]
        check(len(strip[0]) > 20 and all(one == strip[0] for one in strip), f"{size} processes get equal bits of {len(strip[0])} sums")
        errors = [float(found[1]) for rank in run.ranks for found in rank.matches(r"sum .* error (\S+)")]
        check(max(errors) < 3e-7, f"the largest error of a sum of {size} is {max(errors):.1e}")
        print("      " + "; ".join(sorted({re.sub(" of .* is", "", m[0]) for m in run.ranks[0].matches(r"sum \d+ of.*|no sum.*")})))
        check(all(rank.matches(r"broadcast 0.5 0.5$") for rank in run.ranks), f"{size} processes have the values of rank 0 after a broadcast")
        run.close()


def equal_bits():
    for size in (2, 4):
        run = job(f"bits-{size}", size, "train", "200", "STATE")
        check(run.codes(120) == [0] * size, f"{size} processes train")
        check(all(len(one.steps()) == 200 for one in run.ranks), f"{size} processes make all steps")
        check_steps(run, 200, f"{size} processes")
        run.close()


def next_step_after(run, ranks, when):
    return max(min((at for _, _, at in run.ranks[rank].steps() if at > when), default=float("inf")) for rank in ranks)


def killed(rank, count, steps=100_000):
    """Kills `rank` and replaces it at once, `count` times. Prints the times until the survivors make the next step."""
    run = job(f"killed-{rank}", 3, "train", str(steps), "STATE", TEST_STEP_MS=2)
    others = [one for one in range(3) if one != rank]
    waits, starts = [], []
    chooser = random.Random(rank)
    for i in range(count):
        base = max((one[0] for one in run.ranks[others[0]].steps()), default=0)
        if not run.wait_for_step(base + 5):
            check(False, f"training goes on after kill {i}\n" + run.tails())
            break
        time.sleep(chooser.random() * 0.02)
        when = time.time()
        run.ranks[rank].kill()
        run.replace(rank)
        if not run.wait_for_step(max(one[0] for one in run.ranks[others[0]].steps()) + 1, ranks=others):
            check(False, f"training goes on after kill {i}\n" + run.tails())
            break
        formed = None
        end = time.time() + 60
        while time.time() < end and not (run.ranks[rank].steps() and next_step_after(run, others, when) < float("inf")):
            time.sleep(0.005)
        new = run.ranks[rank]
        formed = float(new.matches(r"formed .* at ([\d.]+)")[0][1]) if new.matches(r"formed .* at ([\d.]+)") else float("nan")
        began = float(new.matches(r"begun at ([\d.]+)")[0][1]) if new.matches(r"begun at ([\d.]+)") else float("nan")
        after = min((at for _, _, at in run.ranks[others[0]].steps() if at > max(when, formed)), default=float("inf"))
        waits.append(after - when)
        starts.append(began - when)
    own = [wait - start for wait, start in zip(waits, starts)]
    if waits:
        print(f"      rank {rank}, {len(waits)} kills: until the next step median {1000 * statistics.median(waits):.0f} ms (largest {1000 * max(waits):.0f}); "
              f"start of the new process {1000 * statistics.median(starts):.0f} ms; besides it {1000 * statistics.median(own):.0f} ms (largest {1000 * max(own):.0f})")
    check(len(waits) == count, f"rank {rank} was killed {count} times, and training went on")
    right = undisturbed(20_000)
    wrong = [(one.rank, step) for one in run.ranks + run.former for step, value, _ in one.steps() if step in right and value != right[step]]
    check(not wrong, f"rank {rank} killed: each step is as undisturbed {wrong[:3]}")
    run.close()
    return statistics.median(own) if own else float("inf")


def killed_worker():
    check(killed(1, kills) <= 0.1, "a worker is replaced within 100 ms besides the start of the new process")


def killed_chief():
    check(killed(0, kills) <= 1.0, "the chief is replaced within 1 s besides the start of the new process")


def gone_for_good():
    """A worker is lost and never replaced."""
    run = job("shrunk", 3, "train", "400", "STATE", TEST_STEP_MS=5, TEST_MIN_SIZE=2, TEST_PATIENCE=0.3)
    run.wait_for_step(50)
    run.ranks[1].kill()
    codes = run.codes(60)
    check(codes == [0, -9, 0], f"two of three processes go on without the lost one: {codes}")
    check(bool(run.ranks[2].matches("formed 2 size 2 rank 1 ")), "rank 2 takes the place of the lost rank 1")
    named = run.ranks[0].matches(r"lost at [\d.]+: .*rank 1\b.*")
    check(bool(named), "the error names rank 1: " + (named[0][0][20:] if named else run.ranks[0].tail()))
    check_steps(run, 400, "shrunk")
    run.close()
    run = job("ended", 3, "train", "400", "STATE", TEST_STEP_MS=5, TEST_WAIT=12)
    run.wait_for_step(50)
    run.ranks[1].kill()
    when = time.time()
    codes = run.codes(30)
    check(codes == [3, -9, 3] and time.time() - when < 17, f"without min_size, the others end with an error after the wait: {codes}")
    print("      " + (run.ranks[0].matches("error .*") or run.ranks[0].matches(".*"))[-1][0])
    print("      " + (run.ranks[2].matches("error .*") or run.ranks[2].matches(".*"))[-1][0])
    run.close()
    run = job("chief-gone", 3, "train", "400", "STATE", TEST_STEP_MS=5, TEST_WAIT=12, TEST_MIN_SIZE=1)
    run.wait_for_step(50)
    run.ranks[0].kill()
    codes = run.codes(30)
    check(codes == [-9, 3, 3], f"without the chief, the others end with an error after the wait: {codes}")
    print("      " + (run.ranks[2].matches("error .*") or run.ranks[2].matches(".*"))[-1][0])
    run.close()


def replaced_late():
    for rank in (0, 1):
        run = job(f"late-{rank}", 3, "train", "300", "STATE", TEST_STEP_MS=5, TEST_MIN_SIZE=2, TEST_PATIENCE=20)
        run.wait_for_step(50)
        run.ranks[rank].kill()
        time.sleep(2)
        run.replace(rank)
        codes = run.codes(60)
        check(codes == [0, 0, 0], f"rank {rank} is replaced after 2 s: {codes}" + ("" if codes == [0, 0, 0] else "\n" + run.tails()))
        check_steps(run, 300, f"rank {rank} replaced late")
        run.close()


def frozen():
    """A process stops for longer than the limit, is replaced, and continues."""
    for rank in (1, 0):
        run = job(f"frozen-{rank}", 3, "train", "300", "STATE", TEST_STEP_MS=5, TEST_TIMEOUT=2)
        run.wait_for_step(50)
        run.ranks[rank].kill(signal.SIGSTOP)
        when = time.time()
        others = [one for one in range(3) if one != rank]
        end = time.time() + 10
        while time.time() < end and not all(run.ranks[one].matches("lost at") for one in others):
            time.sleep(0.01)
        lost = [run.ranks[one].matches(r"lost at ([\d.]+): (.*)") for one in others]
        waited = [float(one[0][1]) - when if one else float("inf") for one in lost]
        check(max(waited) < 3, f"rank {rank} is frozen: the others notice after {', '.join(f'{one:.2f}' for one in waited)} s (limit 2 s)")
        print("      " + (lost[0][0][2] if lost[0] else run.ranks[others[0]].tail()))
        if rank == 0:  # the frozen process keeps the port of rank 0 on this machine; on another machine the new one has its own
            time.sleep(1)
            run.ranks[0].kill(signal.SIGCONT)
        else:
            run.replace(rank)
            run.wait_for_step(max(one[0] for one in run.ranks[0].steps()) + 20)
            run.former[0].kill(signal.SIGCONT)
        codes = run.codes(60)
        check(codes == [0, 0, 0], f"rank {rank} frozen: training ends: {codes}" + ("" if codes == [0, 0, 0] else "\n" + run.tails()))
        for one in run.former:
            code = one.code(10)
            check(code == 3, f"the process that was replaced ends with an error: {code}")
            print("      " + (one.matches("error .*") or one.matches(".*"))[-1][0])
        check_steps(run, 300, f"rank {rank} frozen")
        run.close()


def storm():
    """Kills any rank at any time, also while the group forms and the state is copied. Replaces it soon, late, or together with another one."""
    run = job("storm", 4, "train", "1000000", "STATE", TEST_STEP_MS=1, TEST_TIMEOUT=5, TEST_WAIT=120)
    chooser = random.Random(37)
    run.wait_for_step(3)
    begun = time.time()
    for i in range(storm_kills):
        for rank in chooser.sample(range(4), chooser.choice((1, 1, 1, 2, 3))):
            run.ranks[rank].kill()
            time.sleep(chooser.choice((0, 0, 0.02, 0.1)))
            run.replace(rank)
        time.sleep(chooser.choice((0, 0.05, 0.2, 0.6)) * chooser.random())
        if i % 10 == 9:
            last = max((one[0] for one in run.ranks[0].steps()), default=0)
            if not run.wait_for_step(last + 3, 60):
                check(False, f"training goes on after kill {i}\n" + run.tails())
                break
    made = sum(len(one.steps()) for one in run.ranks + run.former)
    print(f"      {storm_kills} times one to three kills in {time.time() - begun:.0f} s, {made} steps")
    right = undisturbed(20_000)
    seen = [(step, value) for one in run.ranks + run.former for step, value, _ in one.steps() if step in right]
    check(all(right[step] == value for step, value in seen), f"storm: each of {len(seen)} steps is as undisturbed")
    run.close()


def formations():
    # The server of LibTorch 1.13's TCPStore keeps an entry for each key that was ever set; all formations use the same keys.
    # LibTorch 2 records its last 2,000 operations, about 1 KB each, in a ring buffer. Without it, memory does not grow.
    run = job("formations", 2, "form", os.environ.get("TEST_FORMATIONS", "1000"), TORCH_FR_BUFFER_SIZE=0, TORCH_NCCL_TRACE_BUFFER_SIZE=0)
    codes = run.codes(400)
    check(codes == [0, 0], f"the group forms {run.words[1]} times: {codes}")
    for one in run.ranks:
        seen = [(int(m[1]), int(m[2]), int(m[3]), int(m[4]), float(m[5])) for m in one.matches(r"formations (\d+) descriptors (\d+) threads (\d+) memory (\d+) KiB at ([\d.]+)")]
        if len(seen) < 2:
            check(False, "formations are counted\n" + run.tails())
            continue
        print(f"      rank {one.rank}: {seen[0]} ... {seen[-1]}; {1000 * (seen[-1][4] - seen[0][4]) / (seen[-1][0] - seen[0][0]):.1f} ms each")
        check(seen[0][1:3] == seen[-1][1:3], f"rank {one.rank} has the same descriptors and threads")
        check(seen[-1][3] - seen[0][3] < 1024, f"the memory of rank {one.rank} grows by {seen[-1][3] - seen[0][3]} KiB after the first 100 formations")
    run.close()


def listening_ports(pid):
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue
        if found:
            inodes.add(found[1])
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in open(f"/proc/{pid}/net/{table}").readlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                ports.add(int(words[1].split(":")[1], 16))
    return ports


def garbage():
    """Connections with nonsense to the store and to the ports of Gloo."""
    run = job("garbage", 3, "train", "20000", "STATE", TEST_STEP_MS=5, TEST_TIMEOUT=5)
    run.wait_for_step(20)
    chooser = random.Random(10)
    kept, ports = [], sorted(set.union(*(listening_ports(one.child.pid) for one in run.ranks)))
    for i in range(400):
        with_port = run.port if i % 2 else chooser.choice(ports)
        try:
            one = socket.create_connection(("127.0.0.1", with_port), 2)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, chooser.choice((b"\0" * 8, b"\1\0\0\0\0\0\0\0")))
            one.sendall(chooser.choice((b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00", chooser.randbytes(chooser.choice((1, 8, 64, 4096))))))
            if i % 20 == 0:
                kept.append(one)  # stays open
            else:
                one.close()
        except OSError:
            pass
        if i % 100 == 50:  # so that the store is used
            last = max((one[0] for one in run.ranks[0].steps()), default=0)
            run.ranks[1].kill()
            run.replace(1)
            check(run.wait_for_step(last + 3), f"the group forms again after {i + 1} connections")
        time.sleep(0.01)
    alive = [one.child.poll() for one in run.ranks]
    check(alive == [None] * 3, f"400 connections with garbage end no process: {alive}" + ("" if alive == [None] * 3 else "\n" + run.tails()))
    last = max((one[0] for one in run.ranks[0].steps()), default=0)
    check(run.wait_for_step(last + 5, 30), f"training goes on while {len(kept)} connections stay open, ports {len(ports)}")
    for one in kept:
        one.close()
    check(run.wait_for_step(last + 10, 60), "training goes on")
    right = undisturbed(20_000)
    seen = [(step, value) for one in run.ranks + run.former for step, value, _ in one.steps()]
    check(all(right[step] == value for step, value in seen), f"garbage: each of {len(seen)} steps is as undisturbed")
    run.close()


def mistakes():
    for missing in ("MASTER_ADDR", "MASTER_PORT"):
        variables = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1234"}
        del variables[missing]
        done = subprocess.run([program, "sums"], env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True, timeout=30)
        check(done.returncode == 3 and missing in done.stdout and "set MASTER_ADDR to the host of rank 0" in done.stdout, f"without {missing}: {done.stdout.splitlines()[-1]}")
    one = process(0, 2, free_port(), ["sums"], {"TEST_WAIT": 0.5})
    check(one.code(20) == 3, "the chief does not wait forever for a worker: " + one.lines[-1])
    one = process(1, 2, free_port(), ["sums"], {"TEST_WAIT": 0.5})
    check(one.code(20) == 3, "a worker does not wait forever for the chief: " + one.lines[-1])


def printed_steps(lines):
    return [(int(found[1]), found[2]) for line in lines if (found := re.match(r"step (\d+) (loss \S+ bits \w+)", line))]


def trained_alone(steps):
    run = job(f"trained-alone", 0, of=training)
    alone = process(0, 0, 0, [run.directory + "/state", str(steps)], {}, training)
    check(alone.code(300) == 0, f"one process trains with Adam: {alone.lines[-1]}")
    return dict(printed_steps(alone.lines))


def trained():
    """The example with a session: Adam, checkpoints, parts for equal bits."""
    if not training:
        return print("skipped: TEST_TRAINING does not name the example libtorch_group")
    steps = 100
    right = trained_alone(steps)
    for size in (2, 4):
        run = job(f"trained-{size}", size, "STATE", str(steps), of=training)
        codes = run.codes(300)
        check(codes == [0] * size, f"{size} processes train with Adam: {codes}" + ("" if codes == [0] * size else "\n" + run.tails()))
        check(all(dict(printed_steps(one.lines)) == right for one in run.ranks), f"{size} processes: all {steps} steps have the bits of one process")
        run.close()
    for rank in (1, 0):
        run = job(f"trained-killed-{rank}", 3, "STATE", str(steps), of=training)
        end = time.time() + 120
        while time.time() < end and not any(step >= 50 for step, _ in printed_steps(run.ranks[0].lines)):
            time.sleep(0.005)
        run.ranks[rank].kill()
        run.replace(rank)
        codes = run.codes(300)
        check(codes == [0] * 3, f"rank {rank} is killed and replaced: {codes}" + ("" if codes == [0] * 3 else "\n" + run.tails()))
        seen = [one for each in run.ranks + run.former for one in printed_steps(each.lines)]
        check(all(right[step] == values for step, values in seen), f"rank {rank} killed: each of {len(seen)} steps is as undisturbed")
        print("      " + run.ranks[2].lines[-1])
        run.close()


def restarted():
    """torchrun starts all processes again after a kill. The one of LibTorch 1.13 has underscores in its options, newer ones accept both."""
    if not training or not torchrun:
        return print("skipped: TEST_TRAINING and TEST_TORCHRUN do not name the example libtorch_group and torchrun")
    right = trained_alone(100)
    run = job("restarted", 0)
    variables = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}
    for killed in (1, 0):
        done = subprocess.run([*torchrun.split(), "--no_python", "--nproc_per_node", "3", "--max_restarts", "2", "--master_addr", "127.0.0.1",
                               "--master_port", str(free_port()), training, f"{run.directory}/state{killed}", "100", str(killed), "50"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, env=variables)
        lines = done.stdout.splitlines()
        seen = printed_steps(lines)
        check(done.returncode == 0, f"torchrun restarts a job whose rank {killed} is killed: {done.returncode}" + ("" if done.returncode == 0 else "\n" + "\n".join(lines[-30:])))
        check(len(seen) > 300 and all(right[step] == values for step, values in seen), f"each of {len(seen)} steps is as undisturbed")


class namespaces:
    """Two network namespaces, joined by a pair of virtual interfaces. Raises CalledProcessError or OSError where they cannot be made."""

    def __init__(self):
        self.names = [f"stepwell-{os.getpid()}-{rank}" for rank in range(2)]
        self.links = [f"sw{os.getpid() % 10**8}.{rank}" for rank in range(2)]
        self.addresses = ["10.77.0.1", "10.77.0.2"]
        try:
            for name in self.names:
                self.ip("netns", "add", name)
            self.ip("link", "add", self.links[0], "netns", self.names[0], "type", "veth", "peer", "name", self.links[1], "netns", self.names[1])
            for name, link, address in zip(self.names, self.links, self.addresses):
                self.ip("-n", name, "addr", "add", f"{address}/24", "dev", link)
                self.ip("-n", name, "link", "set", "lo", "up")
                self.ip("-n", name, "link", "set", link, "up")
        except (OSError, subprocess.CalledProcessError):
            self.close()
            raise

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def set_link(self, rank, state):
        self.ip("-n", self.names[rank], "link", "set", self.links[rank], state)

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


def cut_off():
    """The link between two network namespaces goes down during the training: for a moment, for longer than the limit of a sum, and for ever."""
    try:
        network = namespaces()
    except (OSError, subprocess.CalledProcessError) as failed:
        return print(f"SKIPPED: NO NETWORK WAS CUT. Network namespaces cannot be made here: {failed}; {getattr(failed, 'stdout', '')}")
    steps, timeout, wait = 400, 2, 8
    settings = {"TEST_STEP_MS": 5, "TEST_TIMEOUT": timeout, "TEST_WAIT": wait}
    try:
        for down in (0.5, 4, None):
            run = job(f"cut-off-{down}", 0, **settings)
            run.ranks = [process(rank, 2, 29400, ["train", str(steps), run.directory + "/state"], settings, host=network.addresses[0],
                                 prefix=["ip", "netns", "exec", network.names[rank]]) for rank in range(2)]
            run.size = 2
            reached = run.wait_for_step(20)
            check(reached, f"two namespaces train" + ("" if reached else "\n" + run.tails()))
            network.set_link(1, "down")
            begun = time.time()
            if down is not None:
                time.sleep(down)
                network.set_link(1, "up")
                codes = run.codes(60)
                check(codes == [0, 0], f"a link that is down for {down} s: the group goes on: {codes}" + ("" if codes == [0, 0] else "\n" + run.tails()))
                lost = [len(one.matches(r"lost at")) for one in run.ranks]
                print(f"      formed again after {lost} losses, the end {time.time() - begun:.1f} s after the cut")
            else:
                codes = run.codes(60)
                took = time.time() - begun
                texts = [one.lines[-1] for one in run.ranks]
                check(codes == [3, 3] and all("waited too long" in text for text in texts), f"a link that stays down: both end with an error: {codes} {texts}")
                # The sum ends at its limit, the formation at its own. One call of the store takes up to `timeout` more.
                check(took < 2 * timeout + wait + 1, f"within {took:.1f} s, with limits of {timeout} s and {wait} s")
                network.set_link(1, "up")
            check_steps(run, steps, f"down for {down or 'ever'}")
            run.close()
    finally:
        network.close()


scenarios = {one.__name__: one for one in (mistakes, sums, equal_bits, killed_worker, killed_chief, replaced_late, gone_for_good, frozen, storm, formations, garbage, trained, restarted, cut_off)}
for name in sys.argv[3:] or scenarios:
    print(f"== {name}", flush=True)
    scenarios[name]()
print(f"{len(failures)} of the checks failed" if failures else "all checks passed")
sys.exit(1 if failures else 0)
