//! Rules of `gradients`: errors, where it stops, initial gradients, functions.

use ferroflow::graph::{GraphDefSession, default_catalog};
use ferroflow_core::{Code, DType, Error, Result, Tensor};
use ferroflow_graph::{Endpoint, EndpointGradient, GradientOptions, GraphDef, GraphIr, gradients};
use ferroflow_testing::{GraphBuilder, func, function, graph};

fn float() -> GraphBuilder {
    graph().dtype(DType::Float)
}

/// `x = 3`, `z = x * x`, `y = z * x`.
fn cube() -> GraphDef {
    float()
        .constant("x", 3.0f32)
        .op("z", "Mul", &["x", "x"])
        .t()
        .op("y", "Mul", &["z", "x"])
        .t()
        .build()
}

/// The values of the gradients of `y` by `xs`.
fn derive(
    def: &GraphDef,
    xs: &[&str],
    options: impl FnOnce(&GraphIr) -> GradientOptions,
) -> Result<Vec<Option<Tensor>>> {
    let catalog = default_catalog();
    let mut graph = GraphIr::from_def(def, &catalog)?;
    let options = options(&graph);
    let y = graph.endpoint("y")?;
    let xs = xs.iter().map(|x| graph.endpoint(x)).collect::<Result<Vec<Endpoint>>>()?;
    let found = gradients(&mut graph, &catalog, &[y], &xs, &options)?;
    let session = GraphDefSession::local(&graph.to_def())?;
    let mut out = Vec::new();
    for gradient in found {
        out.push(match gradient.and_then(EndpointGradient::tensor) {
            Some(e) => {
                let name = format!("{}:{}", graph.node(e.node).name, e.slot);
                Some(session.run(&[], &[&name])?.remove(0))
            }
            None => None,
        });
    }
    Ok(out)
}

fn scalars(found: Result<Vec<Option<Tensor>>>) -> Vec<Option<f32>> {
    let found = found.unwrap_or_else(|e| panic!("{e}"));
    found.into_iter().map(|t| t.map(|t| t.scalar_value::<f32>().unwrap())).collect()
}

fn defaults(_: &GraphIr) -> GradientOptions {
    GradientOptions::default()
}

fn refused(found: Result<Vec<Option<Tensor>>>) -> Error {
    match found {
        Ok(found) => panic!("it was not refused: {found:?}"),
        Err(e) => e,
    }
}

#[test]
fn gradients_of_several_paths_are_summed() {
    assert_eq!(scalars(derive(&cube(), &["x", "z"], defaults)), [Some(27.0), Some(3.0)]);
}

#[test]
fn gradients_stop_at_the_given_tensors() {
    let stop = |g: &GraphIr| GradientOptions {
        stop_gradients: vec![g.endpoint("z").unwrap()],
        ..GradientOptions::default()
    };
    assert_eq!(scalars(derive(&cube(), &["x"], stop)), [Some(9.0)]);
}

#[test]
fn gradients_start_from_the_given_gradients_of_ys() {
    let given = |name: &'static str| {
        move |g: &GraphIr| GradientOptions {
            grad_ys: vec![Some(g.endpoint(name).unwrap())],
            ..GradientOptions::default()
        }
    };
    assert_eq!(scalars(derive(&cube(), &["z"], given("z"))), [Some(27.0)]);
    let mut def = cube();
    def.nodes.extend(graph().constant("one", 1i32).build().nodes);
    let e = refused(derive(&def, &["x"], given("one")));
    assert_eq!(e.code(), Code::InvalidArgument, "{e}");
    let two =
        |_: &GraphIr| GradientOptions { grad_ys: vec![None, None], ..GradientOptions::default() };
    let e = refused(derive(&cube(), &["x"], two));
    assert!(e.message().contains("one grad_y for each y"), "{e}");
}

#[test]
fn independent_tensors_have_no_gradient() {
    let mut def = cube();
    def.nodes.extend(float().constant("other", 1.0f32).build().nodes);
    assert_eq!(scalars(derive(&def, &["other", "x"], defaults)), [None, Some(27.0)]);
    let stopped = float()
        .constant("x", 3.0f32)
        .op("s", "StopGradient", &["x"])
        .t()
        .op("y", "Square", &["s"])
        .t()
        .build();
    assert_eq!(scalars(derive(&stopped, &["x"], defaults)), [None]);
}

#[test]
fn an_op_that_cannot_be_differentiated_is_named() {
    let matrix = Tensor::from_slice([1, 1], &[2.0f32]).unwrap();
    let def = float().constant("x", matrix).op("y", "MatrixExponential", &["x"]).t().build();
    let e = refused(derive(&def, &["x"], defaults));
    assert_eq!(e.code(), Code::Unimplemented);
    let text = "No gradient defined for operation 'y' (op type: MatrixExponential)";
    assert!(e.message().contains(text), "{e}");
    // It is no error on a path that does not lead to an x.
    let mut def = cube();
    def.nodes.extend(
        float()
            .constant("m", Tensor::from_slice([1, 1], &[2.0f32]).unwrap())
            .op("e", "MatrixExponential", &["m"])
            .t()
            .op("sum", "AddV2", &["y", "e"])
            .t()
            .build()
            .nodes,
    );
    assert_eq!(scalars(derive(&def, &["x"], defaults)), [Some(27.0)]);
}

#[test]
fn a_failure_leaves_the_graph_as_it_was() {
    let matrix = Tensor::from_slice([1, 1], &[2.0f32]).unwrap();
    let def = float().constant("x", matrix).op("y", "MatrixExponential", &["x"]).t().build();
    let catalog = default_catalog();
    let mut graph = GraphIr::from_def(&def, &catalog).unwrap();
    let ends = ["y", "x"].map(|n| graph.endpoint(n).unwrap());
    let options = GradientOptions::default();
    assert!(gradients(&mut graph, &catalog, &ends[..1], &ends[1..], &options).is_err());
    assert_eq!(graph.len(), 2);
}

#[test]
fn gradient_nodes_are_named_and_placed_like_their_forward_nodes() {
    let mut def = cube();
    def.nodes[1].device = "/device:CPU:0".into();
    let catalog = default_catalog();
    let mut graph = GraphIr::from_def(&def, &catalog).unwrap();
    let ends = ["y", "x"].map(|n| graph.endpoint(n).unwrap());
    let options = GradientOptions { colocate: true, ..GradientOptions::default() };
    gradients(&mut graph, &catalog, &ends[..1], &ends[1..], &options).unwrap();
    let (_, node) = graph.iter().find(|(_, n)| n.name == "gradients/z_grad/Mul").unwrap();
    assert_eq!(node.device, "/device:CPU:0");
    assert!(node.attrs.contains("_class"));
    gradients(&mut graph, &catalog, &ends[..1], &ends[1..], &options).unwrap();
    assert!(graph.find("gradients_1/z_grad/Mul").is_some());
}

/// `f(x) = x * x`, with a registered gradient that is ten times too large.
fn with_square(more: GraphBuilder) -> GraphDef {
    let body = float().op("z", "Mul", &["x", "x"]).t();
    let square = function("f", &["x: float"], &["r: float"], &[("r", "z:z:0")], body);
    let body = float().constant("ten", 10.0f32).op("z", "Mul", &["dy", "ten:output:0"]).t();
    let args = ["x: float", "dy: float"];
    let tenfold = function("f_gradient", &args, &["r: float"], &[("r", "z:z:0")], body);
    more.function(square).function(tenfold).build()
}

#[test]
fn functions_are_differentiated_by_name() {
    let mut def = with_square(float().constant("x", 3.0f32).op("y", "f", &["x"]));
    assert_eq!(scalars(derive(&def, &["x"], defaults)), [Some(6.0)]);
    def.gradients.insert("f".into(), "f_gradient".into());
    assert_eq!(scalars(derive(&def, &["x"], defaults)), [Some(10.0)]);
}

#[test]
fn symbolic_gradients_run() {
    let types = |n: usize| vec![DType::Float; n];
    let mut def = with_square(
        float()
            .constant("x", 3.0f32)
            .constant("dy", 2.0f32)
            .op("dx", "SymbolicGradient", &["x", "dy"])
            .attr("f", func("f"))
            .attr("Tin", types(2))
            .attr("Tout", types(1)),
    );
    let run = |def: &GraphDef| {
        let out = GraphDefSession::local(def).unwrap().run(&[], &["dx"]).unwrap();
        out[0].scalar_value::<f32>().unwrap()
    };
    assert_eq!(run(&def), 12.0);
    def.gradients.insert("f".into(), "f_gradient".into());
    assert_eq!(run(&def), 20.0);
}

/// `f0` calls `f1` twice, `f1` calls `f2` twice, and so on; the last one doubles.
fn doubling(
    depth: usize,
    call: &dyn Fn(GraphBuilder, &str, &str, &str) -> GraphBuilder,
) -> GraphDef {
    let types = |n: usize| vec![DType::Float; n];
    let mut def = float()
        .constant("x", 1.0f32)
        .constant("dy", 1.0f32)
        .op("dx", "SymbolicGradient", &["x", "dy"])
        .attr("f", func("f0"))
        .attr("Tin", types(2))
        .attr("Tout", types(1));
    for level in 0..depth {
        let callee = format!("f{}", level + 1);
        let body = call(call(float(), "a", &callee, "x"), "b", &callee, "a:output:0");
        let name = format!("f{level}");
        def = def.function(function(
            &name,
            &["x: float"],
            &["r: float"],
            &[("r", "b:output:0")],
            body,
        ));
    }
    let body = float().op("z", "AddV2", &["x", "x"]).t();
    let last = format!("f{depth}");
    def.function(function(&last, &["x: float"], &["r: float"], &[("r", "z:z:0")], body)).build()
}

#[test]
fn symbolic_gradients_go_through_calls() {
    let types = || vec![DType::Float];
    let call = |body: GraphBuilder, name: &str, callee: &str, x: &str| {
        body.op(name, "PartitionedCall", &[x])
            .attr("f", func(callee))
            .attr("Tin", types())
            .attr("Tout", types())
    };
    let session = GraphDefSession::local(&doubling(5, &call)).unwrap();
    // Thirty-two times doubled.
    let dx = session.run(&[], &["dx"]).unwrap()[0].scalar_value::<f32>().unwrap();
    assert_eq!(dx, 2f32.powi(32));
    let branch = |body: GraphBuilder, name: &str, callee: &str, x: &str| {
        body.op(name, "If", &[x, x])
            .attr("Tcond", DType::Float)
            .attr("Tin", types())
            .attr("Tout", types())
            .attr("then_branch", func(callee))
            .attr("else_branch", func(callee))
    };
    let session = GraphDefSession::local(&doubling(2, &branch)).unwrap();
    let dx = session.run(&[], &["dx"]).unwrap()[0].scalar_value::<f32>().unwrap();
    assert_eq!(dx, 2f32.powi(4));
    // Each branch has functions of its own, so that nested ones would need a million.
    let session = GraphDefSession::local(&doubling(20, &branch)).unwrap();
    let e = session.run(&[], &["dx"]).unwrap_err();
    assert_eq!(e.code(), Code::ResourceExhausted, "{e}");
    assert!(e.message().contains("needs more than 4096 functions"), "{e}");
}

#[test]
fn recursion_is_an_error() {
    let body = float().op("again", "f", &["x"]).op("z", "Mul", &["again:r:0", "x"]).t();
    let f = function("f", &["x: float"], &["r: float"], &[("r", "z:z:0")], body);
    let def = float().constant("x", 3.0f32).op("y", "f", &["x"]).function(f).build();
    let e = refused(derive(&def, &["x"], defaults));
    assert_eq!(e.code(), Code::InvalidArgument);
    assert!(e.message().contains("at most 32 nested function calls"), "{e}");
}

#[test]
fn second_derivatives_are_gradients_of_gradients() {
    let catalog = default_catalog();
    let mut graph = GraphIr::from_def(&cube(), &catalog).unwrap();
    let [y, x] = ["y", "x"].map(|n| graph.endpoint(n).unwrap());
    let options = GradientOptions::default();
    let mut last = y;
    for _ in 0..3 {
        let found = gradients(&mut graph, &catalog, &[last], &[x], &options).unwrap();
        last = found[0].and_then(EndpointGradient::tensor).unwrap();
    }
    let name = graph.node(last.node).name.clone();
    let session = GraphDefSession::local(&graph.to_def()).unwrap();
    let third = session.run(&[], &[&name]).unwrap();
    assert_eq!(third[0].scalar_value::<f32>().unwrap(), 6.0);
}

#[test]
fn ragged_values_keep_their_gradients_through_variants() {
    for batched in [true, false] {
        let def = float()
            .constant("x", Tensor::vector(&[1.0f32, 2.0, 3.0]))
            .constant("w", Tensor::vector(&[10.0f32, 20.0, 30.0]))
            .constant("splits", Tensor::vector(&[0i64, 1, 1, 3]))
            .op("v", "RaggedTensorToVariant", &["splits", "x"])
            .attr("RAGGED_RANK", 1i64)
            .attr("Tvalues", DType::Float)
            .attr("Tsplits", DType::Int64)
            .attr("batched_input", batched)
            .op("back", "RaggedTensorFromVariant", &["v"])
            .attr("input_ragged_rank", if batched { 0i64 } else { 1 })
            .attr("output_ragged_rank", 1i64)
            .attr("Tvalues", DType::Float)
            .attr("Tsplits", DType::Int64)
            .op("y", "Mul", &["back:1", "w"])
            .t()
            .build();
        let found = derive(&def, &["x"], defaults).unwrap_or_else(|e| panic!("{e}"));
        let dx = found[0].as_ref().unwrap().as_slice::<f32>().unwrap();
        assert_eq!(dx, [10.0, 20.0, 30.0], "batched: {batched}");
    }
}
