//! The models of a server: the versions that exist and that serve, and how new ones replace old
//! ones.
//!
//! A new version is loaded beside the old one, and published when it can serve. Requests hold the
//! version that they use, so the old version answers its requests and ends with the last of them.

use crate::config::{self, BatchingOptions, ModelSource};
use crate::metrics::{ModelMetrics, ServeMetrics};
use crate::model::{LoadOptions, LoadingVersion, ModelVersion};
use crate::version_dirs::{last_change, versions};
use crate::warmup::warm_up;
use crate::wire::{ModelSpec, VersionChoice};
use ferroflow_core::{Error, Gpu, Result, ensure, err};
use futures_util::future::join_all;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};
use tokio::task::JoinSet;

/// How models are loaded and watched.
#[derive(Clone)]
pub struct ModelsOptions {
    /// Joins requests to batches.
    pub batching: Option<BatchingOptions>,
    /// The GPUs that models may use.
    pub gpus: Vec<Arc<dyn Gpu>>,
    /// The interval between checks of the models' folders; zero checks only once.
    pub poll: Duration,
    /// Lets labels name versions that do not serve.
    pub allow_labels_of_unavailable: bool,
    /// Runs the warm-up requests of a version before it serves.
    pub warm_up: bool,
    /// The time after which loading a version counts as failed. Other models do not wait for it.
    pub load_timeout: Duration,
}

impl Default for ModelsOptions {
    fn default() -> ModelsOptions {
        ModelsOptions {
            batching: None,
            gpus: Vec::new(),
            poll: Duration::from_secs(1),
            allow_labels_of_unavailable: false,
            warm_up: true,
            load_timeout: Duration::from_secs(600),
        }
    }
}

/// The state of a version, with TensorFlow Serving's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionState {
    /// Found, but not loaded yet.
    Start,
    /// Being loaded.
    Loading,
    /// Serves.
    Available,
    /// Answers its last requests.
    Unloading,
    /// Unloaded, or could not be loaded.
    End,
}

impl VersionState {
    /// The name in answers.
    pub fn name(self) -> &'static str {
        match self {
            VersionState::Start => "START",
            VersionState::Loading => "LOADING",
            VersionState::Available => "AVAILABLE",
            VersionState::Unloading => "UNLOADING",
            VersionState::End => "END",
        }
    }
}

/// A version and its state.
#[derive(Clone, Debug)]
pub struct VersionStatus {
    /// Its number.
    pub version: i64,
    /// Its state.
    pub state: VersionState,
    /// Why it could not be loaded.
    pub error: Option<Error>,
}

/// All models of a server.
pub struct Models {
    options: ModelsOptions,
    load: LoadOptions,
    entries: RwLock<Arc<BTreeMap<String, Arc<ModelEntry>>>>,
    pub(crate) metrics: Arc<ServeMetrics>,
    /// Locked while the set of models is replaced.
    changing: tokio::sync::Mutex<()>,
}

struct ModelEntry {
    name: String,
    metrics: ModelMetrics,
    state: Mutex<EntryState>,
    /// Locked while versions are loaded and unloaded.
    changing: tokio::sync::Mutex<()>,
}

struct EntryState {
    source: ModelSource,
    labels: BTreeMap<String, i64>,
    versions: BTreeMap<i64, VersionSlot>,
    /// The last problem of its folder, which is logged only once.
    problem: String,
}

struct VersionSlot {
    folder: PathBuf,
    state: VersionState,
    error: Option<Error>,
    serving: Option<Arc<ModelVersion>>,
    /// A former version that may still answer requests.
    leaving: Weak<ModelVersion>,
    /// The last change of its files when it was loaded.
    changed: Option<SystemTime>,
}

impl Models {
    /// No models.
    pub fn new(options: ModelsOptions) -> Arc<Models> {
        let load = LoadOptions { gpus: options.gpus.clone(), batching: options.batching.clone() };
        Arc::new(Models {
            options,
            load,
            entries: RwLock::default(),
            metrics: ServeMetrics::new(),
            changing: tokio::sync::Mutex::default(),
        })
    }

    /// Serves these models and no others. Returns when their versions are loaded. Fails if a model
    /// has no version that serves, or if a label names a version that does not.
    pub async fn set(&self, sources: Vec<ModelSource>) -> Result<()> {
        config::check(&sources)?;
        let _changing = self.changing.lock().await;
        let before = self.entries();
        let entry = |source: ModelSource| {
            let name = source.name.clone();
            let entry = match before.get(&name) {
                Some(entry) => {
                    entry.state.lock().source = source;
                    entry.clone()
                }
                None => Arc::new(ModelEntry::new(source, self.metrics.of_model(&name))),
            };
            (name, entry)
        };
        let now: BTreeMap<_, _> = sources.into_iter().map(entry).collect();
        *self.entries.write() = Arc::new(now.clone());
        for (name, entry) in before.iter().filter(|(name, _)| !now.contains_key(*name)) {
            tracing::info!("model {name:?} is no longer served");
            entry.unload(|_| true);
        }
        // Concurrently, so that a slow or hostile model does not delay the others.
        join_all(now.values().map(|entry| entry.update(&self.load, &self.options))).await;
        let mut problem = None;
        for entry in now.values() {
            let result = entry
                .ensure_serves()
                .and_then(|()| entry.set_labels(self.options.allow_labels_of_unavailable));
            if let Err(e) = result {
                tracing::warn!("{}", e.message());
                problem.get_or_insert(e);
            }
        }
        problem.map_or(Ok(()), Err)
    }

    /// Checks for new versions until the future is dropped. Skips models whose versions are being
    /// loaded.
    pub async fn watch(self: &Arc<Self>) {
        if self.options.poll.is_zero() {
            return std::future::pending().await;
        }
        let mut updates = JoinSet::new();
        loop {
            tokio::time::sleep(self.options.poll).await;
            while updates.try_join_next().is_some() {}
            let entries = self.entries();
            for entry in entries.values().filter(|entry| entry.changing.try_lock().is_ok()) {
                let (me, entry) = (self.clone(), entry.clone());
                updates.spawn(async move { me.update_one(&entry).await });
            }
        }
    }

    /// Loads versions that have appeared, and unloads those that are not wanted.
    pub async fn update(&self) {
        let entries = self.entries();
        join_all(entries.values().map(|entry| self.update_one(entry))).await;
    }

    async fn update_one(&self, entry: &ModelEntry) {
        entry.update(&self.load, &self.options).await;
        // Sets labels of versions that have just begun to serve.
        let _ = entry.set_labels(self.options.allow_labels_of_unavailable);
    }

    /// Reads a configuration file periodically until the future is dropped, and serves the models
    /// that it names. A file that cannot be read or served changes no model that serves.
    pub async fn follow(&self, file: &Path, every: Duration) {
        let mut last = ModelSource::read_config(file).ok();
        loop {
            tokio::time::sleep(every).await;
            let path = file.to_path_buf();
            let read = tokio::task::spawn_blocking(move || ModelSource::read_config(&path)).await;
            match read.unwrap_or_else(|e| Err(err!(Internal, "{e}"))) {
                Ok(now) if last.as_ref() != Some(&now) => {
                    last = Some(now.clone());
                    // `set` logs which models do not serve.
                    let _ = self.set(now).await;
                }
                Ok(_) => {}
                Err(e) => tracing::warn!("{}", e.message()),
            }
        }
    }

    /// The names of the models.
    pub fn names(&self) -> Vec<String> {
        self.entries().keys().cloned().collect()
    }

    /// Whether there are models, and all of them serve.
    pub fn is_healthy(&self) -> bool {
        let entries = self.entries();
        !entries.is_empty() && entries.values().all(|entry| entry.ensure_serves().is_ok())
    }

    /// Whether a model of this name serves. `None` if there is none.
    pub fn serves(&self, name: &str) -> Option<bool> {
        self.entries().get(name).map(|entry| entry.ensure_serves().is_ok())
    }

    fn entries(&self) -> Arc<BTreeMap<String, Arc<ModelEntry>>> {
        self.entries.read().clone()
    }

    /// The version that a request is for.
    pub(crate) fn find(&self, spec: &ModelSpec) -> Result<Arc<ModelVersion>> {
        ensure!(!spec.name.is_empty(), InvalidArgument, "ModelSpec has no name specified.");
        let missing = || {
            let asked = match &spec.version {
                Some(VersionChoice::Number(n)) => format!("Specific({}, {n})", spec.name),
                _ => format!("Latest({})", spec.name),
            };
            err!(NotFound, "Servable not found for request: {asked}")
        };
        let entries = self.entries();
        let entry = entries.get(&spec.name).ok_or_else(missing)?;
        let number = match &spec.version {
            None => None,
            Some(VersionChoice::Number(number)) => Some(*number),
            Some(VersionChoice::Label(label)) => Some(entry.labelled(label)?),
        };
        entry.serving(number).ok_or_else(|| match (&spec.version, number) {
            (Some(VersionChoice::Label(_)), Some(number)) => {
                err!(NotFound, "Servable not found for request: Specific({}, {number})", spec.name)
            }
            _ => missing(),
        })
    }

    /// The states of a model's versions, the latest first.
    pub(crate) fn status(&self, spec: &ModelSpec) -> Result<Vec<VersionStatus>> {
        ensure!(!spec.name.is_empty(), InvalidArgument, "ModelSpec has no name specified.");
        let entries = self.entries();
        let entry = entries.get(&spec.name);
        let entry = entry
            .ok_or_else(|| err!(NotFound, "Could not find any versions of model {}", spec.name))?;
        let number = match &spec.version {
            None => None,
            Some(VersionChoice::Number(number)) => Some(*number),
            Some(VersionChoice::Label(label)) => Some(entry.labelled(label)?),
        };
        let found = entry.status(number);
        if found.is_empty() {
            return Err(match number {
                Some(n) => err!(NotFound, "Could not find version {n} of model {}", spec.name),
                None => err!(NotFound, "Could not find any versions of model {}", spec.name),
            });
        }
        Ok(found)
    }
}

impl ModelEntry {
    fn new(source: ModelSource, metrics: ModelMetrics) -> ModelEntry {
        let name = source.name.clone();
        let (labels, versions) = (BTreeMap::new(), BTreeMap::new());
        let state = EntryState { source, labels, versions, problem: String::new() };
        let changing = tokio::sync::Mutex::default();
        ModelEntry { name, metrics, state: Mutex::new(state), changing }
    }

    /// The version that serves with this number, or the latest.
    fn serving(&self, number: Option<i64>) -> Option<Arc<ModelVersion>> {
        let state = self.state.lock();
        match number {
            Some(number) => state.versions.get(&number)?.serving.clone(),
            None => state.versions.values().rev().find_map(|slot| slot.serving.clone()),
        }
    }

    fn labelled(&self, label: &str) -> Result<i64> {
        let found = self.state.lock().labels.get(label).copied();
        found.ok_or_else(|| err!(InvalidArgument, "Unrecognized servable version label: {label}"))
    }

    fn ensure_serves(&self) -> Result<()> {
        let state = self.state.lock();
        if state.versions.values().any(|slot| slot.serving.is_some()) {
            return Ok(());
        }
        let failed = state.versions.values().rev().find_map(|slot| slot.error.clone());
        Err(match failed {
            Some(e) => Error::new(e.code(), format!("model {:?}: {}", self.name, e.message())),
            None if state.problem.is_empty() => {
                let path = state.source.path.display();
                err!(NotFound, "model {:?} has no version in {path} that may serve", self.name)
            }
            None => err!(NotFound, "model {:?}: {}", self.name, state.problem),
        })
    }

    /// Applies the labels of the configuration.
    fn set_labels(&self, of_unavailable: bool) -> Result<()> {
        let mut state = self.state.lock();
        let EntryState { source, labels, versions, .. } = &mut *state;
        let mut problem = Ok(());
        let mut now = BTreeMap::new();
        for (label, &number) in &source.labels {
            let serves = versions.get(&number).is_some_and(|slot| slot.serving.is_some());
            // A label in use stays with its version, even while that version ends.
            if serves || of_unavailable || labels.get(label) == Some(&number) {
                now.insert(label.clone(), number);
                continue;
            }
            // The label keeps its old version until the new one serves.
            if let Some(&old) = labels.get(label) {
                now.insert(label.clone(), old);
            }
            problem = Err(err!(
                FailedPrecondition,
                "label {label:?} of model {:?} names version {number}, which does not serve",
                self.name
            ));
        }
        *labels = now;
        problem
    }

    fn status(&self, number: Option<i64>) -> Vec<VersionStatus> {
        let state = self.state.lock();
        let wanted = state.versions.iter().rev().filter(|(n, _)| number.is_none_or(|x| x == **n));
        let status = |(&version, slot): (&i64, &VersionSlot)| {
            let has_left = slot.leaving.strong_count() == 0;
            let state = match slot.state {
                VersionState::Unloading if has_left => VersionState::End,
                state => state,
            };
            VersionStatus { version, state, error: slot.error.clone() }
        };
        wanted.map(status).collect()
    }

    /// Loads and unloads versions to match the folder.
    async fn update(&self, load: &LoadOptions, options: &ModelsOptions) {
        let _changing = self.changing.lock().await;
        let source = self.state.lock().source.clone();
        let path = source.path.clone();
        // The folder may be on a dead mount.
        let found = in_time(options.load_timeout, on_own_thread(move || versions(&path))).await;
        let there = match found.and_then(|found| found) {
            Ok(there) => there,
            Err(e) => return self.report(e.message()),
        };
        if there.is_empty() {
            self.report(&format!(
                "{} has no version: expected saved_model.pb in it, or in subfolders named by \
                 numbers such as 1",
                source.path.display()
            ));
        } else {
            self.state.lock().problem.clear();
        }
        let wanted = source.versions.pick(there);
        for (&number, folder) in &wanted {
            let of = folder.clone();
            let changed = on_own_thread(move || last_change(&of));
            let changed = in_time(options.load_timeout, changed).await.ok().flatten();
            if self.is_loaded(number, folder, changed) {
                continue;
            }
            self.load(number, folder.clone(), changed, load, options).await;
        }
        let serves_wanted = {
            let state = self.state.lock();
            let serves =
                |number: &i64| state.versions.get(number).is_some_and(|s| s.serving.is_some());
            wanted.is_empty() || wanted.keys().any(serves)
        };
        // An old version serves until a new one does.
        if serves_wanted {
            self.unload(|number| !wanted.contains_key(&number));
        }
    }

    /// Logs a problem of the folder once.
    fn report(&self, problem: &str) {
        let mut state = self.state.lock();
        if state.problem != problem {
            state.problem = problem.to_string();
            tracing::warn!("model {:?}: {problem}", self.name);
        }
    }

    /// Whether a version needs no loading: it serves, or its unchanged files could not be loaded.
    fn is_loaded(&self, number: i64, folder: &Path, changed: Option<SystemTime>) -> bool {
        self.state.lock().versions.get(&number).is_some_and(|slot| {
            let has_failed = slot.error.is_some() && slot.changed == changed;
            slot.folder == *folder && (slot.serving.is_some() || has_failed)
        })
    }

    async fn load(
        &self,
        number: i64,
        folder: PathBuf,
        changed: Option<SystemTime>,
        load: &LoadOptions,
        options: &ModelsOptions,
    ) {
        {
            // Under one lock, so that the version is never missing.
            let mut state = self.state.lock();
            let serving = state.versions.remove(&number).and_then(|slot| slot.serving);
            let slot = VersionSlot {
                folder: folder.clone(),
                state: VersionState::Loading,
                error: None,
                serving,
                leaving: Weak::new(),
                changed,
            };
            state.versions.insert(number, slot);
        }
        let begin = Instant::now();
        let (name, metrics, load) = (self.name.clone(), self.metrics.clone(), load.clone());
        let (from, loading) = (folder.clone(), LoadingVersion::default());
        let given_up = loading.clone();
        let read = on_own_thread(move || {
            ModelVersion::load(&name, number, &from, &load, metrics, &loading)
        });
        let loaded = in_time(options.load_timeout, async {
            let version = read.await??;
            let warmed = if options.warm_up { warm_up(&version, &folder).await? } else { 0 };
            Ok((version, warmed))
        });
        let loaded = loaded.await.inspect_err(|_| given_up.give_up());
        let took = begin.elapsed();
        self.metrics.loaded(loaded.is_ok(), took);
        let mut state = self.state.lock();
        let Some(slot) = state.versions.get_mut(&number) else { return };
        match loaded {
            Ok((version, warmed)) => {
                let label = version.label();
                slot.serving = Some(Arc::new(version));
                slot.state = VersionState::Available;
                drop(state);
                self.metrics.serves(number, true);
                tracing::info!("{label} serves; loaded in {took:.1?}, {warmed} warm-up requests");
            }
            Err(e) => {
                slot.state = VersionState::End;
                slot.error = Some(e.clone());
                let kept = slot.serving.is_some();
                if kept {
                    slot.state = VersionState::Available;
                }
                drop(state);
                tracing::warn!("{}:{number} could not be loaded: {}", self.name, e.message());
            }
        }
    }

    /// Stops versions from serving. Each ends with its last request.
    fn unload(&self, is_unwanted: impl Fn(i64) -> bool) {
        let mut released = Vec::new();
        let mut state = self.state.lock();
        for (&number, slot) in &mut state.versions {
            if is_unwanted(number)
                && let Some(version) = slot.serving.take()
            {
                slot.state = VersionState::Unloading;
                slot.leaving = Arc::downgrade(&version);
                released.push((number, version));
            }
        }
        drop(state);
        for (number, version) in released {
            self.metrics.serves(number, false);
            tracing::info!("{} no longer serves", version.label());
        }
    }
}

/// Waits for `work` up to a limit.
async fn in_time<T>(limit: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        Err(err!(
            DeadlineExceeded,
            "not loaded within {limit:?}; raise --load-timeout if the model is only large"
        ))
    })
}

/// Runs work that reads files on a thread of its own. The runtime's threads must not: they serve
/// the network.
pub(crate) async fn on_own_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("ff-load".into())
        .spawn(move || drop(tell.send(work())))
        .map_err(|e| err!(ResourceExhausted, "cannot start a thread: {e}"))?;
    told.await.map_err(|_| err!(Internal, "a thread ended without a result"))
}
