//! Moving averages of variables, which are often better models than the variables themselves.

use crate::graph::{Graph, keys};
use crate::init;
use crate::names::join;
use crate::output::Operation;
use crate::variable::{Variable, VariableOptions};
use ferroflow_core::DType;

/// Keeps, for each of some variables, `average = decay * average + (1 - decay) * value`.
///
/// ```
/// # let mut catalog = ferroflow_graph::Catalog::new();
/// # ferroflow_ops::register(&mut catalog);
/// # let g = ferroflow_train::Graph::new(catalog.into());
/// use ferroflow_train::ExponentialMovingAverage;
/// let w = g.variable("w", 1.0);
/// let mut averages = ExponentialMovingAverage::new(0.99);
/// let update = averages.apply(&g, &[w.clone()], None); // to be run after each training step
/// assert_eq!(averages.average(&w).unwrap().variable_name(), "w/ExponentialMovingAverage");
/// ```
pub struct ExponentialMovingAverage {
    decay: f32,
    averages: Vec<(String, Variable)>,
}

impl ExponentialMovingAverage {
    pub fn new(decay: f32) -> ExponentialMovingAverage {
        ExponentialMovingAverage { decay, averages: Vec::new() }
    }

    /// An operation that brings the averages up to date. With `global_step` the average follows more
    /// quickly in the beginning.
    #[track_caller]
    pub fn apply(
        &mut self,
        graph: &Graph,
        variables: &[Variable],
        global_step: Option<&Variable>,
    ) -> Operation {
        let mut averages = Vec::with_capacity(variables.len());
        for v in variables {
            let name = join(v.variable_name(), "ExponentialMovingAverage");
            let shape = v.variable_shape().known().unwrap_or_default();
            let initial = v.initial_value();
            let start = init::Initializer::new(shape, move |_, _, _| initial.identity());
            graph.state().names.take(&name);
            let mut options = VariableOptions::untrained();
            options.collections.push(keys::MOVING_AVERAGE_VARIABLES.into());
            let average = graph.device(&v.device(), || {
                graph.make_variable(&name, start.of(v.dtype()), options, None)
            });
            averages.push((v.variable_name().to_string(), average));
        }
        let updates: Vec<Operation> = graph.name_scope("ExponentialMovingAverage", |_| {
            let decay = graph.named_constant("decay", self.decay);
            let decay = match global_step {
                Some(step) => {
                    let step = step.cast(DType::Float);
                    decay.minimum((&step + 1.0) / (&step + 10.0))
                }
                None => decay,
            };
            let update = |(v, (_, average)): (&Variable, &(String, Variable))| {
                let rest = (1.0 - &decay).cast(v.dtype());
                average.assign_sub((&**average - &**v) * rest)
            };
            variables.iter().zip(&averages).map(update).collect()
        });
        self.averages.extend(averages);
        graph.group("ExponentialMovingAverage/update", &updates)
    }

    /// The average of a variable.
    pub fn average(&self, variable: &Variable) -> Option<&Variable> {
        let name = variable.variable_name();
        self.averages.iter().find(|(of, _)| of == name).map(|(_, average)| average)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{graph, initialized};

    #[test]
    fn averages_follow() {
        let g = graph();
        let v = g.variable("v", 1.0);
        let mut mean = ExponentialMovingAverage::new(0.9);
        let update = mean.apply(&g, std::slice::from_ref(&v), None);
        let average = mean.average(&v).unwrap().clone();
        assert_eq!(average.variable_name(), "v/ExponentialMovingAverage");
        let s = initialized(&g).unwrap();
        s.run(v.assign(11.0)).unwrap();
        s.run(&update).unwrap();
        assert!((s.run(average.scalar::<f32>()).unwrap() - 2.0).abs() < 1e-6);
    }
}
