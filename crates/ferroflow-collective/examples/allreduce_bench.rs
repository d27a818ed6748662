//! Measures all-reduce between processes of this host, and prints one JSON line per size:
//!
//!     allreduce_bench -n 4 --sizes 4,1048576 --seconds 2 [--transport tcp] [--algorithm ring]

use ferroflow_collective::{Algorithm, Group, GroupOptions, Membership, TransportChoice, bench};
use ferroflow_core::{Result, bail, err};
use std::process::{Child, Command};

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
    let number = |flag: &str, default: f64| {
        value(flag).map_or(Ok(default), |v| {
            v.parse::<f64>().map_err(|_| err!(InvalidArgument, "{flag} {v:?} is not a number"))
        })
    };
    let Some(mut member) = Membership::from_env()? else {
        return launch(number("-n", 2.0)? as usize, &args);
    };
    member.transport = TransportChoice::from_name(value("--transport").unwrap_or("auto"))?;
    let algorithm = value("--algorithm").map(Algorithm::from_name).transpose()?;
    let mut group = Group::join(&member, GroupOptions { algorithm, ..GroupOptions::default() })?;
    if group.rank() == 0 && args.iter().any(|a| a == "--model") {
        eprint!("{}", group.model().describe(group.size(), 1));
    }
    let sizes: Vec<usize> = match value("--sizes") {
        Some(list) => list.split(',').filter_map(|s| s.trim().parse().ok()).collect(),
        None => bench::SIZES.to_vec(),
    };
    let (seconds, rounds) = (number("--seconds", 2.0)?, number("--rounds", 3.0)? as usize);
    for bytes in sizes {
        let t = bench::all_reduce(&mut group, bytes, seconds, rounds)?;
        if group.rank() == 0 {
            println!(
                "{{\"bytes\":{bytes},\"us\":{:.3},\"min_us\":{:.3},\"p99_us\":{:.3},\"algbw\":{:.4},\
                 \"busbw\":{:.4},\"algorithm\":\"{}\",\"links\":\"{}\"}}",
                t.median,
                t.least,
                t.p99,
                t.algbw(),
                t.busbw(group.size()),
                t.algorithm,
                group.transport()
            );
        }
    }
    Ok(())
}

/// Starts this program once for each rank, and waits for all of them.
fn launch(n: usize, args: &[String]) -> Result<()> {
    let problem = |e: std::io::Error| err!(Internal, "cannot start ranks: {e}");
    // The port is free now, and rank 0 binds it immediately.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(problem)?;
    let address = listener.local_addr().map_err(problem)?.to_string();
    drop(listener);
    let program = std::env::current_exe().map_err(problem)?;
    let start = |rank: usize| -> Result<Child> {
        Command::new(&program)
            .args(args)
            .env("FERROFLOW_RANK", rank.to_string())
            .env("FERROFLOW_SIZE", n.to_string())
            .env("FERROFLOW_ADDRESS", &address)
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
