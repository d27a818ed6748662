//! Gradients of whole graphs (loops, conditionals, functions, small models) against those recorded
//! from TensorFlow; see tests/data/gradients/record_graphs.py.

use ferroflow::graph::{GraphDefSession, decode_graph, default_catalog};
use ferroflow_core::{DType, Result, Shape, Tensor};
use ferroflow_graph::{EndpointGradient, GradientOptions, GraphIr, gradients};
use ferroflow_testing::assert_close;

fn path(name: &str, ending: &str) -> String {
    format!("{}/tests/data/gradients/graphs/{name}.{ending}", env!("CARGO_MANIFEST_DIR"))
}

#[derive(Default)]
struct Record {
    y: String,
    init: Option<String>,
    xs: Vec<String>,
    dxs: Vec<Option<Tensor>>,
}

fn record(name: &str) -> Record {
    let mut record = Record::default();
    for line in std::fs::read_to_string(path(name, "txt")).unwrap().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "y" => record.y = words[1].into(),
            "init" => record.init = Some(words[1].into()),
            "x" => record.xs.push(words[1].into()),
            _ => record.dxs.push(tensor(&words[1..])),
        }
    }
    record
}

fn tensor(words: &[&str]) -> Option<Tensor> {
    if words[0] == "none" {
        return None;
    }
    let dims: Vec<usize> = match words[1] {
        "scalar" => vec![],
        dims => dims.split('x').map(|d| d.parse().unwrap()).collect(),
    };
    let shape: Shape = dims.into();
    let x: Vec<f64> = words[2..].iter().map(|w| w.parse().unwrap()).collect();
    Some(match DType::from_name(words[0]).unwrap() {
        DType::Double => Tensor::from_slice(shape, &x).unwrap(),
        DType::Float => {
            Tensor::from_slice(shape, &x.iter().map(|&x| x as f32).collect::<Vec<_>>()).unwrap()
        }
        other => panic!("no {other} in the records"),
    })
}

fn run(name: &str) -> Result<()> {
    let record = record(name);
    let def = decode_graph(std::fs::read(path(name, "pb")).unwrap().into())?;
    let catalog = default_catalog();
    let mut graph = GraphIr::from_def(&def, &catalog)?;
    let y = graph.endpoint(&record.y)?;
    let xs = record.xs.iter().map(|x| graph.endpoint(x)).collect::<Result<Vec<_>>>()?;
    let found = gradients(&mut graph, &catalog, &[y], &xs, &GradientOptions::default())?;
    graph.check_acyclic()?;
    let session = GraphDefSession::local(&graph.to_def())?;
    if let Some(init) = &record.init {
        session.run_with(&[], &[], &[init], None)?;
    }
    let tensor_name =
        |e: ferroflow_graph::Endpoint| format!("{}:{}", graph.node(e.node).name, e.slot);
    for ((x, found), want) in record.xs.iter().zip(found).zip(&record.dxs) {
        let got = match found {
            None => None,
            Some(EndpointGradient::Tensor(e)) => {
                Some(session.run(&[], &[&tensor_name(e)])?.remove(0))
            }
            Some(EndpointGradient::Slices(s)) => {
                let names = [s.values, s.indices, s.shape].map(tensor_name);
                let parts = session.run(&[], &[&names[0], &names[1], &names[2]])?;
                Some(dense(&parts)?)
            }
        };
        match (got, want) {
            (Some(got), Some(want)) => {
                let tolerance = if want.dtype() == DType::Double { 1e-6 } else { 2e-4 };
                assert_close(&got, want, tolerance, tolerance);
            }
            (None, None) => {}
            (got, want) => panic!("{name}: gradient by {x} is {got:?}, should be {want:?}"),
        }
    }
    Ok(())
}

/// The dense tensor of slices: values, indices, shape.
fn dense(parts: &[Tensor]) -> Result<Tensor> {
    let shape = Shape::from_dims(&parts[2].to_indices()?)?;
    let width: usize = shape.dims()[1..].iter().product();
    let mut out = Tensor::zeros(parts[0].dtype(), shape)?;
    for (i, row) in parts[1].to_indices()?.into_iter().enumerate() {
        for k in 0..width {
            let (to, from) = (row as usize * width + k, i * width + k);
            match out.dtype() {
                DType::Double => {
                    let x = parts[0].as_slice::<f64>()?[from];
                    out.as_mut_slice::<f64>()?[to] += x;
                }
                _ => {
                    let x = parts[0].as_slice::<f32>()?[from];
                    out.as_mut_slice::<f32>()?[to] += x;
                }
            }
        }
    }
    Ok(out)
}

macro_rules! graphs {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            run(stringify!($name)).unwrap_or_else(|e| panic!("{e}"));
        }
    )*};
}

mod v1_control_flow {
    use super::run;
    graphs! {
        cond_taken cond_not_taken cond_nested while_power while_never while_many_variables
        while_unused_result while_forgets while_with_cond while_nested while_in_cond
        while_in_cond_not_taken while_with_while_in_cond while_reads_variable while_grows while_gathers while_one_at_a_time map_fn scan
        foldl_with_arrays array_concat
    }
}

mod models {
    use super::run;
    graphs! {
        mlp cnn lstm_in_a_loop embedding reference_variables layer_norm_attention
    }
}

mod functions {
    use super::run;
    graphs! {
        function_call function_variable if_v2 if_v2_not_taken if_v2_nested while_v2_power
        while_v2_never while_v2_many_variables while_v2_with_cond while_v2_nested while_v2_gathers
        while_v2_map_fn while_v2_lstm while_v2_in_function while_v2_reads_variable switch_case
    }
}
