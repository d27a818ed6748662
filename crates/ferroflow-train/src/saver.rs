//! Checkpoints of variables in TensorFlow's V2 format.

use crate::checkpoint_state::{CheckpointState, remove_checkpoint};
use crate::graph::Graph;
use crate::output::{Operation, Output};
use crate::session::Session;
use crate::value::strings;
use crate::variable::Variable;
use crate::wire::SaverNodes;
use ferroflow_core::{Code, Error, Result, ensure};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Saves variables to checkpoints and restores them.
///
/// The saver adds its nodes to the graph, so that programs that import the graph can use them. A
/// checkpoint `PREFIX-STEP` is several files; the file `checkpoint` in the same directory names the
/// latest one.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::Saver;
/// let w = g.variable("w", 0.0);
/// let saver = Saver::new(&g).max_to_keep(3);
/// // let path = saver.save(&session, "out/model.ckpt", Some(100))?;
/// // saver.restore(&session, &path)?;
/// assert!(g.check().is_ok());
/// ```
pub struct Saver {
    graph: Graph,
    filename: Output,
    save: Output,
    restore: Operation,
    is_sharded: bool,
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
        Saver::make(graph, &under_their_names(variables), false)
    }

    /// A saver of some variables under other names: for a checkpoint of another program, or to
    /// restore averages in place of variables. A partition has the name of the whole variable.
    ///
    /// ```
    /// # let g = ferroflow_train::Graph::new();
    /// use ferroflow_train::Saver;
    /// let w = g.variable("head/w", 0.0);
    /// let saver = Saver::renamed(&g, &[("old/w".into(), w)]);
    /// // saver.restore(&session, "pretrained/model.ckpt-1000")?;
    /// assert!(g.check().is_ok());
    /// ```
    #[track_caller]
    pub fn renamed(graph: &Graph, variables: &[(String, Variable)]) -> Saver {
        Saver::make(graph, variables, false)
    }

    /// A saver of all global variables whose tasks write their own variables in parallel. The
    /// parameter servers must share a file system. Any saver can restore the checkpoint.
    #[track_caller]
    pub fn sharded(graph: &Graph) -> Saver {
        Saver::make(graph, &under_their_names(&graph.global_variables()), true)
    }

    #[track_caller]
    fn make(graph: &Graph, variables: &[(String, Variable)], is_sharded: bool) -> Saver {
        graph.at_root(|| {
            graph.name_scope("save", |_| {
                let default = graph.named_constant("filename/input", "model");
                let filename = graph.placeholder_with_default("filename", &default, ());
                let filename = graph.placeholder_with_default("Const", &filename, ());
                let (save, restore) = match is_sharded {
                    false => {
                        let saved = save_nodes(graph, &filename, variables);
                        let save = after(graph, &filename, &[saved]);
                        (save, restore_nodes(graph, &filename, variables))
                    }
                    true => shard_nodes(graph, &filename, variables),
                };
                Saver {
                    graph: graph.clone(),
                    filename,
                    save,
                    restore,
                    is_sharded,
                    max_to_keep: 5,
                    kept: Mutex::default(),
                }
            })
        })
    }

    /// The number of checkpoints to keep; 0 keeps all of them.
    #[must_use]
    pub fn max_to_keep(mut self, count: usize) -> Saver {
        self.max_to_keep = count;
        self
    }

    /// Saves to `prefix-step`, or to `prefix` without a step. Returns the path.
    pub fn save(
        &self,
        session: &Session,
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
        self.write(session, &path)?;
        let meta = PathBuf::from(format!("{path}.meta"));
        let graph = self.graph.meta_graph(Some(&self.nodes()))?;
        crate::checkpoint_state::write_whole(&meta, &graph)?;
        self.keep(&dir, &path)?;
        Ok(path)
    }

    /// Writes only the values: no graph, no list of checkpoints.
    pub(crate) fn write(&self, session: &Session, path: &str) -> Result<()> {
        session.run_fed((&self.filename, path), &self.save).map(|_| ())
    }

    /// The nodes that save and restore.
    pub(crate) fn nodes(&self) -> SaverNodes {
        SaverNodes {
            filename: self.filename.name(),
            save: self.save.name(),
            restore: self.restore.name(),
            max_to_keep: i32::try_from(self.max_to_keep).unwrap_or(i32::MAX),
            is_sharded: self.is_sharded,
        }
    }

    /// Records a checkpoint as the latest, and removes the oldest ones beyond the limit.
    fn keep(&self, dir: &Path, path: &str) -> Result<()> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
        let mut kept = self.kept.lock();
        let removed = kept.add(path, time, self.max_to_keep);
        kept.write(dir)?;
        drop(kept);
        removed.iter().for_each(|old| remove_checkpoint(old));
        Ok(())
    }

    /// Restores all its variables from a checkpoint.
    pub fn restore(&self, session: &Session, path: &str) -> Result<()> {
        ensure!(
            Path::new(&format!("{path}.index")).exists(),
            InvalidArgument,
            "the passed save_path is not a valid checkpoint: {path}"
        );
        session.run_fed((&self.filename, path), &self.restore)
    }

    /// Reads the list of checkpoints of a directory, so that their oldest are removed later.
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

/// Restores the latest checkpoint of `dir` that is intact. Returns false if there is none at all. A
/// damaged checkpoint is reported, and the one before is tried; it is an error if all are damaged.
pub(crate) fn restore_latest(saver: &Saver, session: &Session, dir: &Path) -> Result<bool> {
    let mut damage: Option<Error> = None;
    for path in checkpoints_to_go_on_from(dir)? {
        match saver.restore(session, &path) {
            Ok(()) => return Ok(true),
            Err(e) if matches!(e.code(), Code::DataLoss | Code::OutOfRange | Code::NotFound) => {
                tracing::warn!(
                    "cannot restore checkpoint {path}, trying the one before: {}",
                    e.message()
                );
                damage.get_or_insert(e);
            }
            Err(e) => return Err(e),
        }
    }
    match damage {
        None => Ok(false),
        Some(e) => Err(e.context(format!("no checkpoint of {} can be restored", dir.display()))),
    }
}

/// The existing checkpoints to continue from, the latest first. A list that cannot be read is an
/// error: otherwise a short disk failure would restart a job from the beginning.
fn checkpoints_to_go_on_from(dir: &Path) -> Result<Vec<String>> {
    let state = match CheckpointState::read(dir) {
        Err(e) if e.code() == Code::NotFound => return Ok(Vec::new()),
        state => state?,
    };
    let is_there = |path: &str| {
        let index = PathBuf::from(format!("{path}.index"));
        index.try_exists().map_err(|e| crate::events::file_error(&index, &e))
    };
    let mut found = Vec::new();
    for path in state.newest_first() {
        match is_there(path)? {
            true => found.push(path.to_string()),
            false => tracing::warn!("checkpoint {path} is listed but does not exist"),
        }
    }
    Ok(found)
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Variables, and their names in checkpoints.
fn under_their_names(variables: &[Variable]) -> Vec<(String, Variable)> {
    let named = |v: &Variable| match &v.info.slice {
        Some(slice) => (slice.full_name.clone(), v.clone()),
        None => (v.variable_name().to_string(), v.clone()),
    };
    variables.iter().map(named).collect()
}

/// Names and slices in checkpoints.
fn keys_of(variables: &[(String, Variable)]) -> (Vec<String>, Vec<String>) {
    let slice = |v: &Variable| v.info.slice.as_ref().map(|s| s.spec()).unwrap_or_default();
    variables.iter().map(|(name, v)| (name.clone(), slice(v))).unzip()
}

/// The filename; depends on all writes.
#[track_caller]
fn after(graph: &Graph, filename: &Output, written: &[Operation]) -> Output {
    graph.control_dependencies(written, || {
        graph.op("Identity").name("control_dependency").input(filename).output()
    })
}

#[track_caller]
fn save_nodes(graph: &Graph, filename: &Output, variables: &[(String, Variable)]) -> Operation {
    let (names, slices) = keys_of(variables);
    let names = graph.constant_from(strings(&names), Some("SaveV2/tensor_names"));
    let slices = graph.constant_from(strings(&slices), Some("SaveV2/shape_and_slices"));
    // Read now, not at the start of the step.
    let values: Vec<Output> = variables.iter().map(|(_, v)| v.read()).collect();
    let op = graph.op("SaveV2").name("SaveV2").input(filename).input(&names).input(&slices);
    op.list(&values).operation()
}

#[track_caller]
fn restore_nodes(graph: &Graph, filename: &Output, variables: &[(String, Variable)]) -> Operation {
    let assigned = assign_nodes(graph, filename, variables);
    graph.group("restore_all", &assigned)
}

#[track_caller]
fn assign_nodes(
    graph: &Graph,
    filename: &Output,
    variables: &[(String, Variable)],
) -> Vec<Operation> {
    let (names, slices) = keys_of(variables);
    let names = graph.constant_from(strings(&names), Some("RestoreV2/tensor_names"));
    let slices = graph.constant_from(strings(&slices), Some("RestoreV2/shape_and_slices"));
    let types: Vec<_> = variables.iter().map(|(_, v)| v.info.dtype).collect();
    let op = graph.op("RestoreV2").name("RestoreV2").input(filename).input(&names).input(&slices);
    let values = op.attr("dtypes", types).outputs();
    variables
        .iter()
        .zip(&values)
        .map(|((_, v), value)| {
            let op = graph.op("AssignVariableOp").name("AssignVariableOp");
            op.input(&v.handle()).input(value).operation()
        })
        .collect()
}

/// Saves and restores with every device working on its own variables. The shards go to a temporary
/// directory first, and are merged into one checkpoint when all are complete.
#[track_caller]
fn shard_nodes(
    graph: &Graph,
    filename: &Output,
    variables: &[(String, Variable)],
) -> (Output, Operation) {
    let mut by_device: BTreeMap<String, Vec<(String, Variable)>> = BTreeMap::new();
    for named in variables {
        by_device.entry(named.1.device()).or_default().push(named.clone());
    }
    let suffix = format!("_temp_{:016x}/part", fastrand::u64(..));
    let suffix = graph.named_constant("StringJoin/suffix", suffix);
    let join = graph.op("StringJoin").list(&[filename.clone(), suffix]);
    let temporary = join.output();
    let count = graph.named_constant("num_shards", i32::try_from(by_device.len()).unwrap_or(1));
    let (mut prefixes, mut written, mut assigned) = (Vec::new(), Vec::new(), Vec::new());
    for (i, (device, variables)) in by_device.iter().enumerate() {
        graph.device(device, || {
            let shard = graph.named_constant("ShardedFilename/shard", i as i32);
            let name = graph.op("ShardedFilename").input(&temporary).input(&shard).input(&count);
            let name = name.output();
            written.push(save_nodes(graph, &name, variables));
            prefixes.push(name);
            assigned.extend(assign_nodes(graph, filename, variables));
        });
    }
    let merged = graph.control_dependencies(&written, || {
        let prefixes = graph.pack(&prefixes, 0);
        let op = graph.op("MergeV2Checkpoints").input(&prefixes).input(filename);
        op.attr("delete_old_dirs", true).operation()
    });
    (after(graph, filename, &[merged]), graph.group("restore_all", &assigned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init;
    use crate::testing::{floats, graph, initialized, session, temporary};

    #[test]
    fn restored_variables_have_the_saved_values() {
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

    #[test]
    fn shards_are_merged_into_one_checkpoint() {
        let dir = temporary("sharded");
        let g = graph();
        let a = g.device("/cpu:0", || g.variable("a", [1.0, 2.0]));
        let b = g.variable("b", 3.0);
        let sharded = Saver::sharded(&g);
        let whole = Saver::new(&g);
        let s = initialized(&g).unwrap();
        let path = sharded.save(&s, dir.join("model"), Some(7)).unwrap();
        let files: Vec<String> = std::fs::read_dir(&dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        assert!(files.iter().any(|f| f == "model-7.data-00001-of-00002"), "{files:?}");
        assert!(!files.iter().any(|f| f.contains("_temp_")), "{files:?}");
        for saver in [&whole, &sharded] {
            s.run([a.assign([0.0, 0.0]), b.assign(0.0)]).unwrap();
            saver.restore(&s, &path).unwrap();
            let (a, b) = s.run((&a, b.scalar::<f32>())).unwrap();
            assert_eq!((floats(&a), b), (vec![1.0, 2.0], 3.0));
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_job_continues_from_the_latest_existing_checkpoint() {
        let dir = temporary("go-on");
        assert_eq!(checkpoints_to_go_on_from(&dir).unwrap(), [] as [String; 0]);
        let g = graph();
        g.variable("w", 0.0);
        let (saver, s) = (Saver::new(&g), initialized(&g).unwrap());
        let [first, second] = [1, 2].map(|step| saver.save(&s, dir.join("m"), Some(step)).unwrap());
        assert_eq!(checkpoints_to_go_on_from(&dir).unwrap(), [second.clone(), first.clone()]);
        std::fs::remove_file(format!("{second}.index")).unwrap();
        assert_eq!(checkpoints_to_go_on_from(&dir).unwrap(), [first]);
        std::fs::write(dir.join("checkpoint"), "").unwrap();
        let e = checkpoints_to_go_on_from(&dir).unwrap_err();
        assert!(e.message().contains("names no checkpoint"), "{e}");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_damaged_checkpoint_is_passed_over_for_the_one_before() {
        let dir = temporary("damaged");
        let g = graph();
        let w = g.variable("w", 0.0);
        let (saver, s) = (Saver::new(&g), initialized(&g).unwrap());
        assert!(!restore_latest(&saver, &s, &dir).unwrap());
        let saved: Vec<String> = [1.0f32, 2.0, 3.0]
            .into_iter()
            .enumerate()
            .map(|(step, value)| {
                s.run(&w.assign(value)).unwrap();
                saver.save(&s, dir.join("m"), Some(step as i64)).unwrap()
            })
            .collect();
        // A torn index, and data that lack their end.
        let index = format!("{}.index", saved[2]);
        let bytes = std::fs::read(&index).unwrap();
        std::fs::write(&index, &bytes[..bytes.len() / 2]).unwrap();
        std::fs::write(format!("{}.data-00000-of-00001", saved[1]), b"").unwrap();
        assert!(restore_latest(&saver, &s, &dir).unwrap());
        assert_eq!(s.run(w.scalar::<f32>()).unwrap(), 1.0);
        std::fs::write(format!("{}.data-00000-of-00001", saved[0]), b"").unwrap();
        let e = restore_latest(&saver, &s, &dir).unwrap_err();
        assert!(e.message().contains("can be restored"), "{e}");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
