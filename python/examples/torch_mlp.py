"""Data-parallel training of a torch model. Start: ferroflow run -np 2 -- python torch_mlp.py"""

import torch

import ferroflow.torch as hvd

hvd.init()
torch.manual_seed(hvd.rank())
x = torch.randn(256, 8)
y = x.sum(1, keepdim=True).tanh()
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
for step in range(200):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
loss = hvd.allreduce(loss.detach(), name="loss")
if hvd.rank() == 0:
    print(f"loss of {hvd.size()} ranks: {loss.item():.4f}")
assert loss < 0.05
