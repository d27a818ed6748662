//! Switch, Merge and loops as TensorFlow 1 writes them.

use crate::common::*;
use ferroflow_core::{Code, DType, Limit, Limits, MemoryOwner, Tensor};
use ferroflow_graph::GraphDef;
use ferroflow_runtime::{SessionOptions, SessionScope, TaskSession};
use ferroflow_testing::{GraphBuilder, graph};

fn run_cond(s: &TaskSession, pred: bool, fetch: &str) -> ferroflow_core::Result<Vec<i32>> {
    scalars(s, &[("x", Tensor::scalar(10)), ("p", Tensor::scalar(pred))], &[fetch])
}

/// `if p { x + 1 } else { x - 1 }`, for tests to build on.
fn cond() -> GraphBuilder {
    graph()
        .placeholder("x")
        .dtype(DType::Bool)
        .placeholder("p")
        .dtype(DType::Int32)
        .constant("one", 1)
        .switch("s", "x", "p")
        .switch("s1", "one", "p")
        .op("then", "TestAdd", &["s:1", "s1:1"])
        .op("else", "TestSub", &["s:0", "s1:0"])
        .merge("m", &["else", "then"])
}

#[test]
fn a_cond_takes_one_branch() {
    let s = session(&cond().build());
    for _ in 0..3 {
        assert_eq!(run_cond(&s, true, "m").unwrap(), [11]);
        assert_eq!(run_cond(&s, false, "m").unwrap(), [9]);
        assert_eq!(run_cond(&s, true, "m:1").unwrap(), [1]);
        assert_eq!(run_cond(&s, false, "m:1").unwrap(), [0]);
    }
}

#[test]
fn fetching_the_branch_not_taken_is_an_error() {
    let s = session(&cond().build());
    assert_eq!(run_cond(&s, true, "then").unwrap(), [11]);
    for (pred, fetch) in [(false, "then"), (true, "else:0"), (true, "s"), (false, "s:1")] {
        let e = run_cond(&s, pred, fetch).unwrap_err();
        assert_eq!(e.code(), Code::Internal);
        let text = format!("(Original error message: The tensor returned for {fetch} was not");
        assert!(e.message().contains(&text), "{e}");
        assert!(e.message().starts_with("Failed to fetch outputs for step "), "{e}");
    }
}

#[test]
fn dead_values_spread_along_data_and_control_edges() {
    let g = cond()
        .op("n", "TestCount", &["^then"])
        .op("after", "NoOp", &["^n"])
        .op("m2", "TestCount", &["^after"])
        .op("trigger", "ControlTrigger", &["^then"])
        .op("always", "TestCount", &["^trigger"])
        .op("go", "NoOp", &["^m2", "^always"])
        .build();
    let s = session(&g);
    let feeds = |p: bool| [("x", Tensor::scalar(10)), ("p", Tensor::scalar(p))];
    for p in [true, false, false, true] {
        s.run_blocking(request(&feeds(p), &[], &["m2", "always"])).unwrap();
    }
    assert_eq!(run_cond(&s, true, "m2").unwrap(), [3]);
    assert_eq!(run_cond(&s, true, "always").unwrap(), [5]);
    assert!(run_cond(&s, false, "m2").is_err());
    assert_eq!(run_cond(&s, false, "always").unwrap(), [6]);
}

#[test]
fn a_merge_of_dead_values_is_dead() {
    // Both inputs of `inner` come from the branch not taken. `outer` still has a live one.
    let g = cond()
        .op("other", "TestAdd", &["s:1", "s:1"])
        .merge("inner", &["then", "other"])
        .merge("outer", &["inner", "else"])
        .build();
    let s = session(&g);
    assert_eq!(run_cond(&s, false, "outer").unwrap(), [9]);
    assert_eq!(run_cond(&s, false, "outer:1").unwrap(), [1]);
    assert_eq!(run_cond(&s, false, "inner").unwrap_err().code(), Code::Internal);
    let taken = run_cond(&s, true, "outer").unwrap()[0];
    assert!(taken == 11 || taken == 20, "{taken}");
}

#[test]
fn a_merge_waits_for_its_control_inputs_dead_or_alive() {
    for control in ["^else", "^then", "^slow"] {
        let g = cond()
            .op("slow", "TestLater", &["x"])
            .merge("late", &["else", "then", control])
            .build();
        let s = session(&g);
        assert_eq!(run_cond(&s, true, "late").unwrap(), [11], "{control}");
        assert_eq!(run_cond(&s, false, "late").unwrap(), [9], "{control}");
    }
    // All inputs are dead, and the control edge arrives last.
    let g = cond()
        .op("slow", "TestLater", &["x"])
        .merge("dead", &["then", "s:1", "^slow"])
        .merge("m2", &["dead", "else"])
        .build();
    assert_eq!(run_cond(&session(&g), false, "m2").unwrap(), [9]);
}

fn transfer(g: GraphBuilder, key: &str) -> GraphBuilder {
    g.attr("tensor_name", key)
        .attr("send_device", "/job:a/replica:0/task:0/device:CPU:0")
        .attr("send_device_incarnation", 1i64)
        .attr("recv_device", "/job:a/replica:0/task:0/device:CPU:0")
}

#[test]
fn sends_and_receives_run_although_dead() {
    let g = transfer(cond().op("send", "_Send", &["then"]).t(), "k");
    let g = transfer(g.op("recv", "_Recv", &[]).attr("tensor_type", DType::Int32), "k");
    // The received value is dead, but the receive itself ran.
    let g = g
        .op("n", "TestCount", &["^recv"])
        .op("d", "TestAdd", &["recv", "recv"])
        .merge("m2", &["d", "else"]);
    // A receive that is dead itself still empties its mailbox. Nodes after it are dead.
    let g = transfer(g.op("send2", "_Send", &["x"]).t(), "k2");
    let dead = g.op("recv2", "_Recv", &["^then"]).attr("tensor_type", DType::Int32);
    let g = transfer(dead, "k2")
        .op("n2", "TestCount", &["^recv2"])
        .merge("m3", &["recv2", "else"])
        .build();
    let s = session(&g);
    let run = |p: bool, fetches: &[&str]| {
        let feeds = [("x", Tensor::scalar(10)), ("p", Tensor::scalar(p))];
        let output = s.run_blocking(request(&feeds, fetches, &["send", "send2"]))?;
        output.tensors.iter().map(|t| t.scalar_value::<i32>()).collect::<Result<Vec<_>, _>>()
    };
    for k in 0..4 {
        assert_eq!(run(true, &["m2", "n", "m3", "n2"]).unwrap(), [22, 2 * k + 1, 10, k + 1]);
        assert_eq!(run(false, &["m2", "n", "m3"]).unwrap(), [9, 2 * k + 2, 9]);
    }
    assert_eq!(run(false, &["n2"]).unwrap_err().code(), Code::Internal);
}

#[test]
fn conds_nest() {
    // if p { if x < 100 { x + 1 } else { x - 1 } } else { x - 1 }, the inner pred dead with p.
    let g = cond()
        .constant("hundred", 100)
        .switch("h", "hundred", "p")
        .op("q", "TestLess", &["s:1", "h:1"])
        .switch("is", "s:1", "q")
        .switch("is1", "s1:1", "q")
        .op("ithen", "TestAdd", &["is:1", "is1:1"])
        .op("ielse", "TestSub", &["is:0", "is1:0"])
        .merge("im", &["ithen", "ielse"])
        .merge("om", &["im", "else"])
        .build();
    let s = session(&g);
    let run = |x: i32, p: bool| {
        scalars::<i32>(&s, &[("x", Tensor::scalar(x)), ("p", Tensor::scalar(p))], &["om"]).unwrap()
    };
    assert_eq!(run(10, true), [11]);
    assert_eq!(run(200, true), [199]);
    assert_eq!(run(10, false), [9]);
}

/// Adds `name`: a loop that counts `name/i` from `start` up to `limit` and sums the counts in
/// `name/sum`. `limit` and 1 are loop invariants. `step` adds nodes to the body: it takes the name
/// of the previous count (`name/i_in`) and returns the name of the node that replaces it.
fn counting_loop(
    g: GraphBuilder,
    name: &str,
    (start, limit): (&str, &str),
    parallel: i64,
    body: impl FnOnce(GraphBuilder, &str) -> (GraphBuilder, String),
) -> GraphBuilder {
    let n = |part: &str| format!("{name}/{part}");
    let g = g
        .op(n("zero"), "TestSub", &[start, start])
        .enter(&n("i0"), start, name, parallel)
        .enter(&n("sum0"), &n("zero"), name, parallel)
        .enter_constant(&n("limit"), limit, name, parallel)
        .merge(&n("i_m"), &[&n("i0"), &n("i_next")])
        .merge(&n("sum_m"), &[&n("sum0"), &n("sum_next")])
        .op(n("less"), "TestLess", &[&n("i_m"), &n("limit")])
        .op(n("cond"), "LoopCond", &[&n("less")])
        .switch(&n("i_s"), &n("i_m"), &n("cond"))
        .switch(&n("sum_s"), &n("sum_m"), &n("cond"))
        .op(n("i_in"), "Identity", &[&format!("{}:1", n("i_s"))])
        .t()
        .constant_after(&n("one"), &format!("^{}", n("i_in")), 1);
    let (g, inner) = body(g, &n("i_in"));
    g.op(n("i_add"), "TestAdd", &[&n("i_in"), &n("one")])
        .op(n("sum_add"), "TestAdd", &[&format!("{}:1", n("sum_s")), &inner])
        .next_iteration(&n("i_next"), &n("i_add"))
        .next_iteration(&n("sum_next"), &n("sum_add"))
        .exit(&n("i"), &n("i_s"))
        .exit(&n("sum"), &n("sum_s"))
}

fn plain(g: GraphBuilder, i: &str) -> (GraphBuilder, String) {
    let i = i.to_string();
    (g, i)
}

fn simple_loop(parallel: i64) -> GraphDef {
    let g = graph().placeholder("start").placeholder("limit");
    counting_loop(g, "w", ("start", "limit"), parallel, plain)
        .op("after", "TestAdd", &["w/i", "w/sum"])
        .build()
}

#[test]
fn loops_run_as_often_as_they_should() {
    for parallel in [1, 2, 10, 1000] {
        let s = session(&simple_loop(parallel));
        for n in [0, 1, 2, 3, 10, 11, 1000] {
            let got = ints(&s, &[("start", 0), ("limit", n)], &["w/i", "w/sum", "after"]).unwrap();
            let sum = n * (n - 1) / 2;
            assert_eq!(got, [n, sum, n + sum], "{n} iterations, {parallel} at once");
        }
        // The loop is never entered: the condition is false at once.
        assert_eq!(ints(&s, &[("start", 5), ("limit", 3)], &["after"]).unwrap(), [5]);
    }
}

#[test]
fn a_traced_loop_ends_at_the_memory_of_its_session() {
    let task = task();
    let limit = Limit { most: 1 << 20, ..Limits::DEFAULT.session_memory };
    let memory = MemoryOwner::new("session 7", limit);
    let scope = SessionScope { memory, ..SessionScope::of(&task, false) };
    let options = SessionOptions { disable_optimizer: true, ..SessionOptions::default() };
    let s = TaskSession::within(task, scope, &simple_loop(10), options).unwrap();
    let run = |trace| {
        let feeds = [("start", Tensor::scalar(0)), ("limit", Tensor::scalar(10_000))];
        let mut step = request(&feeds, &["after"], &[]);
        step.options.trace = trace;
        s.run_blocking(step)
    };
    run(false).unwrap();
    let e = error_of(run(true));
    assert_eq!(e.code(), Code::ResourceExhausted);
    assert!(e.message().contains("--max-session-memory"), "{e}");
    run(false).unwrap();
}

#[test]
fn async_kernels_in_a_loop_body_keep_their_iteration() {
    for (op, n) in [("TestLater", 60), ("TestAtOnce", 300)] {
        for parallel in [1, 2, 10] {
            let g = graph().placeholder("start").placeholder("limit");
            let g = counting_loop(g, "w", ("start", "limit"), parallel, |g, i| {
                (g.op("w/later", op, &[i]), "w/later".into())
            });
            let s = session(&g.build());
            let got = ints(&s, &[("start", 0), ("limit", n)], &["w/sum"]).unwrap();
            assert_eq!(got, [n * (n - 1) / 2]);
        }
    }
}

#[test]
fn expensive_nodes_of_a_loop_run_anywhere() {
    let g = graph().placeholder("start").placeholder("limit");
    let g = counting_loop(g, "w", ("start", "limit"), 10, |mut g, i| {
        for k in 0..4 {
            g = g.op(format!("w/d{k}"), "TestDearMix", &[i]).attr("N", 1i64).attr("salt", k as i64);
        }
        (g.op("w/mixed", "TestMix", &["w/d0", "w/d1", "w/d2", "w/d3"]).attr("N", 4i64), {
            "w/mixed".into()
        })
    });
    let s = session(&g.build());
    let want = (0..200).fold(0i32, |sum, i| {
        let parts: Vec<i32> = (0..4).map(|k| ferroflow_testing::mix(k, &[i]).0).collect();
        sum.wrapping_add(ferroflow_testing::mix(0, &parts).0)
    });
    for _ in 0..5 {
        assert_eq!(ints(&s, &[("start", 0), ("limit", 200)], &["w/sum"]).unwrap(), [want]);
    }
}

/// sum over i in 0..limit of the sum over j in i..limit of j.
fn nested_loops(outer: i64, inner: i64) -> GraphBuilder {
    let g = graph().placeholder("start").placeholder("limit");
    counting_loop(g, "o", ("start", "limit"), outer, |g, i| {
        (counting_loop(g, "in", (i, "o/limit"), inner, plain), "in/sum".into())
    })
}

#[test]
fn loops_nest() {
    for (outer, inner) in [(1, 1), (1, 10), (10, 1), (10, 10), (2, 3)] {
        let s = session(&nested_loops(outer, inner).build());
        for n in [0, 1, 2, 7, 30] {
            let want: i32 = (0..n).map(|i| (i..n).sum::<i32>()).sum();
            let got = ints(&s, &[("start", 0), ("limit", n)], &["o/sum", "o/i"]).unwrap();
            assert_eq!(got, [want, n], "{n}, {outer} and {inner} at once");
        }
    }
}

#[test]
fn a_loop_in_the_branch_not_taken_is_dead_and_says_so() {
    for parallel in [1, 10] {
        let g = cond().constant("three", 3).switch("l", "three", "p");
        let g = counting_loop(g, "w", ("s1:1", "l:1"), parallel, plain)
            .op("then2", "TestAdd", &["w/i", "w/sum"])
            .op("n", "TestCount", &["^then2"])
            .merge("m2", &["then2", "else"])
            // Waits for the loop, which is dead.
            .merge("both", &["then2", "w/i"])
            .merge("m3", &["both", "else", "^n"])
            .build();
        let s = session(&g);
        assert_eq!(run_cond(&s, true, "m2").unwrap(), [6]);
        assert_eq!(run_cond(&s, false, "m2").unwrap(), [9]);
        assert_eq!(run_cond(&s, false, "m3").unwrap(), [9]);
        assert_eq!(run_cond(&s, true, "w/i").unwrap(), [3]);
        assert_eq!(run_cond(&s, false, "then2").unwrap_err().code(), Code::Internal);
    }
}

#[test]
fn a_nested_loop_in_the_branch_not_taken_is_dead_too() {
    let g = cond().constant("three", 3).switch("l", "three", "p");
    let g = counting_loop(g, "o", ("s1:1", "l:1"), 4, |g, i| {
        (counting_loop(g, "in", (i, "o/limit"), 4, plain), "in/sum".into())
    })
    .merge("m2", &["o/sum", "else"])
    .merge("dead", &["o/sum", "o/i"])
    .merge("m3", &["dead", "else", "^o/sum"])
    .build();
    let s = session(&g);
    assert_eq!(run_cond(&s, true, "m2").unwrap(), [3 + 2]);
    assert_eq!(run_cond(&s, false, "m2").unwrap(), [9]);
    assert_eq!(run_cond(&s, false, "m3").unwrap(), [9]);
}

#[test]
fn a_cond_in_a_loop_body_takes_a_branch_each_time() {
    // Adds i when i < 3, else 100.
    let g = graph().placeholder("start").placeholder("limit").constant("three", 3);
    let g = g.enter_constant("w/three", "three", "w", 10);
    let g = counting_loop(g, "w", ("start", "limit"), 10, |g, i| {
        let g = g
            .op("w/q", "TestLess", &[i, "w/three"])
            .switch("w/c", i, "w/q")
            .constant_after("w/hundred", "^w/c_f", 100)
            .op("w/c_f", "Identity", &["w/c"])
            .t()
            .merge("w/picked", &["w/c:1", "w/hundred"]);
        (g, "w/picked".into())
    });
    let s = session(&g.build());
    let got = ints(&s, &[("start", 0), ("limit", 5)], &["w/sum"]).unwrap();
    assert_eq!(got, [1 + 2 + 100 + 100]);
}

#[test]
fn an_error_in_a_loop_ends_it() {
    let g = graph().placeholder("start").placeholder("limit").constant("three", 3);
    let g = g.enter_constant("w/three", "three", "w", 10);
    let g = counting_loop(g, "w", ("start", "limit"), 10, |g, i| {
        let g = g
            .op("w/q", "TestLess", &[i, "w/three"])
            .switch("w/c", i, "w/q")
            .op("w/c_f", "Identity", &["w/c"])
            .t()
            .op("w/bad", "TestFail", &["^w/c_f"])
            .merge("w/picked", &["w/c:1", "w/bad"]);
        (g, "w/picked".into())
    });
    let s = session(&g.build());
    assert_eq!(ints(&s, &[("start", 0), ("limit", 3)], &["w/sum"]).unwrap(), [3]);
    for _ in 0..3 {
        let e = ints(&s, &[("start", 0), ("limit", 50)], &["w/sum"]).unwrap_err();
        assert_eq!(e.message(), "no\n\t [[{{node w/bad}}]]");
    }
}

#[test]
fn a_step_that_fails_in_a_loop_leaves_nothing_behind() {
    // A large value goes around the loop. Once the step has failed, nothing may hold it.
    let g = graph()
        .dtype(DType::Float)
        .placeholder("x")
        .enter("e", "x", "w", 10)
        .merge("m", &["e", "next"])
        .op("bad", "TestFail", &["^m"])
        .op("id", "Identity", &["m", "^bad"])
        .t()
        .next_iteration("next", "id")
        .op("t", "NoOp", &["^next"])
        .build();
    let s = session(&g);
    let mut x = Tensor::vector(&[0.0f32; 64]);
    for _ in 0..3 {
        let e = error_of(s.run_blocking(request(&[("x", x.clone())], &[], &["next"])));
        assert_eq!(e.code(), Code::OutOfRange);
    }
    drop(s);
    assert!(x.is_unique());
}

#[test]
fn an_exit_that_is_alive_in_every_iteration_does_no_harm() {
    // TensorFlow writes no loop like this, but a graph from outside may contain one.
    let g = graph().placeholder("start").placeholder("limit");
    let g = counting_loop(g, "w", ("start", "limit"), 3, plain)
        .exit("w/often", "w/i_m")
        .op("late", "TestLater", &["w/i"])
        .op("y", "TestAdd", &["w/often", "late"])
        .merge("m", &["w/often", "late"])
        .op("z", "TestMix", &["w/i", "w/sum", "^w/often", "^m"])
        .attr("N", 2i64)
        .build();
    let s = session(&g);
    for _ in 0..20 {
        let run = |n: i32, fetch: &str| ints(&s, &[("start", 0), ("limit", n)], &[fetch]);
        assert_eq!(run(0, "y").unwrap(), [0]);
        for fetch in ["y", "m", "z"] {
            // Any outcome is fine, as long as the step ends.
            if let Err(e) = run(20, fetch) {
                assert!(matches!(e.code(), Code::InvalidArgument | Code::Internal), "{e}");
            }
        }
        assert_eq!(run(20, "w/sum").unwrap(), [190]);
    }
}

#[test]
fn frames_that_do_not_fit_are_refused() {
    let two = graph()
        .constant("x", 1)
        .enter("a", "x", "f", 1)
        .enter("b", "x", "g", 1)
        .op("y", "TestAdd", &["a", "b"])
        .exit("z", "y")
        .build();
    let e = failure(&two, &["z"]);
    assert_eq!(e.code(), Code::InvalidArgument);
    assert!(e.message().contains("{{node y}} has inputs from different frames"), "{e}");
    let none = graph().constant("x", 1).exit("z", "x").build();
    assert_eq!(failure(&none, &["z"]).code(), Code::InvalidArgument);
    let zero = graph().constant("x", 1).enter("a", "x", "f", 0).exit("z", "a").build();
    assert_eq!(failure(&zero, &["z"]).code(), Code::InvalidArgument);
}
