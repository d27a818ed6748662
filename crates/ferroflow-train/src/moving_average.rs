//! Exponential moving averages of variables, which often make better models than the variables.

use crate::graph::{Graph, keys};
use crate::init;
use crate::names::join;
use crate::output::Operation;
use crate::variable::{Variable, VariableOptions};
use ferroflow_core::DType;

/// The suffix of the names of averages.
const AVERAGE: &str = "ExponentialMovingAverage";

/// Keeps `average = decay * average + (1 - decay) * value` for each of some variables.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
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
    /// Averages with this decay.
    pub fn new(decay: f32) -> ExponentialMovingAverage {
        ExponentialMovingAverage { decay, averages: Vec::new() }
    }

    /// An operation that updates the averages, after the current control dependencies. With
    /// `global_step` the decay is smaller in the first steps.
    ///
    /// ```
    /// # let g = ferroflow_train::Graph::new();
    /// use ferroflow_train::{ExponentialMovingAverage, Optimizer, Sgd};
    /// let w = g.variable("w", 1.0);
    /// let step = g.global_step();
    /// let train = Sgd::new(0.1).minimize_counted(&w.square(), &step);
    /// let mut averages = ExponentialMovingAverage::new(0.99);
    /// let train_and_average = g.control_dependencies(&[train], || {
    ///     averages.apply(&g, &[w.clone()], Some(&step))
    /// });
    /// assert!(g.check().is_ok());
    /// ```
    #[track_caller]
    pub fn apply(
        &mut self,
        graph: &Graph,
        variables: &[Variable],
        global_step: Option<&Variable>,
    ) -> Operation {
        let mut averages = Vec::with_capacity(variables.len());
        for v in variables {
            let name = join(v.variable_name(), AVERAGE);
            let shape = v.variable_shape().known().unwrap_or_default();
            let initial = v.initial_value();
            let start = init::Initializer::new(shape, move |_, _, _| initial.identity());
            graph.state().names.take(&name);
            let mut options = VariableOptions::untrained();
            options.collections.push(keys::MOVING_AVERAGE_VARIABLES.into());
            // A checkpoint holds the averages of a partitioned variable as one tensor.
            let slice = v.info.slice.clone().map(|mut slice| {
                slice.full_name = join(&slice.full_name, AVERAGE);
                slice
            });
            let average = graph.device(&v.device(), || {
                graph.make_variable(&name, start.of(v.dtype()), options, slice)
            });
            averages.push((v.variable_name().to_string(), average));
        }
        let updates: Vec<Operation> = graph.name_scope(AVERAGE, |_| {
            let decay = graph.named_constant("decay", self.decay);
            let decay = match global_step {
                Some(step) => {
                    let step = step.read().cast(DType::Float);
                    decay.minimum((&step + 1.0) / (&step + 10.0))
                }
                None => decay,
            };
            let update = |(v, (_, average)): (&Variable, &(String, Variable))| {
                let rest = (1.0 - &decay).cast(v.dtype());
                // Read here, after the control dependencies: usually a training step.
                graph.device(&v.device(), || average.assign_sub((average.read() - v.read()) * rest))
            };
            variables.iter().zip(&averages).map(update).collect()
        });
        self.averages.extend(averages);
        graph.group("ExponentialMovingAverage/update", &updates)
    }

    /// The names in a training checkpoint from which an evaluation restores its variables: trained
    /// variables from their averages. Pass them to [`crate::Saver::renamed`] in a graph without
    /// averages.
    ///
    /// ```
    /// # let g = ferroflow_train::Graph::new();
    /// use ferroflow_train::{ExponentialMovingAverage, Saver};
    /// let w = g.variable("w", 1.0);
    /// let averages = ExponentialMovingAverage::new(0.99);
    /// let saver = Saver::renamed(&g, &averages.variables_to_restore(&g));
    /// // saver.restore(&session, &latest_checkpoint("out")?)?;
    /// assert!(g.check().is_ok());
    /// ```
    pub fn variables_to_restore(&self, graph: &Graph) -> Vec<(String, Variable)> {
        let averages = graph.variables_of(keys::MOVING_AVERAGE_VARIABLES);
        let is_average = |v: &Variable| averages.iter().any(|a| a.info.index == v.info.index);
        let variables = graph.global_variables().into_iter().filter(|v| !is_average(v));
        let named = variables.map(|v| {
            let name = match &v.info.slice {
                Some(slice) => slice.full_name.clone(),
                None => v.variable_name().to_string(),
            };
            let name = if v.is_trainable() { join(&name, AVERAGE) } else { name };
            (name, v)
        });
        named.collect()
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
    use crate::optimizer::{Optimizer, Sgd};
    use crate::saver::Saver;
    use crate::testing::{floats, graph, initialized, session, temporary};

    #[test]
    fn averages_follow_their_variables() {
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

    #[test]
    fn averages_are_of_the_values_after_the_update() {
        let g = graph();
        let (v, step) = (g.variable("v", 1.0), g.global_step());
        let train = Sgd::new(0.5).minimize_counted(&(&*v * 2.0), &step);
        let mut mean = ExponentialMovingAverage::new(0.99);
        let update = g.control_dependencies(&[train], || {
            mean.apply(&g, std::slice::from_ref(&v), Some(&step))
        });
        let average = mean.average(&v).unwrap().clone();
        let s = initialized(&g).unwrap();
        // As TensorFlow has them, with num_updates.
        for expected in [0.181_818_19, -0.704_545_5, -1.601_398_7, -2.500_499_5] {
            s.run(&update).unwrap();
            let value = s.run(average.scalar::<f32>()).unwrap();
            assert!((value - expected).abs() < 1e-6, "{value} {expected}");
        }
    }

    #[test]
    fn an_evaluation_restores_the_averages() {
        let dir = temporary("averages");
        let path = {
            let g = graph();
            let v = g.variable("v", 1.0);
            let parts = g.partitioned_variable("p", init::ones([3, 1]), 2);
            let mut all = parts.parts().to_vec();
            all.push(v.clone());
            let mut mean = ExponentialMovingAverage::new(0.5);
            let update = mean.apply(&g, &all, None);
            g.global_step();
            let saver = Saver::new(&g);
            let s = initialized(&g).unwrap();
            s.run([v.assign(3.0), parts.parts()[1].assign([[5.0]])]).unwrap();
            s.run(&update).unwrap();
            saver.save(&s, dir.join("model"), None).unwrap()
        };
        let g = graph();
        let (v, step) = (g.variable("v", 0.0), g.global_step());
        let parts = g.partitioned_variable("p", init::zeros([3, 1]), 3);
        let mean = ExponentialMovingAverage::new(0.5);
        let saver = Saver::renamed(&g, &mean.variables_to_restore(&g));
        let s = session(&g).unwrap();
        saver.restore(&s, &path).unwrap();
        let (v, whole, step) =
            s.run((v.scalar::<f32>(), parts.whole(), step.scalar::<i64>())).unwrap();
        assert_eq!((v, floats(&whole), step), (2.0, vec![1.0, 1.0, 3.0], 0));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
