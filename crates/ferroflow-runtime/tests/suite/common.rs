//! Sessions for tests: the standard ops, the test ops, and short ways to run steps and read
//! results.

use ferroflow_core::{CancelToken, Element, Error, Result, Tensor};
use ferroflow_graph::{Catalog, GraphDef};
use ferroflow_runtime::{RunOutput, RunRequest, SessionOptions, Task, TaskSession};
use ferroflow_testing::{register_blocking_op, register_test_ops};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

pub fn catalog() -> Catalog {
    let mut c = Catalog::new();
    ferroflow_ops::register(&mut c);
    register_test_ops(&mut c);
    c
}

pub fn task() -> Arc<Task> {
    Task::local(Arc::new(catalog()))
}

/// A task that also has `TestBlock`, and a receiver that gets a message whenever one starts.
pub fn blocking_task() -> (Arc<Task>, Receiver<()>) {
    let (tell, started) = channel();
    let mut c = catalog();
    register_blocking_op(&mut c, tell);
    (Task::local(Arc::new(c)), started)
}

/// A session that runs the graph as it is written: it tests the executor, not the passes.
pub fn as_written(task: &Arc<Task>, graph: &GraphDef) -> TaskSession {
    let options = SessionOptions { disable_optimizer: true, ..SessionOptions::default() };
    TaskSession::new(task.clone(), graph, options).unwrap()
}

pub fn session(graph: &GraphDef) -> TaskSession {
    as_written(&task(), graph)
}

pub fn request(feeds: &[(&str, Tensor)], fetches: &[&str], targets: &[&str]) -> RunRequest {
    RunRequest {
        feeds: feeds.iter().map(|(n, t)| (n.to_string(), t.clone())).collect(),
        fetches: fetches.iter().map(|s| s.to_string()).collect(),
        targets: targets.iter().map(|s| s.to_string()).collect(),
        ..RunRequest::default()
    }
}

/// Runs one step. Returns the fetches as scalars.
pub fn scalars<T: Element>(
    s: &TaskSession,
    feeds: &[(&str, Tensor)],
    fetches: &[&str],
) -> Result<Vec<T>> {
    let output = s.run_blocking(request(feeds, fetches, &[]))?;
    output.tensors.iter().map(|t| t.scalar_value()).collect()
}

pub fn ints(s: &TaskSession, feeds: &[(&str, i32)], fetches: &[&str]) -> Result<Vec<i32>> {
    let feeds: Vec<(&str, Tensor)> = feeds.iter().map(|(n, x)| (*n, Tensor::scalar(*x))).collect();
    scalars(s, &feeds, fetches)
}

/// Runs one step in a session of its own. Returns the fetched value.
#[track_caller]
pub fn fetch(graph: &GraphDef, feeds: &[(&str, i32)], name: &str) -> i32 {
    ints(&session(graph), feeds, &[name]).unwrap_or_else(|e| panic!("{e}"))[0]
}

/// The error of a step that must fail.
#[track_caller]
pub fn failure(graph: &GraphDef, fetches: &[&str]) -> Error {
    ints(&session(graph), &[], fetches).expect_err("the step should fail")
}

/// A step under way, whose result comes later.
pub fn start(s: &TaskSession, r: RunRequest, cancel: CancelToken) -> Receiver<Result<RunOutput>> {
    let (tell, result) = channel();
    s.run(r, cancel, Box::new(move |r| tell.send(r).unwrap()));
    result
}

/// The next message; the test fails if none arrives.
#[track_caller]
pub fn soon<T>(from: &Receiver<T>) -> T {
    from.recv_timeout(Duration::from_secs(60)).expect("nothing happened for a minute")
}

pub fn error_of<T>(result: Result<T>) -> Error {
    match result {
        Ok(_) => panic!("succeeded, expected an error"),
        Err(e) => e,
    }
}
