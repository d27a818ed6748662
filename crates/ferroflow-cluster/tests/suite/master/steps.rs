//! Steps whose nodes are on several tasks.

use crate::master::fixture::*;
use ferroflow_core::{Code, DType, PartialShape, Tensor};
use ferroflow_graph::{AttrList, GraphDef};
use ferroflow_testing::{func, function, graph};

/// A graph of values and control edges, node `i` on `devices[i % len]`; the fetch is `last`.
fn tangle(devices: &[&str]) -> GraphDef {
    let mut next = 0;
    let mut device = || {
        next += 1;
        devices[next % devices.len()]
    };
    let mut b = graph().dtype(DType::Float).constant("n0", 1.5f32).device(device());
    b = b.constant("n1", -0.25f32).device(device());
    for i in 2..40usize {
        let (a, c) = (format!("n{}", i - 1), format!("n{}", i / 2));
        let after = format!("^n{}", i / 3);
        let op = ["AddV2", "Mul", "Sub", "Maximum"][i % 4];
        let inputs = match i % 5 {
            0 => vec![a.as_str(), &c, &after],
            _ => vec![&*a, &*c],
        };
        b = b.op(format!("n{i}"), op, &inputs).t().device(device());
    }
    b.op("last", "Tanh", &["n39"]).t().device(device()).build()
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_compute_the_same_as_the_whole_graph() {
    let cluster = Cluster::start();
    let whole = cluster.session(WORKER0, &tangle(&[WORKER0])).await;
    let want = floats(&whole, &["last", "n20", "n7"]).await.unwrap();
    for devices in [&[PS, WORKER0, WORKER1][..], &[WORKER1, PS], &[PS]] {
        let spread = cluster.session(WORKER0, &tangle(devices)).await;
        for _ in 0..3 {
            assert_eq!(floats(&spread, &["last", "n20", "n7"]).await.unwrap(), want);
        }
        spread.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_runs_on_two_tasks() {
    let cluster = Cluster::start();
    // while i < 10: i = i + 1 (here), x = 2 * x (on the ps), which needs the i of its iteration.
    let def = graph()
        .dtype(DType::Float)
        .constant("zero", 0f32)
        .constant("start", 1f32)
        .constant("ten", 10f32)
        .enter("i_enter", "zero", "loop", 4)
        .enter("x_enter", "start", "loop", 4)
        .enter_constant("limit", "ten", "loop", 4)
        .merge("i", &["i_enter", "i_next"])
        .merge("x", &["x_enter", "x_next"])
        .device(PS)
        .op("less", "Less", &["i", "limit"])
        .t()
        .op("cond", "LoopCond", &["less"])
        .switch("i_switch", "i", "cond")
        .switch("x_switch", "x", "cond")
        .op("i_body", "Identity", &["i_switch:1"])
        .t()
        .constant_after("one", "^i_body", 1f32)
        .op("i_more", "AddV2", &["i_body", "one"])
        .t()
        .constant_after("two", "^i_body", 2f32)
        .device(PS)
        .op("x_twice", "Mul", &["x_switch:1", "two"])
        .t()
        .device(PS)
        .op("x_more", "AddV2", &["x_twice", "i_body"])
        .t()
        .device(WORKER1)
        .next_iteration("i_next", "i_more")
        .next_iteration("x_next", "x_more")
        .device(PS)
        .exit("i_exit", "i_switch")
        .exit("x_exit", "x_switch")
        .device(PS)
        .build();
    let session = cluster.session(WORKER0, &def).await;
    let want = (0..10).fold(1f32, |x, i| 2.0 * x + i as f32);
    for _ in 0..3 {
        assert_eq!(floats(&session, &["i_exit", "x_exit"]).await.unwrap(), [10.0, want]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_are_shared_by_all_sessions_on_their_device() {
    let cluster = Cluster::start();
    let def = |extra: &str| {
        graph()
            .dtype(DType::Float)
            .op("v", "VariableV2", &[])
            .attr("dtype", DType::Float)
            .attr("shape", PartialShape::scalar())
            .device(PS)
            .constant("one", 1f32)
            .op("set", "Assign", &["v", "one"])
            .t()
            .op("add", "AssignAdd", &["v", "one"])
            .t()
            .op("read", "Identity", &["v"])
            .t()
            .device(extra)
            .build()
    };
    let first = cluster.session(WORKER0, &def(WORKER0)).await;
    first.run(vec![], &[], &["set"], Some(FOREVER)).await.unwrap();
    let second = cluster.session(WORKER1, &def(PS)).await;
    second.run(vec![], &[], &["add"], Some(FOREVER)).await.unwrap();
    assert_eq!(floats(&first, &["read"]).await.unwrap(), [2.0]);
    assert_eq!(floats(&second, &["read"]).await.unwrap(), [2.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_steps_of_a_session_share_a_queue() {
    let cluster = Cluster::start();
    let types = || AttrList::Types(vec![DType::Float]);
    let def = graph()
        .dtype(DType::Float)
        .op("q", "FIFOQueueV2", &[])
        .attr("component_types", types())
        .device(WORKER0)
        .constant("x", 3f32)
        .op("put", "QueueEnqueueV2", &["q", "x"])
        .attr("Tcomponents", types())
        .op("take", "QueueDequeueV2", &["q"])
        .attr("component_types", types())
        .op("there", "Neg", &["take"])
        .t()
        .device(PS)
        .build();
    let session = cluster.session(WORKER0, &def).await;
    // The first step runs on the master's own task alone, the second does not.
    session.run(vec![], &[], &["put"], Some(FOREVER)).await.unwrap();
    assert_eq!(floats(&session, &["there"]).await.unwrap(), [-3.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_and_fetches_go_through_the_master() {
    let cluster = Cluster::start();
    let def = graph()
        .dtype(DType::Float)
        .placeholder("x")
        .op("y", "Neg", &["x"])
        .t()
        .device(PS)
        .op("z", "AddV2", &["x", "y"])
        .t()
        .device(WORKER1)
        .build();
    let session = cluster.session(WORKER0, &def).await;
    let big = Tensor::from_slice([300, 1000], &[2f32; 300_000]).unwrap();
    let feeds = vec![("x:0".to_string(), big.clone())];
    let got = session.run(feeds, &["y:0", "z:0"], &[], Some(FOREVER)).await.unwrap();
    assert_eq!(got[0].shape(), big.shape());
    assert!(got[0].as_slice::<f32>().unwrap().iter().all(|v| *v == -2.0));
    assert!(got[1].as_slice::<f32>().unwrap().iter().all(|v| *v == 0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_no_task_has_is_refused() {
    let cluster = Cluster::start();
    let def = graph().constant("c", 1f32).device("/job:ps/task:5").build();
    let e = cluster.try_session(WORKER0, &def).await.err().unwrap();
    assert_eq!(e.code(), Code::InvalidArgument);
    assert!(e.message().contains("/job:worker/replica:0/task:1/device:CPU:0"), "{e}");
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_use_variables_of_other_tasks() {
    let cluster = Cluster::start();
    let read = |b: ferroflow_testing::GraphBuilder| {
        b.op("r", "ReadVariableOp", &["v"]).attr("dtype", DType::Float)
    };
    let less = function(
        "less",
        &["x: float", "v: resource"],
        &["go: bool"],
        &[("go", "l:z:0")],
        graph()
            .dtype(DType::Float)
            .constant("limit", 100f32)
            .op("l", "Less", &["x", "limit:output:0"])
            .t(),
    );
    let add = function(
        "add",
        &["x: float", "v: resource"],
        &["y: float", "w: resource"],
        &[("y", "s:z:0"), ("w", "v")],
        read(graph().dtype(DType::Float)).op("s", "AddV2", &["x", "r:value:0"]).t(),
    );
    let bump = function(
        "bump",
        &["x: float", "v: resource"],
        &["y: float"],
        &[("y", "i:output:0")],
        graph()
            .dtype(DType::Float)
            .op("a", "AssignAddVariableOp", &["v", "x"])
            .attr("dtype", DType::Float)
            .op("i", "Identity", &["x"])
            .t(),
    );
    let keep =
        function("keep", &["x: float", "v: resource"], &["y: float"], &[("y", "x")], graph());
    let types = || AttrList::Types(vec![DType::Float, DType::Resource]);
    let def = graph()
        .dtype(DType::Float)
        .function(less)
        .function(add)
        .function(bump)
        .function(keep)
        .op("v", "VarHandleOp", &[])
        .attr("dtype", DType::Float)
        .attr("shape", PartialShape::scalar())
        .attr("shared_name", "v")
        .device(PS)
        .constant("ten", 10f32)
        .op("set", "AssignVariableOp", &["v", "ten"])
        .attr("dtype", DType::Float)
        .op("get", "ReadVariableOp", &["v"])
        .attr("dtype", DType::Float)
        .op("pred", "Placeholder", &[])
        .attr("dtype", DType::Bool)
        .op("if", "If", &["pred", "ten", "v"])
        .attr("Tcond", DType::Bool)
        .attr("Tin", types())
        .attr("Tout", AttrList::Types(vec![DType::Float]))
        .attr("then_branch", func("bump"))
        .attr("else_branch", func("keep"))
        .attr("_lower_using_switch_merge", true)
        .device(WORKER1)
        .op("while", "While", &["ten", "v"])
        .attr("T", types())
        .attr("cond", func("less"))
        .attr("body", func("add"))
        .attr("_lower_using_switch_merge", true)
        .op("call", "StatefulPartitionedCall", &["ten", "v"])
        .attr("Tin", types())
        .attr("Tout", AttrList::Types(vec![DType::Float]))
        .attr("f", func("bump"))
        .device(WORKER1)
        .build();
    let session = cluster.session(WORKER0, &def).await;
    session.run(vec![], &[], &["set"], Some(FOREVER)).await.unwrap();
    assert_eq!(floats(&session, &["while"]).await.unwrap(), [100.0]);
    for (pred, holds) in [(false, 10.0), (true, 20.0), (false, 20.0)] {
        let feeds = vec![("pred:0".to_string(), Tensor::scalar(pred))];
        let got = session.run(feeds, &["if"], &[], Some(FOREVER)).await.unwrap();
        assert_eq!(got[0].scalar_value::<f32>().unwrap(), 10.0);
        assert_eq!(floats(&session, &["get"]).await.unwrap(), [holds]);
    }
    // Once for its effect, once for its result.
    session.run(vec![], &[], &["call"], Some(FOREVER)).await.unwrap();
    assert_eq!(floats(&session, &["call"]).await.unwrap(), [10.0]);
    assert_eq!(floats(&session, &["get"]).await.unwrap(), [40.0]);
}
