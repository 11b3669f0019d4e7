# SPDX-License-Identifier: Apache-2.0
"""Writes, with TensorFlow itself, the checkpoints `narrow` and `variant` beside this file and ../format/narrow_numbers.txt.

The committed files were made with Python 3.11, tensorflow-cpu 2.21.0 and ml_dtypes 0.6.0:
    python3 -m venv venv && venv/bin/pip install tensorflow-cpu && venv/bin/python make_tensorflow.py
The table holds the value of every bit pattern of each type, as ml_dtypes converts it to float32.
"""
import pathlib

import ml_dtypes
import numpy
import tensorflow as tf

HERE = pathlib.Path(__file__).resolve().parent
BITS = {
    "float8_e5m2": 8, "float8_e4m3fn": 8, "float8_e4m3fnuz": 8, "float8_e4m3b11fnuz": 8, "float8_e5m2fnuz": 8,
    "float4_e2m1fn": 4, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2,
}


def save(name, tensors):
    names = sorted(tensors)
    tf.raw_ops.SaveV2(prefix=str(HERE / name), tensor_names=names, shape_and_slices=[""] * len(names),
                      tensors=[tensors[one] for one in names])


patterns = {name: numpy.arange(1 << bits, dtype=numpy.uint8).view(getattr(ml_dtypes, name)) for name, bits in BITS.items()}
save("narrow", {"all/" + name: tf.constant(values) for name, values in patterns.items()})

tensor_list = tf.raw_ops.TensorListFromTensor(tensor=tf.constant([[1.0, 2.0], [3.0, 4.0]]), element_shape=tf.constant([2]))
save("variant", {"list": tensor_list, "weights": tf.constant([1.0, 2.0])})

with open(HERE.parent / "format" / "narrow_numbers.txt", "w", encoding="ascii") as table:
    for name, values in patterns.items():
        words = (f"{value:.9g}" for value in values.astype(numpy.float32))
        table.write(name + " " + " ".join(words) + "\n")
