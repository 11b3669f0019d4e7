#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how fast a directory of runs opens: board_directory.py TOOL DIRECTORY [PYTHON]

TOOL is the program `stepwell`, DIRECTORY was written by `board_bench make`. With PYTHON, an interpreter that has the package tensorboard, the
loaders of TensorBoard read the same directory. Times are from the start of a process until its answers are complete.
"""
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

SHOWN = 6  # the page shows so many runs of a directory at first


def get(url):
    with urllib.request.urlopen(url) as reply:
        return reply.read()


def board(tool, directory):
    begin = time.perf_counter()
    server = subprocess.Popen([tool, "board", "--port", "0", directory], stdout=subprocess.PIPE, text=True)
    base = re.match(r"(http://[^#]*)#", server.stdout.readline())[1]

    def passed(what):
        print(f"board: {what} after {time.perf_counter() - begin:.3f} s", flush=True)

    def tags_of(runs):
        query = urllib.parse.urlencode([("run", run) for run in runs])
        return json.loads(get(f"{base}api/tags?{query}"))["runs"]

    get(base)
    get(f"{base}api/board")
    passed("the page")
    runs = json.loads(get(f"{base}api/runs"))["runs"]
    passed(f"the list of {len(runs)} runs")
    newest = [one["run"] for one in sorted(runs, key=lambda one: -one["changed"])]
    points = 0
    for run in tags_of(newest[:SHOWN]):
        for tag in run["tags"]:
            points += tag["points"]
            get(f"{base}api/curve?" + urllib.parse.urlencode({"run": run["run"], "tag": tag["tag"], "buckets": 512}))
    passed(f"the first complete view, {points} points in all curves of {SHOWN} runs,")
    points = 0
    for at in range(0, len(newest), 50):
        points += sum(tag["points"] for run in tags_of(newest[at : at + 50]) for tag in run["tags"])
    passed(f"all tags of all runs, {points} points,")
    server.terminate()
    usage = os.wait4(server.pid, 0)[2]
    print(f"board: {usage.ru_utime + usage.ru_stime:.2f} s of processor time, {usage.ru_maxrss / 1e6:.2f} GB of memory", flush=True)


def tensorboard_process(python, directory, fast):
    begin = time.perf_counter()
    server = subprocess.Popen(
        [python, "-m", "tensorboard.main", "--logdir", directory, "--port", "0", "--load_fast", fast],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    base = None
    while base is None:
        found = re.search(r"at (http://localhost:[0-9]+/)", server.stderr.readline())
        base = found[1] if found else None
    print(f"TensorBoard (load_fast={fast}): listens after {time.perf_counter() - begin:.3f} s", flush=True)
    seen = 0
    while True:
        try:
            runs = json.loads(get(f"{base}data/plugin/scalars/tags"))
            if len(runs) != seen:
                seen = len(runs)
            if seen == 200:
                last = sorted(runs)[-1]
                tag = sorted(runs[last])[0]
                if json.loads(get(f"{base}data/plugin/scalars/scalars?" + urllib.parse.urlencode({"run": last, "tag": tag})))[-1][1] == 10_000:
                    break
        except urllib.error.HTTPError:
            pass
        time.sleep(0.1)
    print(f"TensorBoard (load_fast={fast}): the last run is complete after {time.perf_counter() - begin:.3f} s", flush=True)
    server.terminate()
    server.wait()


if __name__ == "__main__":
    board(sys.argv[1], sys.argv[2])
    if len(sys.argv) > 3:
        for fast in ("true", "false"):
            tensorboard_process(sys.argv[3], sys.argv[2], fast)
