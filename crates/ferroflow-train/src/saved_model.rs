//! Loads and exports SavedModels in TensorFlow's format: a graph, the values of its variables, and
//! named signatures. Loads both kinds: those of TF1 sessions and those of `tf.function`s.

mod write;

pub use write::SavedModelBuilder;

use crate::graph_def_session::GraphDefSession;
use crate::session::StepRunner;
use crate::step::StepRequest;
use crate::wire::{MetaGraph, meta_graphs};
use ferroflow_core::{DType, PartialShape, Result, Tensor, bail, ensure, files, limits};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The tag of a graph for serving.
pub const SERVE: &str = "serve";
/// The default signature.
pub const DEFAULT_SIGNATURE: &str = "serving_default";

/// An input or output tensor of a signature.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorInfo {
    /// `node:output`.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Its shape.
    pub shape: PartialShape,
}

/// A signature: named inputs and outputs of a model.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::Signature;
/// let x = g.placeholder::<f32>("x", [None]);
/// let double = Signature::predict().input("x", &x).output("y", &(&x * 2.0));
/// assert_eq!(double.inputs["x"].name, "x:0");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signature {
    /// The inputs by name.
    pub inputs: BTreeMap<String, TensorInfo>,
    /// The outputs by name.
    pub outputs: BTreeMap<String, TensorInfo>,
    /// Such as `tensorflow/serving/predict`.
    pub method: String,
    /// Default values of optional inputs.
    pub defaults: BTreeMap<String, Tensor>,
}

/// A loaded model, restored and initialized.
pub struct SavedModel {
    steps: Box<dyn StepRunner>,
    signatures: BTreeMap<String, Signature>,
    /// Signatures with an input or output that is not one dense tensor.
    composite: Vec<String>,
}

impl SavedModel {
    /// Loads the graph with the tag [`SERVE`] from `dir` into a session of this process, and
    /// restores its variables.
    pub fn load(dir: impl AsRef<Path>) -> Result<SavedModel> {
        SavedModel::load_with(dir, &[SERVE], GraphDefSession::local)
    }

    /// Loads the graph with exactly these tags from `dir`. `open` makes its session, in which
    /// variables are restored and tables initialized.
    pub fn load_with<S: StepRunner + 'static>(
        dir: impl AsRef<Path>,
        tags: &[&str],
        open: impl FnOnce(&ferroflow_graph::GraphDef) -> Result<S>,
    ) -> Result<SavedModel> {
        let dir = dir.as_ref();
        let meta = find(dir, tags)?;
        let steps: Box<dyn StepRunner> = Box::new(open(&meta.graph)?);
        let assets = asset_feeds(dir, &meta);
        let variables = dir.join("variables").join("variables");
        if let Some(saver) = &meta.saver
            && files::exists(&variables.with_extension("index"))
        {
            let mut feeds = assets.clone();
            feeds.push((saver.filename.clone(), path_tensor(&variables)));
            run(&*steps, feeds, &saver.restore)?;
        }
        if let Some(init) = &meta.init {
            run(&*steps, assets, init)?;
        }
        Ok(SavedModel { steps, signatures: meta.signatures, composite: meta.composite })
    }

    /// The signatures, by name.
    pub fn signatures(&self) -> &BTreeMap<String, Signature> {
        &self.signatures
    }

    /// Calls a signature and returns its outputs by name.
    pub fn call(
        &self,
        signature: &str,
        inputs: &[(&str, Tensor)],
    ) -> Result<BTreeMap<String, Tensor>> {
        ensure!(
            !self.composite.iter().any(|name| name == signature),
            Unimplemented,
            "{signature:?} takes or gives sparse or composite tensors; only plain ones can be"
        );
        let Some(sig) = self.signatures.get(signature) else {
            let there: Vec<&str> = self.signatures.keys().map(String::as_str).collect();
            bail!(NotFound, "the model has no signature {signature:?}, but {there:?}");
        };
        let mut given: BTreeMap<&str, &Tensor> =
            sig.defaults.iter().map(|(name, value)| (name.as_str(), value)).collect();
        given.extend(inputs.iter().map(|(name, value)| (*name, value)));
        if let Some(name) = given.keys().find(|name| !sig.inputs.contains_key(**name)) {
            let takes: Vec<&String> = sig.inputs.keys().collect();
            bail!(InvalidArgument, "{signature:?} has no input {name:?}; it takes {takes:?}");
        }
        let mut feeds = Vec::with_capacity(sig.inputs.len());
        for (name, info) in &sig.inputs {
            let Some(value) = given.get(name.as_str()) else {
                bail!(InvalidArgument, "input {name:?} of {signature:?} is missing");
            };
            ensure!(
                value.dtype() == info.dtype && info.shape.admits(value.shape()),
                InvalidArgument,
                "input {name:?} of {signature:?} is a {} of shape {}, not a {} of shape {}",
                info.dtype,
                info.shape,
                value.dtype(),
                value.shape()
            );
            feeds.push((info.name.clone(), (*value).clone()));
        }
        let fetches: Vec<String> = sig.outputs.values().map(|info| info.name.clone()).collect();
        let request = StepRequest { feeds, fetches, ..StepRequest::default() };
        let values = self.steps.run_step(request)?.tensors;
        Ok(sig.outputs.keys().cloned().zip(values).collect())
    }

    /// The model's session, to run other nodes of its graph.
    pub fn steps(&self) -> &dyn StepRunner {
        &*self.steps
    }
}

/// The description of one graph of a SavedModel.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedGraph {
    /// Its tags, such as [`SERVE`].
    pub tags: Vec<String>,
    /// Its signatures by name.
    pub signatures: BTreeMap<String, Signature>,
    /// Names of signatures with an input or output that is not one dense tensor.
    pub composite: Vec<String>,
    /// Files in `assets/` that its graph reads.
    pub assets: Vec<String>,
}

/// Describes the SavedModel of a directory without loading it.
pub fn saved_graphs(dir: impl AsRef<Path>) -> Result<Vec<SavedGraph>> {
    let describe = |meta: MetaGraph| SavedGraph {
        tags: meta.tags,
        signatures: meta.signatures,
        composite: meta.composite,
        assets: meta.assets.into_iter().map(|(_, file)| file).collect(),
    };
    Ok(read(dir.as_ref())?.into_iter().map(describe).collect())
}

fn read(dir: &Path) -> Result<Vec<MetaGraph>> {
    let file = dir.join("saved_model.pb");
    let text = dir.join("saved_model.pbtxt");
    ensure!(
        files::exists(&file) || !files::exists(&text),
        Unimplemented,
        "{}: SavedModels written as text are not read",
        text.display()
    );
    let bytes = read_model_file(&file)?;
    meta_graphs(&bytes).map_err(|e| e.context(file.display().to_string()))
}

/// Reads a file of a SavedModel. An error if it is no regular file, or larger than a message may
/// be: the author of the model may be mistaken or hostile.
pub fn read_model_file(file: &Path) -> Result<Vec<u8>> {
    let failed = |e| crate::events::file_error(file, &e);
    let about = files::metadata(file).map_err(failed)?;
    ensure!(about.is_file(), InvalidArgument, "{} is not a regular file", file.display());
    let most = limits().message;
    most.admit(usize::try_from(about.len()).unwrap_or(usize::MAX), file.display())?;
    let mut bytes = Vec::new();
    let opened = files::open(file).map_err(failed)?;
    opened.take(most.most as u64).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn find(dir: &Path, tags: &[&str]) -> Result<MetaGraph> {
    let wanted: BTreeSet<&str> = tags.iter().copied().collect();
    let mut there = Vec::new();
    for meta in read(dir)? {
        if meta.tags.iter().map(String::as_str).collect::<BTreeSet<_>>() == wanted {
            return Ok(meta);
        }
        there.push(meta.tags);
    }
    bail!(
        NotFound,
        "{} has no graph with the tags {wanted:?}; there are graphs with {there:?}",
        dir.display()
    )
}

fn path_tensor(path: &Path) -> Tensor {
    Tensor::string(path.display().to_string())
}

/// Feeds that give the graph the paths of its asset files.
fn asset_feeds(dir: &Path, meta: &MetaGraph) -> Vec<(String, Tensor)> {
    let path = |file: &str| -> PathBuf { dir.join("assets").join(file) };
    meta.assets.iter().map(|(tensor, file)| (tensor.clone(), path_tensor(&path(file)))).collect()
}

fn run(steps: &dyn StepRunner, feeds: Vec<(String, Tensor)>, target: &str) -> Result<()> {
    // An op; older models name one of its outputs.
    let node = target.split(':').next().unwrap_or(target).to_string();
    let request = StepRequest { feeds, targets: vec![node], ..StepRequest::default() };
    steps.run_step(request).map(|_| ())
}
