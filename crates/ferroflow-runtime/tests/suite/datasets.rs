//! Data pipelines that run functions: order, ends, errors, cancellation, bounds.

use crate::common::*;
use ferroflow_core::{CancelToken, Code, DType, PartialShape, Result, Tensor, err};
use ferroflow_graph::GraphDef;
use ferroflow_runtime::{SessionOptions, Task, TaskSession};
use ferroflow_testing::{GraphBuilder, func, function, graph};
use std::sync::Arc;

const LONG: DType = DType::Int64;

/// Sets the attributes for elements of one scalar int64 on the last node.
fn longs(g: GraphBuilder) -> GraphBuilder {
    g.attr("output_types", vec![LONG]).attr("output_shapes", vec![PartialShape::scalar()])
}

/// `name` is 0, 1, … `n` - 1.
fn range(g: GraphBuilder, name: &str, n: i64) -> GraphBuilder {
    let [from, to, by] = ["from", "to", "by"].map(|part| format!("{name}_{part}"));
    let g = g.constant(&from, 0i64).constant(&to, n).constant(&by, 1i64);
    longs(g.op(name, "RangeDataset", &[&from, &to, &by]))
}

/// Adds `name`: `op` of dataset `of`, with function `f` and the scalars `extra` after it.
fn with_function(
    g: GraphBuilder,
    name: &str,
    op: &str,
    of: &str,
    (attr, f): (&str, &str),
    extra: &[&str],
) -> GraphBuilder {
    let inputs: Vec<&str> = [of].into_iter().chain(extra.iter().copied()).collect();
    let g = g.op(name, op, &inputs).attr(attr, func(f)).attr("Targuments", Vec::<DType>::new());
    longs(g)
}

/// An iterator over dataset `of`: `init` starts it, `next` is its next element.
fn iterator(g: GraphBuilder, of: &str) -> GraphDef {
    let g = g.op("iterator", "IteratorV2", &[]).attr("shared_name", "").attr("container", "");
    let g = longs(g).op("init", "MakeIterator", &[of, "iterator"]);
    longs(g.op("next", "IteratorGetNext", &["iterator"])).build()
}

/// `double(x) = x + x`, `is_small(x) = x < 3`, `never(x)`, `fails_at_2(x)`, `upto(x)`: 0..x.
fn library() -> GraphBuilder {
    let plain = |name: &str, out: &str, result: &str, body: GraphBuilder| {
        let result = format!("r: {result}");
        function(name, &["x: int64"], &[&result], &[("r", out)], body)
    };
    let g = graph().dtype(LONG);
    let double = graph().op("y", "AddV2", &["x", "x"]).attr("T", LONG);
    let less = |n: i64| {
        let g = graph().constant("n", n).op("y", "Less", &["x", "n:output:0"]);
        g.attr("T", LONG)
    };
    let fails = graph()
        .constant("two", 2i64)
        .op("off", "Sub", &["x", "two:output:0"])
        .attr("T", LONG)
        .op("y", "FloorDiv", &["x", "off:z:0"])
        .attr("T", LONG);
    let upto = graph().constant("zero", 0i64).constant("one", 1i64);
    let upto = longs(upto.op("y", "RangeDataset", &["zero:output:0", "x", "one:output:0"]));
    g.function(plain("double", "y:z:0", "int64", double))
        .function(plain("is_small", "y:z:0", "bool", less(3)))
        .function(plain("never", "y:z:0", "bool", less(-1)))
        .function(plain("fails_at_2", "y:z:0", "int64", fails))
        .function(plain("upto", "y:handle:0", "variant", upto))
}

fn started(def: &GraphDef) -> TaskSession {
    let s = session(def);
    s.run_blocking(request(&[], &[], &["init"])).unwrap();
    s
}

fn next(s: &TaskSession) -> Result<i64> {
    Ok(scalars::<i64>(s, &[], &["next"])?[0])
}

/// All elements up to the end.
fn all(def: &GraphDef) -> Vec<i64> {
    let s = started(def);
    let mut got = Vec::new();
    loop {
        match next(&s) {
            Ok(x) => got.push(x),
            Err(e) => {
                assert_eq!(e.code(), Code::OutOfRange, "{e}");
                assert_eq!(e.message(), "End of sequence\n\t [[{{node next}}]]");
                return got;
            }
        }
    }
}

#[test]
fn elements_come_in_order_and_then_the_end() {
    let g = range(library(), "numbers", 5);
    let g = with_function(g, "doubled", "MapDataset", "numbers", ("f", "double"), &[]);
    assert_eq!(all(&iterator(g, "doubled")), [0, 2, 4, 6, 8]);
}

#[test]
fn calls_at_the_same_time_keep_the_order() {
    let g = range(library(), "numbers", 200).constant("calls", 7i64);
    let op = "ParallelMapDatasetV2";
    let g = with_function(g, "doubled", op, "numbers", ("f", "double"), &["calls"]);
    let want: Vec<i64> = (0..200).map(|x| 2 * x).collect();
    assert_eq!(all(&iterator(g, "doubled")), want);
    let g = range(library(), "numbers", 200).constant("calls", 7i64);
    let g = with_function(g, "doubled", op, "numbers", ("f", "double"), &["calls"])
        .attr("deterministic", "false");
    let mut got = all(&iterator(g, "doubled"));
    got.sort();
    assert_eq!(got, want);
}

#[test]
fn interleaved_datasets_take_turns_alike_in_the_background_or_not() {
    let of = |parallel: bool| {
        let g = range(library(), "numbers", 5).constant("cycle", 2i64).constant("block", 2i64);
        let (op, extra): (_, &[&str]) = if parallel {
            ("ParallelInterleaveDatasetV3", &["cycle", "block", "cycle"])
        } else {
            ("InterleaveDataset", &["cycle", "block"])
        };
        all(&iterator(with_function(g, "mixed", op, "numbers", ("f", "upto"), extra), "mixed"))
    };
    assert_eq!(of(false), [0, 0, 1, 0, 1, 2, 0, 1, 2, 3]);
    assert_eq!(of(true), of(false));
}

#[test]
fn an_error_takes_the_place_of_its_element() {
    let g = range(library(), "numbers", 4);
    let g = with_function(g, "divided", "MapDataset", "numbers", ("f", "fails_at_2"), &[]);
    let g = g.constant("ahead", 2i64);
    let g = longs(g.op("ready", "PrefetchDataset", &["divided", "ahead"]));
    let s = started(&iterator(g, "ready"));
    assert_eq!(next(&s).unwrap(), 0);
    assert_eq!(next(&s).unwrap(), -1);
    let e = next(&s).unwrap_err();
    assert_eq!(e.code(), Code::InvalidArgument);
    assert!(e.message().contains("[[{{node y}}]]"), "{e}");
    assert_eq!(next(&s).unwrap(), 3);
}

#[test]
fn a_shuffle_is_tensorflows() {
    let g = range(graph(), "numbers", 10);
    let g = g.constant("buffer", 4i64).constant("seed", 87654321i64).constant("seed2", 5i64);
    let g = longs(g.op("mixed", "ShuffleDataset", &["numbers", "buffer", "seed", "seed2"]));
    assert_eq!(all(&iterator(g, "mixed")), SHUFFLED);
}

/// The result of TensorFlow 2.15.1.
const SHUFFLED: [i64; 10] = [1, 4, 5, 6, 2, 7, 0, 3, 9, 8];

#[test]
fn the_state_of_a_function_begins_with_its_iterator() {
    let body = graph().op("n", "TestCount", &[]).op("y", "Cast", &["n:n:0"]);
    let body = body.attr("SrcT", DType::Int32).attr("DstT", LONG);
    let count = function("count", &["x: int64"], &["r: int64"], &[("r", "y:y:0")], body);
    let g = range(graph().function(count), "numbers", 2).constant("twice", 2i64);
    let g = with_function(g, "counts", "MapDataset", "numbers", ("f", "count"), &[]);
    let def = iterator(longs(g.op("again", "RepeatDataset", &["counts", "twice"])), "again");
    let s = session(&def);
    for _ in 0..2 {
        s.run_blocking(request(&[], &[], &["init"])).unwrap();
        let got: Vec<i64> = (0..4).map(|_| next(&s).unwrap()).collect();
        assert_eq!(got, [1, 2, 3, 4]);
    }
}

#[test]
fn an_iterator_without_a_dataset_says_so() {
    let s = session(&iterator(range(graph(), "numbers", 1), "numbers"));
    let e = next(&s).unwrap_err();
    assert_eq!(e.code(), Code::FailedPrecondition);
    assert!(e.message().contains("the iterator has not been initialized"), "{e}");
}

#[test]
fn a_dataset_of_other_types_is_refused() {
    let g = range(graph(), "numbers", 1).constant("x", 1.5f32).op("other", "TensorDataset", &["x"]);
    let g = g
        .attr("Toutput_types", vec![DType::Float])
        .attr("output_shapes", vec![PartialShape::scalar()]);
    let s = session(&iterator(g, "other"));
    let e = error_of(s.run_blocking(request(&[], &[], &["init"])));
    assert_eq!(e.code(), Code::InvalidArgument);
    assert!(e.message().contains("component 0: expected int64 but got float."), "{e}");
}

/// A step that waits for an element that never comes ends when it is cancelled. Another step can
/// then use the iterator.
fn ends_when_cancelled(def: &GraphDef, wait: impl FnOnce(), task: &Arc<Task>) {
    let s = TaskSession::new(task.clone(), def, SessionOptions::default()).unwrap();
    s.run_blocking(request(&[], &[], &["init"])).unwrap();
    let cancel = CancelToken::new();
    let result = start(&s, request(&[], &["next"], &[]), cancel.clone());
    wait();
    cancel.cancel(err!(Cancelled, "enough"));
    let e = error_of(soon(&result));
    assert_eq!((e.code(), e.message()), (Code::Cancelled, "enough"));
    let (closed, done) = std::sync::mpsc::channel();
    s.close(Box::new(move || closed.send(()).unwrap()));
    soon(&done);
}

#[test]
fn a_filter_that_nothing_passes_can_be_cancelled() {
    let g = range(library(), "numbers", i64::MAX);
    let g = with_function(g, "none", "FilterDataset", "numbers", ("predicate", "never"), &[]);
    ends_when_cancelled(&iterator(g, "none"), || {}, &task());
}

/// `numbers` through a function that never ends, by `op`.
fn blocked(op: &str, extra: &[&str]) -> GraphDef {
    let body = graph().op("wait", "TestBlock", &[]).attr("N", 0i64);
    let body = body.op("y", "Cast", &["wait:y:0"]).attr("SrcT", DType::Int32).attr("DstT", LONG);
    let f = function("block", &["x: int64"], &["r: int64"], &[("r", "y:y:0")], body);
    let g = range(graph().function(f), "numbers", 100).constant("calls", 3i64);
    iterator(with_function(g, "waiting", op, "numbers", ("f", "block"), extra), "waiting")
}

#[test]
fn a_step_whose_function_waits_can_be_cancelled() {
    let (task, started) = blocking_task();
    ends_when_cancelled(&blocked("MapDataset", &[]), || soon(&started), &task);
}

#[test]
fn background_calls_are_bounded_and_end_with_their_iterator() {
    let (task, begun) = blocking_task();
    let def = blocked("ParallelMapDatasetV2", &["calls"]);
    ends_when_cancelled(
        &def,
        || {
            for _ in 0..3 {
                soon(&begun);
            }
        },
        &task,
    );
    // The session and its iterator are gone: no fourth call was ever started.
    assert!(begun.try_recv().is_err());
}

#[test]
fn datasets_nest_only_so_deep() {
    let chain = |n: usize| {
        let mut g = range(graph(), "d0", 3).constant("count", 2i64);
        for i in 0..n {
            g = longs(g.op(format!("d{}", i + 1), "TakeDataset", &[&format!("d{i}"), "count"]));
        }
        iterator(g, &format!("d{n}"))
    };
    assert_eq!(all(&chain(490)), [0, 1]);
    let s = session(&chain(600));
    let e = error_of(s.run_blocking(request(&[], &[], &["init"])));
    assert!(e.message().contains("datasets are nested deeper than"), "{e}");
}

#[test]
fn a_function_that_returns_datasets_of_itself_is_stopped() {
    let body = range(graph(), "one", 1);
    let body = {
        let [from, to, by] = ["one_from:output:0", "one_to:output:0", "one_by:output:0"];
        let mut def = body.build();
        def.nodes.last_mut().unwrap().inputs = vec![from.into(), to.into(), by.into()];
        let mut g = graph();
        for node in def.nodes {
            let inputs: Vec<&str> = node.inputs.iter().map(String::as_str).collect();
            g = g.op(node.name.as_str(), &node.op, &inputs);
            for (name, value) in node.attrs.iter() {
                g = g.attr(name, value.clone());
            }
        }
        with_function(g, "y", "FlatMapDataset", "one:handle:0", ("f", "again"), &[])
    };
    let again = function("again", &["x: int64"], &["r: variant"], &[("r", "y:handle:0")], body);
    let g = range(graph().function(again), "numbers", 1);
    let g = with_function(g, "endless", "FlatMapDataset", "numbers", ("f", "again"), &[]);
    let s = started(&iterator(g, "endless"));
    let e = next(&s).unwrap_err();
    assert!(e.message().contains("datasets are nested deeper than"), "{e}");
}

#[test]
fn a_one_shot_iterator_starts_itself_once() {
    let body = graph().constant("n", 2i64);
    let body = body.constant("from", 0i64).constant("by", 1i64);
    let y = body.op("y", "RangeDataset", &["from:output:0", "n:output:0", "by:output:0"]);
    let make = function("make", &[], &["r: variant"], &[("r", "y:handle:0")], longs(y));
    let g = graph().function(make).op("iterator", "OneShotIterator", &[]);
    let g = longs(g.attr("dataset_factory", func("make")));
    let def = longs(g.op("next", "IteratorGetNext", &["iterator"])).build();
    let s = session(&def);
    assert_eq!((next(&s).unwrap(), next(&s).unwrap()), (0, 1));
    assert_eq!(next(&s).unwrap_err().code(), Code::OutOfRange);
}

#[test]
fn a_fed_handle_names_an_iterator() {
    let mut g = range(graph(), "numbers", 3).dtype(DType::String).placeholder("which");
    g = g.op("found", "IteratorFromStringHandleV2", &["which"]);
    g = longs(g.op("other", "IteratorGetNext", &["found"]));
    let mut def = iterator(g, "numbers");
    def.nodes.extend(graph().op("handle", "IteratorToStringHandle", &["iterator"]).build().nodes);
    let s = started(&def);
    let handle = s.run_blocking(request(&[], &["handle"], &[])).unwrap().tensors.remove(0);
    let got = scalars::<i64>(&s, &[("which", handle)], &["other"]).unwrap();
    assert_eq!((got[0], next(&s).unwrap()), (0, 1));
    let bad = [("which", Tensor::string(vec![0xff]))];
    let e = error_of(scalars::<i64>(&s, &bad, &["other"]));
    assert!(e.message().contains("Could not parse string_handle"), "{e}");
}

#[test]
fn a_reduction_runs_to_the_end() {
    let body = graph().op("y", "AddV2", &["s", "x"]).attr("T", LONG);
    let add = function("add", &["s: int64", "x: int64"], &["r: int64"], &[("r", "y:z:0")], body);
    let g = range(graph().function(add), "numbers", 1000).constant("start", 5i64);
    let g = g.op("sum", "ReduceDataset", &["numbers", "start"]).attr("f", func("add"));
    let g = g.attr("Tstate", vec![LONG]).attr("Targuments", Vec::<DType>::new());
    let s = session(&longs(g).build());
    assert_eq!(scalars::<i64>(&s, &[], &["sum"]).unwrap(), [5 + 499_500]);
}

#[test]
fn a_saved_iterator_goes_on_in_the_order_that_its_shuffles_had() {
    // With both seeds 0, each session has another order.
    let g = range(graph().dtype(LONG), "numbers", 20);
    let g = g.constant("buffer", 7i64).constant("seed", 0i64).constant("epochs", 3i64);
    let shuffle = ["numbers", "buffer", "seed", "seed"];
    let g = longs(g.op("shuffled", "ShuffleDataset", &shuffle));
    let g = longs(g.op("repeated", "RepeatDataset", &["shuffled", "epochs"]));
    let mut def = iterator(g, "repeated");
    let more = graph()
        .op("save", "SerializeIterator", &["iterator"])
        .op("saved", "Placeholder", &[])
        .attr("dtype", DType::Variant)
        .op("restore", "DeserializeIterator", &["iterator", "saved"])
        .build();
    def.nodes.extend(more.nodes);
    let rest = |s: &TaskSession| -> Vec<i64> { std::iter::from_fn(|| next(s).ok()).collect() };
    let s = started(&def);
    // The save is in the middle of the second epoch.
    for _ in 0..27 {
        next(&s).unwrap();
    }
    let saved = s.run_blocking(request(&[], &["save"], &[])).unwrap().tensors.remove(0);
    let want = rest(&s);
    assert_eq!(want.len(), 33);
    for s in [s, started(&def)] {
        s.run_blocking(request(&[("saved", saved.clone())], &[], &["restore"])).unwrap();
        assert_eq!(rest(&s), want);
    }
}
