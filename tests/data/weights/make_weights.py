#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small files of weights with safetensors, NumPy and PyTorch: make_weights.py DIRECTORY

The bytes of each array follow from its name: byte k is (7 * k + length of the name) % 251. Booleans have the lowest bit of it. The order of
the bytes is that of the elements in row-major order. Written with numpy 2.4.6, safetensors 0.8.0 and torch 2.15.0. Without torch, the files
of PyTorch are not written. Two files were written by LibTorch 1.13: libtorch_module.pt by torch::save, for a module with the submodules "fc",
a Linear(2, 1) with the weight (1, 2), and "bn", a BatchNorm1d(1); libtorch_pickle.pt by torch::pickle_save, for {"w": (1, 2)}.
"""
import sys
from pathlib import Path

import numpy
import safetensors.numpy

TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64"]
SHAPES = {"": (2, 3), ".scalar": (), ".empty": (0, 3)}


def pattern(name, size):
    return ((numpy.arange(size) * 7 + len(name)) % 251).astype(numpy.uint8)


def array(name, dtype, shape):
    dtype = numpy.dtype(dtype)
    raw = pattern(name, int(numpy.prod(shape)) * dtype.itemsize)
    return ((raw & 1) if dtype == bool else raw).view(dtype).reshape(shape)


def arrays(types):
    return {f"{t}{suffix}": array(f"{t}{suffix}", t, shape) for t in types for suffix, shape in SHAPES.items()}


def write_numpy(directory):
    made = arrays(TYPES + ["complex128"])
    made["fortran"] = numpy.asfortranarray(array("fortran", "float32", (2, 3, 4)))
    numpy.savez(directory / "stored.npz", **made)
    numpy.savez_compressed(directory / "packed.npz", **made)
    numpy.save(directory / "one.npy", array("one", "float64", (2, 3)))
    refused = {
        "big": array("big", "float32", (3,)).astype(">f4"),
        "objects": numpy.array([{"a": 1}, None], dtype=object),
        "texts": numpy.array(["a", "bc"]),
        "structures": numpy.zeros(2, dtype=[("x", "<f4"), ("y", "<i2")]),
        "good": array("good", "float32", (2,)),
    }
    numpy.savez(directory / "refused.npz", **refused)


def write_safetensors(directory):
    safetensors.numpy.save_file(arrays(TYPES), directory / "numpy.safetensors", metadata={"format": "np", "note": "a \"quoted\" \n text"})


def write_torch(directory):
    import torch
    import safetensors.torch

    types = {t: getattr(torch, t) for t in TYPES}
    types |= {t: getattr(torch, t) for t in ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]}

    def tensor(name, dtype, shape):
        probe = torch.empty((), dtype=dtype)
        raw = pattern(name, int(numpy.prod(shape)) * probe.element_size())
        raw = torch.from_numpy((raw & 1) if dtype == torch.bool else raw)
        return (raw.view(dtype) if raw.numel() else torch.empty(0, dtype=dtype)).reshape(shape)

    made = {f"{t}{suffix}": tensor(f"{t}{suffix}", d, shape) for t, d in types.items() for suffix, shape in SHAPES.items()}
    safetensors.torch.save_file(made, directory / "torch.safetensors", metadata={"format": "pt"})
    made["complex128"] = tensor("complex128", torch.complex128, (2, 3))
    made["transposed"] = tensor("transposed", torch.float32, (4, 3)).t().contiguous().t()
    whole = tensor("whole", torch.float32, (6,))
    made["whole"], made["tied"], made["second_half"], made["every_other"] = whole, whole, whole[3:], whole[::2]
    made["parameter"] = torch.nn.Parameter(tensor("parameter", torch.float32, (2, 2)))
    torch.save(made, directory / "tensors.pt")

    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    for i, parameter in enumerate(net.parameters()):
        parameter.data = torch.arange(parameter.numel(), dtype=torch.float32).reshape(parameter.shape) + 10 * i
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(4, 2)).sum().backward()
    optimizer.step()
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "note": "x"}, directory / "training.pt")
    torch.save(net.state_dict(), directory / "protocol4.pt", pickle_protocol=4)
    torch.serialization.set_crc32_options(False)
    torch.save(net.state_dict(), directory / "without_checksums.pt")
    torch.serialization.set_crc32_options(True)
    torch.save(net, directory / "module.pt")
    torch.save(net.state_dict(), directory / "old.pt", _use_new_zipfile_serialization=False)
    torch.save({"sparse": torch.eye(2).to_sparse(), "good": torch.ones(1)}, directory / "sparse.pt")
    expanded = {"wide": torch.arange(3.0)[:, None].expand(3, 4), "good": torch.ones(1), "huge": torch.ones(1).expand(1 << 28)}
    torch.save(expanded, directory / "expanded.pt")
    for protocol in range(6):
        torch.save(values(torch), directory / f"values{protocol}.pt", pickle_protocol=protocol)
    scripted = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.BatchNorm1d(1))
    scripted[0].weight.data = torch.tensor([[1.0, 2.0]])
    torch.jit.save(torch.jit.script(scripted), directory / "scripted.pt")


def values(torch):
    """Returns a dictionary of tensors, and of objects that stand beside tensors in checkpoints."""
    import argparse
    import collections

    return {
        "w": torch.tensor([1.0, 2.0]),
        "counter": collections.Counter({10: 1, 20: 1}), "defaults": collections.defaultdict(list, {"v": torch.tensor([3.0])}),
        "deque": collections.deque([1, torch.tensor([4.0])]), "ordered": collections.OrderedDict(a=1),
        "bytes": b"ab", "no_bytes": b"", "array": bytearray(b"abc"), "set": {1, 2}, "frozen": frozenset([3]), "size": torch.Size([2, 3]),
        "device": torch.device("cpu"), "dtype": torch.float32, "layout": torch.strided, "complex": 1 + 2j, "namespace": argparse.Namespace(rate=0.5),
        "numbers": [0, 1, 255, 256, 65535, 65536, -1, -129, 2**31, -2**31, 2**63, 2**80, -2**80, 2**4000, 1.5, float("inf"), True, False, None],
        "texts": ["", "x", "x" * 300, "\u00e4\n"], "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)], "empty": [[], {}, ()],
        1: torch.tensor([5.0]), "1": torch.tensor([6.0]), (1, 2): torch.tensor([7.0]), None: torch.tensor([8.0]), False: torch.tensor([9.0]),
        "parameter": torch.nn.Parameter(torch.tensor([10.0])), "function": len,
    }


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    write_numpy(target)
    write_safetensors(target)
    try:
        write_torch(target)
    except ImportError as failure:
        print(f"no files of PyTorch: {failure}", file=sys.stderr)
