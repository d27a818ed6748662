//! Measures what the executor costs beyond the kernels: null nodes a second on one core in a chain,
//! a lattice and a loop; the time of a wide step; the time of a null step. Prints the lines that
//! `bench/README.md` defines.
//!
//!     cargo run --release -p ferroflow-runtime --example bench_executor
//!
//! Figures are medians over rounds; `extra.best` is the best round, for machines with other work.
//! Nodes are timed by the processor time of the one thread that runs them, a step by the clock.
#![allow(clippy::unwrap_used)]

use ferroflow_core::{Ctx, Result, Tensor};
use ferroflow_graph::{Catalog, GraphDef};
use ferroflow_runtime::{RunRequest, SessionOptions, Task, TaskSession};
use ferroflow_testing::{graph, register_test_ops};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 31;
const ROUND: Duration = Duration::from_millis(30);
const CHAIN: usize = 1000;
const WIDTH: usize = 20;
const DEPTH: usize = 50;
const ITERATIONS: i32 = 1000;
const WIDE: usize = 20_000;

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|o| o == name);
    if wanted("chain") {
        nodes("chain", &chain(), &[("x", 1)], "end", CHAIN);
    }
    if wanted("lattice") {
        nodes("lattice", &lattice(), &[("x", 1)], "end", WIDTH * DEPTH);
    }
    if wanted("while") {
        // Merge, Less, LoopCond, Switch, Add, NextIteration.
        nodes("while", &while_loop(), &[("n", ITERATIONS)], "end", 6 * ITERATIONS as usize);
    }
    if wanted("wide") {
        wide();
    }
    if wanted("null_step") {
        null_step();
    }
}

fn session(def: &GraphDef) -> TaskSession {
    let mut c = Catalog::new();
    ferroflow_ops::register(&mut c);
    register_test_ops(&mut c);
    c.op("BenchJoin").input("x: int32").input("y: int32").output("z: int32").cpu_fn(join);
    let options = SessionOptions { disable_optimizer: true, ..SessionOptions::default() };
    TaskSession::new(Task::local(Arc::new(c)), def, options).unwrap()
}

fn join(ctx: &mut Ctx<'_>) -> Result<()> {
    let x = ctx.take(0)?;
    ctx.set(0, x)
}

fn request(feeds: &[(&str, i32)], fetch: &str) -> RunRequest {
    RunRequest {
        feeds: feeds.iter().map(|(n, x)| (n.to_string(), Tensor::scalar(*x))).collect(),
        fetches: vec![fetch.to_string()],
        ..RunRequest::default()
    }
}

fn chain() -> GraphDef {
    let mut g = graph().placeholder("x");
    let mut last = "x".to_string();
    for i in 1..CHAIN {
        g = g.op(format!("n{i}"), "Identity", &[&last]).t();
        last = format!("n{i}");
    }
    g.op("end", "Identity", &[&last]).t().build()
}

/// Each node takes two nodes of the layer before it.
fn lattice() -> GraphDef {
    let mut g = graph().placeholder("x");
    let name = |d: usize, w: usize| if d == 0 { "x".into() } else { format!("n{d}_{w}") };
    for d in 1..=DEPTH {
        for w in 0..WIDTH {
            let (a, b) = (name(d - 1, w), name(d - 1, (w + 1) % WIDTH));
            g = g.op(name(d, w), "BenchJoin", &[&a, &b]);
        }
    }
    let (a, b) = (name(DEPTH, 0), name(DEPTH, WIDTH / 2));
    g.op("end", "BenchJoin", &[&a, &b]).build()
}

fn while_loop() -> GraphDef {
    graph()
        .placeholder("n")
        .constant("zero", 0)
        .constant("one", 1)
        .enter("e", "zero", "w", 10)
        .enter_constant("limit", "n", "w", 10)
        .enter_constant("by", "one", "w", 10)
        .merge("m", &["e", "next"])
        .op("less", "TestLess", &["m", "limit"])
        .op("cond", "LoopCond", &["less"])
        .switch("s", "m", "cond")
        .op("add", "TestAdd", &["s:1", "by"])
        .next_iteration("next", "add")
        .exit("end", "s")
        .build()
}

/// Nodes that depend on one feed alone.
fn wide_graph(op: &str) -> GraphDef {
    let mut g = graph().placeholder("x");
    for i in 0..WIDE {
        g = g.op(format!("n{i}"), op, &["x", "x"]);
    }
    g.build()
}

/// A step of many independent nodes, which threads may share. Measures wall-clock time, and the
/// processor time of all threads.
fn wide() {
    let s = session(&wide_graph("TestAdd"));
    let targets: Vec<String> = (0..WIDE).map(|i| format!("n{i}")).collect();
    let feeds = vec![("x".to_string(), Tensor::scalar(1))];
    let r = RunRequest { feeds, targets, ..RunRequest::default() };
    let begun = Instant::now();
    for (by, times) in [
        ("clock", rounds(|| begun.elapsed(), || drop(s.run_blocking(r.clone()).unwrap()))),
        ("cpu", rounds(process_time, || drop(s.run_blocking(r.clone()).unwrap()))),
    ] {
        let (median, best) = (times[times.len() / 2] * 1e3, times[0] * 1e3);
        println!(
            "{{\"name\": \"rust\", \"metric\": \"wide_step\", \"value\": {median:.3}, \
             \"unit\": \"ms\", \"better\": \"lower\", \"impl\": \"ferroflow\", \
             \"params\": {{\"nodes\": {WIDE}, \"by\": \"{by}\"}}, \
             \"extra\": {{\"best\": {best:.3}}}}}"
        );
    }
}

fn nodes(shape: &str, def: &GraphDef, feeds: &[(&str, i32)], fetch: &str, nodes: usize) {
    let s = session(def);
    let r = request(feeds, fetch);
    let times = rounds(thread_time, || drop(s.run_blocking(r.clone()).unwrap()));
    let per_second = |t: f64| nodes as f64 / t;
    let (median, best) = (per_second(times[times.len() / 2]), per_second(times[0]));
    println!(
        "{{\"name\": \"rust\", \"metric\": \"null_nodes\", \"value\": {median:.0}, \
         \"unit\": \"nodes/s\", \"better\": \"higher\", \"impl\": \"ferroflow\", \
         \"params\": {{\"shape\": \"{shape}\"}}, \"extra\": {{\"best\": {best:.0}}}}}"
    );
}

/// One addition, fed and fetched, as a client in this process sees it.
fn null_step() {
    let def = graph().placeholder("x").op("y", "TestAdd", &["x", "x"]).build();
    let s = session(&def);
    let begun = Instant::now();
    let clock = || begun.elapsed();
    let times = rounds(clock, || drop(s.run_blocking(request(&[("x", 1)], "y")).unwrap()));
    let (median, best) = (times[times.len() / 2] * 1e6, times[0] * 1e6);
    println!(
        "{{\"name\": \"rust\", \"metric\": \"null_step\", \"value\": {median:.3}, \"unit\": \"us\", \
         \"better\": \"lower\", \"impl\": \"ferroflow\", \"params\": {{\"via\": \"local\"}}, \
         \"extra\": {{\"best\": {best:.3}}}}}"
    );
}

/// The seconds that a call takes by `clock` in each round, sorted.
fn rounds(clock: impl Fn() -> Duration, mut work: impl FnMut()) -> Vec<f64> {
    let begun = clock();
    let mut calls = 0u32;
    while clock() - begun < ROUND {
        work();
        calls += 1;
    }
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begun = clock();
            (0..calls).for_each(|_| work());
            (clock() - begun).as_secs_f64() / f64::from(calls)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

/// Processor time of this thread so far.
fn thread_time() -> Duration {
    time_of(rustix::time::ClockId::ThreadCPUTime)
}

/// Processor time of all threads so far.
fn process_time() -> Duration {
    time_of(rustix::time::ClockId::ProcessCPUTime)
}

fn time_of(clock: rustix::time::ClockId) -> Duration {
    let time = rustix::time::clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
