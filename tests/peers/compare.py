# SPDX-License-Identifier: Apache-2.0
"""Compares stepwell with its peers and prints tables for docs/benchmarks.md. Started by `bash tests/run peers`.

Each peer and each size has a process of its own. All processes of a size live at the same time and measure in turns, so that
load on the machine slows all of them. Every number is a median.
"""
import argparse
import collections
import datetime
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
Peer = collections.namedtuple("Peer", "name package command columns")


class Process:
    """A peer that was started. `ready` is False if it ended before its first measurement."""

    def __init__(self, peer, words, log_path):
        self.peer, self.rows = peer, []
        self.log_path = log_path
        environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2", CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu", PYTHONDONTWRITEBYTECODE="1")
        with open(log_path, "w") as log:
            self.process = subprocess.Popen(
                [*peer.command, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
            )
        self.version = self.answer("ready")

    def answer(self, first=""):
        """Returns the next line without its first word, or None if the process has ended."""
        line = self.process.stdout.readline()
        self.ready = line.startswith(first) and line.endswith("\n")
        return line[len(first) :].strip() if self.ready else None

    def turn(self):
        if self.ready:
            print(file=self.process.stdin, flush=True)
            line = self.answer()
            if self.ready:
                self.rows.append([float(number) for number in line.split()])

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def why_not(self):
        lines = pathlib.Path(self.log_path).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"ended with code {self.process.returncode}"


class Comparison:
    def __init__(self, options):
        self.options = options
        self.versions, self.missing = {}, {}
        self.logs = pathlib.Path(options.directory) / "logs"
        self.data = pathlib.Path(options.directory) / "data"
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(parents=True)
        self.logs.mkdir(exist_ok=True)

    def ours(self, *words):
        return [self.options.program, *words]

    def theirs(self, script, *words):
        return [self.options.python, str(HERE / script), *words]

    def measure(self, kind, peers, words):
        """Runs all peers in turns. Returns {(name of peer, column): median in seconds}, without the missing peers."""
        processes = [Process(peer, words, self.logs / f"{kind}_{number}.log") for number, peer in enumerate(peers)]
        for turn in range(self.options.turns + 1):
            for process in processes[turn % len(processes) :] + processes[: turn % len(processes)]:
                process.turn()
        medians = {}
        for process in processes:
            process.end()
            if len(process.rows) <= self.options.turns:
                self.missing[process.peer.name] = f"{process.peer.package}: {process.why_not()}"
                continue
            if process.version:
                self.versions[process.version] = True
            for column, values in zip(process.peer.columns, zip(*process.rows[1:])):  # the first turn warms up
                medians[process.peer.name, column] = statistics.median(values)
        return medians

    def saves(self):
        both = ("stop", "written")
        peers = [
            Peer("stepwell", "stepwell", self.ours("save"), (*both, "memcpy")),
            Peer("stepwell, with `update_fence`", "stepwell", self.ours("fenced"), ("stop",)),
            Peer("Orbax, asynchronous", "orbax-checkpoint", self.theirs("orbax_save.py"), both),
            Peer("PyTorch DCP `async_save`", "torch", self.theirs("torch_save.py", "dcp"), both),
            Peer("PyTorch DCP `async_save`, staging buffer kept", "torch", self.theirs("torch_save.py", "dcp_kept"), both),
            Peer("`torch.save`, not synced", "torch", self.theirs("torch_save.py", "torch"), both),
            Peer("TensorFlow `Saver`, not synced", "tensorflow-cpu", self.theirs("tensorflow_save.py"), both),
        ]
        columns = []
        for size in self.options.sizes:
            weights = str(self.data / "weights")
            subprocess.run(self.ours("weights", weights, str(size)), check=True)
            columns.append(self.measure(f"save_{size}", peers, [weights, str(self.data / "saves")]))
            shutil.rmtree(self.data / "saves", ignore_errors=True)

        def row(name, column):
            cells = [medians.get((name, column)) for medians in columns]
            return ["missing" if cell is None else f"{cell * 1e3:.2f} ms" for cell in cells]

        heading = [f"{size} MiB" for size in self.options.sizes]
        stops = [[peer.name, *row(peer.name, "stop")] for peer in peers]
        show("what a due checkpoint costs training: it stops for", heading, [*stops, ["one memcpy of the same bytes", *row("stepwell", "memcpy")]])
        show("until the checkpoint is written", heading, [[peer.name, *row(peer.name, "written")] for peer in peers if "written" in peer.columns])

    def steps(self):
        column = ("step",)
        peers = [
            Peer("stepwell, six idle hooks", "stepwell", self.ours("step"), ("step", "range-for")),
            Peer("Ignite", "pytorch-ignite", self.theirs("ignite_step.py"), column),
            Peer("TensorFlow `MonitoredTrainingSession`", "tensorflow-cpu", self.theirs("tensorflow_step.py"), column),
            Peer("Lightning", "lightning", self.theirs("lightning_step.py"), column),
        ]
        medians = self.measure("step", peers, [])

        def cell(name, column="step"):
            seconds = medians.get((name, column))
            if seconds is None:
                return "missing"
            return f"{seconds * 1e9:.1f} ns" if seconds < 1e-6 else f"{seconds * 1e6:.1f} µs"

        rows = [[peer.name, cell(peer.name)] for peer in peers]
        rows.insert(1, ["the same, range-for", cell(peers[0].name, "range-for")])
        show("a step through the monitor", ["above the bare loop"], rows)

    def memory(self):
        size = self.options.memory
        rows = []
        for phase, words in (("nothing saved, recovery off", "nothing"), ("saves", "saves"), ("restore alone", "restore")):
            output = subprocess.run(self.ours("memory", words, str(self.data / "memory"), str(size)), check=True, stdout=subprocess.PIPE, text=True)
            rows.append([phase, f"{float(output.stdout):.2f} x"])
        show(f"peak memory of stepwell, with {size} MiB of variables", ["over the variables"], rows)


def show(title, heading, rows):
    print("\n" + "\n".join("| " + " | ".join(row) + " |" for row in ([title, *heading], ["---"] * (len(heading) + 1), *rows)), flush=True)


def machine(directory):
    processor = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    files = subprocess.run(["df", "--output=fstype", directory], capture_output=True, text=True).stdout.split()[-1]
    return f"{os.cpu_count()} processors, {processor}; {memory:.0f} GiB of memory; {files}; {platform.system()} {platform.release()}"


def main():
    parser = argparse.ArgumentParser(description="Compares stepwell with its peers.")
    parser.add_argument("--program", required=True, help="the program stepwell_peer")
    parser.add_argument("--python", required=True, help="the Python in which the peers are installed")
    parser.add_argument("--directory", required=True, help="directory for checkpoints and logs; decides about the disk")
    parser.add_argument("--turns", type=int, default=9, help="measurements of each number (default: 9)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 64, 256], help="sizes of the saved variables in MiB (default: 16 64 256)")
    parser.add_argument("--memory", type=int, default=1024, help="size of the variables in MiB for the peak memory (default: 1024)")
    options = parser.parse_args()
    if options.turns < 1 or options.memory < 1:
        parser.error("--turns and --memory must be at least 1")

    load = os.getloadavg()[0]
    comparison = Comparison(options)
    try:
        comparison.saves()
        comparison.steps()
        comparison.memory()
    finally:
        shutil.rmtree(comparison.data, ignore_errors=True)
    print(f"\n{datetime.date.today()}, medians of {options.turns}. Machine: {machine(options.directory)}; load {load:.1f} before the run.")
    print("Versions: " + ", ".join([*comparison.versions, f"Python {platform.python_version()}"]) + ".")
    for name, reason in comparison.missing.items():
        print(f"Missing: {name}. {reason}")
    return 1 if any(reason.startswith("stepwell:") for reason in comparison.missing.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
