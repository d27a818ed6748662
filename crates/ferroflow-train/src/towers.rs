//! In-graph replication: one graph computes the same model several times, each on a part of the
//! batch.

use crate::gradient::{Gradient, IndexedSlices};
use crate::optimizer::GradAndVar;
use crate::output::Output;
use ferroflow_core::err;

/// The mean of the gradients of several towers that share their variables. All towers must list the
/// same variables in the same order. Sparse gradients stay sparse. A tower that does not use a
/// variable counts as zero.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{Optimizer, Sgd, average_gradients};
/// let w = g.variable("w", 0.0);
/// let sgd = Sgd::new(0.1);
/// let tower = |device: &str, x: f32| {
///     g.device(device, || sgd.compute_gradients(&(&*w - x).square(), &[w.clone()]))
/// };
/// let towers = [tower("/job:worker/task:0", 1.0), tower("/job:worker/task:1", 2.0)];
/// let train = sgd.apply_gradients(&g, &average_gradients(&towers), None);
/// assert!(g.check().is_ok());
/// ```
#[track_caller]
pub fn average_gradients(towers: &[Vec<GradAndVar>]) -> Vec<GradAndVar> {
    let Some(first) = towers.first() else { return Vec::new() };
    let of_tower = |tower: &[GradAndVar], i: usize, name: &str| -> Option<Gradient> {
        match tower.get(i) {
            Some((gradient, variable)) if variable.variable_name() == name => gradient.clone(),
            _ => {
                first[i].1.graph().fail(err!(
                    InvalidArgument,
                    "all towers have the gradients of the same variables, in the same order: \
                     number {i} is not that of '{name}' everywhere"
                ));
                None
            }
        }
    };
    let mean = |i: usize| {
        let variable = &first[i].1;
        let all: Vec<Gradient> = towers
            .iter()
            .filter_map(|tower| of_tower(tower, i, variable.variable_name()))
            .collect();
        let scale = 1.0 / towers.len() as f32;
        let gradient = (!all.is_empty())
            .then(|| variable.graph().device(&variable.device(), || mean_of(&all, scale)));
        (gradient, variable.clone())
    };
    (0..first.len()).map(mean).collect()
}

#[track_caller]
fn mean_of(all: &[Gradient], scale: f32) -> Gradient {
    let g = all[0].values().graph();
    let sparse: Option<Vec<&IndexedSlices>> = all
        .iter()
        .map(|gradient| match gradient {
            Gradient::Sparse(s) => Some(s),
            Gradient::Dense(_) => None,
        })
        .collect();
    match sparse {
        Some(slices) => {
            let joined = |part: fn(&IndexedSlices) -> &Output| {
                let parts: Vec<Output> = slices.iter().map(|s| part(s).clone()).collect();
                g.concat(&parts, 0)
            };
            Gradient::Sparse(IndexedSlices {
                values: joined(|s| &s.values) * scale,
                indices: joined(|s| &s.indices),
                shape: slices[0].shape.clone(),
            })
        }
        None => {
            let whole: Vec<Output> = all.iter().map(Gradient::dense).collect();
            Gradient::Dense(g.add_n(&whole) * scale)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init;
    use crate::optimizer::{Optimizer, Sgd};
    use crate::testing::{floats, graph, initialized};

    #[test]
    fn towers_train_as_one_model_on_the_whole_batch() {
        let g = graph();
        let w = g.variable("w", 1.0);
        let table = g.variable("t", init::zeros([3, 2]));
        let sgd = Sgd::new(1.0);
        let towers: Vec<Vec<GradAndVar>> = [(0, 2.0), (2, 4.0)]
            .map(|(row, x)| {
                let rows = table.gather(&g.constant([row]));
                let loss = &*w * x + rows.sum_all() * x;
                sgd.compute_gradients(&loss, &[w.clone(), table.clone()])
            })
            .to_vec();
        let mean = average_gradients(&towers);
        assert!(matches!(mean[1].0, Some(Gradient::Sparse(_))));
        let train = sgd.apply_gradients(&g, &mean, None);
        let s = initialized(&g).unwrap();
        s.run(&train).unwrap();
        assert_eq!(s.run(w.scalar::<f32>()).unwrap(), 1.0 - 3.0);
        assert_eq!(floats(&s.run(&table).unwrap()), [-1.0, -1.0, 0.0, 0.0, -2.0, -2.0]);
    }

    #[test]
    fn towers_of_different_models_are_refused() {
        let g = graph();
        let (a, b) = (g.variable("a", 1.0), g.variable("b", 1.0));
        let sgd = Sgd::new(1.0);
        let of = |v: &crate::Variable| sgd.compute_gradients(&v.square(), std::slice::from_ref(v));
        average_gradients(&[of(&a), of(&b)]);
        assert!(g.check().unwrap_err().message().contains("same variables"));
        assert!(average_gradients(&[]).is_empty());
    }
}
