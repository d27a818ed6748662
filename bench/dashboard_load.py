"""Processor time of `ferroflow dashboard` for 100 tasks that run 1,000 steps a second each.

The tasks are simulated in this process: each answers `/api/task` on a port of its own, as a task
does. One browser is simulated too: it reads the server-sent events. Prints one line of JSON.

    python3 bench/dashboard_load.py target/release/ferroflow --tasks 100 --seconds 30
"""
import argparse
import asyncio
import json
import os
import subprocess
import time

RATE = 1000


def snapshot(task, start):
    now = time.time()
    steps = int((now - start) * RATE)
    step = [300, 400, 100, 200]
    recent = [[steps - i, int((now - i / RATE) * 1e6), 0, 600, 100, 300] for i in range(24)]
    return {
        "job": "worker", "task": task, "pid": 1000 + task, "version": "0", "started": start,
        "now": now, "steps": steps, "failed_steps": 0, "parts": steps,
        "phases": [steps * part * 1e-6 for part in step], "sessions": 1, "connections": 4,
        "refused": 0, "rpcs": steps, "resident": 90_000_000, "cpu": now - start, "files": 40,
        "memory": 1_000_000, "gpus": [], "sent": {"link": steps * 4000, "grpc": 0, "collective": 0},
        "received": {"link": steps * 4000, "grpc": 0},
        "waits": {"tensor": steps * 2e-4, "ranks": 0, "queue": 0},
        "collectives": {"count": 0, "bytes": 0, "seconds": 0}, "ranks": 0, "epoch": 0,
        "recoveries": 0, "recent": recent, "late": [],
        "peers": [{"task": f"/job:ps/replica:0/task:{p}", "sent": steps * 2000,
                   "received": steps * 2000, "values": steps, "waited": steps * 1e-4}
                  for p in range(2)],
        "scalars": [["loss", steps, 1 / (1 + steps)]],
    }


async def serve(task, start):
    async def answer(reader, writer):
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                body = json.dumps(snapshot(task, start)).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                             b"content-length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def watch(url):
    """Reads the events as a browser does; returns when the server closes the connection."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 24)
    writer.write(f"GET /api/events HTTP/1.1\r\nhost: {host}:{port}\r\n\r\n".encode())
    total = 0
    while part := await reader.read(1 << 16):
        total += len(part)
        watch.bytes = total


async def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30)
    args = parser.parse_args()
    start = time.time()
    servers = [await serve(task, start) for task in range(args.tasks)]
    words = [args.program, "dashboard", "--bind", "127.0.0.1:0"]
    words += [f"127.0.0.1:{port}" for _, port in servers]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        loop = asyncio.get_running_loop()
        url = (await loop.run_in_executor(None, process.stdout.readline)).split()[1]
        watch.bytes = 0
        browser = asyncio.create_task(watch(url))
        await asyncio.sleep(3)
        before, bytes_before, began = cpu_seconds(process.pid), watch.bytes, time.monotonic()
        await asyncio.sleep(args.seconds)
        took = time.monotonic() - began
        used = cpu_seconds(process.pid) - before
        browser.cancel()
        print(json.dumps({
            "tasks": args.tasks, "steps_per_second": args.tasks * RATE, "seconds": round(took, 1),
            "percent_of_a_core": round(100 * used / took, 2),
            "bytes_to_browser_per_second": int((watch.bytes - bytes_before) / took),
        }))
    finally:
        process.terminate()
        process.wait()


asyncio.run(main())
