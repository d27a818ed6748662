//! Starts many small ranks on this host and prints what a group of them costs, as one JSON line:
//!
//!     scale -n 1000 --bytes 4194304 --transport tcp

use ferroflow_collective::{Group, GroupOptions, Membership, ReduceOp, TransportChoice};
use ferroflow_core::{Result, bail, err};
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn main() {
    if let Err(e) = run() {
        eprintln!("{e}");
        std::process::exit(1);
    }
}

fn run() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |flag: &str| {
        let at = args.iter().position(|a| a == flag)?;
        args.get(at + 1).map(String::as_str)
    };
    let number = |flag: &str, default: usize| value(flag).map_or(Some(default), |v| v.parse().ok());
    let (Some(n), Some(bytes)) = (number("-n", 1000), number("--bytes", 4 << 20)) else {
        bail!(InvalidArgument, "-n and --bytes are numbers");
    };
    let Some(mut member) = Membership::from_env()? else { return launch(n, &args) };
    member.transport = TransportChoice::from_name(value("--transport").unwrap_or("auto"))?;
    member.timeout = Duration::from_secs(120);
    let options = GroupOptions { timeout: Duration::from_secs(300), ..GroupOptions::default() };
    let mut group = Group::join(&member, options)?;
    let started = std::env::var("SCALE_STARTED").ok().and_then(|text| text.parse().ok());
    let start_up = now() - started.unwrap_or_else(now);
    let mut values: Vec<f32> = (0..bytes / 4).map(|i| (i % 1000) as f32).collect();
    let begun = Instant::now();
    group.all_reduce(&mut values, ReduceOp::Sum)?;
    let seconds = begun.elapsed().as_secs_f64();
    let expected = |i: usize| (i % 1000) as f32 * n as f32;
    if let Some(i) = (0..values.len()).find(|&i| values[i] != expected(i)) {
        bail!(Internal, "value {i} is {} instead of {}", values[i], expected(i));
    }
    let own = [start_up, descriptors(), resident(), group.open_links().unwrap_or(0) as f64];
    // Rank 0 has more: it is reported by itself.
    let mut most = if group.rank() == 0 { [0.0; 4] } else { own };
    group.all_reduce(&mut most, ReduceOp::Max)?;
    if group.rank() == 0 {
        println!(
            "{{\"ranks\":{n},\"links\":\"{}\",\"bytes\":{bytes},\"start_up_s\":{:.1},\"all_reduce_s\":{seconds:.2},\
             \"algorithm\":\"{}\",\"descriptors\":{},\"rank_0_descriptors\":{},\"peers\":{},\"resident_mb\":{:.1}}}",
            group.transport(),
            most[0].max(own[0]),
            group.algorithm_for(bytes),
            most[1],
            own[1],
            most[3],
            most[2]
        );
    }
    group.barrier()
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

fn descriptors() -> f64 {
    // The listing itself has one open.
    std::fs::read_dir("/proc/self/fd").map_or(0.0, |all| all.count().saturating_sub(1) as f64)
}

/// Megabytes of memory in use.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) / 1e3
}

/// Starts this program once for each rank, and waits for all of them.
fn launch(n: usize, args: &[String]) -> Result<()> {
    let problem = |e: std::io::Error| err!(Internal, "cannot start ranks: {e}");
    // The port is free now, and rank 0 binds it immediately.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(problem)?;
    let address = listener.local_addr().map_err(problem)?.to_string();
    drop(listener);
    let program = std::env::current_exe().map_err(problem)?;
    let started = now().to_string();
    let start = |rank: usize| -> Result<Child> {
        Command::new(&program)
            .args(args)
            .env("FERROFLOW_RANK", rank.to_string())
            .env("FERROFLOW_SIZE", n.to_string())
            .env("FERROFLOW_ADDRESS", &address)
            .env("SCALE_STARTED", &started)
            .spawn()
            .map_err(problem)
    };
    let mut ranks = (0..n).map(start).collect::<Result<Vec<_>>>()?;
    for (rank, child) in ranks.iter_mut().enumerate() {
        let status = child.wait().map_err(problem)?;
        if !status.success() {
            bail!(Internal, "rank {rank} ended with {status}");
        }
    }
    Ok(())
}
