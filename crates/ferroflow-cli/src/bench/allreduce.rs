//! `ferroflow bench allreduce`.

use super::{Ranks, start};
use crate::units;
use ferroflow::Result;
use ferroflow::collective::bench::{SIZES, Timing, all_reduce, floor};
use ferroflow::collective::{Algorithm, Group, Membership, Options, Transport};
use serde_json::json;

/// Time all-reduce between ranks, against the floor that this machine sets
///
/// Starts its ranks on this host; under `ferroflow run`, mpirun, srun or torchrun it is one of theirs.
#[derive(clap::Args)]
#[command(after_help = "\
Columns:
  algbw, busbw  GB/s of the buffer, and of what each rank sends: 2(n-1)/n of it
  of stream     share of a plain TCP stream of as many bytes over loopback, measured beside it
  of floor      share of the same work done by as many threads that never wait for each other

Example:
  ferroflow bench allreduce -n 4 --sizes 4,1MB,16MB")]
pub struct Allreduce {
    #[command(flatten)]
    ranks: Ranks,
    /// Sizes to time, with commas between
    #[arg(long, value_name = "BYTES,…")]
    sizes: Option<String>,
    /// Seconds to spend on each size
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    seconds: f64,
    /// Rounds to spread them over
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Algorithm, instead of the model's choice
    #[arg(long, value_name = "NAME")]
    algorithm: Option<String>,
    /// Print the model that algorithms are chosen by
    #[arg(long)]
    model: bool,
}

pub fn run(args: &Allreduce) -> Result<()> {
    match Membership::from_env()? {
        Some(member) => rank(args, member),
        None => {
            sizes(args)?;
            start(args.ranks.n)
        }
    }
}

fn sizes(args: &Allreduce) -> Result<Vec<usize>> {
    match &args.sizes {
        None => Ok(SIZES.to_vec()),
        Some(list) => list.split(',').map(|s| units::bytes(s).map(|b| b as usize)).collect(),
    }
}

fn rank(args: &Allreduce, mut member: Membership) -> Result<()> {
    member.transport = Transport::from_name(&args.ranks.transport)?;
    let algorithm = args.algorithm.as_deref().map(Algorithm::from_name).transpose()?;
    let mut group = Group::join(&member, Options { algorithm, ..Options::default() })?;
    let (n, tcp) = (group.size(), group.transport() == "tcp");
    let first = group.rank() == 0;
    if first && args.model {
        eprint!("{}", group.model().describe(n, group.cross().1));
    }
    if first && !args.ranks.json {
        println!("all-reduce (sum of float) among {n} ranks over {}", group.transport());
        println!(
            "{:>11} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}  algorithm",
            "bytes", "median us", "min", "p90", "p99", "algbw", "busbw", "of stream", "of floor"
        );
    }
    for bytes in sizes(args)? {
        let timing = all_reduce(&mut group, bytes, args.seconds, args.rounds)?;
        if first {
            // The others wait for the next size meanwhile, so that floors are measured in quiet.
            let seconds = args.seconds.min(1.0);
            let long = tcp && bytes >= floor::SHORT;
            let floors = Floors {
                stream: long.then(|| floor::stream(seconds)).transpose()?,
                work: match tcp {
                    true => floor::over_tcp(n, bytes, seconds)?,
                    false => Some(floor::in_memory(n, bytes)),
                },
            };
            print_timing(&timing, n, &floors, group.transport(), args.ranks.json);
        }
        group.barrier()?;
    }
    Ok(())
}

/// What a time is held against.
struct Floors {
    /// Bytes a second of a plain stream over TCP.
    stream: Option<f64>,
    /// Microseconds of work without any waiting.
    work: Option<f64>,
}

fn print_timing(t: &Timing, n: usize, floors: &Floors, links: &str, as_json: bool) {
    let floor = floors.work;
    let streamed = floors.stream.map(|rate| floor::at_stream(n, t.bytes, rate));
    let share = |floor: Option<f64>| floor.map(|f| f / t.median);
    if as_json {
        let line = json!({
            "bytes": t.bytes, "us": t.median, "min_us": t.least, "p90_us": t.p90, "p99_us": t.p99,
            "algbw": t.algbw(), "busbw": t.busbw(n), "floor_us": floor, "of_floor": share(floor),
            "stream_us": streamed, "of_stream": share(streamed), "stream_bytes_per_s": floors.stream,
            "repeats": t.repeats,
            "algorithm": t.algorithm.name(), "links": links, "n": n,
        });
        println!("{line}");
        return;
    }
    let percent =
        |floor| share(floor).map_or("-".to_owned(), |share| format!("{:.0}%", share * 100.0));
    println!(
        "{:>11} {:>10.1} {:>10.1} {:>10.1} {:>10.1} {:>9.3} {:>9.3} {:>9} {:>9}  {}",
        t.bytes,
        t.median,
        t.least,
        t.p90,
        t.p99,
        t.algbw(),
        t.busbw(n),
        percent(streamed),
        percent(floor),
        t.algorithm
    );
}
