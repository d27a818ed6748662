//! Linear regression on a parameter server and several workers, each in a process that was started
//! by hand: y = 2x + 10 with noise, one example in each step, synchronous replicas. The processes
//! may start in any order.
//!
//!     cargo build --release --example linear_cluster
//!     target/release/examples/linear_cluster --job_name=ps --task_index=0
//!     target/release/examples/linear_cluster --job_name=worker --task_index=0
//!     target/release/examples/linear_cluster --job_name=worker --task_index=1
//!
//! On several hosts each process also gets `--ps_hosts` and `--worker_hosts`. Worker 0 is the
//! chief: it initializes the variables and saves them to `--log_dir`. The sessions of all workers
//! are on its server. The parameter server runs until it gets a signal.

use ferroflow::cluster::{BackgroundServer, ClusterSpec, ConnectOptions, ServerOptions};
use ferroflow::prelude::*;
use std::net::TcpStream;
use std::time::{Duration, Instant};

struct Flags {
    train_steps: i64,
    learning_rate: f32,
    ps_hosts: String,
    worker_hosts: String,
    log_dir: String,
    job_name: String,
    task_index: u32,
    /// Global steps between two lines of the log.
    log_steps: i64,
}

fn invalid(text: String) -> Error {
    Error::new(Code::InvalidArgument, text)
}

impl Flags {
    /// Reads `--name=value` and `--name value`.
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Flags> {
        let mut flags = Flags {
            train_steps: 2000,
            learning_rate: 0.01,
            ps_hosts: "localhost:2222".into(),
            worker_hosts: "localhost:2223,localhost:2224".into(),
            log_dir: "./log/".into(),
            job_name: String::new(),
            task_index: 0,
            log_steps: 100,
        };
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name.to_string(), value.to_string()),
                None => {
                    let value = words.next();
                    let value = value.ok_or_else(|| invalid(format!("{word} needs a value")))?;
                    (word, value)
                }
            };
            let wrong = || invalid(format!("{name}: {value:?} is no number"));
            match name.as_str() {
                "--train_steps" => flags.train_steps = value.parse().map_err(|_| wrong())?,
                "--learning_rate" => flags.learning_rate = value.parse().map_err(|_| wrong())?,
                "--task_index" => flags.task_index = value.parse().map_err(|_| wrong())?,
                "--log_steps" => flags.log_steps = value.parse().map_err(|_| wrong())?,
                "--ps_hosts" => flags.ps_hosts = value,
                "--worker_hosts" => flags.worker_hosts = value,
                "--log_dir" => flags.log_dir = value,
                "--job_name" => flags.job_name = value,
                other => return Err(invalid(format!("there is no flag {other}"))),
            }
        }
        if !matches!(flags.job_name.as_str(), "ps" | "worker") {
            return Err(invalid(
                "give --job_name=ps or --job_name=worker, and --task_index".into(),
            ));
        }
        flags.log_steps = flags.log_steps.max(1);
        Ok(flags)
    }
}

fn addresses(list: &str) -> Vec<&str> {
    list.split(',').map(str::trim).filter(|address| !address.is_empty()).collect()
}

/// A standard normal number, by Box and Muller.
fn normal(random: &mut fastrand::Rng) -> f32 {
    let (u, v) = (1.0 - random.f32(), random.f32());
    (-2.0 * u.ln()).sqrt() * (2.0 * std::f32::consts::PI * v).cos()
}

/// Trains as worker `task`.
fn work(flags: &Flags, server: &BackgroundServer, ps: u32, workers: &[&str]) -> Result<()> {
    let task = flags.task_index;
    let is_chief = task == 0;
    let device = format!("/job:worker/task:{task}");
    let g = Graph::new();
    let setter = ReplicaDeviceSetter::new(ps).worker(&device);
    let (x, y, w, b, loss, sync) = g.device(setter, || {
        let step = g.global_step();
        let x = g.placeholder::<f32>("x", [None]);
        let y = g.placeholder::<f32>("y", [None]);
        let w = g.variable("weight", init::normal(Shape::scalar(), 0.0, 1.0));
        let b = g.variable("bias", init::normal(Shape::scalar(), 0.0, 1.0));
        let loss = (&y - (&x * &w + &b)).square().sum_all();
        let optimizer = Sgd::new(flags.learning_rate);
        let optimizer = SyncReplicas::new(optimizer, workers.len(), workers.len());
        let sync = optimizer.minimize(&loss, &step);
        (x, y, w, b, loss, sync)
    });

    let target = match is_chief {
        true => server.target().to_string(),
        false => format!("grpc://{}", workers[0]),
    };
    match is_chief {
        true => println!("Worker {task}: Initializing session at {target}..."),
        false => println!("Worker {task}: Waiting for session to be initialized at {target}..."),
    }
    let device_filters = vec!["/job:ps".to_string(), device];
    let options = ConnectOptions { device_filters, ..ConnectOptions::default() };
    let training = MonitoredTraining::synchronous(&g, &sync).chief(is_chief).dir(&flags.log_dir);
    let mut session = training.open(move |g| Session::connect_with(&target, g, &options))?;
    println!("Worker {task}: Session initialization complete.");

    let mut random = fastrand::Rng::new();
    let (mut local_step, mut found) = (0, (f32::NAN, f32::NAN));
    while session.global_step() < flags.train_steps {
        let train_x = normal(&mut random);
        let train_y = 2.0 * train_x + normal(&mut random) * 0.33 + 10.0;
        let feeds = [(&x, vec![train_x]), (&y, vec![train_y])];
        let loss = session.train_fed(feeds, loss.scalar::<f32>())?;
        local_step += 1;
        let step = session.global_step();
        if step % flags.log_steps == 0 || step >= flags.train_steps {
            found = session.session()?.run((w.scalar::<f32>(), b.scalar::<f32>()))?;
            let (w, b) = found;
            println!(
                "Worker {task}: local_step={local_step}, global_step={step}, W={w:.9}, b={b:.9}, \
                 loss={loss:.9}"
            );
        }
    }
    println!("Optimization Finished: W={:.9}, b={:.9}", found.0, found.1);
    session.close()?;
    if is_chief {
        wait_for(&workers[1..]);
    }
    Ok(())
}

/// Waits until the other workers, whose sessions are on the server of this one, have ended.
fn wait_for(others: &[&str]) {
    let until = Instant::now() + Duration::from_secs(60);
    while others.iter().any(|address| TcpStream::connect(address).is_ok()) && Instant::now() < until
    {
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub fn main() -> Result<()> {
    let flags = Flags::parse(std::env::args().skip(1))?;
    let (ps, workers) = (addresses(&flags.ps_hosts), addresses(&flags.worker_hosts));
    let named = |job: &'static str, list: &[&str]| format!("{job}={}", list.join(","));
    let spec = format!("{};{}", named("ps", &ps), named("worker", &workers));
    let options = ServerOptions::new(ClusterSpec::parse(&spec)?, &flags.job_name, flags.task_index);
    let server = BackgroundServer::start(options)?;
    match flags.job_name.as_str() {
        "ps" => server.join(),
        _ => work(&flags, &server, ps.len() as u32, &workers),
    }
}
