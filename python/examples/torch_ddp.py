"""DistributedDataParallel with the backend `ferroflow`. Start: torchrun --nproc-per-node 2
torch_ddp.py"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import ferroflow.torch.distributed  # noqa: F401 (not needed with torch 2.14 and newer)

dist.init_process_group("ferroflow")
torch.manual_seed(dist.get_rank())
x = torch.randn(256, 8)
y = x.sum(1, keepdim=True).tanh()
net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
model = DistributedDataParallel(net)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(200):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
loss = loss.detach()
dist.all_reduce(loss, op=dist.ReduceOp.AVG)
if dist.get_rank() == 0:
    print(f"loss of {dist.get_world_size()} ranks: {loss.item():.4f}")
assert loss < 0.05
dist.destroy_process_group()
