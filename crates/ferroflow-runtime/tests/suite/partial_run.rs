//! Partial runs: one step in several calls.

use crate::common::*;
use ferroflow_core::{CancelToken, Code, DeviceInfo, InlineScope, Result, Tensor};
use ferroflow_graph::passes::Pruned;
use ferroflow_runtime::{
    Distribute, DistributedPartialRun, DistributedStep, RunOptions, SessionDone, SessionScope,
    Task, TaskSession,
};
use ferroflow_testing::graph;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock, Weak};

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|s| s.to_string()).collect()
}

fn begin(
    s: &TaskSession,
    handle: &str,
    feeds: &[(&str, i32)],
    fetches: &[&str],
) -> Receiver<Result<Vec<i32>>> {
    let (tell, result) = channel();
    let feeds = feeds.iter().map(|(n, x)| (n.to_string(), Tensor::scalar(*x))).collect();
    let done = move |r: Result<ferroflow_runtime::RunOutput>| {
        tell.send(r.and_then(|o| o.tensors.iter().map(|t| t.scalar_value()).collect())).unwrap()
    };
    s.partial_run(handle, feeds, names(fetches), CancelToken::new(), Box::new(done));
    result
}

#[track_caller]
fn part(
    s: &TaskSession,
    handle: &str,
    feeds: &[(&str, i32)],
    fetches: &[&str],
) -> Result<Vec<i32>> {
    soon(&begin(s, handle, feeds, fetches))
}

/// a + 1, then (a + 1) + b, then ... + c.
fn staged() -> TaskSession {
    let g = graph()
        .placeholder("a")
        .placeholder("b")
        .placeholder("c")
        .constant("one", 1)
        .op("r1", "TestAdd", &["a", "one"])
        .op("r2", "TestAdd", &["r1", "b"])
        .op("n", "TestCount", &["^r1"])
        .op("bad", "TestFail", &["^c"]);
    session(&g.build())
}

fn setup(s: &TaskSession, feeds: &[&str], fetches: &[&str]) -> String {
    s.partial_run_setup(names(feeds), names(fetches), vec![]).unwrap()
}

#[test]
fn a_step_goes_on_where_it_left_off() {
    let s = staged();
    for _ in 0..3 {
        let h = setup(&s, &["a", "b"], &["r1", "r2"]);
        assert_eq!(part(&s, &h, &[("a", 4)], &["r1"]).unwrap(), [5]);
        // An empty fetch list is legal.
        assert!(part(&s, &h, &[("b", 10)], &[]).unwrap().is_empty());
        assert_eq!(part(&s, &h, &[], &["r2"]).unwrap(), [15]);
        // The run is over.
        let e = part(&s, &h, &[], &[]).unwrap_err();
        assert_eq!(e.message(), "Must run PartialRunSetup before performing partial runs");
    }
    // Nodes that ran in the first part do not run again in the second.
    let h = setup(&s, &["a", "b"], &["n", "r2"]);
    assert_eq!(part(&s, &h, &[("a", 4)], &["n"]).unwrap(), [1]);
    assert_eq!(part(&s, &h, &[("b", 1)], &["r2"]).unwrap(), [6]);
    let h = setup(&s, &["a"], &["n"]);
    assert_eq!(part(&s, &h, &[("a", 4)], &["n"]).unwrap(), [2]);
}

#[test]
fn two_at_once_do_not_mix() {
    let s = staged();
    let (g, h) = (setup(&s, &["a", "b"], &["r2"]), setup(&s, &["a", "b"], &["r2"]));
    assert_ne!(g, h);
    part(&s, &g, &[("a", 1)], &[]).unwrap();
    part(&s, &h, &[("a", 100)], &[]).unwrap();
    assert_eq!(part(&s, &h, &[("b", 100)], &["r2"]).unwrap(), [201]);
    assert_eq!(part(&s, &g, &[("b", 1)], &["r2"]).unwrap(), [3]);
}

#[test]
fn names_may_be_written_in_either_way() {
    // The nodes that carry `a` and `a:0` have one name but different keys.
    let s = staged();
    for feed in ["a", "a:0", "a"] {
        for fetch in ["r1:0", "r1"] {
            let h = setup(&s, &[feed], &[fetch]);
            assert_eq!(part(&s, &h, &[(feed, 1)], &[fetch]).unwrap(), [2]);
        }
    }
}

#[test]
fn errors_have_the_texts_of_tensorflow() {
    let s = staged();
    let h = setup(&s, &["a", "b"], &["r1", "r2"]);
    let fails = |handle: &str, feeds: &[(&str, i32)], fetches: &[&str], text: &str| {
        let e = part(&s, handle, feeds, fetches).unwrap_err();
        assert_eq!((e.code(), e.message()), (Code::InvalidArgument, text));
    };
    let setup_first = "Must run PartialRunSetup before performing partial runs";
    fails("nothing", &[], &[], setup_first);
    fails(&h, &[("c", 1)], &[], "The feed c was not specified in partial_run_setup.");
    fails(&h, &[], &["n"], "The fetch n was not specified in partial_run_setup.");
    let early = "Fetch r2 can't be computed from the feeds that have been fed so far.";
    fails(&h, &[("a", 1)], &["r2"], early);
    fails(&h, &[("a", 1), ("a", 2)], &[], "The feed a has already been fed.");
    // None of these calls fed anything.
    assert_eq!(part(&s, &h, &[("a", 1)], &["r1"]).unwrap(), [2]);
    fails(&h, &[("a", 1)], &[], "The feed a has already been fed.");
    fails(&h, &[], &["r1"], "The fetch r1 has already been fetched.");
    assert_eq!(part(&s, &h, &[("b", 1)], &["r2"]).unwrap(), [3]);
    fails(&h, &[], &[], setup_first);
}

#[test]
fn an_error_reaches_the_call_that_fetches() {
    let s = staged();
    let h = setup(&s, &["a", "c"], &["r1", "bad"]);
    assert_eq!(part(&s, &h, &[("a", 1)], &["r1"]).unwrap(), [2]);
    let e = part(&s, &h, &[("c", 1)], &["bad"]).unwrap_err();
    assert_eq!(e.message(), "no\n\t [[{{node bad}}]]");
    let h = setup(&s, &["a", "c"], &["r1", "bad"]);
    let e = part(&s, &h, &[("c", 1)], &["bad"]).unwrap_err();
    assert_eq!(e.code(), Code::OutOfRange);
}

#[test]
fn closing_cancels_abandoned_partial_runs() {
    let s = staged();
    let h = setup(&s, &["a", "b"], &["r1", "r2"]);
    setup(&s, &["a", "b"], &["r1", "r2"]);
    assert_eq!(part(&s, &h, &[("a", 1)], &["r1"]).unwrap(), [2]);
    let (tell, closed) = channel();
    s.close(Box::new(move || tell.send(()).unwrap()));
    soon(&closed);
    assert!(part(&s, &h, &[("b", 1)], &["r2"]).is_err());
}

#[test]
fn closing_answers_a_call_that_waits() {
    let (task, started) = blocking_task();
    let g = graph().placeholder("a").op("wait", "TestBlock", &["a"]).attr("N", 1i64).build();
    let s = as_written(&task, &g);
    let h = setup(&s, &["a"], &["wait"]);
    let waiting = begin(&s, &h, &[("a", 1)], &["wait"]);
    soon(&started);
    let (tell, closed) = channel();
    s.close(Box::new(move || tell.send(()).unwrap()));
    soon(&closed);
    let e = soon(&waiting).unwrap_err();
    assert_eq!(e.message(), "Step was cancelled by an explicit call to `Session::Close()`.");
}

/// Starts no run before its session is closed, and reports when the close is complete.
struct Closes {
    session: OnceLock<Weak<TaskSession>>,
    ended: Sender<()>,
}

struct Late(Arc<Closes>);

impl Distribute for Late {
    fn prepare(&self, _: Pruned, _: &[String], _: &[String]) -> Result<Arc<dyn DistributedStep>> {
        Ok(self.0.clone())
    }
}

impl DistributedStep for Closes {
    fn run(
        self: Arc<Self>,
        _: Vec<Tensor>,
        _: &RunOptions,
        _: CancelToken,
        _: &InlineScope,
        _: SessionDone,
    ) {
    }

    fn begin(self: Arc<Self>, _: CancelToken) -> Arc<dyn DistributedPartialRun> {
        let (session, ended) = (self.session.get().unwrap().upgrade().unwrap(), self.ended.clone());
        session.close(Box::new(move || ended.send(()).unwrap()));
        self
    }
}

impl DistributedPartialRun for Closes {
    fn part(
        self: Arc<Self>,
        _: Vec<(String, Tensor)>,
        _: Vec<String>,
        _: bool,
        _: CancelToken,
        _: SessionDone,
    ) {
    }
}

#[test]
fn a_run_that_is_set_up_while_its_session_closes_does_not_keep_it() {
    let (tell, ended) = channel();
    let closes = Arc::new(Closes { session: OnceLock::new(), ended: tell });
    let task = Task::new(Arc::new(catalog()), "worker", 0, 1);
    let scope = SessionScope {
        others: vec![Arc::new(DeviceInfo::cpu("worker", 1, 0, 7))],
        distribute: Some(Arc::new(Late(closes.clone()))),
        ..SessionScope::of(&task, false)
    };
    let g = graph().placeholder("a").op("r", "TestAdd", &["a", "a"]).device("/job:worker/task:1");
    let session =
        Arc::new(TaskSession::within(task, scope, &g.build(), Default::default()).unwrap());
    closes.session.set(Arc::downgrade(&session)).unwrap();
    let e = session.partial_run_setup(names(&["a"]), names(&["r"]), vec![]).unwrap_err();
    assert_eq!(e.code(), Code::FailedPrecondition, "{e}");
    soon(&ended);
}
