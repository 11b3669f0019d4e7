# SPDX-License-Identifier: Apache-2.0
"""Kills examples/tensorflow/digits while it trains, and continues it: python digits.py PROGRAM WORK [KILLS]

The last line contains a checksum of all variables. It must be that of a run that was not killed. Needs no TensorFlow in Python.
"""
import random, shutil, subprocess, sys, time

program, work = sys.argv[1:3]
kills = int(sys.argv[3]) if len(sys.argv) > 3 else 10
shutil.rmtree(work, ignore_errors=True)


def command(directory):
    return [program, "--run-dir", f"{work}/{directory}", "--steps", "600", "--save-steps", "20"]


def result_of(directory):
    done = subprocess.run(command(directory), capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"digits ended with {done.returncode}\n{done.stderr}")
    return done.stdout.strip().splitlines()[-1]


begun = time.time()
whole = result_of("whole")
took = time.time() - begun
instants = random.Random(7)
for _ in range(kills):
    child = subprocess.Popen(command("killed"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(took * instants.uniform(0.3, 0.9))
    child.kill()
    child.communicate()
if "model.ckpt-" not in open(f"{work}/killed/checkpoint").read():
    sys.exit("WRONG: no killed process had saved a checkpoint")
last = result_of("killed")
print(whole)
print(last, f"({kills} kills)")
if whole != last:
    sys.exit("WRONG: the killed run ended with other bits")
print("ok    digits: killed and resumed with the same bits")
