//! Estimators: one program trains, evaluates, predicts with and exports a model, in one process or
//! as a task of a cluster.
//!
//! A [`Model`] builds its graph for a [`Mode`]. An [`Estimator`] makes the graph, opens the
//! session, and keeps checkpoints and events in one directory. Training resumes from there.
//!
//! ```
//! use ferroflow_train::estimator::{Mode, ModelSpec};
//! use ferroflow_train::feature_column::Features;
//! use ferroflow_train::{Graph, Optimizer, Output, Sgd, losses};
//! fn line(g: &Graph, features: &Features, labels: Option<&Output>, mode: Mode)
//!     -> ferroflow_core::Result<ModelSpec> {
//!     let y = features.tensor("x")? * &g.get_variable("w", 0.0);
//!     let spec = ModelSpec::new().prediction("y", &y);
//!     let Some(labels) = labels else { return Ok(spec) };
//!     let loss = losses::mean_squared_error(labels, &y);
//!     Ok(match mode {
//!         Mode::Train => {
//!             let train = Sgd::new(0.1).minimize_counted(&loss, &g.global_step());
//!             spec.loss(&loss).train(&train)
//!         }
//!         _ => spec.loss(&loss),
//!     })
//! }
//! ```

mod batch;
mod canned;
mod cluster;
mod evaluate;
mod head;
mod train_and_evaluate;
mod warm_start;

pub use batch::{ArrayInput, Batch, ServingInput};
pub use canned::{
    Body, Canned, Classes, Combined, Deep, DnnClassifier, DnnLinearCombinedClassifier,
    DnnLinearCombinedRegressor, DnnRegressor, Linear, LinearClassifier, LinearRegressor, Numbers,
    Purpose,
};
pub use cluster::{train_and_evaluate, train_and_evaluate_as};
pub use evaluate::{Predictions, Scores};
pub use train_and_evaluate::{EvalSpec, Role, TrainSpec, run_as};
pub use warm_start::WarmStart;

use crate::catalog::default_catalog;
use crate::device::ReplicaDeviceSetter;
use crate::feature_column::Features;
use crate::graph::Graph;
use crate::hooks::{Hook, NanGuard, StepCounter, StopAtStep, SummarySaver};
use crate::metrics::Metric;
use crate::monitored::MonitoredTraining;
use crate::output::{Operation, Output};
use crate::saved_model::Signature;
use crate::session::Session;
use crate::summary;
use crate::sync_replicas::SyncTraining;
use ferroflow_cluster::TfConfig;
use ferroflow_core::{Code, Result, err};
use ferroflow_graph::Catalog;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The purpose that a model is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Training.
    Train,
    /// Evaluation.
    Eval,
    /// Prediction.
    Predict,
}

/// A model function.
///
/// A closure `|graph, features, labels, mode| -> ModelSpec` is one. There are labels unless the
/// mode is [`Mode::Predict`].
pub trait Model: Send + Sync {
    /// Builds the model for a mode.
    fn build(
        &self,
        graph: &Graph,
        features: &Features,
        labels: Option<&Output>,
        mode: Mode,
    ) -> Result<ModelSpec>;
}

impl<F> Model for F
where
    F: Fn(&Graph, &Features, Option<&Output>, Mode) -> Result<ModelSpec> + Send + Sync,
{
    /// Builds the model for a mode.
    fn build(
        &self,
        graph: &Graph,
        features: &Features,
        labels: Option<&Output>,
        mode: Mode,
    ) -> Result<ModelSpec> {
        self(graph, features, labels, mode)
    }
}

/// The result of a model function: the tensors and ops that a mode needs.
#[derive(Default)]
pub struct ModelSpec {
    pub(crate) predictions: BTreeMap<String, Output>,
    pub(crate) loss: Option<Output>,
    pub(crate) train: Option<Training>,
    pub(crate) metrics: BTreeMap<String, Metric>,
    pub(crate) exports: BTreeMap<String, Signature>,
    pub(crate) hooks: Vec<Box<dyn Hook>>,
}

pub(crate) enum Training {
    Alone(Operation),
    InStep(Box<SyncTraining>),
}

impl ModelSpec {
    /// An empty specification.
    pub fn new() -> ModelSpec {
        ModelSpec::default()
    }

    /// A prediction for each example, by name; [`Mode::Predict`] requires one.
    #[must_use]
    pub fn prediction(mut self, name: &str, value: &Output) -> ModelSpec {
        self.predictions.insert(name.into(), value.clone());
        self
    }

    /// The loss of this batch; training and evaluation require it.
    #[must_use]
    pub fn loss(mut self, loss: &Output) -> ModelSpec {
        self.loss = Some(loss.clone());
        self
    }

    /// The op that trains the model and increments the global step.
    #[must_use]
    pub fn train(mut self, train: &Operation) -> ModelSpec {
        self.train = Some(Training::Alone(train.clone()));
        self
    }

    /// The synchronous training op of several replicas.
    #[must_use]
    pub fn train_in_step(mut self, train: &SyncTraining) -> ModelSpec {
        self.train = Some(Training::InStep(Box::new(train.clone())));
        self
    }

    /// A metric that evaluation reports besides the loss.
    #[must_use]
    pub fn metric(mut self, name: &str, metric: Metric) -> ModelSpec {
        self.metrics.insert(name.into(), metric);
        self
    }

    /// An additional signature of exports, by name; the estimator adds its inputs.
    #[must_use]
    pub fn export(mut self, name: &str, signature: Signature) -> ModelSpec {
        self.exports.insert(name.into(), signature);
        self
    }

    /// A hook that runs with each training step.
    #[must_use]
    pub fn hook(mut self, hook: impl Hook + 'static) -> ModelSpec {
        self.hooks.push(Box::new(hook));
        self
    }
}

/// When training stops, unless the data ends before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After this many more steps.
    Steps(i64),
    /// At this global step.
    GlobalStep(i64),
    /// At the end of the data.
    EndOfData,
}

/// Configuration of an estimator's runs.
#[derive(Clone)]
pub struct RunConfig {
    pub(crate) dir: PathBuf,
    pub(crate) seed: Option<i64>,
    pub(crate) save_steps: i64,
    pub(crate) summary_steps: i64,
    pub(crate) max_to_keep: usize,
    pub(crate) is_chief: bool,
    pub(crate) devices: Option<ReplicaDeviceSetter>,
}

impl RunConfig {
    /// One process, with checkpoints and events in `dir`. An empty one stands for the `model_dir`
    /// of TF_CONFIG.
    pub fn new(dir: impl AsRef<Path>) -> RunConfig {
        RunConfig {
            dir: dir.as_ref().to_path_buf(),
            seed: None,
            save_steps: 1000,
            summary_steps: 100,
            max_to_keep: 5,
            is_chief: true,
            devices: None,
        }
    }

    /// The folder that TF_CONFIG names. It is an error if this configuration names another one.
    pub(crate) fn in_dir_of(mut self, task: &TfConfig) -> Result<RunConfig> {
        let Some(dir) = &task.model_dir else { return Ok(self) };
        if !self.dir.as_os_str().is_empty() && self.dir != Path::new(dir) {
            return Err(err!(
                InvalidArgument,
                "model_dir is {} in the program and {dir} in TF_CONFIG: set one of them",
                self.dir.display()
            ));
        }
        self.dir = PathBuf::from(dir);
        Ok(self)
    }

    /// Seed of the random ops.
    #[must_use]
    pub fn seed(mut self, seed: i64) -> RunConfig {
        self.seed = Some(seed);
        self
    }

    /// Steps between two checkpoints.
    #[must_use]
    pub fn save_steps(mut self, steps: i64) -> RunConfig {
        self.save_steps = steps.max(1);
        self
    }

    /// Steps between two summaries.
    #[must_use]
    pub fn summary_steps(mut self, steps: i64) -> RunConfig {
        self.summary_steps = steps.max(1);
        self
    }

    /// Number of checkpoints to keep.
    #[must_use]
    pub fn max_to_keep(mut self, count: usize) -> RunConfig {
        self.max_to_keep = count;
        self
    }

    /// A task of a cluster: its device function, and whether it is the chief that initializes and
    /// saves.
    #[must_use]
    pub fn replica(mut self, devices: ReplicaDeviceSetter, is_chief: bool) -> RunConfig {
        (self.devices, self.is_chief) = (Some(devices), is_chief);
        self
    }
}

/// Opens sessions for the estimator's graphs.
pub type Opener = Arc<dyn Fn(&Graph) -> Result<Session> + Send + Sync>;

/// A model and its directory; see the module's documentation.
#[derive(Clone)]
pub struct Estimator {
    model: Arc<dyn Model>,
    config: RunConfig,
    catalog: Arc<Catalog>,
    /// Opens training sessions.
    train: Opener,
    /// Opens sessions in this process for evaluation and prediction.
    local: Opener,
    /// Initial values from another model.
    warm: Option<WarmStart>,
}

impl Estimator {
    /// An estimator whose sessions are in this process.
    ///
    /// ```
    /// use ferroflow_core::Tensor;
    /// use ferroflow_train::Sgd;
    /// use ferroflow_train::estimator::{ArrayInput, Estimator, LinearRegressor, RunConfig, Until};
    /// use ferroflow_train::feature_column::numeric;
    ///
    /// # let name = format!("ferroflow-doc-estimator-{}", std::process::id());
    /// # let dir = std::env::temp_dir().join(name);
    /// let data = ArrayInput::new(&[("x", Tensor::vector(&[0.0f32, 1.0, 2.0]))])
    ///     .labels(Tensor::vector(&[1.0f32, 3.0, 5.0]));
    /// let model = LinearRegressor::new(vec![numeric("x").into()]).optimizer(Sgd::new(0.1));
    /// let estimator = Estimator::new(model, RunConfig::new(&dir));
    /// estimator.train(|g| data.clone().epochs(None).batches(g), Until::Steps(200))?;
    /// let scores = estimator.evaluate(|g| data.batches(g), None)?;
    /// assert!(scores["loss"] < 0.01);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), ferroflow_core::Error>(())
    /// ```
    pub fn new(model: impl Model + 'static, config: RunConfig) -> Estimator {
        let local: Opener = Arc::new(Session::local);
        let (model, catalog, train) = (Arc::new(model), default_catalog(), local.clone());
        Estimator { model, config, catalog, train, local, warm: None }
    }

    /// Starts new training with values of a checkpoint of another model. Training that resumes
    /// ignores it.
    #[must_use]
    pub fn warm_start(mut self, from: WarmStart) -> Estimator {
        self.warm = Some(from);
        self
    }

    /// Uses other sessions for training, such as those of a cluster.
    #[must_use]
    pub fn trained_by(mut self, config: RunConfig, train: Opener) -> Estimator {
        (self.config, self.train) = (config, train);
        self
    }

    /// The directory of checkpoints and events.
    pub fn dir(&self) -> &Path {
        &self.config.dir
    }

    fn graph(&self) -> Graph {
        let graph = Graph::with_catalog(self.catalog.clone());
        if let Some(seed) = self.config.seed {
            graph.set_seed(seed);
        }
        graph
    }

    /// Runs `build` in the device scope of a replica.
    fn placed<R>(&self, graph: &Graph, build: impl FnOnce() -> R) -> R {
        match &self.config.devices {
            Some(devices) => graph.device(devices.clone(), build),
            None => build(),
        }
    }

    /// Trains on the batches of `input`, from the latest checkpoint if there is one. Returns the
    /// final global step.
    pub fn train(&self, input: impl Fn(&Graph) -> Batch, until: Until) -> Result<i64> {
        self.train_with(&input, until, Vec::new())
    }

    /// [`Estimator::train`] with additional hooks.
    pub fn train_with(
        &self,
        input: &dyn Fn(&Graph) -> Batch,
        until: Until,
        hooks: Vec<Box<dyn Hook>>,
    ) -> Result<i64> {
        let g = self.graph();
        let mut training = self.placed(&g, || -> Result<MonitoredTraining> {
            g.global_step();
            let batch = input(&g);
            g.check()?;
            let spec = self.model.build(&g, &batch.features, batch.labels.as_ref(), Mode::Train)?;
            g.check()?;
            let mut training = match &spec.train {
                Some(Training::Alone(train)) => MonitoredTraining::new(&g, train),
                Some(Training::InStep(sync)) => MonitoredTraining::synchronous(&g, sync),
                None => return Err(err!(InvalidArgument, "the model has nothing that trains it")),
            };
            if let Some(loss) = &spec.loss {
                summary::scalar("loss", loss);
                training = training.hook(NanGuard::new(loss));
            }
            for hook in spec.hooks {
                training = training.boxed_hook(hook);
            }
            Ok(training)
        })?;
        for hook in hooks {
            training = training.boxed_hook(hook);
        }
        if let Some(summaries) = summary::merge_all(&g) {
            training = training.hook(SummarySaver::new(&summaries, self.config.summary_steps));
        }
        training = training
            .hook(StepCounter::new(self.config.summary_steps))
            .chief(self.config.is_chief)
            .dir(&self.config.dir)
            .save_steps(self.config.save_steps)
            .max_to_keep(self.config.max_to_keep);
        if let Until::GlobalStep(step) = until {
            training = training.hook(StopAtStep(step));
        }
        if let Some(warm) = self.warm.as_ref().filter(|_| self.config.is_chief) {
            let (saver, path) = self.placed(&g, || warm.saver(&g))?;
            training = training.warm_start(saver, path);
        }
        let open = self.train.clone();
        let mut session = self.placed(&g, || training.open(move |g| open(g)))?;
        let last = match until {
            Until::Steps(n) => session.global_step().saturating_add(n),
            Until::GlobalStep(step) => step,
            Until::EndOfData => i64::MAX,
        };
        while session.global_step() < last && !session.should_stop() {
            match session.train(()) {
                Err(e) if e.code() == Code::OutOfRange => break,
                result => result?,
            }
        }
        let step = session.global_step();
        session.close()?;
        Ok(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature_column::{
        crossed, embedding, hashed, indicator, numeric, parse_spec, vocabulary,
    };
    use crate::optimizer::{Optimizer, Sgd};
    use crate::testing::temporary;
    use crate::{losses, metrics};
    use ferroflow_core::Tensor;

    fn estimator(model: impl Model + 'static, dir: &Path) -> Estimator {
        let config = RunConfig::new(dir).seed(1).save_steps(50).summary_steps(20);
        Estimator::new(model, config)
    }

    fn line() -> ArrayInput {
        let xs: Vec<f32> = (0..64).map(|i| i as f32 / 32.0 - 1.0).collect();
        let ys: Vec<f32> = xs.iter().map(|x| 3.0 * x + 1.0).collect();
        ArrayInput::new(&[("x", Tensor::vector(&xs))]).labels(Tensor::vector(&ys)).batch(16)
    }

    fn fit(
        _: &Graph,
        features: &Features,
        labels: Option<&Output>,
        mode: Mode,
    ) -> Result<ModelSpec> {
        let x = features.tensor("x")?;
        let g = x.graph();
        let y = x * &g.get_variable("w", 0.0) + &g.get_variable("b", 0.0);
        let spec = ModelSpec::new().prediction("y", &y);
        let Some(labels) = labels.filter(|_| mode != Mode::Predict) else { return Ok(spec) };
        let loss = losses::mean_squared_error(labels, &y);
        let spec = spec.loss(&loss).metric("error", metrics::mean(&(&y - labels).abs()));
        Ok(match mode {
            Mode::Train => spec.train(&Sgd::new(0.2).minimize_counted(&loss, &g.global_step())),
            _ => spec,
        })
    }

    #[test]
    fn a_model_is_trained_evaluated_used_and_exported() {
        let dir = temporary("estimator");
        let e = estimator(fit, &dir);
        let missing = e.evaluate(|g| line().batches(g), None).unwrap_err();
        assert!(missing.message().contains("train first"), "{missing}");
        let endless = |g: &Graph| line().epochs(None).shuffled().batches(g);
        assert_eq!(e.train(endless, Until::Steps(100)).unwrap(), 100);
        assert_eq!(e.train(endless, Until::GlobalStep(150)).unwrap(), 150);
        // 64 examples once are four batches of 16.
        assert_eq!(e.train(|g| line().batches(g), Until::EndOfData).unwrap(), 154);
        let scores = e.evaluate(|g| line().batches(g), None).unwrap();
        assert_eq!(scores["global_step"], 154.0);
        assert!(scores["loss"] < 1e-3 && scores["error"] < 0.05, "{scores:?}");
        let said: Vec<_> = e.predict(|g| line().batches(g)).unwrap().map(Result::unwrap).collect();
        assert_eq!(said.len(), 64);
        let y = said[0]["y"].scalar_value::<f32>().unwrap();
        assert!((y + 2.0).abs() < 0.1, "{y}");
        let raw = |g: &Graph| ServingInput::raw(g, &[("x", ferroflow_core::DType::Float, &[None])]);
        let exported = e.export(dir.join("export"), raw).unwrap();
        assert!(exported.join("saved_model.pb").exists());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn every_checkpoint_is_evaluated_when_alone() {
        let dir = temporary("alone");
        let e = estimator(fit, &dir);
        let train = TrainSpec::new(|g| line().epochs(None).batches(g), 120);
        let raw = |g: &Graph| ServingInput::raw(g, &[("x", ferroflow_core::DType::Float, &[None])]);
        let eval = EvalSpec::new(|g| line().batches(g)).export("last", raw);
        let scores = run_as(Role::Alone, &e, &train, &eval).unwrap().unwrap();
        assert_eq!(scores["global_step"], 120.0);
        // After steps 50, 100 and the last.
        assert_eq!(std::fs::read_dir(dir.join("eval")).unwrap().count(), 3);
        assert_eq!(std::fs::read_dir(dir.join("export/last")).unwrap().count(), 1);
        // Training is already complete, so only the evaluation runs.
        let again = run_as(Role::Alone, &e, &train, &eval).unwrap().unwrap();
        assert_eq!(again["loss"], scores["loss"]);
        let watched = run_as(Role::Evaluator, &e, &train, &eval).unwrap().unwrap();
        assert_eq!(watched["loss"], scores["loss"]);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    /// Class 1 where word and sign agree, which a linear model can learn only from the cross.
    fn agreement() -> ArrayInput {
        let (mut words, mut numbers, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..40 {
            let (is_up, is_positive) = (i % 2 == 0, i / 2 % 2 == 0);
            words.push(if is_up { "up" } else { "down" }.to_string());
            numbers.push(if is_positive { 1.0f32 } else { -1.0 } * (1.0 + i as f32 / 40.0));
            labels.push(i64::from(is_up == is_positive));
        }
        let words = crate::value::strings(&words).unwrap();
        ArrayInput::new(&[("word", words), ("n", Tensor::vector(&numbers))])
            .labels(Tensor::vector(&labels))
            .batch(20)
    }

    #[test]
    fn canned_models_learn_what_columns_tell() {
        let word = || vocabulary("word", &["up", "down"]);
        let sign = || crate::feature_column::bucketized(&numeric("n"), &[0.0]);
        let cross = || crossed(&[word().into(), sign().into()], 32);
        let linear = LinearClassifier::new(vec![cross().into(), sign().into()], 2);
        let deep = DnnClassifier::new(
            vec![numeric("n").into(), indicator(&word()), embedding(&hashed("word", 8), 2).into()],
            &[16, 8],
            2,
        );
        let three = DnnClassifier::new(vec![indicator(&cross())], &[8], 3);
        let models: [(&str, Arc<dyn Model>); 3] =
            [("linear", Arc::new(linear)), ("deep", Arc::new(deep)), ("three", Arc::new(three))];
        for (name, model) in models {
            let dir = temporary(name);
            let shared = model.clone();
            let model = move |g: &Graph, f: &Features, l: Option<&Output>, m: Mode| {
                shared.build(g, f, l, m)
            };
            let e = estimator(model, &dir);
            let input = |g: &Graph| agreement().epochs(None).shuffled().batches(g);
            e.train(input, Until::Steps(400)).unwrap();
            let scores = e.evaluate(|g| agreement().batches(g), None).unwrap();
            assert!(scores["accuracy"] > 0.95, "{name}: {scores:?}");
            assert_eq!(scores.contains_key("auc"), name != "three");
            let first = e.predict(|g| agreement().batches(g)).unwrap().next().unwrap().unwrap();
            assert_eq!(first["classes"].strings().unwrap()[0], "1", "{name}");
            let spec = parse_spec(&[cross().into(), numeric("n").into(), hashed("word", 8).into()]);
            let examples = move |g: &Graph| ServingInput::examples(g, &spec);
            assert!(e.export(dir.join("export"), examples).unwrap().exists(), "{name}");
            std::fs::remove_dir_all(&dir).unwrap();
        }
    }

    #[test]
    fn canned_regressors_fit_lines() {
        let linear = LinearRegressor::new(vec![numeric("x").into()]);
        let deep = DnnRegressor::new(vec![numeric("x").into()], &[16]);
        let models: [(&str, Arc<dyn Model>); 2] =
            [("line", Arc::new(linear)), ("curve", Arc::new(deep))];
        for (name, model) in models {
            let dir = temporary(name);
            let model =
                move |g: &Graph, f: &Features, l: Option<&Output>, m: Mode| model.build(g, f, l, m);
            let e = estimator(model, &dir);
            e.train(|g| line().epochs(None).batches(g), Until::Steps(600)).unwrap();
            let scores = e.evaluate(|g| line().batches(g), None).unwrap();
            assert!(scores["average_loss"] < 0.1, "{name}: {scores:?}");
            assert!((scores["label/mean"] - 0.95).abs() < 0.1, "{name}: {scores:?}");
            std::fs::remove_dir_all(&dir).unwrap();
        }
    }
}
