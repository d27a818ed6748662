//! `ferroflow plan`: predicts step time and efficiency of distributed training.

mod choice;

use crate::say::say;
use crate::train::{Model as Trained, measured};
use crate::units;
use choice::{Choice, recommended};
use ferroflow::collective::simulate::{MOST_RANKS, all_reduce_seconds, push_pull_seconds};
use ferroflow::collective::{Algorithm, LinkCostModel};
use ferroflow::{Code, DType, Error, Result};
use serde_json::{Value, json};

/// Predict step time and efficiency of training on many workers
///
/// Takes the bytes of a model's gradients, the time of a step on one worker and the speed of each
/// worker's link. Compares all-reduce, parameter servers, and all-reduce with extra reduce servers.
/// Prints the link speed that a target efficiency needs, and recommends a strategy with its number
/// of workers and servers.
#[derive(clap::Args)]
#[command(after_help = "Example (VGG-16 on 1 Gb/s):\n  \
    ferroflow plan --model-bytes 553.36MB --link 125MB/s -n 4 --step-time 0.55s --target-efficiency 0.9\n\n\
    Example (a model on this machine):\n  ferroflow plan --measure mlp -n 2")]
pub struct Args {
    /// Bytes of all gradients, such as 553.36MB
    #[arg(long, value_name = "BYTES", required_unless_present_any = ["measure", "parameters"])]
    model_bytes: Option<String>,
    /// Parameters of the model instead of bytes, such as 138.34M; each has one gradient
    #[arg(long, value_name = "N", conflicts_with = "model_bytes")]
    parameters: Option<String>,
    /// Type of the gradients of --parameters
    #[arg(long, value_name = "TYPE", default_value = "float32", requires = "parameters")]
    dtype: String,
    /// Speed of each worker's link, one way, such as 125MB/s or 1Gb/s
    #[arg(long, value_name = "SPEED", required_unless_present = "measure")]
    link: Option<String>,
    /// Available workers; the recommendation may use fewer
    #[arg(short = 'n', long = "workers", value_name = "N")]
    n: u32,
    /// Time of a step on one worker, such as 0.55s
    #[arg(long, value_name = "TIME", required_unless_present = "measure")]
    step_time: Option<String>,
    /// Measure the values that are not given: this model's gradients and step time, and all-reduce
    /// between N ranks on this host
    #[arg(long, value_enum, value_name = "MODEL")]
    measure: Option<Trained>,
    /// Available parameter servers or reduce servers [default: as many as workers; none with
    /// --measure, because they would share this host's cores]
    #[arg(long, value_name = "P")]
    servers: Option<u32>,
    /// Fraction of the step that communication can overlap with, 0 to 1
    #[arg(long, value_name = "PART", default_value_t = 0.0, allow_negative_numbers = true)]
    overlap: f64,
    /// Efficiency for which to find the link speed, 0 to 1
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    target_efficiency: Option<f64>,
    /// Also run the real all-reduce schedules for this many ranks on a simulated network
    #[arg(long, value_name = "N")]
    simulate: Option<usize>,
    /// Latency of a message on the simulated network
    #[arg(long, value_name = "TIME", default_value = "50us")]
    latency: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The job to predict: model, link, workers and servers.
#[derive(Clone, Copy)]
struct PlannedJob {
    bytes: f64,
    link: f64,
    n: f64,
    step: f64,
    servers: f64,
    overlap: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Strategy {
    Ring,
    Servers,
    Split,
}

impl Strategy {
    const ALL: [Strategy; 3] = [Strategy::Ring, Strategy::Servers, Strategy::Split];

    fn name(self) -> &'static str {
        match self {
            Strategy::Ring => "all-reduce",
            Strategy::Servers => "parameter servers",
            Strategy::Split => "all-reduce + CPU servers",
        }
    }
}

impl PlannedJob {
    /// The strategies that are possible with the available servers.
    fn strategies(&self) -> &'static [Strategy] {
        if self.servers > 0.0 { &Strategy::ALL } else { &[Strategy::Ring] }
    }

    /// Bytes that the busiest link carries in each direction, in one step.
    fn volume(&self, strategy: Strategy) -> f64 {
        let PlannedJob { bytes: d, n, servers: k, .. } = *self;
        match strategy {
            // Scatter-reduce and all-gather, (n - 1)/n of the bytes each.
            Strategy::Ring => 2.0 * d * (n - 1.0) / n,
            // Each worker pushes and pulls all bytes, once each way. A server does the same for
            // its shard with all workers.
            Strategy::Servers => d * (n / k).max(1.0),
            // The split between workers and k reduce servers that loads all links equally.
            // Servers beyond the number of workers get no work.
            Strategy::Split => {
                let k = k.min(n);
                if n < 2.0 { 0.0 } else { 2.0 * d * n * (n - 1.0) / (n * n + k * n - 2.0 * k) }
            }
        }
    }

    /// Seconds of communication in a step.
    fn transfer(&self, strategy: Strategy) -> f64 {
        self.volume(strategy) / self.link
    }

    /// Seconds of a step, with the given overlap of compute and communication.
    fn step_time(&self, strategy: Strategy) -> f64 {
        self.step + (self.transfer(strategy) - self.overlap * self.step).max(0.0)
    }

    /// Fraction of the workers' time that is compute.
    fn efficiency(&self, strategy: Strategy) -> f64 {
        self.step / self.step_time(strategy)
    }

    /// The link speed that gives this efficiency.
    fn link_for(&self, strategy: Strategy, efficiency: f64) -> f64 {
        let hidden = self.overlap * self.step;
        let visible = self.step * (1.0 - efficiency) / efficiency;
        self.volume(strategy) / (visible + hidden)
    }

    /// The smallest number of parameter servers that are not the bottleneck.
    fn servers_needed(&self) -> u32 {
        self.n.ceil() as u32
    }
}

pub fn run(args: Args) -> Result<()> {
    let wrong = |text: &str| Err(Error::new(Code::InvalidArgument, text));
    if args.n < 1 || args.servers == Some(0) {
        return wrong("there must be at least one worker and one server");
    }
    if !(0.0..=1.0).contains(&args.overlap) {
        return wrong("--overlap is a part of the step, from 0 to 1");
    }
    if args.target_efficiency.is_some_and(|p| !(p > 0.0 && p < 1.0)) {
        return wrong("--target-efficiency lies between 0 and 1");
    }
    let (bytes, step, link) = known(&args)?;
    let job = PlannedJob {
        bytes,
        link,
        n: f64::from(args.n),
        step,
        servers: f64::from(args.servers.unwrap_or(if args.link.is_some() { args.n } else { 0 })),
        overlap: args.overlap,
    };
    let simulated = match args.simulate {
        Some(n) => simulate(&job, n, units::seconds(&args.latency)?)?,
        None => Vec::new(),
    };
    if args.json {
        let mut report = report(&job, args.target_efficiency);
        if let Some(n) = args.simulate {
            let row = |(name, s): &Simulated| json!({"algorithm": name, "seconds": s});
            report["simulated"] = json!({
                "ranks": n,
                "all_reduce": simulated.iter().map(row).collect::<Vec<_>>(),
            });
        }
        say!("{report}");
        return Ok(());
    }
    say!("{}", table(&job, args.target_efficiency).trim_end());
    say!("\n{}", chart(&job).trim());
    if let Some(n) = args.simulate {
        say!("\nsimulated all-reduce among {n} ranks, {} a message", args.latency);
        for (name, seconds) in simulated {
            let Some(seconds) = seconds else {
                say!("{name:>26}          -   too many messages to simulate");
                continue;
            };
            let step = job.step + (seconds - job.overlap * job.step).max(0.0);
            let percent = job.step / step * 100.0;
            say!("{name:>26} {:>10}   efficiency {percent:.2}%", units::show_seconds(seconds));
        }
    }
    Ok(())
}

/// Bytes of a gradient of this type.
fn width(dtype: &str) -> Result<f64> {
    let name = match dtype {
        "float32" => "float",
        "float64" => "double",
        "float16" => "half",
        other => other,
    };
    let found = DType::from_name(name).filter(|dtype| dtype.is_floating()).and_then(DType::size);
    found.map(|bytes| bytes as f64).ok_or_else(|| {
        let text =
            format!("{dtype:?} is no type of gradients; use float32, float16, bfloat16 or float64");
        Error::new(Code::InvalidArgument, text)
    })
}

/// Bytes of gradients, seconds of a step and speed of the link: given, or measured.
fn known(args: &Args) -> Result<(f64, f64, f64)> {
    let given = |text: &Option<String>, read: fn(&str) -> Result<f64>| {
        text.as_deref().map(read).transpose()
    };
    let bytes = match &args.parameters {
        Some(count) => Some(units::count(count)? * width(&args.dtype)?),
        None => given(&args.model_bytes, units::bytes)?,
    };
    let step = given(&args.step_time, units::seconds)?;
    let link = given(&args.link, units::bytes_per_second)?;
    if let (Some(bytes), Some(step), Some(link)) = (bytes, step, link) {
        return Ok((bytes, step, link));
    }
    let missing = || {
        Error::new(
            Code::InvalidArgument,
            "give --measure, or --model-bytes, --step-time and --link",
        )
    };
    let model = args.measure.ok_or_else(missing)?;
    let found = match (bytes, step) {
        (Some(bytes), Some(step)) => (bytes, step),
        _ => {
            eprintln!("measuring steps of {} on this host …", model.name());
            measured(model, model.batch())?
        }
    };
    let (bytes, step) = (bytes.unwrap_or(found.0), step.unwrap_or(found.1));
    let (link, spread) = match link {
        Some(link) => (link, String::new()),
        None => measured_link(args.n, bytes)?,
    };
    eprintln!(
        "{}: {} of gradients, {} a step, all-reduce as over {}/s{spread}",
        model.name(),
        units::show_bytes(bytes),
        units::show_seconds(step),
        units::show_bytes(link)
    );
    Ok((bytes, step, link))
}

/// Repetitions of the all-reduce measurement, each with new ranks, because shared machines vary.
const RUNS: usize = 5;

/// The link speed equivalent to the measured all-reduce of `bytes` between `n` ranks, and its
/// spread as text.
fn measured_link(n: u32, bytes: f64) -> Result<(f64, String)> {
    // One rank sends nothing, so measure at least two.
    let (ranks, bytes) = (n.max(2), (bytes.ceil() as usize).next_multiple_of(4).max(4));
    let mut links = Vec::new();
    for run in 1..=RUNS {
        eprintln!("measuring all-reduce among {ranks} ranks, {run} of {RUNS} …");
        links.push(link_of(bytes as f64, ranks, measured_all_reduce(ranks, bytes)?));
    }
    links.sort_by(f64::total_cmp);
    let [least, most] = [links[0], links[RUNS - 1]].map(units::show_bytes);
    Ok((links[RUNS / 2], format!(" (measured: {least}/s to {most}/s)")))
}

/// Seconds of an all-reduce of `bytes` between ranks on this host, measured by `ferroflow bench`.
fn measured_all_reduce(ranks: u32, bytes: usize) -> Result<f64> {
    let problem = |text: String| Error::new(Code::Unavailable, format!("measuring: {text}"));
    let own = crate::own_program().map_err(|e| problem(e.to_string()))?;
    let out = std::process::Command::new(own)
        .args(["bench", "allreduce", "--json", "-n", &ranks.to_string()])
        .args(["--sizes", &bytes.to_string(), "--seconds", "0.6"])
        .output()
        .map_err(|e| problem(e.to_string()))?;
    if !out.status.success() {
        return Err(problem(String::from_utf8_lossy(&out.stderr).trim().to_string()));
    }
    let line: Value =
        serde_json::from_slice(&out.stdout).map_err(|e| problem(format!("its answer: {e}")))?;
    let micros = line["us"].as_f64().filter(|us| *us > 0.0);
    let micros = micros.ok_or_else(|| problem(format!("its answer: {line}")))?;
    Ok(micros * 1e-6)
}

/// The link speed over which a ring of `n` ranks takes `seconds`.
fn link_of(bytes: f64, n: u32, seconds: f64) -> f64 {
    2.0 * bytes * f64::from(n - 1) / f64::from(n) / seconds
}

/// An algorithm and its seconds; `None` if the simulation is too large.
type Simulated = (String, Option<f64>);

/// Simulates an all-reduce of the job's bytes among `n` ranks with every algorithm, fastest first.
/// The one with servers has as many servers per rank as the job.
fn simulate(job: &PlannedJob, n: usize, latency: f64) -> Result<Vec<Simulated>> {
    let model = LinkCostModel { alpha: latency, beta: 1.0 / job.link, ..LinkCostModel::default() };
    let algorithms =
        [Algorithm::Ring, Algorithm::HalvingDoubling, Algorithm::DoubleTree, Algorithm::Doubling];
    let feasible = |seconds: Result<f64>| match seconds {
        Err(e) if e.code() == Code::ResourceExhausted => Ok(None),
        other => other.map(Some),
    };
    let bytes = job.bytes as usize;
    let mut all = Vec::new();
    for algorithm in algorithms {
        let seconds = feasible(all_reduce_seconds(algorithm, n, 1, bytes, &model))?;
        all.push((algorithm.name().to_owned(), seconds));
    }
    let servers = (job.servers / job.n * n as f64).round() as usize;
    if servers > 0 {
        // The simulation of a possible number of ranks must not fail because of the servers.
        let seconds = match n + servers <= MOST_RANKS {
            true => feasible(push_pull_seconds(n, servers, bytes, &model))?,
            false => None,
        };
        all.push((format!("with {servers} servers"), seconds));
    }
    all.sort_by(|a, b| a.1.unwrap_or(f64::INFINITY).total_cmp(&b.1.unwrap_or(f64::INFINITY)));
    Ok(all)
}

fn report(job: &PlannedJob, target: Option<f64>) -> Value {
    let rows: Vec<Value> = job
        .strategies()
        .iter()
        .map(|&s| {
            json!({
                "strategy": s.name(),
                "bytes_per_link": job.volume(s),
                "transfer_seconds": job.transfer(s),
                "step_seconds": job.step_time(s),
                "efficiency": job.efficiency(s),
                "speedup": job.n * job.efficiency(s),
                "link_for_target": target.map(|p| job.link_for(s, p)),
            })
        })
        .collect();
    json!({
        "model_bytes": job.bytes,
        "link_bytes_per_second": job.link,
        "workers": job.n,
        "servers": job.servers,
        "step_seconds_of_one": job.step,
        "overlap": job.overlap,
        "target_efficiency": target,
        "strategies": rows,
        "recommended": recommended(job).report(),
        "servers_that_slow_no_worker": job.servers_needed(),
    })
}

fn table(job: &PlannedJob, target: Option<f64>) -> String {
    /// Width of the longest name, with thousands of servers.
    const NAME: usize = 31;
    let mut out = format!(
        "{} of gradients, {} worker{}, {}/s each way, {} a step alone\n\n",
        units::show_bytes(job.bytes),
        job.n,
        if job.n == 1.0 { "" } else { "s" },
        units::show_bytes(job.link),
        units::show_seconds(job.step)
    );
    let wanted = target.map(|p| format!("link for {:.0}%", p * 100.0)).unwrap_or_default();
    out += &format!(
        "{:<NAME$} {:>12} {:>10} {:>10} {:>10} {:>8}  {wanted}\n",
        "strategy", "link carries", "transfer", "step", "efficiency", "speed-up"
    );
    for &s in job.strategies() {
        let name = match s {
            Strategy::Ring => s.name().to_string(),
            _ => format!("{} ({})", s.name(), job.servers),
        };
        let link = target.map(|p| units::show_bytes(job.link_for(s, p)) + "/s").unwrap_or_default();
        out += &format!(
            "{name:<NAME$} {:>12} {:>10} {:>10} {:>9.2}% {:>8.2}  {link}\n",
            units::show_bytes(job.volume(s)),
            units::show_seconds(job.transfer(s)),
            units::show_seconds(job.step_time(s)),
            job.efficiency(s) * 100.0,
            job.n * job.efficiency(s)
        );
    }
    out + "\nrecommended: " + &recommended(job).explained(job) + "\n"
}

/// Efficiency by number of workers for several links: of all-reduce, and of the recommended
/// strategy if it is another.
fn chart(job: &PlannedJob) -> String {
    let plain = Choice { strategy: Strategy::Ring, job: *job };
    let best = choice::with_all_workers(job);
    match best.strategy {
        Strategy::Ring => chart_of(&plain),
        _ => chart_of(&plain) + &chart_of(&best),
    }
}

fn chart_of(Choice { strategy, job }: &Choice) -> String {
    const LINKS: [(&str, f64); 5] = [
        ("1 Gb/s", 125e6),
        ("10 Gb/s", 1.25e9),
        ("25 Gb/s", 3.125e9),
        ("100 Gb/s", 12.5e9),
        ("400 Gb/s", 50e9),
    ];
    const WORKERS: [u32; 6] = [2, 4, 8, 16, 64, 256];
    let servers_each = job.servers / job.n;
    let with = match strategy {
        Strategy::Ring => String::new(),
        _ if servers_each == 1.0 => ", with as many servers as workers".to_owned(),
        _ => format!(", {servers_each:.2} servers to a worker"),
    };
    let mut out = format!("\nefficiency of {}{with} (each # is 10 %)\n", strategy.name());
    out += &format!("{:>10}", "link");
    WORKERS.iter().for_each(|n| out += &format!("  {:<13}", format!("n = {n}")));
    out.push('\n');
    for (name, link) in LINKS {
        out += &format!("{name:>10}");
        for n in WORKERS.map(f64::from) {
            let p = PlannedJob { link, n, servers: n * servers_each, ..*job }.efficiency(*strategy);
            let bar = "#".repeat((p * 10.0).round() as usize);
            out += &format!("  {bar:<10}{:>3.0}", p * 100.0);
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vgg16() -> PlannedJob {
        PlannedJob { bytes: 553.36e6, link: 125e6, n: 4.0, step: 0.55, servers: 4.0, overlap: 0.0 }
    }

    #[test]
    fn the_worked_case_of_vgg16_comes_out() {
        let job = vgg16();
        assert!((job.efficiency(Strategy::Ring) - 0.0765).abs() < 5e-5);
        assert!((job.step_time(Strategy::Ring) - 7.19).abs() < 5e-3);
        assert!((job.link_for(Strategy::Ring, 0.9) / 1e6 - 13_582.0).abs() < 1.0);
    }

    #[test]
    fn the_link_found_for_an_efficiency_gives_it() {
        for overlap in [0.0, 0.4] {
            for strategy in Strategy::ALL {
                let job = PlannedJob { overlap, ..vgg16() };
                let faster = PlannedJob { link: job.link_for(strategy, 0.8), ..job };
                assert!((faster.efficiency(strategy) - 0.8).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn the_split_is_a_ring_without_servers_and_servers_with_as_many() {
        let job = vgg16();
        let none = PlannedJob { servers: 0.0, ..job };
        assert!((none.volume(Strategy::Split) - job.volume(Strategy::Ring)).abs() < 1.0);
        assert!((job.volume(Strategy::Split) - job.volume(Strategy::Servers)).abs() < 1.0);
        assert!(
            PlannedJob { servers: 2.0, ..job }.volume(Strategy::Split) < job.volume(Strategy::Ring)
        );
    }

    #[test]
    fn simulations_agree_with_the_formulas() {
        let all = simulate(&vgg16(), 4, 50e-6).unwrap();
        for (name, strategy) in [("ring", Strategy::Ring), ("with 4 servers", Strategy::Split)] {
            let simulated = all.iter().find(|(found, _)| found == name).unwrap().1.unwrap();
            let formula = vgg16().transfer(strategy);
            assert!((simulated / formula - 1.0).abs() < 0.05, "{name}: {simulated} for {formula}");
        }
    }

    #[test]
    fn what_is_too_much_to_simulate_leaves_the_rest() {
        let job = PlannedJob { bytes: 4e6, ..vgg16() };
        let all = simulate(&job, 4000, 50e-6).unwrap();
        assert!(all.iter().any(|(name, seconds)| name == "ring" && seconds.is_some()));
        assert!(all.iter().any(|(name, seconds)| name == "with 4000 servers" && seconds.is_none()));
        assert!(all[0].1.is_some() && all[all.len() - 1].1.is_none(), "{all:?}");
    }

    #[test]
    fn the_largest_group_is_simulated_without_its_servers() {
        let job = PlannedJob { bytes: 4e6, ..vgg16() };
        let all = simulate(&job, 65_536, 50e-6).unwrap();
        assert!(all[0].1.is_some(), "{all:?}");
        assert!(
            all.iter().any(|(name, seconds)| name == "with 65536 servers" && seconds.is_none())
        );
    }

    #[test]
    fn a_measured_link_predicts_what_was_measured() {
        let link = link_of(553.36e6, 4, 6.64);
        let job = PlannedJob { link, ..vgg16() };
        assert!((job.transfer(Strategy::Ring) - 6.64).abs() < 1e-9);
    }

    #[test]
    fn the_report_says_what_the_table_says() {
        let report = report(&vgg16(), Some(0.9));
        assert_eq!(report["strategies"][0]["strategy"], "all-reduce");
        assert!(table(&vgg16(), Some(0.9)).contains("13.58 GB/s"));
        let charts = chart(&vgg16());
        assert!(charts.contains("100 Gb/s") && charts.contains("efficiency of all-reduce ("));
        assert!(
            charts.contains("efficiency of parameter servers, with as many servers as workers")
        );
        let fast = PlannedJob { link: 1e12, ..vgg16() };
        assert_eq!(chart(&fast).matches("efficiency of").count(), 1);
        assert_eq!(report["recommended"]["workers"], 1.0);
        assert!(table(&vgg16(), None).contains("recommended: one worker alone"));
    }

    #[test]
    fn columns_stand_below_each_other() {
        let job = PlannedJob { servers: 1000.0, ..vgg16() };
        let text = table(&job, Some(0.9));
        let ends = text.lines().skip(3).take(3).map(|l| l.find('%').unwrap());
        let ends: Vec<usize> = ends.collect();
        assert!(ends.iter().all(|&at| at == ends[0]), "{text}");
    }
}
