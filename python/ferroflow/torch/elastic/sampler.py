"""A sampler that divides a data set again when the ranks change."""

import math
import random

import torch.utils.data

from .. import mpi_ops


class ElasticSampler(torch.utils.data.Sampler):
    """Divides the samples of a data set between the ranks. Samples that were processed before the
    ranks changed are not given again in the same epoch.

    All ranks have the same order of samples and take them in turns, so the number of processed
    samples says which ones are left. Call `record_batch` after each batch, and `set_epoch` at the
    end of each epoch. `seed` must be the same on all ranks.
    """

    def __init__(self, dataset, shuffle=True, seed=0):
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = 0
        self.processed_num = 0
        self.reset()

    def set_epoch(self, epoch):
        """Begins an epoch: all samples are open again."""
        self.epoch = epoch
        self.processed_num = 0
        self.reset()

    def record_batch(self, batch_idx, batch_size):
        """Notes that every rank has processed a batch of this size."""
        self.processed_num += batch_size * self.num_replicas

    def get_indices(self, batch_idx, batch_size):
        """The samples of a batch of this rank."""
        start = batch_idx * batch_size
        return self.indices[start:start + batch_size]

    @property
    def processed_indices(self):
        """The samples that all ranks together have processed in this epoch."""
        return set(self._order()[:self.processed_num])

    def state_dict(self):
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict):
        self.epoch = state_dict["epoch"]
        self.processed_num = state_dict["processed_num"]
        self.reset()

    def _order(self):
        """All samples in the order of this epoch."""
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        return order

    def reset(self):
        """Divides the samples that are left between the ranks that there are now."""
        self.num_replicas, self.rank = mpi_ops.size(), mpi_ops.rank()
        left = self._order()[self.processed_num:]
        self.remaining_indices = left
        self.num_samples = math.ceil(len(left) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas
        # All ranks get as many samples: the first ones are given twice.
        padded = list(left)
        while left and len(padded) < self.total_size:
            padded += left[:self.total_size - len(padded)]
        self.indices = padded[self.rank::self.num_replicas]

    def __iter__(self):
        return iter(self.indices)

    def __len__(self):
        return self.num_samples
