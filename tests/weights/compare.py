#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares weights in both directions with torch, safetensors and numpy: compare.py TOOL PROGRAM PAGE DIRECTORY [--big]

TOOL is the program `stepwell`. PROGRAM is the program of PAGE, docs/how_to/weights-to-and-from-python.md, whose blocks of Python are
executed before and after it. The files of make_weights.py are converted by the tool, and the results are compared bit by bit. With --big,
also reads arrays beyond 2 and 4 GB, in files of 5 GB.
"""
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy
import safetensors.numpy
import safetensors.torch
import torch

compared = 0


def run(*command, code=0, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    if done.returncode != code:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout or done.stderr


def bits(value):
    """Returns the type, the shape and the bytes of a tensor or an array."""
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().contiguous()
        kind, shape = str(value.dtype).removeprefix("torch."), tuple(value.shape)
        raw = bytes(value.reshape(-1).view(torch.uint8).numpy()) if value.numel() else b""
        return kind, shape, raw
    return str(value.dtype), value.shape, numpy.ascontiguousarray(value).tobytes()


def compare(ours, theirs, what):
    global compared
    for name, value in theirs.items():
        if bits(ours[name]) != bits(value):
            sys.exit(f"{what}: {name} differs:\n{ours[name]}\n{value}")
        compared += 1
    if set(ours) != set(theirs):
        sys.exit(f"{what}: the names differ: {sorted(set(ours) ^ set(theirs))}")


def flat(value, name=""):
    """Returns the tensors of nested dictionaries, with dots between the keys."""
    if isinstance(value, torch.Tensor):
        return {name: value}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    return {key: tensor for k, v in items for key, tensor in flat(v, f"{name}.{k}" if name else str(k)).items()}


def load(path):
    if path.suffix == ".safetensors":
        return safetensors.torch.load_file(path)
    if path.suffix == ".pt":
        return flat(torch.load(path, weights_only=path.stem != "protocol4"))  # torch itself refuses other protocols otherwise
    held = numpy.load(path)
    return {path.stem: held} if path.suffix == ".npy" else dict(held)


def convert(tool, path, made):
    """Converts a file to safetensors and .npz with the tool, and compares both with what its own library reads."""
    theirs = load(path)
    run(tool, "verify", path)
    run(tool, "inspect", path, "--stats")
    run(tool, "inspect", path, "--diff", path)
    run(tool, "export", path, "--safetensors", made)
    expected = {name: value for name, value in theirs.items() if "complex128" not in str(value.dtype)}
    as_torch = {name: value if isinstance(value, torch.Tensor) else torch.from_numpy(value.copy()) for name, value in expected.items()}
    compare(safetensors.torch.load_file(made), as_torch, f"{path.name} as safetensors")
    run(tool, "inspect", made, "--diff", path, code=0 if len(expected) == len(theirs) else 1)

    run(tool, "export", path, "--npz", made.with_suffix(".npz"))

    def in_numpy(value):
        if not isinstance(value, torch.Tensor):
            return value
        if value.dtype == torch.bfloat16:
            value = value.float()
        return (value.contiguous().view(torch.uint8) if "float8" in str(value.dtype) else value.detach()).numpy()

    compare(dict(numpy.load(made.with_suffix(".npz"))), {name: in_numpy(value) for name, value in theirs.items()}, f"{path.name} as .npz")


def blocks_of(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M)


def run_page(tool, program, page, directory):
    directory.mkdir()
    before, after = blocks_of(page)
    run(sys.executable, "-c", before, cwd=directory)
    printed = run(program, cwd=directory).strip().splitlines()[-1]
    for target in ("--safetensors", "--npz"):
        run(tool, "export", "run", target, "trained." + target.strip("-"), cwd=directory)
    read = run(sys.executable, "-c", after, cwd=directory).strip()
    if abs(float(read) - float(printed)) > 1e-5:
        sys.exit(f"the program predicts {printed}, and Python {read}")
    print(f"the page: C++ predicts {printed}, and Python {read}")
    for name in ("weights.pt", "weights.npz"):
        run(tool, "inspect", name, "--diff", "weights.safetensors", cwd=directory)


def sparse_safetensors(path, size):
    """Writes an array of `size` zeros as a hole, and a small one behind it."""
    header = f'{{"big":{{"dtype":"U8","shape":[{size}],"data_offsets":[0,{size}]}},"small":{{"dtype":"F32","shape":[3],"data_offsets":[{size},{size + 12}]}}}}'
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header.encode())
        file.seek(size, os.SEEK_CUR)
        file.write(numpy.array([1, 2, 3], dtype="<f4").tobytes())


def check_big(tool, directory):
    small = numpy.array([1, 2, 3], dtype=numpy.float32)
    for path, write in [
        (directory / "big.safetensors", lambda p: sparse_safetensors(p, 5 << 30)),
        (directory / "big.npz", lambda p: numpy.savez(p, big=numpy.zeros(5 << 30, dtype=numpy.uint8), small=small)),
        (directory / "big.pt", lambda p: torch.save({"big": torch.zeros(5 << 30, dtype=torch.uint8), "small": torch.from_numpy(small)}, p)),
    ]:
        write(path)
        made = directory / "small.safetensors"
        run(tool, "export", path, "--safetensors", made, "--tensor", "small")
        compare(safetensors.numpy.load_file(made), {"small": small}, path.name)
        if path.suffix == ".safetensors":
            with safetensors.safe_open(path, "np") as theirs:
                assert theirs.get_tensor("small").tolist() == [1, 2, 3]
        path.unlink()
        print(f"{path.name}: the array behind 5 GiB is the same")


def main():
    tool, program, page, directory = (Path(argument).resolve() for argument in sys.argv[1:5])
    script = Path(__file__).resolve().parent.parent / "data" / "weights" / "make_weights.py"
    spec = importlib.util.spec_from_file_location("make_weights", script)
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    source = directory / "source"
    source.mkdir()
    maker.write_numpy(source)
    maker.write_safetensors(source)
    maker.write_torch(source)
    readable = ["stored.npz", "packed.npz", "one.npy", "numpy.safetensors", "torch.safetensors", "tensors.pt", "training.pt",
                "protocol4.pt", "without_checksums.pt"]
    for name in readable:
        convert(tool, source / name, directory / f"{name}.safetensors")
    for name, why in {"module.pt": "Sequential", "old.pt": "weights_only=True", "sparse.pt": "_rebuild_sparse_tensor"}.items():
        said = run(tool, "inspect", source / name, code=6)
        if why not in said:
            sys.exit(f"{name}: {said}")
    run_page(tool, program, page, directory / "page")
    if "--big" in sys.argv:
        check_big(tool, directory)
    print(f"{compared} arrays are the same, bit by bit (torch {torch.__version__}, numpy {numpy.__version__}, safetensors {safetensors.__version__})")


if __name__ == "__main__":
    main()
