//! Graphs without control flow: order, fan-out, errors, feeds and fetches.

use crate::common::*;
use ferroflow_core::{CancelToken, Code, DType, Tensor};
use ferroflow_runtime::{RunOptions, RunRequest};
use ferroflow_testing::{GraphBuilder, graph};

#[test]
fn a_chain_passes_its_value_on() {
    let mut g = graph().placeholder("x0").constant("one", 1);
    for i in 0..1000 {
        let from = format!("x{i}");
        g = g.op(format!("x{}", i + 1), "TestAdd", &[&from, "one"]);
    }
    assert_eq!(fetch(&g.build(), &[("x0", 5)], "x1000"), 1005);
}

#[test]
fn a_diamond_joins_both_ways() {
    let g = graph()
        .placeholder("x")
        .constant("one", 1)
        .op("left", "TestAdd", &["x", "one"])
        .op("right", "TestSub", &["x", "one"])
        .op("join", "TestAdd", &["left", "right"])
        .op("twice", "TestAdd", &["x", "x"])
        .build();
    let s = session(&g);
    assert_eq!(ints(&s, &[("x", 7)], &["join", "left", "twice"]).unwrap(), [14, 8, 14]);
    // The same plan again, with another value.
    assert_eq!(ints(&s, &[("x", 1)], &["join", "left", "twice"]).unwrap(), [2, 2, 2]);
}

#[test]
fn a_wide_fan_out_reaches_everyone() {
    let mut g = graph().placeholder("x");
    let names: Vec<String> = (0..500).map(|i| format!("n{i}")).collect();
    for (i, name) in names.iter().enumerate() {
        let op = if i % 7 == 0 { "TestDearMix" } else { "TestMix" };
        g = g.op(name, op, &["x"]).attr("N", 1i64).attr("salt", i as i64);
    }
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let g = g.op("sum", "TestMix", &all).attr("N", 500i64).build();
    let parts: Vec<i32> = (0..500).map(|i| ferroflow_testing::mix(i, &[3]).0).collect();
    assert_eq!(fetch(&g, &[("x", 3)], "sum:1"), ferroflow_testing::mix(0, &parts).1);
}

#[test]
fn control_edges_order_effects() {
    // `n` counts its runs; `after` must see the write of `set`.
    let g = graph()
        .op("n", "TestCount", &[])
        .constant_after("c", "^n", 1)
        .op("go", "NoOp", &["^c", "^n"])
        .op("out", "TestAdd", &["c", "n"])
        .build();
    let s = session(&g);
    assert_eq!(ints(&s, &[], &["out"]).unwrap(), [2]);
    s.run_blocking(request(&[], &[], &["go"])).unwrap();
    assert_eq!(ints(&s, &[], &["out"]).unwrap(), [4]);
}

#[test]
fn stateful_kernels_are_shared_by_the_plans_of_a_session() {
    let g = graph().op("n", "TestCount", &[]).op("m", "TestCount", &[]).build();
    let s = session(&g);
    assert_eq!(ints(&s, &[], &["n"]).unwrap(), [1]);
    assert_eq!(ints(&s, &[], &["n", "m"]).unwrap(), [2, 1]);
    s.run_blocking(request(&[], &[], &["n"])).unwrap();
    assert_eq!(ints(&s, &[], &["m", "n"]).unwrap(), [2, 4]);
    // Another session has a variable of its own.
    assert_eq!(ints(&session(&g), &[], &["n"]).unwrap(), [1]);
}

#[test]
fn targets_run_and_the_rest_does_not() {
    let g = graph()
        .op("wanted", "TestCount", &[])
        .op("unwanted", "TestFail", &[])
        .op("go", "NoOp", &["^wanted"])
        .build();
    let s = session(&g);
    let output = s.run_blocking(request(&[], &[], &["go"])).unwrap();
    assert!(output.tensors.is_empty());
    assert_eq!(ints(&s, &[], &["wanted"]).unwrap(), [2]);
}

#[test]
fn feeds_replace_any_tensor_and_must_fit() {
    let g = graph()
        .op("boom", "TestFail", &[])
        .constant("one", 1)
        .op("y", "TestAdd", &["boom", "one"])
        .build();
    let s = session(&g);
    assert_eq!(ints(&s, &[("boom:0", 4)], &["y:0"]).unwrap(), [5]);
    let wrong = s.run_blocking(request(&[("boom", Tensor::scalar(1.0f32))], &["y"], &[]));
    let e = error_of(wrong);
    assert_eq!(e.code(), Code::InvalidArgument);
    assert!(e.message().contains("'boom'") && e.message().contains("float"), "{e}");
    let e = error_of(s.run_blocking(request(&[], &["nothing"], &[])));
    assert_eq!(e.code(), Code::NotFound);
    let e = error_of(s.run_blocking(request(&[], &[], &[])));
    assert_eq!(e.message(), "Must specify at least one target to fetch or execute.");
}

#[test]
fn the_same_tensor_can_be_fetched_twice() {
    let g = graph().placeholder("x").op("y", "TestAdd", &["x", "x"]).build();
    assert_eq!(ints(&session(&g), &[("x", 2)], &["y", "y:0", "y"]).unwrap(), [4, 4, 4]);
}

#[test]
fn errors_name_the_node() {
    let g = graph()
        .op("a/bad", "TestFail", &[])
        .attr("message", "it is empty")
        .op("y", "TestAdd", &["a/bad", "a/bad"])
        .build();
    let e = failure(&g, &["y"]);
    assert_eq!(e.code(), Code::OutOfRange);
    assert_eq!(e.message(), "it is empty\n\t [[{{node a/bad}}]]");
}

#[test]
fn an_unfed_placeholder_is_named() {
    let e = failure(&graph().placeholder("x").op("y", "Identity", &["x"]).t().build(), &["y"]);
    assert!(e.message().starts_with("You must feed a value for placeholder tensor 'x'"), "{e}");
    assert!(e.message().ends_with("[[{{node x}}]]"), "{e}");
}

#[test]
fn a_kernel_cannot_be_made_twice_wrong() {
    // A node that is missing at the first run of a step may be there at the next.
    let s = session(&graph().constant("x", 1).build());
    assert!(ints(&s, &[], &["y"]).is_err());
    s.extend(&graph().op("y", "TestAdd", &["x", "x"]).build(), None).unwrap();
    assert_eq!(ints(&s, &[], &["y"]).unwrap(), [2]);
}

#[test]
fn a_panic_is_an_internal_error_and_the_session_lives() {
    let g = graph()
        .op("bad", "TestPanic", &[])
        .op("worse", "TestPanicAsync", &[])
        .op("lazy", "TestForget", &[])
        .op("odd", "TestTooMany", &[])
        .constant("x", 3)
        .build();
    let s = session(&g);
    for (node, text) in [
        ("bad", "kernel panicked: the kernel's words"),
        ("worse", "kernel panicked: the async kernel's words"),
        ("lazy", "an async kernel was dropped before it finished"),
        ("odd", "TestTooMany put out 2 values, expected 1"),
    ] {
        for _ in 0..2 {
            let e = ints(&s, &[], &[node]).unwrap_err();
            assert_eq!(e.code(), Code::Internal);
            assert_eq!(e.message(), format!("{text}\n\t [[{{{{node {node}}}}}]]"));
        }
    }
    assert_eq!(ints(&s, &[], &["x"]).unwrap(), [3]);
}

#[test]
fn async_kernels_finish_at_once_or_later() {
    for op in ["TestAtOnce", "TestLater"] {
        let mut g = graph().placeholder("x0");
        for i in 0..50 {
            let from = format!("x{i}");
            g = g.op(format!("x{}", i + 1), op, &[&from]);
        }
        let g = g.op("y", "TestAdd", &["x50", "x25"]).build();
        assert_eq!(fetch(&g, &[("x0", 4)], "y"), 8);
    }
}

#[test]
fn inputs_do_not_outlive_their_use() {
    // A kernel that only looks at its input leaves it in place. The step's state, which is kept for
    // the next step, must not keep the value.
    let g = graph()
        .placeholder("x")
        .op("look", "TestMix", &["x"])
        .attr("N", 1i64)
        .op("n", "TestCount", &["^look"])
        .build();
    let s = session(&g);
    let mut x = Tensor::scalar(1);
    for _ in 0..3 {
        s.run_blocking(request(&[("x", x.clone())], &["n"], &["look"])).unwrap();
    }
    assert!(x.is_unique());
}

#[test]
fn a_traced_step_says_what_ran() {
    let g = graph()
        .placeholder("x")
        .op("later", "TestLater", &["x"])
        .op("y", "TestMix", &["later", "x"])
        .attr("N", 2i64)
        .build();
    let s = session(&g);
    let options = RunOptions { trace: true, output_partition_graphs: true, ..Default::default() };
    let r = RunRequest { options, ..request(&[("x", Tensor::scalar(1))], &["y"], &[]) };
    let output = s.run_blocking(r).unwrap();
    let stats = output.stats.unwrap();
    let nodes = stats.nodes.lock();
    let names: Vec<&str> = nodes.iter().map(|n| n.node.as_str()).collect();
    assert_eq!(names, ["later", "y"]);
    let y = &nodes[1];
    assert_eq!((y.op.as_str(), y.inputs.len()), ("TestMix", 2));
    assert_eq!(y.outputs.len(), 2);
    assert_eq!(y.outputs[1].1, DType::Int32);
    assert!(nodes.iter().all(|n| n.start <= n.end && n.device.ends_with("CPU:0")));
    assert_eq!(output.partition_graphs.len(), 1);
    let plain = s.run_blocking(request(&[("x", Tensor::scalar(1))], &["y"], &[])).unwrap();
    assert!(plain.stats.is_none());
}

#[test]
fn a_graph_extends_one_version_at_a_time() {
    let s = session(&graph().constant("x", 1).build());
    let more = |name: &str| graph().op(name, "TestAdd", &["x", "x"]).build();
    assert_eq!(s.extend(&more("y"), Some(0)).unwrap(), 1);
    let e = s.extend(&more("z"), Some(0)).unwrap_err();
    assert_eq!(e.code(), Code::Aborted);
    assert_eq!(e.message(), "Current version is 1 but caller expected 0.");
    let e = s.extend(&more("y"), None).unwrap_err();
    assert!(e.message().contains("includes node 'y'"), "{e}");
    // Placement refuses this, after the nodes themselves were fine. Nothing of it may remain.
    let lost: GraphBuilder = graph().op("w", "TestAdd", &["x", "x"]).device("/job:elsewhere");
    assert_eq!(s.extend(&lost.build(), None).unwrap_err().code(), Code::InvalidArgument);
    s.extend(&more("w"), Some(1)).unwrap();
    assert_eq!(ints(&s, &[], &["w", "y"]).unwrap(), [2, 2]);
}

#[test]
fn many_nodes_are_shared_by_threads_and_their_sum_is_the_same() {
    const WIDE: i64 = 5000;
    let mut g = graph().placeholder("x");
    let names: Vec<String> = (0..WIDE).map(|i| format!("n{i}")).collect();
    for (i, name) in names.iter().enumerate() {
        g = g.op(name, "TestMix", &["x"]).attr("N", 1i64).attr("salt", i as i64);
    }
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let s = session(&g.op("sum", "TestMix", &all).attr("N", WIDE).build());
    for x in 0..20 {
        let parts: Vec<i32> = (0..WIDE).map(|i| ferroflow_testing::mix(i, &[x]).0).collect();
        let want = ferroflow_testing::mix(0, &parts).1;
        // On a thread that blocks, and on one that must not.
        assert_eq!(ints(&s, &[("x", x)], &["sum:1"]).unwrap(), [want]);
        let r = request(&[("x", Tensor::scalar(x))], &["sum:1"], &[]);
        let output = soon(&start(&s, r, CancelToken::new())).unwrap();
        assert_eq!(output.tensors[0].scalar_value::<i32>().unwrap(), want);
    }
}
