//! Evaluates, predicts with and exports a checkpoint.

use super::{Batch, Estimator, Mode, ModelSpec, ServingInput};
use crate::events::{EventWriter, file_error};
use crate::graph::Graph;
use crate::metrics;
use crate::output::{Operation, Output};
use crate::saved_model::{DEFAULT_SIGNATURE, SavedModelBuilder, Signature};
use crate::saver::{Saver, latest_checkpoint};
use crate::session::Session;
use ferroflow_core::{Code, Result, Tensor, ensure, err};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Metrics of an evaluation, by name; `loss` and `global_step` are always present.
pub type Scores = BTreeMap<String, f64>;

impl Estimator {
    /// The latest checkpoint.
    pub fn latest_checkpoint(&self) -> Result<String> {
        latest_checkpoint(self.dir()).ok_or_else(|| {
            err!(NotFound, "there is no checkpoint in {}: train first", self.dir().display())
        })
    }

    /// A session of a graph with the values of a checkpoint.
    fn restored(&self, g: &Graph, checkpoint: &str) -> Result<Session> {
        let has_variables = !g.global_variables().is_empty();
        let saver = has_variables.then(|| Saver::new(g));
        let init = [g.local_initializer(), g.tables_initializer()];
        let session = (self.local)(g)?;
        if let Some(saver) = saver {
            saver.restore(&session, checkpoint)?;
        }
        session.run(init)?;
        Ok(session)
    }

    /// Evaluates the latest checkpoint on all batches of `input`, or on `steps` of them. Also
    /// writes the metrics as events to the directory `eval`.
    pub fn evaluate(&self, input: impl Fn(&Graph) -> Batch, steps: Option<u64>) -> Result<Scores> {
        self.evaluate_checkpoint(&self.latest_checkpoint()?, &input, steps, "eval")
    }

    /// [`Estimator::evaluate`] of one checkpoint, with the events in a directory of this name.
    pub fn evaluate_checkpoint(
        &self,
        checkpoint: &str,
        input: &dyn Fn(&Graph) -> Batch,
        steps: Option<u64>,
        name: &str,
    ) -> Result<Scores> {
        let g = self.graph();
        let global_step = g.global_step();
        let batch = input(&g);
        g.check()?;
        let spec = self.model.build(&g, &batch.features, batch.labels.as_ref(), Mode::Eval)?;
        let ModelSpec { loss, mut metrics, .. } = spec;
        let loss = loss.ok_or_else(|| err!(InvalidArgument, "the model has no loss"))?;
        metrics.entry("loss".into()).or_insert_with(|| metrics::mean(&loss));
        let updates: Vec<Operation> = metrics.values().map(|m| m.update.clone()).collect();
        let values: Vec<Output> = metrics.values().map(|m| m.value.clone()).collect();
        let session = self.restored(&g, checkpoint)?;
        let mut done = 0;
        while steps.is_none_or(|steps| done < steps) {
            match session.run(&updates) {
                Err(e) if e.code() == Code::OutOfRange => break,
                result => result?,
            };
            done += 1;
        }
        ensure!(done > 0, InvalidArgument, "there was nothing to evaluate on");
        let (values, step) = session.run((&values, global_step.scalar::<i64>()))?;
        session.close()?;
        let mut scores = Scores::new();
        let mut events = EventWriter::create(self.dir().join(name))?;
        for (name, value) in metrics.keys().zip(&values) {
            let value = value.scalar_value::<f32>()?;
            events.scalar(name, value, step)?;
            scores.insert(name.clone(), f64::from(value));
        }
        events.flush()?;
        scores.insert("global_step".into(), step as f64);
        Ok(scores)
    }

    /// Predictions of the latest checkpoint for the examples of `input`, one by one.
    pub fn predict(&self, input: impl Fn(&Graph) -> Batch) -> Result<Predictions> {
        let checkpoint = self.latest_checkpoint()?;
        let g = self.graph();
        g.global_step();
        let batch = input(&g);
        g.check()?;
        let spec = self.model.build(&g, &batch.features, None, Mode::Predict)?;
        ensure!(!spec.predictions.is_empty(), InvalidArgument, "the model predicts nothing");
        let session = self.restored(&g, &checkpoint)?;
        let (names, outputs) = spec.predictions.into_iter().unzip();
        Ok(Predictions { session, names, outputs, ready: VecDeque::new(), is_over: false })
    }

    /// Exports the latest checkpoint as a SavedModel to a directory under `base` that is named
    /// after the time, and returns that directory. `serving` makes the model's inputs.
    pub fn export(
        &self,
        base: impl AsRef<Path>,
        serving: impl Fn(&Graph) -> ServingInput,
    ) -> Result<PathBuf> {
        self.export_checkpoint(&self.latest_checkpoint()?, base.as_ref(), &serving)
    }

    pub(crate) fn export_checkpoint(
        &self,
        checkpoint: &str,
        base: &Path,
        serving: &dyn Fn(&Graph) -> ServingInput,
    ) -> Result<PathBuf> {
        let g = self.graph();
        g.global_step();
        let input = serving(&g);
        g.check()?;
        let spec = self.model.build(&g, &input.features, None, Mode::Predict)?;
        ensure!(!spec.predictions.is_empty(), InvalidArgument, "the model predicts nothing");
        let fed = |mut signature: Signature| {
            for (name, tensor) in &input.receivers {
                signature = signature.input(name, tensor);
            }
            signature
        };
        let mut predict = Signature::predict();
        for (name, tensor) in &spec.predictions {
            predict = predict.output(name, tensor);
        }
        let mut model = SavedModelBuilder::new(&g)
            .signature("predict", fed(predict.clone()))
            .signature(DEFAULT_SIGNATURE, fed(predict));
        for (name, signature) in spec.exports {
            // Classification and regression signatures take serialized examples only.
            if signature.is_predict() || input.has_examples {
                model = model.signature(&name, fed(signature));
            }
        }
        let session = self.restored(&g, checkpoint)?;
        let made = |dir: &Path| std::fs::create_dir_all(dir).map_err(|e| file_error(dir, &e));
        made(base)?;
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let mut number = time;
        while base.join(number.to_string()).exists() {
            number += 1;
        }
        // Rename at the end, so that a process that watches `base` sees complete models only.
        let temporary = base.join(format!("temp-{number}"));
        let whole = base.join(number.to_string());
        model.save(&session, &temporary)?;
        session.close()?;
        std::fs::rename(&temporary, &whole).map_err(|e| file_error(&whole, &e))?;
        Ok(whole)
    }
}

/// An iterator of predictions; see [`Estimator::predict`].
pub struct Predictions {
    session: Session,
    names: Vec<String>,
    outputs: Vec<Output>,
    ready: VecDeque<BTreeMap<String, Tensor>>,
    is_over: bool,
}

impl Predictions {
    /// Runs the next batch.
    fn fill(&mut self) -> Result<()> {
        let values = match self.session.run(&self.outputs) {
            Err(e) if e.code() == Code::OutOfRange => {
                self.is_over = true;
                return self.session.close();
            }
            result => result?,
        };
        let rows = values.iter().filter_map(|v| v.shape().first().copied()).min();
        let rows = rows.ok_or_else(|| err!(InvalidArgument, "the predictions have no rows"))?;
        for i in 0..rows {
            let row = self.names.iter().zip(&values).map(|(name, v)| Ok((name.clone(), v.row(i)?)));
            self.ready.push_back(row.collect::<Result<_>>()?);
        }
        Ok(())
    }
}

impl Iterator for Predictions {
    type Item = Result<BTreeMap<String, Tensor>>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !self.is_over {
            if let Err(e) = self.fill() {
                self.is_over = true;
                return Some(Err(e));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}
