//! Functions: calls, branches and loops that call, recursion.

use crate::common::*;
use ferroflow_core::{Code, DType, Tensor};
use ferroflow_graph::{AttrList, AttrValue, FuncRef};
use ferroflow_testing::{GraphBuilder, func, function, graph};

const INT: DType = DType::Int32;

/// Calls `f` with `args`; one int32 result.
fn call(g: GraphBuilder, name: &str, op: &str, f: &str, args: &[&str]) -> GraphBuilder {
    g.op(name, op, args)
        .attr("f", func(f))
        .attr("Tin", vec![INT; args.len()])
        .attr("Tout", vec![INT])
}

/// `add_one(x) = x + 1`, and `add_two`, which calls it twice.
fn library() -> GraphBuilder {
    let add_one = graph().constant("one", 1).op("y", "TestAdd", &["x", "one:output:0"]);
    let body = call(graph(), "a", "PartitionedCall", "add_one", &["x"]);
    let add_two = call(body, "b", "PartitionedCall", "add_one", &["a:output:0"]);
    let int = |name: &str, out: &str, body| {
        function(name, &["x: int32"], &["r: int32"], &[("r", out)], body)
    };
    graph().function(int("add_one", "y:z:0", add_one)).function(int(
        "add_two",
        "b:output:0",
        add_two,
    ))
}

#[test]
fn calls_nest() {
    let g = call(library().placeholder("x"), "y", "PartitionedCall", "add_two", &["x"]);
    let g = call(g, "z", "StatefulPartitionedCall", "add_one", &["y"]);
    // A node may also have a function's name for its op.
    let g = g.op("w", "add_two", &["z"]).build();
    let s = session(&g);
    for x in 0..3 {
        assert_eq!(ints(&s, &[("x", x)], &["y", "z", "w"]).unwrap(), [x + 2, x + 3, x + 5]);
    }
}

#[test]
fn errors_inside_a_function_name_the_node_there() {
    let bad = graph().op("inner", "TestFail", &[]);
    let g =
        graph().function(function("bad", &["x: int32"], &["r: int32"], &[("r", "inner:x:0")], bad));
    let g = call(g.placeholder("x"), "y", "PartitionedCall", "bad", &["x"]).build();
    let e = ints(&session(&g), &[("x", 1)], &["y"]).unwrap_err();
    assert_eq!(e.code(), Code::OutOfRange);
    assert_eq!(e.message(), "no\n\t [[{{node inner}}]]");
    let missing = call(graph().constant("x", 1), "y", "PartitionedCall", "missing", &["x"]).build();
    assert_eq!(failure(&missing, &["y"]).code(), Code::NotFound);
}

#[test]
fn a_function_with_the_wrong_number_of_results_is_refused() {
    let g = library().placeholder("x");
    let g = g
        .op("y", "PartitionedCall", &["x"])
        .attr("f", func("add_one"))
        .attr("Tin", vec![INT])
        .attr("Tout", vec![INT, INT])
        .build();
    assert!(ints(&session(&g), &[("x", 1)], &["y"]).is_err());
}

#[test]
fn stateful_nodes_of_a_function_run_even_if_no_result_needs_them() {
    let body = graph().op("n", "TestCount", &[]).op("bad", "TestFail", &["^n"]).op(
        "y",
        "TestAdd",
        &["x", "x"],
    );
    let counted = function("f", &["x: int32"], &["r: int32"], &[("r", "y:z:0")], body);
    let g = call(
        graph().function(counted).placeholder("x"),
        "y",
        "StatefulPartitionedCall",
        "f",
        &["x"],
    );
    // `n` runs. `bad` does not: it is not stateful and no node needs it.
    assert_eq!(fetch(&g.build(), &[("x", 2)], "y"), 4);
}

/// `f(x) = if x < limit { f(x + 1) } else { x }`; endless unless `ends`.
fn recursive(ends: bool, op: &str) -> GraphBuilder {
    let again = graph().constant("one", 1).op("more", "TestAdd", &["x", "one:output:0"]);
    let again = call(again, "r", op, "f", &["more:z:0"]);
    let stop = graph().op("r", "Identity", &["x"]).t();
    let f = graph()
        .constant("limit", if ends { 200 } else { i32::MAX })
        .op("less", "TestLess", &["x", "limit:output:0"])
        .op("r", "StatelessIf", &["less:z:0", "x"])
        .attr("Tcond", DType::Bool)
        .attr("Tin", vec![INT])
        .attr("Tout", vec![INT])
        .attr("then_branch", func("again"))
        .attr("else_branch", func("stop"));
    let int = |name: &str, body| {
        function(name, &["x: int32"], &["y: int32"], &[("y", "r:output:0")], body)
    };
    graph().function(int("again", again)).function(int("stop", stop)).function(int("f", f))
}

#[test]
fn recursion_ends_by_itself_or_at_the_limit() {
    // Each level is two calls deep: the function and the branch.
    for op in ["PartitionedCall", "StatefulPartitionedCall"] {
        let g = call(recursive(true, op).placeholder("x"), "y", op, "f", &["x"]).build();
        assert_eq!(fetch(&g, &[("x", 100)], "y"), 200);
        let g = call(recursive(false, op).placeholder("x"), "y", op, "f", &["x"]).build();
        let s = session(&g);
        for _ in 0..2 {
            let e = ints(&s, &[("x", 0)], &["y"]).unwrap_err();
            assert_eq!(e.code(), Code::InvalidArgument);
            assert!(e.message().contains("nested deeper than"), "{e}");
        }
    }
}

#[test]
fn deep_recursion_fits_a_small_stack() {
    let run = || {
        let op = "PartitionedCall";
        let g = call(recursive(false, op).placeholder("x"), "y", op, "f", &["x"]).build();
        let e = ints(&session(&g), &[("x", 0)], &["y"]).unwrap_err();
        assert!(e.message().contains("nested deeper than"), "{e}");
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn a_function_that_needs_itself_to_be_compiled_is_refused() {
    let body = graph().op("again", "f", &["x"]);
    let f = function("f", &["x: int32"], &["y: int32"], &[("y", "again:y:0")], body);
    let g = graph().function(f).placeholder("x").op("r", "f", &["x"]).build();
    let e = ints(&session(&g), &[("x", 0)], &["r"]).unwrap_err();
    assert_eq!(e.code(), Code::InvalidArgument);
    assert!(e.message().contains("nested deeper than"), "{e}");
}

#[test]
fn branches_are_chosen_by_value() {
    let choose = |name: &'static str, cond: &'static str, dtype: DType| {
        move |g: GraphBuilder| {
            g.op(name, "If", &[cond, "x"])
                .attr("Tcond", dtype)
                .attr("Tin", vec![INT])
                .attr("Tout", vec![INT])
                .attr("then_branch", func("add_one"))
                .attr("else_branch", func("add_two"))
        }
    };
    let branches = [func("add_one"), func("add_two"), func("bad")].map(|f| match f {
        AttrValue::Func(f) => f,
        _ => FuncRef::default(),
    });
    let bad = function("bad", &["x: int32"], &["r: int32"], &[("r", "b:x:0")], {
        graph().op("b", "TestFail", &[])
    });
    let g = library()
        .function(bad)
        .placeholder("x")
        .placeholder("i")
        .dtype(DType::Bool)
        .placeholder("p")
        .with(choose("by_bool", "p", DType::Bool))
        .with(choose("by_int", "i", INT))
        .op("case", "Case", &["i", "x"])
        .attr("Tin", vec![INT])
        .attr("Tout", vec![INT])
        .attr("branches", AttrList::Funcs(branches.to_vec()))
        .build();
    let s = session(&g);
    let run = |p: bool, i: i32, fetch: &str| {
        let feeds = [("x", Tensor::scalar(10)), ("p", Tensor::scalar(p)), ("i", Tensor::scalar(i))];
        scalars::<i32>(&s, &feeds, &[fetch]).map(|v| v[0])
    };
    assert_eq!(run(true, 0, "by_bool").unwrap(), 11);
    assert_eq!(run(false, 0, "by_bool").unwrap(), 12);
    assert_eq!(run(false, -7, "by_int").unwrap(), 11);
    assert_eq!(run(false, 0, "by_int").unwrap(), 12);
    assert_eq!(run(false, 0, "case").unwrap(), 11);
    assert_eq!(run(false, 1, "case").unwrap(), 12);
    for out_of_range in [2, 3, -1] {
        let e = run(false, out_of_range, "case").unwrap_err();
        assert!(e.message().ends_with("[[{{node b}}]]"), "{e}");
    }
}

/// A While over (i, sum, limit); its body is async if `later`.
fn while_graph(later: bool) -> GraphBuilder {
    let three = ["i: int32", "s: int32", "n: int32"];
    let cond = graph().op("c", "TestLess", &["i", "n"]);
    let mut body = graph().constant("one", 1).op("i2", "TestAdd", &["i", "one:output:0"]);
    body = if later {
        body.op("il", "TestLater", &["i"]).op("s2", "TestAdd", &["s", "il:y:0"])
    } else {
        body.op("s2", "TestAdd", &["s", "i"])
    };
    let out = ["ri: int32", "rs: int32", "rn: int32"];
    graph()
        .function(function("cond", &three, &["r: bool"], &[("r", "c:z:0")], cond))
        .function(function(
            "body",
            &three,
            &out,
            &[("ri", "i2:z:0"), ("rs", "s2:z:0"), ("rn", "n")],
            body,
        ))
        .placeholder("n")
        .constant("zero", 0)
        .op("w", "While", &["zero", "zero", "n"])
        .attr("T", vec![INT; 3])
        .attr("cond", func("cond"))
        .attr("body", func("body"))
}

#[test]
fn a_while_calls_its_body_again_and_again() {
    for later in [false, true] {
        let s = session(&while_graph(later).build());
        for n in [0, 1, 2, 100] {
            let got = ints(&s, &[("n", n)], &["w:0", "w:1", "w:2"]).unwrap();
            assert_eq!(got, [n, n * (n - 1) / 2, n]);
        }
    }
    // Long loops neither nest nor leak.
    assert_eq!(fetch(&while_graph(false).build(), &[("n", 20_000)], "w"), 20_000);
}

#[test]
fn results_of_dead_tensors_are_an_error() {
    // The function returns the branch that its Switch does not take.
    let body =
        graph().dtype(DType::Int32).constant("p", true).op("s", "Switch", &["x", "p:output:0"]).t();
    let f = function("f", &["x: int32"], &["r: int32"], &[("r", "s:output_false:0")], body);
    let g = call(graph().function(f).placeholder("x"), "y", "PartitionedCall", "f", &["x"]);
    let e = ints(&session(&g.build()), &[("x", 1)], &["y"]).unwrap_err();
    assert_eq!(e.code(), Code::InvalidArgument);
    assert!(e.message().contains("Retval[0] does not have value"), "{e}");
}
