//! Latency, CPU and throughput of an echo call over loopback, server and client in two processes.
//!
//!     rpc_echo_bench [--bytes N] [--calls N] [--inflight N]
//!                    [--server-threads N] [--client-threads N]
//!     rpc_echo_bench serve [PORT] [--server-threads N]    only the server, for other clients
//!
//! CPU times are those of all threads of a process, from /proc.

use bytes::Bytes;
use ferroflow_cluster::rpc::{
    CallOptions, Channel, Chunks, RpcRequest, RpcServer, RpcStatus, client,
};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

/// As in the command: with an allocator that returns its pages, large messages are mostly page
/// faults.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str, default: usize| -> Result<usize, Failure> {
        match args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1)) {
            Some(text) => Ok(text.parse()?),
            None => Ok(default),
        }
    };
    let server_threads = option("--server-threads", 1)?;
    if args.first().is_some_and(|arg| arg == "serve") {
        let port = args.get(1).and_then(|port| port.parse().ok()).unwrap_or(0);
        return runtime(server_threads)?.block_on(serve(port));
    }
    let mut server = Command::new(std::env::current_exe()?)
        .args(["serve", "0", "--server-threads", &server_threads.to_string()])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut address = String::new();
    BufReader::new(server.stdout.take().ok_or("no output of the server")?)
        .read_line(&mut address)?;
    let bytes = option("--bytes", 0)?;
    let calls = option("--calls", if bytes > 1 << 20 { 20 } else { 20_000 })?;
    let inflight = option("--inflight", 1)?;
    let client_threads = option("--client-threads", 1)?;
    let outcome = runtime(client_threads)?.block_on(measure(
        address.trim(),
        server.id(),
        bytes,
        calls,
        inflight,
    ));
    server.kill()?;
    server.wait()?;
    outcome
}

/// One thread means tokio's single-threaded scheduler.
fn runtime(threads: usize) -> Result<tokio::runtime::Runtime, Failure> {
    let mut builder = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    Ok(builder.worker_threads(threads.max(1)).enable_all().build()?)
}

async fn serve(port: u16) -> Result<(), Failure> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("{}", listener.local_addr()?);
    let echo = |request: RpcRequest| async move {
        match request.path() {
            "/bench.Echo/Echo" => Ok(request.body),
            // Answers from another thread, like a step.
            "/bench.Echo/Elsewhere" => {
                let (done, answer) = tokio::sync::oneshot::channel();
                std::thread::spawn(move || done.send(request.body));
                answer.await.map_err(|e| RpcStatus::new(13, e.to_string()))
            }
            // Takes any message and answers with an empty one.
            "/bench.Echo/Take" => Ok(Chunks::new()),
            path => Err(RpcStatus::unknown_method(path)),
        }
    };
    RpcServer::default().serve(listener, Arc::new(echo), std::future::pending()).await;
    Ok(())
}

async fn measure(
    address: &str,
    server: u32,
    bytes: usize,
    calls: usize,
    inflight: usize,
) -> Result<(), Failure> {
    let channel = Channel::connect(address, client::ChannelOptions::default())?;
    let payload = Bytes::from(vec![7u8; bytes]);
    run(&channel, &payload, calls / 10 + 1, inflight).await?;
    let before = (cpu_nanos(server)?, cpu_nanos(std::process::id())?);
    let start = Instant::now();
    run(&channel, &payload, calls, inflight).await?;
    let wall = start.elapsed();
    let after = (cpu_nanos(server)?, cpu_nanos(std::process::id())?);
    let per_call = |nanos: u64| nanos as f64 / 1e3 / calls as f64;
    println!(
        "{bytes} bytes, {inflight} in flight: {:.1} us/call, server cpu {:.1} us/call, client cpu {:.1} us/call, {:.2} GB/s each way",
        wall.as_secs_f64() * 1e6 / calls as f64,
        per_call(after.0 - before.0),
        per_call(after.1 - before.1),
        (bytes * calls) as f64 / wall.as_secs_f64() / 1e9,
    );
    Ok(())
}

async fn run(
    channel: &Channel,
    payload: &Bytes,
    calls: usize,
    inflight: usize,
) -> Result<(), Failure> {
    let mut tasks = tokio::task::JoinSet::new();
    for at in 0..inflight {
        let share = calls / inflight + usize::from(at < calls % inflight);
        let (channel, payload) = (channel.clone(), payload.clone());
        tasks.spawn(async move {
            for _ in 0..share {
                let reply = channel
                    .call("/bench.Echo/Echo", payload.clone(), CallOptions::default())
                    .await?;
                assert_eq!(reply.len(), payload.len());
            }
            Ok::<(), Failure>(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

fn cpu_nanos(process: u32) -> Result<u64, Failure> {
    let mut sum = 0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        sum += text.split(' ').next().unwrap_or_default().parse::<u64>()?;
    }
    Ok(sum)
}
