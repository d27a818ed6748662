//! Compares gradients with finite differences.

use crate::check::{Check, floats};
use crate::evaluate;
use ferroflow_core::{Complex32, Complex64, DType, PartialShape, Result, Tensor, Value, bf16, f16};
use ferroflow_graph::{
    Attrs, Endpoint, EndpointGradient, GradientOptions, GraphIr, NodeId, gradients,
    is_differentiable,
};

/// The step of an input and the tolerance, by dtype.
fn precision(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::Double | DType::Complex128 => (1e-5, 1e-5),
        DType::Half | DType::BFloat16 => (1e-1, 1e-1),
        _ => (1e-2, 1e-2),
    }
}

impl Check<'_> {
    /// Compares the op's gradients with finite differences of the op at the given inputs. The op
    /// must not be discontinuous there. Inputs of float become double if the op supports double.
    #[track_caller]
    pub fn gradient(self) {
        let name = self.op.name.clone();
        let wide = self.as_double();
        let outcome = match wide.gradient_errors() {
            Ok(errors) => Ok(errors),
            Err(_) => self.gradient_errors(),
        };
        let errors = outcome.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(errors.is_empty(), "{name}: {}", errors.join("\n"));
    }

    fn as_double(&self) -> Self {
        let widen = |v: &Value| match v {
            Value::Tensor(t) if t.dtype() == DType::Float => {
                let x = floats(t).unwrap_or_default();
                let wide = Tensor::from_slice(t.shape().clone(), &x);
                wide.map_or_else(|_| v.clone(), Value::from)
            }
            other => other.clone(),
        };
        let mut copy = Check::new(self.catalog, &self.op.name);
        copy.inputs = self.inputs.iter().map(widen).collect();
        copy.attrs = self.attrs.clone();
        copy
    }

    /// The differences. An error if the op does not run on these inputs.
    fn gradient_errors(&self) -> Result<Vec<String>> {
        let inputs: Vec<Tensor> =
            self.inputs.iter().map(|v| v.clone().into_tensor()).collect::<Result<_>>()?;
        let (graph, args, node) = self.graph(&inputs)?;
        let outputs: Vec<Endpoint> = (0..graph.node(node).output_types.len())
            .map(|i| Endpoint::new(node, i))
            .filter(|&e| is_differentiable(graph.type_of(e).dtype))
            .collect();
        let run = |inputs: &[Tensor]| -> Result<Vec<Tensor>> {
            let feeds: Vec<_> = args.iter().copied().zip(inputs.iter().cloned()).collect();
            evaluate(&graph, &feeds, &outputs)
        };
        let y = run(&inputs)?;
        // A weight for each element of the outputs, the same in every run.
        let mut seed = 7u64;
        let weights: Vec<Tensor> =
            y.iter().map(|t| noise_like(t, &mut seed)).collect::<Result<_>>()?;
        let loss = |inputs: &[Tensor]| -> Result<f64> {
            let mut sum = 0.0;
            for (y, w) in run(inputs)?.iter().zip(&weights) {
                let (y, w) = (floats(y).unwrap_or_default(), floats(w).unwrap_or_default());
                sum += y.iter().zip(&w).map(|(y, w)| y * w).sum::<f64>();
            }
            Ok(sum)
        };

        let mut backward = graph.clone();
        let mut grad_ys = Vec::new();
        let mut feeds: Vec<_> = args.iter().copied().zip(inputs.iter().cloned()).collect();
        for (i, w) in weights.iter().enumerate() {
            let e = self.placeholder(&mut backward, &format!("dy{i}"), w)?;
            grad_ys.push(Some(e));
            feeds.push((e, w.clone()));
        }
        let options = GradientOptions { grad_ys, ..GradientOptions::default() };
        let xs: Vec<usize> =
            (0..inputs.len()).filter(|&i| is_differentiable(inputs[i].dtype())).collect();
        let of: Vec<Endpoint> = xs.iter().map(|&i| args[i]).collect();
        let found = gradients(&mut backward, self.catalog, &outputs, &of, &options)?;
        let mut errors = Vec::new();
        for (&i, gradient) in xs.iter().zip(found) {
            let x = &inputs[i];
            let (step, tolerance) = precision(x.dtype());
            let got = match gradient {
                Some(EndpointGradient::Tensor(e)) => {
                    let got = evaluate(&backward, &feeds, &[e])?.remove(0);
                    if got.shape() != x.shape() {
                        errors.push(format!("input {i} is {:?}, its gradient {got:?}", x.shape()));
                        continue;
                    }
                    floats(&got).unwrap_or_default()
                }
                Some(EndpointGradient::Slices(s)) => {
                    let parts = evaluate(&backward, &feeds, &[s.values, s.indices])?;
                    scattered(x, &parts[0], &parts[1])
                }
                None => vec![0.0; floats(x).unwrap_or_default().len()],
            };
            for (k, got) in got.iter().enumerate() {
                let at = |delta: f64| -> Result<f64> {
                    let mut moved = inputs.clone();
                    moved[i] = moved_at(x, k, delta)?;
                    loss(&moved)
                };
                let want = (at(step)? - at(-step)?) / (2.0 * step);
                if (got - want).abs() > tolerance * (1.0 + want.abs()) {
                    errors.push(format!("input {i}, element {k}: {got}, by differences {want}"));
                }
            }
        }
        Ok(errors)
    }

    /// A graph with a placeholder for each input and the node under test.
    fn graph(&self, inputs: &[Tensor]) -> Result<(GraphIr, Vec<Endpoint>, NodeId)> {
        let mut graph = GraphIr::default();
        let mut args = Vec::new();
        for (i, x) in inputs.iter().enumerate() {
            // Inputs that are not differentiated are constants, as in most graphs.
            args.push(match is_differentiable(x.dtype()) {
                true => self.placeholder(&mut graph, &format!("x{i}"), x)?,
                false => {
                    let attrs = Attrs::new().with("dtype", x.dtype()).with("value", x.clone());
                    self.node(&mut graph, &format!("c{i}"), "Const", attrs)?
                }
            });
        }
        let types: Vec<DType> = inputs.iter().map(|t| t.dtype()).collect();
        let mut attrs = self.attrs.clone();
        self.op.attrs_from_inputs(&types, &mut attrs);
        let node = graph.add("node_under_test", self.op.clone(), attrs, args.clone(), vec![])?;
        Ok((graph, args, node))
    }

    fn placeholder(&self, graph: &mut GraphIr, name: &str, like: &Tensor) -> Result<Endpoint> {
        let shape = PartialShape::from(like.shape());
        let attrs = Attrs::new().with("dtype", like.dtype()).with("shape", shape);
        self.node(graph, name, "Placeholder", attrs)
    }

    fn node(&self, graph: &mut GraphIr, name: &str, op: &str, attrs: Attrs) -> Result<Endpoint> {
        let op = self.catalog.get(op).expect("the catalog has constants and placeholders").clone();
        Ok(Endpoint::new(graph.add(name, op, attrs, vec![], vec![])?, 0))
    }
}

fn noise_like(t: &Tensor, seed: &mut u64) -> Result<Tensor> {
    let n = floats(t).unwrap_or_default().len();
    let values: Vec<f64> = (0..n)
        .map(|_| {
            *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (*seed >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0
        })
        .collect();
    from_floats(t, &values)
}

fn moved_at(t: &Tensor, k: usize, delta: f64) -> Result<Tensor> {
    let mut values = floats(t).unwrap_or_default();
    values[k] += delta;
    from_floats(t, &values)
}

/// A tensor like `t` with these elements. Complex numbers are pairs.
fn from_floats(t: &Tensor, x: &[f64]) -> Result<Tensor> {
    let shape = t.shape().clone();
    let pairs = || x.chunks(2).map(|p| (p[0], p[1]));
    match t.dtype() {
        DType::Double => Tensor::from_slice(shape, x),
        DType::Float => Tensor::from_slice(shape, &x.iter().map(|&x| x as f32).collect::<Vec<_>>()),
        DType::Half => {
            Tensor::from_slice(shape, &x.iter().map(|&x| f16::from_f64(x)).collect::<Vec<_>>())
        }
        DType::BFloat16 => {
            Tensor::from_slice(shape, &x.iter().map(|&x| bf16::from_f64(x)).collect::<Vec<_>>())
        }
        DType::Complex64 => {
            let z = pairs().map(|(a, b)| Complex32::new(a as f32, b as f32));
            Tensor::from_slice(shape, &z.collect::<Vec<_>>())
        }
        DType::Complex128 => {
            let z = pairs().map(|(a, b)| Complex64::new(a, b));
            Tensor::from_slice(shape, &z.collect::<Vec<_>>())
        }
        _ => Ok(t.clone()),
    }
}

fn scattered(like: &Tensor, values: &Tensor, indices: &Tensor) -> Vec<f64> {
    let mut all = vec![0.0; floats(like).unwrap_or_default().len()];
    let (values, rows) =
        (floats(values).unwrap_or_default(), indices.to_indices().unwrap_or_default());
    let width = all.len() / like.shape().dims().first().copied().unwrap_or(1).max(1);
    for (i, row) in rows.into_iter().enumerate() {
        for k in 0..width {
            all[row as usize * width + k] += values[i * width + k];
        }
    }
    all
}
