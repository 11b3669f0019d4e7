# SPDX-License-Identifier: Apache-2.0
"""Lightning: a step of Trainer.fit with manual optimisation, without logger, checkpoints or progress bar."""
import logging

import lightning
import torch

from turns import measure_steps, take_turns

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.automatic_optimization = False

    def training_step(self, batch, index):
        return None

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Batches:
    """An iterable of numbers, which is cheaper than a DataLoader."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __iter__(self):
        return iter(range(self.count))


def monitored(count):
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Model(), Batches(count))


# The start of a fit is not part of a step, so that a fit of `n` steps is taken from one of `2 * n`.
take_turns(f"Lightning {lightning.__version__}", lambda: measure_steps(1000, lambda n: monitored(2 * n), monitored))
