# SPDX-License-Identifier: Apache-2.0
"""PyTorch: `torch.save`, and `async_save` of its distributed checkpoints (DCP) with a new and with a kept staging buffer."""
import sys

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

from turns import measure_save, read_weights, take_turns

kind, weights, directory = sys.argv[1:]
state = {f"layer_{i}": torch.from_numpy(layer.copy()) for i, layer in enumerate(read_weights(weights))}
stager = DefaultStager(StagingOptions(False, False, False, False)) if kind == "dcp_kept" else None  # the other ways to stage


def save(path):
    if kind == "torch":
        return torch.save(state, path)
    response = dcp.async_save(state, checkpoint_id=path, **({"async_stager": stager} if stager else {}))
    if not hasattr(response, "staging_completion"):
        return response
    response.staging_completion.result()  # the model must not change before
    return response.upload_completion


def measure():
    path = f"{directory}/{kind}/state"
    return measure_save(path, save, (lambda pending: pending.result()) if kind != "torch" else None)


take_turns(f"PyTorch {torch.__version__}", measure)
