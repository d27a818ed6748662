"""Many clients at the same time on one server: each has its own session and runs null steps."""

from common import Server, null_clients, rss_mb, thread_count

null_clients(
    "concurrency", __doc__, "1,16,64", Server,
    start=lambda server, _: ["--target", server.target, "--device", server.device],
    more=lambda server: {"server_rss_mb": rss_mb(server.pid) if server.pid else None,
                         "server_threads": thread_count(server.pid) if server.pid else None})
