//! Checkpoints: the values of variables in files, in TensorFlow's V2 format.

use crate::checkpoint_state::{CheckpointState, remove_checkpoint};
use crate::graph::Graph;
use crate::output::{Operation, Output};
use crate::session::GraphSession;
use crate::value::strings;
use crate::variable::Variable;
use crate::wire::SaverNodes;
use ferroflow_core::{Result, ensure};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Saves variables to checkpoints and restores them.
///
/// The nodes that do it are made with the saver, so that whoever imports the graph can use them. A
/// checkpoint `PREFIX-STEP` is several files; the file `checkpoint` beside them says which is the
/// latest.
pub struct Saver {
    graph: Graph,
    filename: Output,
    save: Output,
    restore: Operation,
    max_to_keep: usize,
    kept: Mutex<CheckpointState>,
}

impl Saver {
    /// A saver of all global variables of a graph.
    #[track_caller]
    pub fn new(graph: &Graph) -> Saver {
        Saver::of(graph, &graph.global_variables())
    }

    /// A saver of some variables.
    #[track_caller]
    pub fn of(graph: &Graph, variables: &[Variable]) -> Saver {
        graph.at_root(|| {
            graph.name_scope("save", |_| {
                let default = graph.named_constant("filename/input", "model");
                let filename = graph.placeholder_with_default("filename", &default, ());
                let filename = graph.placeholder_with_default("Const", &filename, ());
                let save = save_nodes(graph, &filename, variables);
                let restore = restore_nodes(graph, &filename, variables);
                Saver {
                    graph: graph.clone(),
                    filename,
                    save,
                    restore,
                    max_to_keep: 5,
                    kept: Mutex::default(),
                }
            })
        })
    }

    /// How many checkpoints are kept; 0 keeps all of them.
    pub fn max_to_keep(mut self, count: usize) -> Saver {
        self.max_to_keep = count;
        self
    }

    /// Saves to `prefix-step`, or `prefix` without a step; returns which.
    pub fn save(
        &self,
        session: &GraphSession,
        prefix: impl AsRef<Path>,
        step: Option<i64>,
    ) -> Result<String> {
        let prefix = prefix.as_ref();
        let path = match step {
            Some(step) => format!("{}-{step}", prefix.display()),
            None => prefix.display().to_string(),
        };
        let dir = parent(Path::new(&path));
        std::fs::create_dir_all(&dir).map_err(|e| crate::events::file_error(&dir, &e))?;
        session.run_fed((&self.filename, path.as_str()), &self.save)?;
        let nodes = SaverNodes {
            filename: self.filename.name(),
            save: self.save.name(),
            restore: self.restore.name(),
            max_to_keep: i32::try_from(self.max_to_keep).unwrap_or(i32::MAX),
        };
        let meta = PathBuf::from(format!("{path}.meta"));
        crate::checkpoint_state::write_whole(&meta, &self.graph.meta_graph(Some(&nodes))?)?;
        self.keep(&dir, &path)?;
        Ok(path)
    }

    /// Notes a checkpoint as the latest and removes those that are too many.
    fn keep(&self, dir: &Path, path: &str) -> Result<()> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
        let mut kept = self.kept.lock();
        let removed = kept.add(path, time, self.max_to_keep);
        kept.write(dir)?;
        drop(kept);
        removed.iter().for_each(|old| remove_checkpoint(old));
        Ok(())
    }

    /// Gives all its variables the values of a checkpoint.
    pub fn restore(&self, session: &GraphSession, path: &str) -> Result<()> {
        ensure!(
            Path::new(&format!("{path}.index")).exists(),
            InvalidArgument,
            "the passed save_path is not a valid checkpoint: {path}"
        );
        session.run_fed((&self.filename, path), &self.restore)
    }

    /// Takes over the list of checkpoints that a directory has, so that the oldest are removed in
    /// their turn.
    pub fn recover(&self, dir: impl AsRef<Path>) {
        if let Ok(state) = CheckpointState::read(dir.as_ref()) {
            *self.kept.lock() = state;
        }
    }
}

/// The latest checkpoint of a directory.
pub fn latest_checkpoint(dir: impl AsRef<Path>) -> Option<String> {
    let state = CheckpointState::read(dir.as_ref()).ok()?;
    let latest = state.latest()?;
    Path::new(&format!("{latest}.index")).exists().then(|| latest.to_string())
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Names and slices, as checkpoints hold them.
fn keys_of(variables: &[Variable]) -> (Vec<String>, Vec<String>) {
    let key = |v: &Variable| match &v.info.slice {
        Some(slice) => (slice.full_name.clone(), slice.spec()),
        None => (v.variable_name().to_string(), String::new()),
    };
    variables.iter().map(key).unzip()
}

#[track_caller]
fn save_nodes(graph: &Graph, filename: &Output, variables: &[Variable]) -> Output {
    let (names, slices) = keys_of(variables);
    let names = graph.constant_from(strings(&names), Some("SaveV2/tensor_names"));
    let slices = graph.constant_from(strings(&slices), Some("SaveV2/shape_and_slices"));
    // Read when the checkpoint is made, not before what else the step does.
    let values: Vec<Output> = variables.iter().map(Variable::read).collect();
    let op = graph.op("SaveV2").name("SaveV2").input(filename).input(&names).input(&slices);
    let saved = op.list(&values).operation();
    graph.control_dependencies(&[saved], || {
        graph.op("Identity").name("control_dependency").input(filename).output()
    })
}

#[track_caller]
fn restore_nodes(graph: &Graph, filename: &Output, variables: &[Variable]) -> Operation {
    let (names, slices) = keys_of(variables);
    let names = graph.constant_from(strings(&names), Some("RestoreV2/tensor_names"));
    let slices = graph.constant_from(strings(&slices), Some("RestoreV2/shape_and_slices"));
    let types: Vec<_> = variables.iter().map(|v| v.info.dtype).collect();
    let op = graph.op("RestoreV2").name("RestoreV2").input(filename).input(&names).input(&slices);
    let values = op.attr("dtypes", types).outputs();
    let assigned: Vec<Operation> = variables
        .iter()
        .zip(&values)
        .map(|(v, value)| {
            let op = graph.op("AssignVariableOp").name("AssignVariableOp");
            op.input(&v.handle()).input(value).operation()
        })
        .collect();
    graph.group("restore_all", &assigned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init;
    use crate::testing::{floats, graph, initialized, session, temporary};

    #[test]
    fn variables_survive_in_a_checkpoint() {
        let dir = temporary("saver");
        let build = || {
            let g = graph();
            let w = g.variable("w", init::uniform([3, 2], -1.0, 1.0));
            let parts = g.partitioned_variable("p", init::normal([5, 1], 0.0, 1.0), 2);
            let saver = Saver::new(&g).max_to_keep(2);
            (g, w, parts, saver)
        };
        let (g, w, parts, saver) = build();
        let s = initialized(&g).unwrap();
        let before = s.run((&w, parts.whole())).unwrap();
        for step in [1, 2, 3] {
            saver.save(&s, dir.join("model"), Some(step)).unwrap();
        }
        let latest = latest_checkpoint(&dir).unwrap();
        assert!(latest.ends_with("model-3"), "{latest}");
        assert!(!dir.join("model-1.index").exists() && dir.join("model-2.index").exists());

        let (g, w, parts, saver) = build();
        let s = session(&g).unwrap();
        saver.restore(&s, &latest).unwrap();
        let after = s.run((&w, parts.whole())).unwrap();
        assert_eq!(floats(&before.0), floats(&after.0));
        assert_eq!(floats(&before.1), floats(&after.1));
        assert!(saver.restore(&s, "nowhere").is_err());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
