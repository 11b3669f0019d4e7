#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small files of weights with safetensors, NumPy and PyTorch: make_weights.py DIRECTORY

The bytes of each array follow from its name: byte k is (7 * k + length of the name) % 251. Booleans have the lowest bit of it. The order of
the bytes is that of the elements in row-major order. Written with numpy 2.4.6, safetensors 0.8.0 and torch 2.15.0. Without torch, the files
of PyTorch are not written.
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
    torch.save({"wide": torch.ones(1).expand(1000), "good": torch.ones(1)}, directory / "expanded.pt")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    write_numpy(target)
    write_safetensors(target)
    try:
        write_torch(target)
    except ImportError as failure:
        print(f"no files of PyTorch: {failure}", file=sys.stderr)
