"""The four models of `ferroflow-oracle gpu-train` in PyTorch: eager, compiled, compiled with CUDA graphs."""
import argparse
import json
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
torch.backends.cudnn.allow_tf32 = True
torch.backends.cudnn.benchmark = True
DEV = "cuda"


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(784, 512), nn.Linear(512, 512), nn.Linear(512, 10)

    def forward(self, x):
        return self.c(F.relu(self.b(F.relu(self.a(x)))))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 32, 5, padding=2), nn.Conv2d(32, 64, 5, padding=2)
        self.c, self.d = nn.Linear(3136, 1024), nn.Linear(1024, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.a(x)), 2)
        x = F.max_pool2d(F.relu(self.b(x)), 2)
        return self.d(F.relu(self.c(x.flatten(1))))


class Bottleneck(nn.Module):
    def __init__(self, i, mid, stride):
        super().__init__()
        o = mid * 4
        self.a, self.na = nn.Conv2d(i, mid, 1, bias=False), nn.BatchNorm2d(mid)
        self.b, self.nb = nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.BatchNorm2d(mid)
        self.c, self.nc = nn.Conv2d(mid, o, 1, bias=False), nn.BatchNorm2d(o)
        self.short = None
        if stride != 1 or i != o:
            self.short = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        y = F.relu(self.na(self.a(x)))
        y = F.relu(self.nb(self.b(y)))
        y = self.nc(self.c(y))
        return F.relu(y + (x if self.short is None else self.short(x)))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        layers, i = [], 64
        for mid, n, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for k in range(n):
                layers.append(Bottleneck(i, mid, stride if k == 0 else 1))
                i = mid * 4
        self.body, self.head = nn.Sequential(*layers), nn.Linear(2048, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.stem(x))), 3, 2, 1)
        return self.head(self.body(x).mean((2, 3)))


class Block(nn.Module):
    def __init__(self, d=1024, heads=16, ff=4096):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, ff), nn.Linear(ff, d)

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = (t.view(b, s, self.heads, -1).transpose(1, 2) for t in self.qkv(self.n1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, d))
        return x + self.down(F.gelu(self.up(self.n2(x)), approximate="tanh"))


def case(name):
    torch.manual_seed(0)
    if name == "mlp":
        m = Mlp().to(DEV)
        return m, torch.optim.SGD(m.parameters(), 0.1), torch.randn(128, 784, device=DEV), torch.randint(10, (128,), device=DEV), F.cross_entropy, None
    if name == "cnn":
        m = Cnn().to(DEV).to(memory_format=torch.channels_last)
        x = torch.randn(64, 1, 28, 28, device=DEV).to(memory_format=torch.channels_last)
        return m, torch.optim.SGD(m.parameters(), 0.01, 0.9), x, torch.randint(10, (64,), device=DEV), F.cross_entropy, None
    if name == "resnet50":
        m = ResNet50().to(DEV).to(memory_format=torch.channels_last)
        x = torch.randn(256, 3, 224, 224, device=DEV).to(memory_format=torch.channels_last)
        return m, torch.optim.SGD(m.parameters(), 0.1, 0.9), x, torch.randint(1000, (256,), device=DEV), F.cross_entropy, torch.bfloat16
    m = Block().to(DEV)
    x = torch.randn(32, 512, 1024, device=DEV)
    return m, torch.optim.Adam(m.parameters(), 1e-4, fused=True), x, torch.randn_like(x), lambda y, t: F.mse_loss(y.float(), t), torch.bfloat16


def measure(name, mode, seconds):
    torch._dynamo.reset()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    model, opt, x, t, loss_of, amp = case(name)

    def forward(x, t):
        with torch.autocast("cuda", amp, enabled=amp is not None):
            y = model(x)
        return loss_of(y.float() if amp is not None else y, t)

    if mode != "eager":
        forward = torch.compile(forward, mode=None if mode == "compile" else "reduce-overhead")

    def step():
        opt.zero_grad(set_to_none=True)
        loss = forward(x, t)
        loss.backward()
        opt.step()
        return loss

    t0 = time.time()
    first = float(step().detach())
    first_s = time.time() - t0
    for _ in range(20):
        step()
    torch.cuda.synchronize()
    out = {}
    for every in (1, 50):
        n, t0 = 0, time.time()
        while time.time() - t0 < seconds:
            for _ in range(50):
                loss = step()
                if every == 1:
                    last = float(loss.detach())
            last = float(loss.detach())
            n += 50
        out[every] = n / (time.time() - t0)
    print(json.dumps({"impl": "torch " + mode, "model": name, "steps_s_fetch_each": round(out[1], 2), "steps_s_fetch_50th": round(out[50], 2),
                      "first_step_s": round(first_s, 2), "first_loss": first, "last_loss": last, "peak_mb": torch.cuda.max_memory_allocated() >> 20}), flush=True)


if __name__ == "__main__":
    a = argparse.ArgumentParser()
    a.add_argument("--models", default="mlp,cnn,resnet50,block")
    a.add_argument("--modes", default="eager,compile,graphs")
    a.add_argument("--seconds", type=float, default=4)
    a = a.parse_args()
    for name in a.models.split(","):
        for mode in a.modes.split(","):
            try:
                measure(name, mode, a.seconds)
            except Exception as e:
                print(json.dumps({"impl": "torch " + mode, "model": name, "error": str(e)[:300]}), flush=True)
