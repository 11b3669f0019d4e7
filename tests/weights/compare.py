#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares weights in both directions with torch, safetensors and numpy: compare.py TOOL PROGRAM PAGE DIRECTORY [--big]

TOOL is the program `stepwell`. PROGRAM is the program of PAGE, docs/how_to/weights-to-and-from-python.md, whose blocks of Python are
executed before and after it. The files of make_weights.py are converted by the tool, and the results are compared bit by bit. With --big,
also reads arrays beyond 2 and 4 GB, in files of 5 GB.
"""
import collections
import importlib.util
import json
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


def tensors_in(value, name=""):
    """Yields the names and tensors of nested dictionaries, with dots between the keys."""
    if isinstance(value, torch.Tensor):
        yield name or "tensor", value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple, collections.deque)) else ()
    for key, item in items:
        key = str(key) if isinstance(key, (str, int)) else "?"
        yield from tensors_in(item, f"{name}.{key}" if name else key)


def flat(value):
    """Returns the tensors by name. The second one of a name has the number 2."""
    found, counts = {}, collections.Counter()
    for name, tensor in tensors_in(value):
        counts[name] += 1
        found[name if counts[name] == 1 else f"{name} ({counts[name]})"] = tensor
    return found


def load(path):
    if path.suffix == ".safetensors":
        return safetensors.torch.load_file(path)
    if path.suffix == ".pt":
        # torch itself reads no other protocols and objects otherwise, and no tensors in protocol 0.
        path = path.with_name("values1.pt") if path.stem == "values0" else path
        return flat(torch.load(path, weights_only=not path.stem.startswith(("protocol", "values"))))
    if path.name.endswith(".index.json"):
        return {name: tensor for file in path.parent.glob("*.safetensors") for name, tensor in safetensors.torch.load_file(file).items()}
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


def check_optimizers(tool, directory):
    """Reads a checkpoint with each scheduler of PyTorch that torch.load(weights_only=True) reads."""
    from torch.optim import lr_scheduler as schedulers

    net = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    for scheduler in [
        schedulers.MultiStepLR(optimizer, [10, 20]), schedulers.StepLR(optimizer, 10), schedulers.CosineAnnealingLR(optimizer, 10),
        schedulers.LambdaLR(optimizer, lambda epoch: 1.0), schedulers.OneCycleLR(optimizer, 0.1, 10), schedulers.ReduceLROnPlateau(optimizer),
        schedulers.CyclicLR(optimizer, 0.1, 0.2, cycle_momentum=False), schedulers.SequentialLR(optimizer, [schedulers.ConstantLR(optimizer)], [])]:
        path = directory / f"{type(scheduler).__name__}.pt"
        torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "device": torch.device("cpu"),
                    "seen": {1, 2}, "note": b"ab", "random": torch.get_rng_state()}, path)
        convert(tool, path, path.with_suffix(".safetensors"))


def check_lengths(tool, directory):
    """Reads tensors beside long and deep values, in each protocol."""
    deep = []
    for _ in range(200):
        deep = [deep]
    long = [(), [], {}, True, None, 5, 300, 70000, -1, 2**70, 0.5, "x", b"y", (1,), (1, 2), (1, 2, 3, 4), {3}]
    for protocol in range(1, 6):
        path = directory / f"protocol_length{protocol}.pt"
        values = {"w": torch.ones(3), "deep": deep, **{f"{i}": [type(v)(v) if isinstance(v, (list, dict, set)) else v for _ in range(100_000)] for i, v in enumerate(long)}}
        torch.save(values, path, pickle_protocol=protocol)
        convert(tool, path, directory / f"protocol_length{protocol}.safetensors")
    path = directory / "many.pt"
    shared = torch.arange(4.0)
    torch.save({"layers": {f"a.long.name.of.a.layer.{i}": torch.ones(1) for i in range(2000)}, "tied": [shared] * 2000}, path)
    convert(tool, path, directory / "many.safetensors")


def check_index(tool, directory):
    """Reads several files of safetensors by their index, as Hugging Face writes it."""
    directory.mkdir()
    parts = {f"model-0000{i}-of-00002.safetensors": {f"{i}.weight": torch.full((2, 3), float(i)), f"{i}.bias": torch.ones(3, dtype=torch.bfloat16)}
             for i in (1, 2)}
    for name, tensors in parts.items():
        safetensors.torch.save_file(tensors, directory / name)
    path = directory / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 60}, "weight_map": {t: name for name, tensors in parts.items() for t in tensors}}))
    convert(tool, path, directory.parent / "joined.safetensors")
    if "4 tensors" not in run(tool, "inspect", directory):  # the directory of the index
        sys.exit(f"{directory}: not all tensors")
    (directory / "model-00002-of-00002.safetensors").unlink()
    said = run(tool, "inspect", path, code=4)
    if "model-00002-of-00002.safetensors" not in said:
        sys.exit(f"{path}: {said}")


def check_headers(tool, directory):
    """Compares which headers of safetensors and of .npy files are read, and what of them."""
    array = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    data = numpy.array([1, 2], dtype="<f4").tobytes()
    headers = [array, b" " + array, b"\n\t" + array, array + b"  \n", array + b"\0\0", array + b"\0" * 1400, b"\xef\xbb\xbf" + array, array + b"\x0b", b"[]",
               b"{}", b'{"__metadata__":null,' + array[1:], b'{"__metadata__":{},' + array[1:], b'{"__metadata__":{"a":"b"},' + array[1:],
               b'{"__metadata__":{"a":null},' + array[1:], b'{"__metadata__":1,' + array[1:], array[:-2] + b',"more":[1,{"x":null}]}}', array[:-1]]
    for i, header in enumerate(headers):
        path = directory / f"header{i}.safetensors"
        path.write_bytes(len(header).to_bytes(8, "little") + header + (data if b"w" in header else b""))
        try:
            safetensors.numpy.load_file(path)
        except safetensors.SafetensorError:
            run(tool, "inspect", path, code=3)
            continue
        convert(tool, path, directory / "header.safetensors")
    dicts = ["{'descr': '%s', 'fortran_order': False, 'shape': (2,), }", '{"shape":(2,),"descr":"%s","fortran_order":True}',
             "{ 'descr' : '%s' , 'fortran_order' : False , 'shape' : ( 2 , ) }", "{'descr': '%s', 'fortran_order': False, 'shape': (2, 1, 1)}",
             "{'descr': '%s', 'fortran_order': False, 'shape': ()}", "{'descr': '%s', 'fortran_order': True, 'shape': (0, 3)}"]
    types = ["<f4", ">f4", "=f4", "f4", "f", "float32", "<i8", ">i8", "|i1", "|u1", "<u2", ">u2", "<f2", ">f2", ">f8", "<c8", ">c8"]
    for version in (1, 2, 3):
        for i, form in enumerate(dicts):
            for type_ in types:
                header = (form % type_).encode() + b"\n"
                path = directory / f"v{version}.npy"
                content = numpy.array([1, 2], dtype=type_).tobytes() if i != 5 else b""
                path.write_bytes(b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(2 if version == 1 else 4, "little") + header + content)
                made = directory / "v.npz"
                run(tool, "export", path, "--npz", made)
                theirs = numpy.load(path)
                compare(dict(numpy.load(made)), {path.stem: theirs.astype(theirs.dtype.newbyteorder("="))}, f"{header} of version {version}")
    try:
        import ml_dtypes
    except ImportError:
        return
    numpy.savez(directory / "small.npz", a=numpy.ones(3, ml_dtypes.bfloat16), b=numpy.ones(3, ml_dtypes.float8_e4m3fn))
    said = run(tool, "inspect", directory / "small.npz")
    if "bfloat16 probably" not in said or "float8 of ml_dtypes probably" not in said:
        sys.exit(f"small.npz: {said}")


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
                "protocol4.pt", "without_checksums.pt", "old.pt"] + [f"values{protocol}.pt" for protocol in range(6)]
    for name in readable:
        convert(tool, source / name, directory / f"{name}.safetensors")
    check_optimizers(tool, directory)
    check_lengths(tool, directory)
    check_index(tool, directory / "index")
    check_headers(tool, directory)
    for name, code, why in [("module.pt", 6, "Sequential"), ("sparse.pt", 0, "_rebuild_sparse_tensor")]:
        said = run(tool, "inspect", source / name, code=code)
        if why not in said:
            sys.exit(f"{name}: {said}")
    run_page(tool, program, page, directory / "page")
    if "--big" in sys.argv:
        check_big(tool, directory)
    print(f"{compared} arrays are the same, bit by bit (torch {torch.__version__}, numpy {numpy.__version__}, safetensors {safetensors.__version__})")


if __name__ == "__main__":
    main()
