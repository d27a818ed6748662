//! Initial values of a model from a checkpoint of another one.

use crate::graph::Graph;
use crate::saver::{Saver, latest_checkpoint};
use crate::variable::Variable;
use ferroflow_core::{Result, ensure, err};
use std::path::{Path, PathBuf};

/// Which trainable variables start with values of a checkpoint; see
/// [`super::Estimator::warm_start`].
///
/// ```
/// use ferroflow_train::estimator::WarmStart;
/// let from = WarmStart::new("pretrained").only(&["dnn/"]).rename("dnn/logits/bias", "old/bias");
/// ```
#[derive(Clone, Debug)]
pub struct WarmStart {
    from: PathBuf,
    prefixes: Vec<String>,
    renames: Vec<(String, String)>,
}

impl WarmStart {
    /// All trainable variables, from a checkpoint or from the latest one of a folder.
    pub fn new(from: impl AsRef<Path>) -> WarmStart {
        let (prefixes, renames) = (Vec::new(), Vec::new());
        WarmStart { from: from.as_ref().to_path_buf(), prefixes, renames }
    }

    /// Only variables whose names begin with one of `prefixes`.
    #[must_use]
    pub fn only(mut self, prefixes: &[&str]) -> WarmStart {
        self.prefixes.extend(prefixes.iter().map(|prefix| prefix.to_string()));
        self
    }

    /// The name in the checkpoint of a variable that has another name now.
    #[must_use]
    pub fn rename(mut self, variable: &str, in_checkpoint: &str) -> WarmStart {
        self.renames.push((variable.into(), in_checkpoint.into()));
        self
    }

    /// A saver of the chosen variables, and the checkpoint to restore.
    #[track_caller]
    pub(super) fn saver(&self, g: &Graph) -> Result<(Saver, String)> {
        let path = match self.from.is_dir() {
            true => latest_checkpoint(&self.from),
            false => Some(self.from.display().to_string()),
        };
        let path = path.ok_or_else(|| {
            err!(NotFound, "warm start: there is no checkpoint in {}", self.from.display())
        })?;
        let name = |v: &Variable| match &v.info.slice {
            Some(slice) => slice.full_name.clone(),
            None => v.variable_name().to_string(),
        };
        let is_chosen = |v: &Variable| {
            let name = name(v);
            self.prefixes.is_empty() || self.prefixes.iter().any(|p| name.starts_with(p))
        };
        let renamed = |v: Variable| {
            let name = name(&v);
            let other = self.renames.iter().find(|(from, _)| *from == name);
            (other.map_or(name, |(_, to)| to.clone()), v)
        };
        let chosen = g.trainable_variables().into_iter().filter(is_chosen);
        let chosen: Vec<(String, Variable)> = chosen.map(renamed).collect();
        ensure!(
            !chosen.is_empty(),
            InvalidArgument,
            "warm start: no trainable variable begins with one of {:?}",
            self.prefixes
        );
        Ok((Saver::renamed(g, &chosen), path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimator::{ArrayInput, Estimator, LinearRegressor, RunConfig, Until};
    use crate::feature_column::numeric;
    use crate::optimizer::Sgd;
    use crate::testing::temporary;
    use ferroflow_core::{Code, Tensor};

    /// y = 3x + 1.
    fn line() -> ArrayInput {
        let xs: Vec<f32> = (0..32).map(|i| i as f32 / 16.0 - 1.0).collect();
        let ys: Vec<f32> = xs.iter().map(|x| 3.0 * x + 1.0).collect();
        ArrayInput::new(&[("x", Tensor::vector(&xs))]).labels(Tensor::vector(&ys)).batch(32)
    }

    fn loss_after(dir: &Path, rate: f32, steps: i64, from: Option<WarmStart>) -> Result<f64> {
        let model = LinearRegressor::new(vec![numeric("x").into()]).optimizer(Sgd::new(rate));
        let mut e = Estimator::new(model, RunConfig::new(dir).seed(1));
        if let Some(from) = from {
            e = e.warm_start(from);
        }
        e.train(|g| line().epochs(None).batches(g), Until::Steps(steps))?;
        Ok(e.evaluate(|g| line().batches(g), None)?["loss"])
    }

    #[test]
    fn training_starts_with_the_values_of_another_model() {
        let (first, second) = (temporary("warm-first"), temporary("warm-second"));
        assert!(loss_after(&first, 0.2, 200, None).unwrap() < 1e-6);
        let from = || Some(WarmStart::new(&first));
        // One step of almost no size keeps the values.
        assert!(loss_after(&second, 1e-9, 1, from()).unwrap() < 1e-6);
        // A folder with a checkpoint resumes, and its own values count.
        let other = temporary("warm-other");
        loss_after(&other, 1e-9, 1, None).unwrap();
        assert!(loss_after(&second, 1e-9, 1, Some(WarmStart::new(&other))).unwrap() < 1e-6);
        std::fs::remove_dir_all(&other).unwrap();
        std::fs::remove_dir_all(&second).unwrap();
        let bias_only = from().map(|from| from.only(&["linear/linear_model/bias"]));
        let loss = loss_after(&second, 1e-9, 1, bias_only).unwrap();
        assert!((loss - 3.0).abs() < 0.5, "the slope is still 0: {loss}");
        for dir in [first, second] {
            std::fs::remove_dir_all(&dir).unwrap();
        }
    }

    #[test]
    fn what_a_warm_start_lacks_is_named() {
        let dir = temporary("warm-missing");
        let e = loss_after(&dir, 0.1, 1, Some(WarmStart::new("/no/such"))).unwrap_err();
        assert_eq!(e.code(), Code::InvalidArgument, "{e}");
        assert!(e.to_string().contains("/no/such"), "{e}");
        let none = Some(WarmStart::new("/no/such").only(&["nothing"]));
        let e = loss_after(&dir, 0.1, 1, none).unwrap_err();
        assert!(e.message().contains("begins with one of [\"nothing\"]"), "{e}");
        let _ = std::fs::remove_dir_all(&dir);
    }
}
