//! Elastic training under a storm: ranks are killed at random moments and others take their place; not an
//! update is lost or made twice.
//!
//!     cargo run --release --example elastic_kills -- 500
//!
//! Every step adds 1 to each value of a variable, so that after step `n` they must be `n`, whatever was
//! killed meanwhile.

use ferroflow::collective::elastic::{Driver, DriverOptions};
use ferroflow::hvd::{self, elastic};
use ferroflow::prelude::*;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

const RANKS: usize = 4;
/// The last commit is as far back as this, at most.
const COMMIT: i64 = 5;
/// The longest that a job may show no sign of life.
const SILENCE: Duration = Duration::from_secs(60);

/// One rank. Trains until the file that `STORM_END` names is there, then says what it has.
pub fn rank() -> Result<()> {
    let end = std::env::var("STORM_END").unwrap_or_default();
    let job = hvd::elastic_init()?;
    let g = job.world().graph();
    let x = g.variable("x", init::zeros([1000]));
    let train = job.world().optimizer(Sgd::new(1.0)).minimize(&(&*x * -1.0).sum_all());
    let init = g.global_initializer();
    let session = local_session(&g)?;
    session.run(&init)?;
    let mut state = elastic::State::new(&g, &session)?;
    let values = job.run(&mut state, |world, state| {
        loop {
            session.run(&train)?;
            state.step += 1;
            say(&format!("step {}", state.step));
            if state.step % COMMIT == 0 {
                state.commit(world)?;
            }
            let over = Tensor::scalar(u8::from(std::path::Path::new(&end).exists()));
            let over = world.all_reduce_value("over", over, hvd::Reduction::Max)?;
            if over.scalar_value::<u8>()? == 1 {
                return session.run(&x);
            }
        }
    })?;
    let values = values.as_slice::<f32>()?.to_vec();
    let same = values.iter().all(|&v| v == values[0]);
    let slowest = state.recoveries().iter().max().copied().unwrap_or_default();
    say(&format!("end {} {} {same} {}", state.step, values[0], slowest.as_micros()));
    Ok(())
}

/// A pipe that nobody reads any more is no reason to fail.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// What a storm left behind.
#[derive(Debug, Default)]
pub struct Outcome {
    pub kills: usize,
    pub epochs: u64,
    pub steps: i64,
    /// The longest that a rank of those alive at the end took from a failure to going on.
    pub slowest_recovery: Duration,
}

/// Kills `kills` ranks, one or two at a time, and starts others. `start` makes the command of a rank.
pub fn storm(kills: usize, seed: u64, start: impl Fn() -> Command) -> Result<Outcome> {
    let problem = |e: std::io::Error| Error::new(Code::Unavailable, e.to_string());
    let listener = TcpListener::bind("127.0.0.1:0").map_err(problem)?;
    let options = DriverOptions {
        min: 1,
        max: RANKS,
        start: RANKS,
        patience: SILENCE,
        token: "storm".into(),
    };
    let driver = Driver::start(listener, options)?;
    let end = std::env::temp_dir().join(format!("ferroflow-storm-{}-{seed}", std::process::id()));
    let mut random = fastrand::Rng::with_seed(seed);
    let (lines, inbox) = channel();
    let born = |lines: &Sender<String>| -> Result<Child> {
        let mut command = start();
        command.env("FERROFLOW_ELASTIC", driver.address().to_string());
        command.env("FERROFLOW_TOKEN", "storm").env("STORM_END", &end);
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(problem)?;
        if let Some(out) = child.stdout.take() {
            let lines = lines.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(|l| l.ok()) {
                    let _ = lines.send(line);
                }
            });
        }
        Ok(child)
    };
    let mut children = (0..RANKS).map(|_| born(&lines)).collect::<Result<Vec<_>>>()?;
    let mut killed = 0;
    let result = (|| {
        while killed < kills {
            // Some progress first; how much decides what the victim is doing.
            hear(&inbox, random.usize(1..60))?;
            let victims = random.usize(1..=2).min(kills - killed);
            for _ in 0..victims {
                let victim = random.usize(..children.len());
                children[victim].kill().map_err(problem)?;
                children.swap_remove(victim).wait().map_err(problem)?;
                killed += 1;
            }
            for _ in 0..victims {
                children.push(born(&lines)?);
            }
        }
        hear(&inbox, 100)
    })();
    std::fs::write(&end, b"").map_err(problem)?;
    drop(lines);
    let outcome = result.and_then(|()| last_words(&inbox, killed, driver.report().epochs));
    for child in &mut children {
        if outcome.is_err() {
            let _ = child.kill();
        }
        let _ = child.wait();
    }
    let _ = std::fs::remove_file(&end);
    outcome
}

/// Waits for `count` lines.
fn hear(inbox: &Receiver<String>, count: usize) -> Result<()> {
    for _ in 0..count {
        inbox
            .recv_timeout(SILENCE)
            .map_err(|_| Error::new(Code::DeadlineExceeded, "the job hangs"))?;
    }
    Ok(())
}

/// What the ranks that lived to the end said: all the same, and right.
fn last_words(inbox: &Receiver<String>, kills: usize, epochs: u64) -> Result<Outcome> {
    let mut outcome = Outcome { kills, epochs, ..Outcome::default() };
    let until = Instant::now() + SILENCE;
    let wrong = |line: &str| Error::new(Code::Internal, format!("a rank ended wrong: {line:?}"));
    let mut ended = 0;
    // The lines end when all ranks have.
    while let Ok(line) = inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["end", step, value, same, slowest] = words[..] else { continue };
        let (Ok(step), Ok(value)) = (step.parse::<i64>(), value.parse::<f32>()) else {
            return Err(wrong(&line));
        };
        if same != "true" || value != step as f32 {
            return Err(wrong(&line));
        }
        ended += 1;
        outcome.steps = outcome.steps.max(step);
        let slowest = Duration::from_micros(slowest.parse().unwrap_or(0));
        outcome.slowest_recovery = outcome.slowest_recovery.max(slowest);
    }
    if ended == 0 {
        return Err(Error::new(Code::Internal, "no rank lived to the end"));
    }
    Ok(outcome)
}

pub fn main() -> Result<()> {
    let argument = std::env::args().nth(1).unwrap_or_else(|| "10".into());
    if argument == "rank" {
        return rank();
    }
    let kills = argument.parse().unwrap_or(10);
    let own = std::env::current_exe().map_err(|e| Error::new(Code::Internal, e.to_string()))?;
    let outcome = storm(kills, fastrand::u64(..), || {
        let mut command = Command::new(&own);
        command.arg("rank");
        command
    })?;
    println!(
        "{} kills, {} epochs, {} steps, slowest recovery {:.0} ms: nothing lost",
        outcome.kills,
        outcome.epochs,
        outcome.steps,
        outcome.slowest_recovery.as_secs_f64() * 1e3
    );
    Ok(())
}
