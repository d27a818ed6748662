//! A job of one parameter server and two workers. The workers are this test program.

use super::ferroflow;
use ferroflow::cluster::{BackgroundServer, ConnectOptions, Server, ServerOptions, TfConfig};
use ferroflow::graph::default_catalog;
use ferroflow::{Graph, Session};
use ferroflow_testing::child;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

/// In a worker process: does the work of the worker and returns true.
pub fn is_done() -> bool {
    let is_task = child::role().as_deref() == Some("task");
    if is_task {
        add_to_counter();
    }
    is_task
}

/// Runs the job, with more words for `ferroflow run`. Its workers run `test`, which starts with
/// [`is_done`].
pub fn job(test: &str, words: &[&str]) -> Output {
    let task = child::words(test);
    let task: Vec<&str> = task.iter().map(String::as_str).collect();
    let job = [&["run", "--ps", "1", "--workers", "2"], words, &["--"], &task].concat();
    ferroflow(&job).env(child::ROLE, "task").stdin(Stdio::null()).output().unwrap()
}

/// Adds to a counter on the parameter server, from a server of its own, until both workers have.
fn add_to_counter() {
    let config = TfConfig::from_env().unwrap().unwrap();
    let options = ServerOptions::of(&config);
    let task = format!("/job:{}/task:{}", config.job, config.task);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(Server::bind(options, default_catalog())).unwrap();
    let target = server.target().to_string();
    runtime.spawn(server.serve(std::future::pending()));
    let g = Graph::new();
    let (counter, one) = g.device("/job:ps/task:0", || {
        let one = g.device(task.as_str(), || g.constant(1.0));
        let counter = g.variable("counter", 0.0);
        (counter.clone(), counter.assign_add(&one))
    });
    let init = g.global_initializer();
    let ready = counter.is_initialized();
    // The other worker may have ended already.
    let device_filters = vec!["/job:ps".into(), task];
    let options = ConnectOptions { device_filters, ..ConnectOptions::default() };
    let session = Session::connect_with(&target, &g, &options).unwrap();
    if config.is_chief() {
        session.run(&init).unwrap();
    }
    while !session.run(ready.scalar::<bool>()).unwrap() {
        std::thread::yield_now();
    }
    for _ in 0..10 {
        session.run(&one).unwrap();
    }
    while session.run(counter.scalar::<f32>()).unwrap() < 20.0 {
        std::thread::yield_now();
    }
    println!("\nall have added");
}

/// Runs steps for a while. Worker 1 is slow to get its input for each.
pub fn run_steps_with_slow_input() {
    let config = TfConfig::from_env().unwrap().unwrap();
    let server = BackgroundServer::start(ServerOptions::of(&config)).unwrap();
    let task = format!("/job:{}/task:{}", config.job, config.task);
    let g = Graph::new();
    let sum = g.device(task.as_str(), || &g.constant(1.0) + &g.constant(2.0));
    let options = ConnectOptions { device_filters: vec![task], ..ConnectOptions::default() };
    let session = Session::connect_with(server.target(), &g, &options).unwrap();
    let input = Duration::from_millis(if config.task == 1 { 40 } else { 2 });
    let started = Instant::now();
    // The report ignores the first seconds of a job.
    while started.elapsed() < Duration::from_secs(8) {
        std::thread::sleep(input);
        session.run(sum.scalar::<f32>()).unwrap();
    }
}
