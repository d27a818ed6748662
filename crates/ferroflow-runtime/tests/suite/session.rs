//! The life of steps and sessions: cancelling, closing, deadlines, callables, shared state.

use crate::common::*;
use ferroflow_core::{CancelToken, Code, DType, Tensor, err};
use ferroflow_graph::GraphDef;
use ferroflow_runtime::{
    CallableSpec, RunOptions, RunRequest, SessionDone, SessionOptions, TaskSession,
};
use ferroflow_testing::graph;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

const CLOSED: &str = "Step was cancelled by an explicit call to `Session::Close()`.";

fn blocked() -> GraphDef {
    graph()
        .placeholder("x")
        .op("wait", "TestBlock", &[])
        .op("y", "TestAdd", &["wait", "x"])
        .op("z", "TestAdd", &["x", "x"])
        .build()
}

fn blocked_request() -> RunRequest {
    request(&[("x", Tensor::scalar(1))], &["y"], &[])
}

#[test]
fn a_blocked_step_can_be_cancelled() {
    let (task, started) = blocking_task();
    let s = as_written(&task, &blocked());
    let cancel = CancelToken::new();
    let result = start(&s, blocked_request(), cancel.clone());
    soon(&started);
    assert!(result.try_recv().is_err());
    cancel.cancel(err!(Cancelled, "enough"));
    let e = error_of(soon(&result));
    assert_eq!((e.code(), e.message()), (Code::Cancelled, "enough"));
    // Cancelled before it starts: nothing runs.
    let result = start(&s, blocked_request(), cancel);
    assert_eq!(error_of(soon(&result)).message(), "enough");
    assert_eq!(ints(&s, &[("x", 2)], &["z"]).unwrap(), [4]);
}

#[test]
fn a_failing_node_ends_what_waits() {
    let (task, started) = blocking_task();
    let g = graph()
        .placeholder("x")
        .op("wait", "TestBlock", &[])
        .op("later", "TestLater", &["x"])
        .op("bad", "TestFail", &["^later"])
        .op("y", "TestAdd", &["wait", "bad"])
        .build();
    let s = as_written(&task, &g);
    for _ in 0..20 {
        let e = error_of(s.run_blocking(blocked_request()));
        assert_eq!(e.message(), "no\n\t [[{{node bad}}]]");
    }
    drop(started);
}

#[test]
fn a_deadline_ends_a_blocking_run() {
    let (task, _started) = blocking_task();
    let s = as_written(&task, &blocked());
    let timeout = Some(Duration::from_millis(20));
    let r =
        RunRequest { options: RunOptions { timeout, ..Default::default() }, ..blocked_request() };
    let e = error_of(s.run_blocking(r));
    assert_eq!(e.code(), Code::DeadlineExceeded);
    assert!(!e.is_derived());
    let long = Some(Duration::from_secs(600));
    let r = RunRequest {
        options: RunOptions { timeout: long, ..Default::default() },
        ..request(&[("x", Tensor::scalar(1))], &["z"], &[])
    };
    assert_eq!(s.run_blocking(r).unwrap().tensors[0].scalar_value::<i32>().unwrap(), 2);
}

#[test]
fn closing_cancels_steps_and_waits_for_them() {
    let (task, started) = blocking_task();
    let s = as_written(&task, &blocked());
    let results: Vec<_> =
        (0..5).map(|_| start(&s, blocked_request(), CancelToken::new())).collect();
    (0..5).for_each(|_| soon(&started));
    let (tell, closed) = channel();
    s.close(Box::new(move || tell.send(()).unwrap()));
    soon(&closed);
    // Each step ended before the session did.
    for result in results {
        let e = error_of(result.try_recv().unwrap());
        assert_eq!((e.code(), e.message()), (Code::Cancelled, CLOSED));
    }
    for e in [
        error_of(s.run_blocking(blocked_request())),
        error_of(s.extend(&graph().constant("c", 1).build(), None)),
        error_of(s.make_callable(&CallableSpec::default())),
        error_of(s.partial_run_setup(vec!["x".into()], vec!["z".into()], vec![])),
    ] {
        assert_eq!((e.code(), e.message()), (Code::FailedPrecondition, "Session is closed."));
    }
    let (tell, closed) = channel();
    s.close(Box::new(move || tell.send(()).unwrap()));
    soon(&closed);
}

#[test]
fn closing_ends_loops_without_an_end() {
    let g = graph()
        .constant("x", 0)
        .constant("t", true)
        .enter("e", "x", "w", 10)
        .dtype(DType::Bool)
        .enter_constant("always", "t", "w", 10)
        .dtype(DType::Int32)
        .merge("m", &["e", "next"])
        .op("c", "LoopCond", &["always"])
        .switch("s", "m", "c")
        .op("id", "Identity", &["s:1"])
        .t()
        .next_iteration("next", "id")
        .exit("out", "s")
        .build();
    let s = session(&g);
    let result = start(&s, request(&[], &["out"], &[]), CancelToken::new());
    let (tell, closed) = channel();
    s.close(Box::new(move || tell.send(()).unwrap()));
    soon(&closed);
    assert_eq!(error_of(soon(&result)).message(), CLOSED);
}

fn call(s: &TaskSession, handle: i64, feeds: &[i32]) -> ferroflow_core::Result<Vec<i32>> {
    let (tell, result) = channel();
    let feeds = feeds.iter().map(|x| Tensor::scalar(*x)).collect();
    s.run_callable(
        handle,
        None,
        feeds,
        CancelToken::new(),
        Box::new(move |r| tell.send(r).unwrap()),
    );
    soon(&result)?.tensors.iter().map(|t| t.scalar_value()).collect()
}

#[test]
fn callables_run_by_handle_until_released() {
    let g = graph().placeholder("x").op("y", "TestAdd", &["x", "x"]).op("n", "TestCount", &[]);
    let s = session(&g.build());
    let spec = |fetches: &[&str], feeds: &[&str], targets: &[&str]| {
        let names = |l: &[&str]| l.iter().map(|s| s.to_string()).collect();
        CallableSpec {
            feeds: names(feeds),
            fetches: names(fetches),
            targets: names(targets),
            ..CallableSpec::default()
        }
    };
    let double = s.make_callable(&spec(&["y:0"], &["x:0"], &["n"])).unwrap();
    let count = s.make_callable(&spec(&["n"], &[], &[])).unwrap();
    assert_ne!(double, count);
    assert_eq!(call(&s, double, &[4]).unwrap(), [8]);
    assert_eq!(call(&s, double, &[5]).unwrap(), [10]);
    assert_eq!(call(&s, count, &[]).unwrap(), [3]);
    assert!(call(&s, double, &[]).is_err());
    assert!(s.make_callable(&spec(&["nothing"], &[], &[])).is_err());
    s.release_callable(double).unwrap();
    let e = call(&s, double, &[4]).unwrap_err();
    assert_eq!(e.code(), Code::InvalidArgument);
    let text = format!("Attempted to run callable after handle was released: {double}");
    assert_eq!(e.message(), text);
    for unknown in [77, -1] {
        let e = call(&s, unknown, &[]).unwrap_err();
        assert_eq!(e.code(), Code::InvalidArgument);
        assert_eq!(e.message(), format!("No such callable handle: {unknown}"));
    }
    assert_eq!(call(&s, count, &[]).unwrap(), [4]);
}

#[test]
fn callables_count_for_their_session() {
    let s = session(&graph().placeholder("x").build());
    let spec = CallableSpec { targets: vec!["x".into()], ..CallableSpec::default() };
    let most = ferroflow_core::limits().graphs.most as i64;
    for handle in 0..most {
        assert_eq!(s.make_callable(&spec).unwrap(), handle);
    }
    let e = s.make_callable(&spec).unwrap_err();
    assert_eq!(e.code(), Code::ResourceExhausted);
    assert!(e.message().contains("--max-graphs"), "{e}");
    s.release_callable(7).unwrap();
    assert_eq!(s.make_callable(&spec).unwrap(), most);
}

#[test]
fn a_callable_can_feed_one_tensor_from_another() {
    let g = graph()
        .placeholder("x")
        .placeholder("hole")
        .constant("one", 1)
        .op("from", "TestAdd", &["x", "one"])
        .op("y", "TestAdd", &["hole", "hole"])
        .op("z", "TestAdd", &["y", "one", "^hole"])
        .build();
    let s = session(&g);
    let spec = |from: &str, to: &str| CallableSpec {
        feeds: vec!["x".into()],
        fetches: vec!["y".into(), "z".into()],
        connections: vec![(from.into(), to.into())],
        ..CallableSpec::default()
    };
    let handle = s.make_callable(&spec("from:0", "hole:0")).unwrap();
    assert_eq!(call(&s, handle, &[4]).unwrap(), [10, 11]);
    // The graph itself is unchanged.
    assert!(ints(&s, &[("x", 1)], &["y"]).is_err());
    assert_eq!(ints(&s, &[("hole", 1)], &["y"]).unwrap(), [2]);
    assert_eq!(s.make_callable(&spec("z:0", "hole:0")).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(s.make_callable(&spec("no:0", "hole:0")).unwrap_err().code(), Code::NotFound);
}

#[test]
fn resources_are_shared_unless_a_session_isolates_itself() {
    let task = task();
    let open = |isolate_state: bool| {
        let options = SessionOptions { isolate_state, ..SessionOptions::default() };
        TaskSession::new(task.clone(), &graph().constant("x", 1).build(), options).unwrap()
    };
    let (a, b, alone) = (open(false), open(false), open(true));
    use ferroflow_core::{PartialShape, StoredVariable};
    let v = StoredVariable::new("v", DType::Int32, PartialShape::scalar());
    a.resources().create("localhost", "v", v).unwrap();
    assert!(b.resources().find::<StoredVariable>("localhost", "v").is_some());
    assert!(task.resources.find::<StoredVariable>("localhost", "v").is_some());
    assert!(alone.resources().find::<StoredVariable>("localhost", "v").is_none());
}

#[test]
fn many_steps_at_once_do_not_disturb_each_other() {
    let g = graph()
        .placeholder("x")
        .op("a", "TestLater", &["x"])
        .op("b", "TestDearMix", &["x"])
        .attr("N", 1i64)
        .op("c", "TestDearMix", &["a"])
        .attr("N", 1i64)
        .op("d", "TestMix", &["b", "c:1", "x"])
        .attr("N", 3i64)
        .build();
    let s = session(&g);
    let mix = |x: &[i32]| ferroflow_testing::mix(0, x);
    std::thread::scope(|scope| {
        for t in 0..8 {
            let s = &s;
            scope.spawn(move || {
                for i in 0..100 {
                    let x = t * 1000 + i;
                    let want = mix(&[mix(&[x]).0, mix(&[x]).1, x]).0;
                    assert_eq!(ints(s, &[("x", x)], &["d"]).unwrap(), [want]);
                }
            });
        }
    });
}

#[test]
fn closing_while_steps_come_and_go_loses_none() {
    for _ in 0..20 {
        let (task, _started) = blocking_task();
        let s = as_written(&task, &blocked());
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        loop {
                            match s.run_blocking(blocked_request()) {
                                Ok(_) => panic!("nothing ends this step but closing"),
                                Err(e) if e.message() == CLOSED => {}
                                Err(e) => break assert_eq!(e.message(), "Session is closed."),
                            }
                        }
                    })
                })
                .collect();
            let (tell, closed) = channel();
            s.close(Box::new(move || tell.send(()).unwrap()));
            soon(&closed);
            workers.into_iter().for_each(|w| w.join().unwrap());
        });
    }
}

#[test]
fn an_update_shows_through_an_earlier_read() {
    // As in TensorFlow: `read` runs before `bump`. `late` waits for `bump`, and takes the value
    // that the variable holds then.
    let def = graph()
        .op("v", "VariableV2", &[])
        .attr("dtype", DType::Int32)
        .attr("shape", ferroflow_core::PartialShape::scalar())
        .constant("one", 1)
        .op("set", "Assign", &["v", "one"])
        .attr("T", DType::Int32)
        .op("read", "Identity", &["v"])
        .attr("T", DType::Int32)
        .op("bump", "AssignAdd", &["v", "one", "^read"])
        .attr("T", DType::Int32)
        .op("late", "TestAdd", &["read", "one", "^bump"])
        .build();
    let s = session(&def);
    s.run_blocking(request(&[], &[], &["set"])).unwrap();
    assert_eq!(ints(&s, &[], &["late"]).unwrap(), [3]);
}

#[test]
fn graphs_with_nodes_to_fold_are_compiled_beside_the_network_threads() {
    let done = || -> (SessionDone, _) {
        let (tell, told) = channel();
        (Box::new(move |result| tell.send(result).unwrap()), told)
    };
    let sum = |x: &str, y: &str| {
        graph().constant("a", 1).constant("b", 2).placeholder("p").op("y", "AddV2", &[x, y]).t()
    };
    let quick =
        Arc::new(TaskSession::new(task(), &sum("a", "p").build(), Default::default()).unwrap());
    let (tell, told) = done();
    let one = || request(&[("p", Tensor::scalar(1))], &["y"], &[]);
    assert!(quick.run_if_quick(one(), CancelToken::new(), tell).is_none());
    soon(&told).unwrap();
    // A kernel that folds constants may take minutes.
    let folds =
        Arc::new(TaskSession::new(task(), &sum("a", "b").build(), Default::default()).unwrap());
    let (tell, told) = done();
    let later = folds.run_if_quick(request(&[], &["y"], &[]), CancelToken::new(), tell);
    assert!(told.try_recv().is_err());
    later.expect("the first step is compiled")();
    assert_eq!(soon(&told).unwrap().tensors[0].scalar_value::<i32>().unwrap(), 3);
    let (tell, told) = done();
    assert!(folds.run_if_quick(request(&[], &["y"], &[]), CancelToken::new(), tell).is_none());
    soon(&told).unwrap();
}
