//! One loaded version of a model.

use crate::batch::Batcher;
use crate::config::BatchingOptions;
use crate::metrics::ModelMetrics;
use crate::wire::{self, SignatureDefs};
use ferroflow_core::{CancelToken, Error, Gpu, Quota, Result, Tensor, err, limits};
use ferroflow_runtime::{RunRequest, SessionDone, SessionOptions, Task, TaskSession};
use ferroflow_train::{SERVE, SavedModel, Signature, default_catalog, read_model_file};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tokio::sync::oneshot;

/// A version whose graph is loaded and whose variables are restored.
pub(crate) struct ModelVersion {
    pub name: String,
    pub number: i64,
    pub metrics: ModelMetrics,
    /// The signatures as they are in the file.
    pub definitions: SignatureDefs,
    signatures: BTreeMap<String, Signature>,
    steps: Arc<Steps>,
    batcher: Option<Arc<Batcher>>,
}

/// Runs steps of a version's session.
pub(crate) struct Steps {
    session: Arc<TaskSession>,
    /// The steps under way.
    running: Arc<Quota>,
    name: String,
}

/// A version that is being loaded.
#[derive(Clone, Default)]
pub(crate) struct LoadingVersion(Arc<OnceLock<Arc<TaskSession>>>);

impl LoadingVersion {
    /// Cancels the steps of the loading.
    pub fn give_up(&self) {
        if let Some(session) = self.0.get() {
            session.close(Box::new(|| {}));
        }
    }
}

/// Options for loading versions.
#[derive(Clone, Default)]
pub(crate) struct LoadOptions {
    pub gpus: Vec<Arc<dyn Gpu>>,
    pub batching: Option<BatchingOptions>,
}

impl ModelVersion {
    /// Loads the SavedModel of a folder. This takes a while and must not run on a network thread.
    /// `loading` can cancel it.
    pub fn load(
        name: &str,
        number: i64,
        folder: &Path,
        options: &LoadOptions,
        metrics: ModelMetrics,
        loading: &LoadingVersion,
    ) -> Result<ModelVersion> {
        let open = |graph: &ferroflow_graph::GraphDef| {
            let task = Task::with_gpus(default_catalog(), "localhost", 0, 1, &options.gpus);
            let session = SessionOptions { allow_soft_placement: true, ..Default::default() };
            let session = Arc::new(TaskSession::new(task, graph, session)?);
            let _ = loading.0.set(session.clone());
            Ok(session)
        };
        let model = SavedModel::load_with(folder, &[SERVE], open)?;
        let session = loading.0.get().cloned();
        let session = session.ok_or_else(|| err!(Internal, "the model has no session"))?;
        let bytes = read_model_file(&folder.join("saved_model.pb"))?;
        let definitions = wire::signatures_of(bytes.into(), SERVE)?;
        let running = Quota::new(limits().steps);
        let steps = Arc::new(Steps { session, running, name: format!("model {name:?}") });
        let batching = options.batching.clone();
        let batcher =
            batching.map(|batching| Batcher::new(batching, steps.clone(), metrics.clone()));
        let signatures = model.signatures().clone();
        Ok(ModelVersion {
            name: name.into(),
            number,
            metrics,
            definitions,
            signatures,
            steps,
            batcher,
        })
    }

    /// The signature with this name.
    pub fn signature(&self, name: &str) -> Option<&Signature> {
        self.signatures.get(name)
    }

    /// The name of the version in logs and errors.
    pub fn label(&self) -> String {
        format!("{}:{}", self.name, self.number)
    }

    /// Feeds and fetches tensors by name, in a batch if requests are batched.
    pub async fn run(
        &self,
        feeds: Vec<(String, Tensor)>,
        fetches: Vec<String>,
    ) -> Result<Vec<Tensor>> {
        match &self.batcher {
            Some(batcher) => batcher.run(feeds, fetches).await,
            None => self.steps.run(feeds, fetches).await,
        }
    }
}

impl Steps {
    /// Runs a step. Dropping the future cancels it.
    pub async fn run(
        &self,
        feeds: Vec<(String, Tensor)>,
        fetches: Vec<String>,
    ) -> Result<Vec<Tensor>> {
        let _place = self.running.take(1, &self.name)?;
        let request = RunRequest { feeds, fetches, ..RunRequest::default() };
        let cancel = CancelToken::new();
        let guard = CancelOnDrop(cancel.clone());
        let (tell, told) = oneshot::channel();
        let done: SessionDone = Box::new(move |result| drop(tell.send(result)));
        if let Some(run) = self.session.run_if_quick(request, cancel, done) {
            // The first step of its kind is compiled, which takes a while.
            tokio::task::spawn_blocking(run)
                .await
                .map_err(|e| err!(Internal, "cannot start the step: {e}"))?;
        }
        let output = told.await.map_err(|_| err!(Internal, "a step ended without a result"))?;
        drop(guard);
        Ok(output?.tensors)
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        // The version has no more requests: releases its variables.
        self.session.close(Box::new(|| {}));
    }
}

/// Cancels a step whose future is dropped.
struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel(Error::new(ferroflow_core::Code::Cancelled, "the request was cancelled"));
    }
}
