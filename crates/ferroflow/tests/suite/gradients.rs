//! Gradients of ops against those recorded from TensorFlow; see tests/data/gradients/record.py.

use ferroflow::graph::default_catalog;
use ferroflow_core::{Complex64, DType, PartialShape, Result, Shape, Tensor};
use ferroflow_graph::{
    AttrList, AttrValue, Attrs, Catalog, Endpoint, EndpointGradient, GradientOptions, GraphIr,
    gradients, is_differentiable,
};
use ferroflow_testing::{assert_close, evaluate};

/// One recorded case.
#[derive(Default)]
struct Case {
    op: String,
    attrs: Attrs,
    inputs: Vec<Tensor>,
    dy: Vec<Option<Tensor>>,
    dx: Vec<Option<Tensor>>,
}

fn cases(text: &str) -> Vec<Case> {
    text.split("\n\n").filter(|t| !t.trim().is_empty()).map(case).collect()
}

fn case(text: &str) -> Case {
    let mut lines = text.trim().lines();
    let mut case = Case { op: lines.next().unwrap().to_string(), ..Case::default() };
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "attr" => case.attrs.set(words[1], attr(words[2], &words[3..])),
            "in" => case.inputs.push(tensor(&words[1..]).unwrap()),
            "dy" => case.dy.push(tensor(&words[1..])),
            "dx" => case.dx.push(tensor(&words[1..])),
            other => panic!("{other:?} in {text}"),
        }
    }
    case
}

fn attr(kind: &str, words: &[&str]) -> AttrValue {
    match kind {
        "bool" => (words[0] == "1").into(),
        "int" => words[0].parse::<i64>().unwrap().into(),
        "float" => words[0].parse::<f32>().unwrap().into(),
        "str" => words.join(" ").as_str().into(),
        "type" => DType::from_number(words[0].parse().unwrap()).unwrap().into(),
        "floats" => {
            let floats = words.iter().map(|w| w.parse().unwrap()).collect();
            AttrValue::List(AttrList::Floats(floats))
        }
        "ints" => words.iter().map(|w| w.parse().unwrap()).collect::<Vec<i64>>().into(),
        "strs" => {
            let strs = words.iter().map(|w| w.to_string().into()).collect();
            AttrValue::List(AttrList::Strs(strs))
        }
        other => panic!("attr of kind {other:?}"),
    }
}

/// `dtype shape elements…`; none for `none`.
fn tensor(words: &[&str]) -> Option<Tensor> {
    if words[0] == "none" {
        return None;
    }
    let dtype = DType::from_name(words[0]).unwrap();
    let dims: Vec<usize> = match words[1] {
        "scalar" => vec![],
        dims => dims.split('x').map(|d| d.parse().unwrap()).collect(),
    };
    let shape: Shape = dims.into();
    let x: Vec<f64> = words[2..].iter().map(|w| w.parse().unwrap()).collect();
    let made = match dtype {
        DType::Double => Tensor::from_slice(shape, &x),
        DType::Float => Tensor::from_slice(shape, &x.iter().map(|&x| x as f32).collect::<Vec<_>>()),
        DType::Int32 => Tensor::from_slice(shape, &x.iter().map(|&x| x as i32).collect::<Vec<_>>()),
        DType::Int64 => Tensor::from_slice(shape, &x.iter().map(|&x| x as i64).collect::<Vec<_>>()),
        DType::Bool => Tensor::from_slice(shape, &x.iter().map(|&x| x != 0.0).collect::<Vec<_>>()),
        DType::Complex64 => {
            let z = x.chunks(2).map(|p| ferroflow_core::Complex32::new(p[0] as f32, p[1] as f32));
            Tensor::from_slice(shape, &z.collect::<Vec<_>>())
        }
        DType::Complex128 => {
            let z: Vec<_> = x.chunks(2).map(|p| Complex64::new(p[0], p[1])).collect();
            Tensor::from_slice(shape, &z)
        }
        other => panic!("no {other} in the records"),
    };
    Some(made.unwrap())
}

/// Ops whose gradient needs static shapes.
const WANT_SHAPES: [&str; 3] = ["Qr", "Svd", "MatrixSolveLs"];

/// The gradients by all inputs, with or without static shapes.
fn run(case: &Case, catalog: &Catalog, with_shapes: bool) -> Result<Vec<Option<Tensor>>> {
    let op = |name: &str| catalog.get(name).unwrap_or_else(|| panic!("no op {name}")).clone();
    let mut graph = GraphIr::default();
    let mut feeds = Vec::new();
    let mut placeholder = |graph: &mut GraphIr, name: String, value: &Tensor, known: bool| {
        let shape = match known {
            true => PartialShape::from(value.shape()),
            false => PartialShape::unknown(),
        };
        let attrs = Attrs::new().with("dtype", value.dtype()).with("shape", shape);
        let e = Endpoint::new(graph.add(name, op("Placeholder"), attrs, vec![], vec![])?, 0);
        feeds.push((e, value.clone()));
        Ok::<_, ferroflow_core::Error>(e)
    };
    let mut args = Vec::new();
    for (i, x) in case.inputs.iter().enumerate() {
        args.push(match is_differentiable(x.dtype()) || !with_shapes {
            true => placeholder(&mut graph, format!("x{i}"), x, with_shapes)?,
            false => {
                let attrs = Attrs::new().with("dtype", x.dtype()).with("value", x.clone());
                Endpoint::new(graph.add(format!("c{i}"), op("Const"), attrs, vec![], vec![])?, 0)
            }
        });
    }
    let types: Vec<DType> = case.inputs.iter().map(|t| t.dtype()).collect();
    let (def, mut attrs) = (op(&case.op), case.attrs.clone());
    // A recorded list of ints may be a shape.
    for a in &def.attrs {
        if let (ferroflow_graph::AttrKind::Shape, Ok(dims)) = (a.kind, attrs.ints(&a.name)) {
            attrs.set(a.name.clone(), PartialShape::from_i64s(&dims)?);
        }
    }
    def.attrs_from_inputs(&types, &mut attrs);
    let node = graph.add("node", def, attrs, args.clone(), vec![])?;
    let (mut ys, mut grad_ys) = (Vec::new(), Vec::new());
    for (i, dy) in case.dy.iter().enumerate() {
        if let Some(dy) = dy {
            ys.push(Endpoint::new(node, i));
            grad_ys.push(Some(placeholder(&mut graph, format!("dy{i}"), dy, with_shapes)?));
        }
    }
    let options = GradientOptions { grad_ys, ..GradientOptions::default() };
    let found = gradients(&mut graph, catalog, &ys, &args, &options)?;
    let mut out = Vec::new();
    for (x, gradient) in case.inputs.iter().zip(found) {
        out.push(match gradient {
            None => None,
            Some(EndpointGradient::Tensor(e)) => Some(evaluate(&graph, &feeds, &[e])?.remove(0)),
            Some(EndpointGradient::Slices(s)) => {
                let parts = evaluate(&graph, &feeds, &[s.values, s.indices, s.shape])?;
                assert_eq!(parts[2].to_indices()?, x.shape().to_i64s());
                Some(dense(x, &parts[0], &parts[1])?)
            }
        });
    }
    Ok(out)
}

fn dense(like: &Tensor, values: &Tensor, indices: &Tensor) -> Result<Tensor> {
    let width: usize = like.shape().dims()[1..].iter().product();
    let mut all = vec![0.0f64; like.elements()];
    let values: Vec<f64> = match values.dtype() {
        DType::Float => values.as_slice::<f32>()?.iter().map(|&x| x.into()).collect(),
        _ => values.as_slice::<f64>()?.to_vec(),
    };
    for (i, row) in indices.to_indices()?.into_iter().enumerate() {
        for k in 0..width {
            all[row as usize * width + k] += values[i * width + k];
        }
    }
    match like.dtype() {
        DType::Float => {
            let narrow: Vec<f32> = all.iter().map(|&x| x as f32).collect();
            Tensor::from_slice(like.shape().clone(), &narrow)
        }
        _ => Tensor::from_slice(like.shape().clone(), &all),
    }
}

fn compare(case: &Case, got: &[Option<Tensor>]) {
    for (i, (got, want)) in got.iter().zip(&case.dx).enumerate() {
        let x = &case.inputs[i];
        if !is_differentiable(x.dtype()) {
            continue;
        }
        let tolerance =
            if matches!(x.dtype(), DType::Double | DType::Complex128) { 1e-6 } else { 1e-4 };
        match (got, want) {
            (Some(got), Some(want)) => assert_close(got, want, tolerance, tolerance),
            (None, None) => {}
            // No gradient equals a gradient of zeros.
            (None, Some(some)) | (Some(some), None) => {
                let zeros = Tensor::zeros(some.dtype(), some.shape().clone()).unwrap();
                assert_close(some, &zeros, 0.0, 0.0);
            }
        }
    }
}

fn check(family: &str) {
    let path = format!("{}/tests/data/gradients/{family}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let catalog = default_catalog();
    let mut failures: Vec<String> = Vec::new();
    let mut ops = std::collections::BTreeSet::new();
    for (i, case) in cases(&text).iter().enumerate() {
        ops.insert(case.op.clone());
        for with_shapes in [true, false] {
            if !with_shapes && WANT_SHAPES.contains(&case.op.as_str()) {
                continue;
            }
            let attempt = || match run(case, &catalog, with_shapes) {
                Ok(got) => {
                    compare(case, &got);
                    None
                }
                Err(e) => Some(e.to_string()),
            };
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt));
            let failure = match outcome {
                Ok(failure) => failure,
                Err(panic) => Some(match panic.downcast_ref::<String>() {
                    Some(text) => text.clone(),
                    None => "it panicked".to_string(),
                }),
            };
            if let Some(text) = failure {
                let attrs: Vec<String> =
                    case.attrs.iter().map(|(k, v)| format!("{k}={v:?}")).collect();
                failures.push(format!("case {i} {} ({with_shapes}) {attrs:?}: {text}", case.op));
            }
        }
    }
    assert!(!ops.is_empty());
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

macro_rules! families {
    ($($test:ident $file:literal;)*) => {$(
        #[test]
        fn $test() {
            check($file);
        }
    )*};
}
families! {
    gradients_of_math_are_tensorflows "math";
    gradients_of_reductions_are_tensorflows "reduce";
    gradients_of_array_ops_are_tensorflows "array";
    gradients_of_nn_ops_are_tensorflows "nn";
    gradients_of_matrix_products_are_tensorflows "linalg";
    gradients_of_decompositions_are_tensorflows "decompositions";
    gradients_of_normalisations_are_tensorflows "norm";
    gradients_of_transforms_are_tensorflows "fft";
    gradients_of_sparse_ops_are_tensorflows "sparse";
    gradients_of_images_and_cells_are_tensorflows "image";
}

/// Ops that TensorFlow has a gradient function for, and we have none.
const WITHOUT: [&str; 9] = [
    // Backpropagation handles whole loops at once.
    "Enter",
    "Exit",
    "NextIteration",
    "RefEnter",
    "RefExit",
    "RefNextIteration",
    // In TensorFlow their gradient functions only raise an error.
    "SparseDenseCwiseAdd",
    "SparseSparseMaximum",
    "SparseSparseMinimum",
];

#[test]
fn all_ops_with_a_gradient_in_tensorflow_have_one() {
    let text = include_str!("../data/gradients/tf-2.15.1-registry.txt");
    let words = |kind: &str| -> Vec<&str> {
        let line = text.lines().find_map(|line| line.strip_prefix(kind)).unwrap();
        line.split_whitespace().collect()
    };
    let catalog = default_catalog();
    let of = |op: &&str| catalog.get(op).filter(|op| op.cpu.is_some());
    let missing: Vec<&str> = words("gradient ")
        .into_iter()
        .filter(|op| !WITHOUT.contains(op))
        .filter(|op| of(op).is_some_and(|op| op.gradient.is_none()))
        .collect();
    assert!(missing.is_empty(), "no gradient for {missing:?}");
    let undeclared: Vec<&str> = words("none ")
        .into_iter()
        .filter(|op| {
            let gradient = of(op).map(|op| &op.gradient);
            gradient.is_some_and(|g| !matches!(g, Some(ferroflow_graph::OpGradient::Stops)))
        })
        .collect();
    assert!(undeclared.is_empty(), "not declared without a gradient: {undeclared:?}");
}
