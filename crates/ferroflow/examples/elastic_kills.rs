//! Elastic training with failures: kills ranks at random moments and starts others. No update is
//! lost or applied twice.
//!
//!     cargo run --release --example elastic_kills -- [KILLS] [SEED]
//!
//! Every step adds 1 to each value of a variable, so after step `n` each value must be `n`.

use ferroflow::collective::elastic::{Driver, DriverOptions};
use ferroflow::hvd::{self, elastic};
use ferroflow::prelude::*;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

const RANKS: usize = 4;
/// The number of steps between commits.
const COMMIT: i64 = 5;
/// The longest time without a step before the job counts as hung.
const SILENCE: Duration = Duration::from_secs(60);

/// One rank. Trains until the file `KILL_RUN_END` exists, then prints its values.
pub fn rank() -> Result<()> {
    let end = std::env::var("KILL_RUN_END").unwrap_or_default();
    let job = hvd::elastic_init()?;
    let g = job.world().graph();
    let x = g.variable("x", init::zeros([1000]));
    let train = job.world().optimizer(Sgd::new(1.0)).minimize(&(&*x * -1.0).sum_all());
    let init = g.global_initializer();
    let session = Session::local(&g)?;
    session.run(&init)?;
    let mut state = elastic::State::new(&g, &session)?;
    let values = job.run(&mut state, |world, state| {
        loop {
            session.run(&train)?;
            state.step += 1;
            say(&format!("step {} {}", state.step, world.size()));
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
    say(&format!("end {} {} {same}", state.step, values[0]));
    Ok(())
}

/// Prints a line. Ignores the error of a closed pipe.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    pub kills: usize,
    pub epochs: u64,
    pub steps: i64,
    /// Times from a kill to the first step of the remaining ranks.
    pub recoveries: Vec<Duration>,
}

/// Kills `kills` ranks, one or two at a time, and starts others. `start` makes the command of a
/// rank.
pub fn kill_run(kills: usize, seed: u64, start: impl Fn() -> Command) -> Result<Outcome> {
    let problem = |e: std::io::Error| Error::new(Code::Unavailable, e.to_string());
    let listener = TcpListener::bind("127.0.0.1:0").map_err(problem)?;
    let options = DriverOptions {
        min: 1,
        max: RANKS,
        start: RANKS,
        timeout: SILENCE,
        token: "kill-run".into(),
    };
    let driver = Driver::start(listener, options)?;
    let end =
        std::env::temp_dir().join(format!("ferroflow-kill-run-{}-{seed}", std::process::id()));
    let mut random = fastrand::Rng::with_seed(seed);
    let (lines, inbox) = channel();
    let born = |lines: &Sender<Said>, life: usize| -> Result<Child> {
        let mut command = start();
        command.env("FERROFLOW_ELASTIC", driver.address().to_string());
        command.env("FERROFLOW_TOKEN", "kill-run").env("KILL_RUN_END", &end);
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(problem)?;
        if let Some(out) = child.stdout.take() {
            let lines = lines.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(|l| l.ok()) {
                    let _ = lines.send((life, line));
                }
            });
        }
        Ok(child)
    };
    let mut course = Course { inbox, highest: 0, reached: Vec::new(), recoveries: Vec::new() };
    let mut children =
        (0..RANKS).map(|_| born(&lines, course.life())).collect::<Result<Vec<_>>>()?;
    let mut killed = 0;
    let result = (|| {
        while killed < kills {
            // Usually kills when all ranks take part, after a random number of steps; sometimes
            // kills a rank that is just joining. So some ranks that know the state always survive.
            let is_new = killed > 0 && random.u8(..4) == 0;
            if !is_new {
                course.hear(random.usize(1..60))?;
            }
            let victims = if is_new { 1 } else { random.usize(1..=2).min(kills - killed) };
            for _ in 0..victims {
                let victim =
                    if is_new { children.len() - 1 } else { random.usize(..children.len()) };
                children[victim].kill().map_err(problem)?;
                children.swap_remove(victim).wait().map_err(problem)?;
                killed += 1;
            }
            if !is_new {
                course.recover()?;
            }
            for _ in 0..victims {
                children.push(born(&lines, course.life())?);
            }
        }
        course.hear(100)
    })();
    std::fs::write(&end, b"").map_err(problem)?;
    drop(lines);
    let outcome = result.and_then(|()| course.last_words(killed, driver.report().epochs));
    for child in &mut children {
        if outcome.is_err() {
            let _ = child.kill();
        }
        let _ = child.wait();
    }
    let _ = std::fs::remove_file(&end);
    outcome
}

/// A line, and the number of the rank's process in order of start.
type Said = (usize, String);

/// The progress of the training, from the lines that ranks print.
struct Course {
    inbox: Receiver<Said>,
    highest: i64,
    /// The latest step of each process. Each has its own pipe, so lines of different ranks may
    /// arrive out of order.
    reached: Vec<i64>,
    recoveries: Vec<Duration>,
}

impl Course {
    /// Registers a new process; returns its number.
    fn life(&mut self) -> usize {
        self.reached.push(self.highest);
        self.reached.len() - 1
    }

    /// Waits for the next step; returns its number of ranks.
    fn step(&mut self) -> Result<usize> {
        loop {
            let line = self.inbox.recv_timeout(SILENCE);
            let (life, line) =
                line.map_err(|_| Error::new(Code::DeadlineExceeded, "the job hangs"))?;
            let words: Vec<&str> = line.split_whitespace().collect();
            let ["step", step, ranks] = words[..] else { continue };
            let (Ok(step), Ok(ranks)) = (step.parse::<i64>(), ranks.parse()) else { continue };
            // Ranks repeat uncommitted steps. A commit counts when all ranks have made it.
            let reached = self.reached[life];
            if step + 2 * COMMIT < reached {
                let text =
                    format!("after step {reached} there was a step {step}: updates were lost");
                return Err(Error::new(Code::DataLoss, text));
            }
            self.reached[life] = reached.max(step);
            self.highest = self.highest.max(step);
            return Ok(ranks);
        }
    }

    /// Waits for `count` steps in which all ranks took part.
    fn hear(&mut self, count: usize) -> Result<()> {
        let mut heard = 0;
        while heard < count {
            heard += usize::from(self.step()? == RANKS);
        }
        Ok(())
    }

    /// Waits until the remaining ranks continue.
    fn recover(&mut self) -> Result<()> {
        let began = Instant::now();
        while self.step()? == RANKS {}
        self.recoveries.push(began.elapsed());
        Ok(())
    }

    /// Checks the last lines of all ranks: equal and right values.
    fn last_words(self, kills: usize, epochs: u64) -> Result<Outcome> {
        let mut outcome = Outcome { kills, epochs, steps: 0, recoveries: self.recoveries };
        let until = Instant::now() + SILENCE;
        let wrong =
            |line: &str| Error::new(Code::Internal, format!("a rank ended wrong: {line:?}"));
        let mut ended = 0;
        // The channel closes when all ranks have ended.
        while let Ok((_, line)) =
            self.inbox.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            let words: Vec<&str> = line.split_whitespace().collect();
            let ["end", step, value, same] = words[..] else { continue };
            let (Ok(step), Ok(value)) = (step.parse::<i64>(), value.parse::<f32>()) else {
                return Err(wrong(&line));
            };
            if same != "true" || value != step as f32 || step < self.highest {
                return Err(wrong(&line));
            }
            ended += 1;
            outcome.steps = outcome.steps.max(step);
        }
        if ended != RANKS {
            return Err(Error::new(Code::Internal, format!("{ended} of {RANKS} ranks ended well")));
        }
        Ok(outcome)
    }
}

pub fn main() -> Result<()> {
    let argument = std::env::args().nth(1).unwrap_or_else(|| "10".into());
    if argument == "rank" {
        return rank();
    }
    let kills = argument.parse().unwrap_or(10);
    let own = std::env::current_exe().map_err(|e| Error::new(Code::Internal, e.to_string()))?;
    let seed = std::env::args().nth(2).and_then(|seed| seed.parse().ok());
    let outcome = kill_run(kills, seed.unwrap_or_else(|| fastrand::u64(..)), || {
        let mut command = Command::new(&own);
        command.arg("rank");
        command
    })?;
    let mut times = outcome.recoveries;
    times.sort_unstable();
    let ms = |time: Option<&Duration>| time.map_or(0.0, |t| t.as_secs_f64() * 1e3);
    println!(
        "{} kills, {} epochs, {} steps, recovered after {:.1} ms (median), {:.1} ms at most: nothing lost",
        outcome.kills,
        outcome.epochs,
        outcome.steps,
        ms(times.get(times.len() / 2)),
        ms(times.last()),
    );
    Ok(())
}
