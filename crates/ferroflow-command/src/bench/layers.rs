//! `ferroflow bench layers`: times training steps with VGG-16's gradient sizes.

use super::{Ranks, among, start};
use crate::say::say;
use crate::units;
use ferroflow::collective::bench::layers::{bytes_of, training_steps, vgg16};
use ferroflow::collective::{Engine, EngineOptions, Group, GroupOptions, Membership};
use ferroflow::{Code, Error, Result};
use ferroflow_metrics::TaskMetrics;
use ferroflow_observe::observe_from_env;
use serde_json::json;
use std::time::Duration;

/// Time training steps with VGG-16's gradient sizes and simulated layers
///
/// Layers sleep instead of computing, so the result shows how much of the transfer overlaps with
/// them. Starts its ranks on this host. Under `ferroflow run`, mpirun, srun or torchrun it joins
/// their job.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ferroflow bench layers -n 2 --step-time 0.55s")]
pub struct Layers {
    #[command(flatten)]
    ranks: Ranks,
    /// Time of a step on one rank
    #[arg(long, value_name = "TIME", default_value = "0.55s")]
    step_time: String,
    /// Steps to time
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Reduce whole tensors one after another in the order in which they become ready, without
    /// priorities, pieces or fusion
    #[arg(long)]
    plain: bool,
    /// Divide the size of all gradients by N
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    shrink: u32,
}

pub fn run(args: &Layers) -> Result<()> {
    // Checked before ranks start, so that an error is printed once.
    let place = args.ranks.place()?;
    let alone = units::seconds(&args.step_time)?;
    let too_long = || Error::new(Code::InvalidArgument, "a step takes at most an hour");
    let time = Some(alone).filter(|t| (0.0..=3600.0).contains(t)).ok_or_else(too_long)?;
    match place {
        Some(member) => rank(args, time, member),
        None => start(args.ranks.n),
    }
}

fn rank(args: &Layers, alone: f64, member: Membership) -> Result<()> {
    let group = Group::join(&member, GroupOptions::default())?;
    let (n, links) = (group.size(), group.transport());
    let (servers, servers_only) = (group.servers(), group.servers_only());
    // Counts as training does, so that FERROFLOW_METRICS=0 shows the cost of the metrics.
    let rank = u32::try_from(group.rank()).unwrap_or(u32::MAX);
    let metrics = TaskMetrics::from_env("rank", rank);
    let _shown = observe_from_env(&metrics, &member.trust);
    let counted = EngineOptions { metrics: Some(metrics), ..EngineOptions::default() };
    let options = match args.plain {
        true => EngineOptions { fusion: Some((0, Duration::ZERO)), piece: usize::MAX, ..counted },
        false => counted,
    };
    let engine = Engine::start(group, options)?;
    let mut layers = vgg16();
    for values in layers.iter_mut().flat_map(|l| &mut l.values) {
        *values = values.div_ceil(args.shrink as usize);
    }
    let steps = args.steps as usize;
    let mut seconds =
        training_steps(&engine, &layers, Duration::from_secs_f64(alone), steps, !args.plain)?;
    if engine.rank() > 0 {
        return Ok(());
    }
    seconds.sort_by(f64::total_cmp);
    let (bytes, median) = (bytes_of(&layers), seconds[seconds.len() / 2]);
    let stats = engine.stats();
    if args.ranks.json {
        let line = json!({
            "n": n, "servers": servers, "servers_only": servers_only, "links": links, "bytes": bytes, "step_time": alone, "plain": args.plain,
            "seconds": median, "min_seconds": seconds[0], "max_seconds": seconds[seconds.len() - 1],
            "efficiency": alone / median, "steps": steps, "collectives": stats.runs,
            "fusion": stats.fusion, "cycle_us": stats.cycle.as_micros() as u64,
        });
        say!("{line}");
        return Ok(());
    }
    let help = match (servers, servers_only) {
        (0, _) => String::new(),
        (k, true) => format!(", servers that sum: {k}"),
        (k, false) => format!(", servers that help: {k}"),
    };
    say!(
        "{steps} steps of {} of gradients {}{help}, {}:\n\
         median {median:.3} s, {:.3} to {:.3}; {alone:.3} s alone, an efficiency of {:.1}%",
        units::show_bytes(bytes as f64),
        among(n, links),
        if args.plain { "one tensor after the other" } else { "by priority, in pieces, fused" },
        seconds[0],
        seconds[seconds.len() - 1],
        alone / median * 100.0
    );
    Ok(())
}
