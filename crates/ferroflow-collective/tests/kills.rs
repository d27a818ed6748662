//! Kills real processes: the other ranks get right values before the kill and an error after it,
//! and end.
//!
//!     FERROFLOW_KILLS=200 cargo test --release -p ferroflow-collective --test kills
//!
//! kills that many ranks instead of a few.
#![allow(clippy::unwrap_used)]

use ferroflow_collective::{
    Engine, EngineOptions, Group, GroupOptions, LinkCostModel, Membership, ReduceOp, SubmitOptions,
    TransportChoice,
};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A rank that prints nothing for longer hangs. Long enough for a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The variable that makes this program a rank. Its value is the transport.
const RANK_TRANSPORT: &str = "KILLS_TRANSPORT";

/// The body of a rank: runs steps until a peer dies.
fn rank(transport: &str) {
    let mut member = Membership::from_env().unwrap().unwrap();
    member.transport =
        if transport == "tcp" { TransportChoice::Tcp } else { TransportChoice::Auto };
    let options = GroupOptions { model: Some(LinkCostModel::default()), ..GroupOptions::default() };
    let run = || {
        let group = Group::join(&member, options)?;
        let engine = Engine::start(group, EngineOptions { piece: 20_000, ..Default::default() })?;
        let (rank, n) = (engine.rank(), engine.size());
        for step in 0.. {
            let submit = |i: usize| {
                let values = vec![(rank * (i + 1) + step) as f32; 1000 * i * i + 1];
                let sum =
                    engine.all_reduce(&i.to_string(), values, SubmitOptions::op(ReduceOp::Sum));
                sum.map(|sum| (i, sum))
            };
            let sums = (0..6).map(submit).collect::<Result<Vec<_>, _>>()?;
            for (i, sum) in sums {
                let want = ((0..n).sum::<usize>() * (i + 1) + n * step) as f32;
                let got = sum.wait()?;
                if got.iter().any(|&x| x != want) {
                    say(&format!("wrong: {:?}, not {want}", got[0]));
                }
            }
            say("step");
        }
        Ok(())
    };
    let ended: Result<(), ferroflow_core::Error> = run();
    say(&format!("end {}", ended.unwrap_err()));
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "\n{line}");
}

struct RankProcesses {
    ranks: Vec<Child>,
    lines: Receiver<(usize, String)>,
}

impl RankProcesses {
    fn start(n: usize, transport: &str) -> RankProcesses {
        // The port is free now, and rank 0 binds it soon.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (sender, lines) = channel();
        let start = |rank: usize| {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "survivors_of_a_kill_name_the_killed_rank", "--nocapture"])
                .env("FERROFLOW_RANK", rank.to_string())
                .env("FERROFLOW_SIZE", n.to_string())
                .env("FERROFLOW_ADDRESS", format!("127.0.0.1:{port}"))
                .env(RANK_TRANSPORT, transport)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let (out, sender) = (child.stdout.take().unwrap(), sender.clone());
            std::thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    let _ = sender.send((rank, line));
                }
            });
            child
        };
        RankProcesses { ranks: (0..n).map(start).collect(), lines }
    }
}

impl Drop for RankProcesses {
    fn drop(&mut self) {
        for rank in &mut self.ranks {
            let _ = rank.kill();
            let _ = rank.wait();
        }
    }
}

#[test]
fn survivors_of_a_kill_name_the_killed_rank() {
    // This test starts its own program again for each rank.
    if let Ok(transport) = std::env::var(RANK_TRANSPORT) {
        return rank(&transport);
    }
    let kills = std::env::var("FERROFLOW_KILLS").ok().and_then(|s| s.parse().ok()).unwrap_or(4);
    for seed in 0..kills {
        let mut random = fastrand::Rng::with_seed(seed);
        let n = random.usize(2..=4);
        let transport = if random.bool() { "tcp" } else { "auto" };
        let mut job = RankProcesses::start(n, transport);
        let victim = random.usize(..n);
        // Kill after this many steps of all ranks together, at a random point of a step.
        let mut steps = random.usize(1..40);
        while steps > 0 {
            let line = job.lines.recv_timeout(TIME_LIMIT);
            let (rank, line) = line.unwrap_or_else(|_| panic!("seed {seed}: the job hangs"));
            assert!(!line.starts_with("wrong") && !line.starts_with("end"), "rank {rank}: {line}");
            steps -= usize::from(line == "step");
        }
        job.ranks[victim].kill().unwrap();
        let mut ended = vec![None; n];
        loop {
            match job.lines.recv_timeout(TIME_LIMIT) {
                Ok((rank, line)) if line.starts_with("end") => ended[rank] = Some(line),
                Ok((rank, line)) => assert!(!line.starts_with("wrong"), "rank {rank}: {line}"),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("seed {seed}: a rank hangs: {ended:?}"),
            }
        }
        for (rank, end) in ended.iter().enumerate().filter(|(rank, _)| *rank != victim) {
            let named = end.as_ref().is_some_and(|e| e.contains(&format!("rank {victim}")));
            assert!(named, "seed {seed}: rank {rank} of {n}, {transport}: {end:?}");
        }
    }
    println!("{kills} kills");
}
