//! Exports SavedModels that TensorFlow and TensorFlow Serving can load.

use super::{SERVE, Signature, TensorInfo};
use crate::checkpoint_state::write_whole;
use crate::events::file_error;
use crate::graph::Graph;
use crate::output::{Operation, Output};
use crate::saver::Saver;
use crate::session::Session;
use crate::wire::{ModelParts, encode_saved_model};
use ferroflow_core::{Result, ensure, err};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

impl Signature {
    /// Any tensors in, any tensors out.
    pub fn predict() -> Signature {
        Signature::of("tensorflow/serving/predict")
    }

    /// Serialized examples in, `classes` and `scores` out.
    pub fn classify() -> Signature {
        Signature::of("tensorflow/serving/classify")
    }

    /// Serialized examples in, `outputs` out.
    pub fn regress() -> Signature {
        Signature::of("tensorflow/serving/regress")
    }

    fn of(method: &str) -> Signature {
        Signature { method: method.into(), ..Signature::default() }
    }

    pub(crate) fn is_predict(&self) -> bool {
        self.method == Signature::predict().method
    }

    /// Adds an input.
    #[must_use]
    pub fn input(mut self, name: &str, tensor: &Output) -> Signature {
        self.inputs.insert(name.into(), TensorInfo::of(tensor));
        self
    }

    /// Adds an output.
    #[must_use]
    pub fn output(mut self, name: &str, tensor: &Output) -> Signature {
        self.outputs.insert(name.into(), TensorInfo::of(tensor));
        self
    }

    fn check(&self, name: &str) -> Result<()> {
        ensure!(!self.outputs.is_empty(), InvalidArgument, "signature '{name}' has no outputs");
        let mut all = self.inputs.iter().chain(&self.outputs);
        match all.find(|(_, tensor)| tensor.name.is_empty()) {
            Some((key, _)) => {
                Err(err!(InvalidArgument, "signature '{name}': '{key}' could not be made"))
            }
            None => Ok(()),
        }
    }
}

impl TensorInfo {
    fn of(tensor: &Output) -> TensorInfo {
        TensorInfo { name: tensor.name(), dtype: tensor.dtype(), shape: tensor.shape() }
    }
}

/// Writes a SavedModel.
///
/// Adds its save and restore nodes when created, so create it before the session's graph is final.
/// [`SavedModelBuilder::save`] writes the values of a session.
///
/// ```
/// # fn main() -> ferroflow_core::Result<()> {
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{SavedModelBuilder, Signature};
/// let x = g.placeholder::<f32>("x", [None]);
/// let y = &x * &g.variable("w", 2.0);
/// let model = SavedModelBuilder::new(&g)
///     .signature("serving_default", Signature::predict().input("x", &x).output("y", &y));
/// assert!(g.check().is_ok());
/// // model.save(&session, "export/1")?;
/// # Ok(())
/// # }
/// ```
pub struct SavedModelBuilder {
    graph: Graph,
    /// `None` if there are no variables.
    saver: Option<Saver>,
    tags: Vec<String>,
    signatures: BTreeMap<String, Signature>,
    assets: Vec<(Output, PathBuf)>,
    main: Option<Operation>,
}

impl SavedModelBuilder {
    /// A model of this graph with all its global variables, tagged `serve`. Loading it initializes
    /// its lookup tables.
    #[track_caller]
    pub fn new(graph: &Graph) -> SavedModelBuilder {
        let tables = graph.operations_of(crate::keys::TABLE_INITIALIZERS);
        // Files of lookup tables become assets of the model.
        let file = |tensor: &Output| {
            let value = graph.state().constant(tensor.endpoint?)?;
            let name = String::from_utf8_lossy(value.scalar_string().ok()?).into_owned();
            Some((tensor.clone(), PathBuf::from(name)))
        };
        let files = graph.collection(crate::keys::ASSET_FILEPATHS);
        SavedModelBuilder {
            graph: graph.clone(),
            saver: (!graph.global_variables().is_empty()).then(|| Saver::new(graph)),
            tags: vec![SERVE.into()],
            signatures: BTreeMap::new(),
            assets: files.iter().filter_map(file).collect(),
            main: (!tables.is_empty()).then(|| graph.tables_initializer()),
        }
    }

    /// Replaces the tag `serve`; loaders choose a graph by its tags.
    #[must_use]
    pub fn tags(mut self, tags: &[&str]) -> SavedModelBuilder {
        self.tags = tags.iter().map(|t| t.to_string()).collect();
        self
    }

    /// Adds a signature; [`super::DEFAULT_SIGNATURE`] is the default of callers.
    #[must_use]
    pub fn signature(mut self, name: &str, signature: Signature) -> SavedModelBuilder {
        self.signatures.insert(name.into(), signature);
        self
    }

    /// Adds an asset file. `tensor`, a constant string, holds its path in this program; a loader
    /// replaces it by the path of the copy.
    #[must_use]
    pub fn asset(mut self, tensor: &Output, file: impl AsRef<Path>) -> SavedModelBuilder {
        self.assets.push((tensor.clone(), file.as_ref().to_path_buf()));
        self
    }

    /// The op to run after loading, instead of initializing tables.
    #[must_use]
    pub fn main_op(mut self, operation: &Operation) -> SavedModelBuilder {
        self.main = Some(operation.clone());
        self
    }

    /// Writes the model with the variable values of `session` to a new or empty directory.
    pub fn save(&self, session: &Session, dir: impl AsRef<Path>) -> Result<()> {
        let dir = dir.as_ref();
        self.graph.check()?;
        for (name, signature) in &self.signatures {
            signature.check(name)?;
        }
        let is_empty = std::fs::read_dir(dir).map_or(true, |mut entries| entries.next().is_none());
        ensure!(
            is_empty,
            AlreadyExists,
            "{}: a model is saved to a directory of its own, and this one is not empty",
            dir.display()
        );
        let make = |dir: &Path| std::fs::create_dir_all(dir).map_err(|e| file_error(dir, &e));
        let variables = dir.join("variables");
        make(&variables)?;
        if let Some(saver) = &self.saver {
            saver.write(session, &variables.join("variables").display().to_string())?;
        }
        let mut assets = Vec::new();
        for (tensor, file) in &self.assets {
            let name = file.file_name().map(|n| n.to_string_lossy().into_owned());
            let name =
                name.ok_or_else(|| err!(InvalidArgument, "{}: not a file's name", file.display()))?;
            let known = assets.iter().any(|(_, known)| *known == name);
            ensure!(!known, InvalidArgument, "two files of the model have the name '{name}'");
            make(&dir.join("assets"))?;
            std::fs::copy(file, dir.join("assets").join(&name))
                .map_err(|e| file_error(file, &e))?;
            assets.push((tensor.clone(), name));
        }
        let parts = ModelParts {
            saver: self.saver.as_ref().map(Saver::nodes),
            tags: &self.tags,
            signatures: &self.signatures,
            assets: &assets,
            main: self.main.as_ref(),
        };
        // Written last, so that a visible model is complete.
        write_whole(&dir.join("saved_model.pb"), &encode_saved_model(&self.graph, &parts)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DEFAULT_SIGNATURE;
    use crate::testing::{graph, initialized, temporary};
    use ferroflow_core::Code;

    #[test]
    fn a_model_is_written_to_a_directory_of_its_own() {
        let dir = temporary("saved-model");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("words.txt"), "a\nb\n").unwrap();
        let g = graph();
        let x = g.placeholder::<f32>("x", [None]);
        let w = g.variable("w", 2.0);
        let y = &x * &w;
        let file = g.constant(dir.join("words.txt").display().to_string());
        let signature = Signature::predict().input("x", &x).output("y", &y);
        let model = SavedModelBuilder::new(&g)
            .signature(DEFAULT_SIGNATURE, signature)
            .asset(&file, dir.join("words.txt"));
        let s = initialized(&g).unwrap();
        let to = dir.join("1");
        model.save(&s, &to).unwrap();
        for file in ["saved_model.pb", "variables/variables.index", "assets/words.txt"] {
            assert!(to.join(file).exists(), "{file}");
        }
        let bytes = std::fs::read(to.join("saved_model.pb")).unwrap();
        let def = crate::graph_of_meta_graph(&bytes).unwrap();
        assert!(def.nodes.iter().any(|n| n.op == "VarHandleOp" && n.device.is_empty()));
        assert_eq!(model.save(&s, &to).unwrap_err().code(), Code::AlreadyExists);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_signature_needs_outputs() {
        let g = graph();
        let x = g.placeholder::<f32>("x", [None]);
        let model = SavedModelBuilder::new(&g).signature("s", Signature::predict().input("x", &x));
        let s = initialized(&g).unwrap();
        let dir = temporary("no-outputs");
        assert!(model.save(&s, &dir).unwrap_err().message().contains("'s' has no outputs"));
        assert!(!dir.exists());
    }
}
