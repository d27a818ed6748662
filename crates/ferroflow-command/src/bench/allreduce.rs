//! `ferroflow bench allreduce`: times all-reduce by buffer size.

use super::{Ranks, among, start};
use crate::say::say;
use crate::units;
use ferroflow::collective::bench::{SIZES, Timing, all_reduce, floor, named_all_reduce};
use ferroflow::collective::{Algorithm, Engine, EngineOptions, Group, GroupOptions, Membership};
use ferroflow::{Code, Error, Result};
use serde_json::json;

/// Time all-reduce between ranks, and compare with the limits of this machine
///
/// Starts its ranks on this host. Under `ferroflow run`, mpirun, srun or torchrun it joins their
/// job.
#[derive(clap::Args)]
#[command(after_help = "\
Columns:
  algbw, busbw  GB/s of the buffer, and of what each rank sends: 2(n-1)/n of it
  of stream     share of a plain TCP stream of as many bytes over loopback, measured beside it
  of floor      share of the speed of the same work by as many threads that never wait for each other

Example:
  ferroflow bench allreduce -n 4 --sizes 4,1MB,16MB")]
pub struct Allreduce {
    #[command(flatten)]
    ranks: Ranks,
    /// Buffer sizes to time, separated by commas
    #[arg(long, value_name = "BYTES,…")]
    sizes: Option<String>,
    /// Seconds to spend on each size
    #[arg(long, value_name = "S", default_value_t = 2.0, allow_negative_numbers = true)]
    seconds: f64,
    /// Rounds that the time of a size is split into
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Algorithm to use [default: the cost model's choice]
    #[arg(long, value_name = "NAME")]
    algorithm: Option<String>,
    /// Time tensors with names, as programs submit them: the ranks first agree that all have
    /// submitted the tensor
    #[arg(long, conflicts_with = "explain")]
    named: bool,
    /// Draw the moves of each algorithm among -n ranks, or of --algorithm (also: reduce-serial,
    /// reduce-tree), instead of timing
    #[arg(long)]
    explain: bool,
    /// With --explain: also write the drawings as SVG files to this folder
    #[arg(long, value_name = "DIR", requires = "explain")]
    svg: Option<std::path::PathBuf>,
    /// With --explain: ranks on each host, for the hierarchical algorithm
    #[arg(long, value_name = "N", requires = "explain", default_value_t = 2)]
    local: usize,
    /// Print the cost model that chooses the algorithm
    #[arg(long)]
    model: bool,
}

/// The parsed command line.
struct Asked {
    algorithm: Option<Algorithm>,
    sizes: Vec<usize>,
}

pub fn run(args: &Allreduce) -> Result<()> {
    if args.explain {
        let (name, folder) = (args.algorithm.as_deref(), args.svg.as_deref());
        return super::explain::run(name, args.ranks.n, args.local, folder);
    }
    // Checked before ranks start, so that an error is printed once.
    if !(args.seconds > 0.0 && args.seconds.is_finite()) {
        return Err(Error::new(Code::InvalidArgument, "--seconds must be a number above 0"));
    }
    let place = args.ranks.place()?;
    let asked = Asked {
        algorithm: args.algorithm.as_deref().map(Algorithm::from_name).transpose()?,
        sizes: match &args.sizes {
            None => SIZES.to_vec(),
            Some(list) => list.split(',').map(size).collect::<Result<_>>()?,
        },
    };
    match place {
        Some(member) => rank(args, asked, member),
        None => start(args.ranks.n),
    }
}

/// Parses a size in bytes that is a multiple of 4.
fn size(text: &str) -> Result<usize> {
    let bytes = units::bytes(text)?;
    // A decimal fraction of a megabyte is a whole number up to rounding.
    let whole = bytes.round();
    if (bytes - whole).abs() > 1e-3 || whole % 4.0 != 0.0 || whole > 1e12 {
        let text = format!("--sizes: {text} is not a multiple of 4 bytes up to 1 TB");
        return Err(Error::new(Code::InvalidArgument, text));
    }
    Ok(whole as usize)
}

fn rank(args: &Allreduce, asked: Asked, member: Membership) -> Result<()> {
    let Asked { algorithm, sizes } = asked;
    if member.servers > 0 {
        let text =
            "`bench allreduce` is for ranks without servers; `bench layers` has servers help";
        return Err(Error::new(Code::Unimplemented, text));
    }
    let mut group = Group::join(&member, GroupOptions { algorithm, ..GroupOptions::default() })?;
    let (n, tcp) = (group.size(), group.transport() == "tcp");
    let first = group.rank() == 0;
    if first && args.model {
        if !tcp {
            eprintln!(
                "all ranks share memory and send no messages; the model below is for subsets and other hosts:"
            );
        }
        eprint!("{}", group.model().describe(n, group.cross().1));
    }
    if first && !args.ranks.json {
        say!("all-reduce (sum of float) {}", among(n, group.transport()));
        say!(
            "{:>11} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}  algorithm",
            "bytes",
            "median us",
            "min",
            "p90",
            "p99",
            "algbw",
            "busbw",
            "of stream",
            "of floor"
        );
    }
    if args.named {
        return named(args, &sizes, group);
    }
    for bytes in sizes {
        let timing = all_reduce(&mut group, bytes, args.seconds, args.rounds.into())?;
        if first {
            // The other ranks are idle during this, so that they do not disturb the floor
            // measurement.
            let seconds = args.seconds.min(1.0);
            let long = tcp && bytes >= floor::SHORT;
            let floors = Floors {
                stream: long.then(|| floor::stream(seconds)).transpose()?,
                work: match tcp {
                    true => floor::over_tcp(n, bytes, seconds)?,
                    false => floor::in_memory(n, bytes),
                },
            };
            print_timing(&timing, n, &floors, group.transport(), args.ranks.json);
        }
        group.barrier()?;
    }
    Ok(())
}

/// Times tensors with names. An engine agrees on them, and has no floor to be compared with.
fn named(args: &Allreduce, sizes: &[usize], group: Group) -> Result<()> {
    let (n, links) = (group.size(), group.transport());
    let algorithms: Vec<Algorithm> = sizes.iter().map(|&b| group.algorithm_for(b)).collect();
    let engine = Engine::start(group, EngineOptions::default())?;
    for (&bytes, algorithm) in sizes.iter().zip(algorithms) {
        let rounds = args.rounds.into();
        let timing = named_all_reduce(&engine, bytes, args.seconds, rounds, algorithm)?;
        if engine.rank() == 0 {
            print_timing(&timing, n, &Floors::default(), links, args.ranks.json);
        }
    }
    Ok(())
}

/// The limits that a time is compared with.
#[derive(Default)]
struct Floors {
    /// Bytes a second of a plain stream over TCP.
    stream: Option<f64>,
    /// Microseconds of the work without any waiting.
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
        say!("{line}");
        return;
    }
    let percent =
        |floor| share(floor).map_or("-".to_owned(), |share| format!("{:.0}%", share * 100.0));
    say!(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_numbers_of_floats() {
        assert_eq!(size("553.36MB").unwrap(), 553_360_000);
        assert_eq!((size("0").unwrap(), size("1KiB").unwrap()), (0, 1024));
        for odd in ["3", "4.4", "1e30", "2000GiB", "x"] {
            assert!(size(odd).is_err(), "{odd}");
        }
    }
}
