//! Chaos tests: ranks behind a proxy that injects faults. Every rank gets right values or an error,
//! and none hangs.
//!
//!     FERROFLOW_CHAOS_RUNS=1000 cargo test --release -p ferroflow-collective chaos
//!
//! runs so many seeds instead of a few. `FERROFLOW_CHAOS_FROM=39 FERROFLOW_CHAOS_RUNS=1` repeats
//! the run of one seed.

use crate::engine::{Engine, EngineOptions, SubmitOptions};
use crate::fault_proxy::{Fault, FaultProxy, ProxyFaults};
use crate::group::{Group, GroupOptions};
use crate::link_cost::{Algorithm, LinkCostModel};
use crate::reduce::ReduceOp;
use crate::rendezvous::{Membership, TransportChoice};
use crate::schedule::even_bounds;
use ferroflow_core::{Code, Error, Result};
use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::time::Duration;

const STEPS: usize = 12;
/// A rank that takes longer hangs. Long enough for a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(120);

struct ChaosRun {
    seed: u64,
    n: usize,
    transport: TransportChoice,
    /// Connections of each pair of ranks, and the number of simulated hosts. Not used in shared
    /// memory.
    streams: usize,
    hosts: usize,
    algorithm: Option<Algorithm>,
    faults: ProxyFaults,
    /// The timeout of all waits. It is long in runs without faults, so that a busy machine causes
    /// no errors.
    limit: Duration,
}

impl ChaosRun {
    fn new(seed: u64) -> ChaosRun {
        let mut random = fastrand::Rng::with_seed(seed);
        let kind = random.u8(..8);
        let when = 10u64.pow(random.u32(1..7)) + random.u64(..10_000);
        let all = random.bool();
        let fault = match kind {
            0..3 => None,
            3..6 => Some((when, Fault::Cut, all)),
            _ => Some((when, Fault::Swallow, all)),
        };
        let seconds = match fault {
            None => 100,
            // Rank 0 waits for ranks whose connection was cut before they arrived.
            Some((_, Fault::Cut, _)) => 8,
            Some((_, Fault::Swallow, _)) => 2,
        };
        ChaosRun {
            seed,
            n: random.usize(2..=5),
            transport: if random.bool() { TransportChoice::Tcp } else { TransportChoice::Auto },
            faults: ProxyFaults {
                seed,
                most_bytes: 1 << random.u32(3..17),
                delay: Duration::from_micros(random.u64(..300)),
                fault,
            },
            limit: Duration::from_secs(seconds),
            streams: random.usize(1..=3),
            hosts: random.usize(1..=3),
            algorithm: Algorithm::ALL.get(random.usize(..=Algorithm::ALL.len())).copied(),
        }
    }

    fn rank(&self, member: &Membership, listener: Option<TcpListener>) -> Result<()> {
        // No probe, so that all runs choose the same algorithms.
        let model = Some(LinkCostModel::default());
        let (timeout, algorithm) = (self.limit, self.algorithm);
        let options = GroupOptions { model, timeout, algorithm };
        let group = match listener {
            Some(listener) => Group::host(member, options, listener)?,
            None => Group::join(member, options)?,
        };
        let options = EngineOptions {
            piece: 5000,
            fusion: Some((4000, Duration::from_micros(100))),
            stall_warning: self.limit,
            stall_deadline: self.limit,
            ..EngineOptions::default()
        };
        let engine = Engine::start(group, options)?;
        let mut random = fastrand::Rng::with_seed(self.seed ^ (member.rank as u64) << 48);
        (0..STEPS).try_for_each(|step| self.step(&engine, step, &mut random))
    }

    /// Submits tensors in a random order. Results must be right if they arrive.
    fn step(&self, engine: &Engine, step: usize, random: &mut fastrand::Rng) -> Result<()> {
        let (rank, n) = (engine.rank(), engine.size());
        let mut order: Vec<usize> = (0..4).collect();
        random.shuffle(&mut order);
        let mut sums = Vec::new();
        for i in order {
            let count = (step * 977 + i * 331) % 4000;
            let values = vec![(rank * (i + 1) + step) as f32; count];
            let options = SubmitOptions { priority: i as i32, ..SubmitOptions::op(ReduceOp::Sum) };
            let want = ((0..n).sum::<usize>() * (i + 1) + n * step) as f32;
            sums.push((want, count, engine.all_reduce(&format!("t{i}"), values, options)?));
        }
        let root = step % n;
        let sent = engine.broadcast("b", vec![rank as u16; 9], root, SubmitOptions::default())?;
        let all = engine.all_gather("g", vec![rank as i64; rank + 1], SubmitOptions::default())?;
        let count = (step * 577) % 3000;
        let values: Vec<i32> = (0..count).map(|i| (i * (rank + 1) + step) as i32).collect();
        let part = engine.reduce_scatter("s", values, SubmitOptions::op(ReduceOp::Sum))?;
        // Rank a sends to rank b the value 100 a + b, as often as the step and b determine.
        let splits: Vec<usize> = (0..n).map(|to| (step + to) % 3 * 50).collect();
        let sends = splits.iter().enumerate().flat_map(|(to, &c)| vec![100 * rank + to; c]);
        let sends = sends.map(|x| x as u16).collect();
        let mine = engine.all_to_all("a", sends, splits, SubmitOptions::default())?;
        for (want, count, sum) in sums {
            assert_eq!(sum.wait()?, vec![want; count], "seed {}: step {step}", self.seed);
        }
        assert_eq!(sent.wait()?, [root as u16; 9], "seed {}: step {step}", self.seed);
        let want: Vec<i64> = (0..n).flat_map(|r| vec![r as i64; r + 1]).collect();
        assert_eq!(all.wait()?, want, "seed {}: step {step}", self.seed);
        let bounds = even_bounds(count, n);
        let total = |i: usize| (0..n).map(|r| (i * (r + 1) + step) as i32).sum::<i32>();
        let want: Vec<i32> = (bounds[rank]..bounds[rank + 1]).map(total).collect();
        assert_eq!(part.wait()?, want, "seed {}: step {step}", self.seed);
        let sent = |from: usize| vec![(100 * from + rank) as u16; (step + rank) % 3 * 50];
        let want: Vec<u16> = (0..n).flat_map(sent).collect();
        assert_eq!(mine.wait()?, want, "seed {}: step {step}", self.seed);
        engine.barrier("e", crate::group::SetId::WORLD)
    }

    /// Runs all ranks. Returns the error of each rank.
    fn run(self) -> Vec<Option<Error>> {
        let proxy = FaultProxy::new(self.faults);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let front = proxy.in_front_of(listener.local_addr().unwrap());
        let (sender, receiver) = channel();
        let (n, run) = (self.n, std::sync::Arc::new(self));
        let mut listener = Some(listener);
        for rank in 0..n {
            let mut member = Membership::new(rank, n, front.to_string());
            member.transport = run.transport;
            member.streams = Some(run.streams);
            if run.transport == TransportChoice::Tcp {
                member.host = Some(format!("host{}", rank % run.hosts));
            }
            member.timeout = run.limit;
            member.liveness_timeout = run.limit;
            member.proxy = Some(proxy.clone());
            let (sender, run, listener) = (sender.clone(), run.clone(), listener.take());
            std::thread::spawn(move || {
                let rank_of = || run.rank(&member, listener).err();
                let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(rank_of));
                let _ = sender.send((member.rank, ended.ok()));
            });
        }
        let mut outcomes = vec![None; n];
        for _ in 0..n {
            let Ok((rank, outcome)) = receiver.recv_timeout(TIME_LIMIT) else {
                panic!("seed {}: a rank hangs: {outcomes:?}", run.seed);
            };
            let outcome = outcome.unwrap_or_else(|| panic!("seed {}: wrong values", run.seed));
            outcomes[rank] = Some(outcome);
        }
        proxy.close();
        outcomes.into_iter().flatten().collect()
    }
}

#[test]
fn every_rank_gets_right_answers_or_an_error() {
    let count =
        std::env::var("FERROFLOW_CHAOS_RUNS").ok().and_then(|s| s.parse().ok()).unwrap_or(16);
    let (mut calm, mut survived, mut failed) = (0, 0, 0);
    let from = std::env::var("FERROFLOW_CHAOS_FROM").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    for seed in from..from + count {
        let run = ChaosRun::new(seed);
        let (faults, n, algorithm) = (run.faults, run.n, run.algorithm);
        let outcomes = run.run();
        let errors: Vec<&Error> = outcomes.iter().flatten().collect();
        match faults.fault {
            None => {
                assert!(errors.is_empty(), "seed {seed}: {errors:?}");
                calm += 1;
            }
            Some(_) if errors.is_empty() => survived += 1,
            Some(_) => failed += 1,
        }
        for e in errors {
            let known = [Code::Unavailable, Code::DeadlineExceeded, Code::Aborted];
            assert!(known.contains(&e.code()), "seed {seed}, {n} ranks, {algorithm:?}: {e:?}");
        }
    }
    println!(
        "{count} runs: {calm} with delays only, {survived} survived a fault, {failed} ended in errors"
    );
}

#[test]
fn a_silent_peer_is_detected_by_pings() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let fault = Some((200_000, Fault::Swallow, true));
    let delay = Duration::ZERO;
    let proxy = FaultProxy::new(ProxyFaults { seed: 1, most_bytes: 1 << 16, delay, fault });
    let front = proxy.in_front_of(listener.local_addr().unwrap()).to_string();
    let ranks = [Some(listener), None].map(|listener| {
        let mut member = Membership::new(listener.is_none().into(), 2, front.clone());
        member.transport = TransportChoice::Tcp;
        member.liveness_timeout = Duration::from_millis(400);
        member.proxy = Some(proxy.clone());
        std::thread::spawn(move || {
            let options =
                GroupOptions { model: Some(LinkCostModel::default()), ..GroupOptions::default() };
            let group = match listener {
                Some(listener) => Group::host(&member, options, listener).unwrap(),
                None => Group::join(&member, options).unwrap(),
            };
            let engine = Engine::start(group, EngineOptions::default()).unwrap();
            (0..1_000_000).find_map(|_| {
                let values = vec![1f32; 5000];
                let sum = engine.all_reduce("t", values, SubmitOptions::default());
                sum.and_then(|s| s.wait()).err()
            })
        })
    });
    for (rank, ended) in ranks.into_iter().enumerate() {
        let e = ended.join().unwrap().unwrap();
        assert_eq!(e.code(), Code::Unavailable, "{e}");
        let other = format!("rank {} died: it did not answer for 400ms", 1 - rank);
        assert!(e.message().contains(&other), "rank {rank}: {e}");
    }
    proxy.close();
}
