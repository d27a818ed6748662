//! The graph builder, and its current scopes: names, devices, control dependencies, and the current
//! branch or loop.

use crate::catalog::default_catalog;
use crate::context::{Context, ContextId, ROOT};
use crate::device::DeviceScope;
use crate::names::{Names, join};
use crate::output::{Operation, Output};
use crate::value::{IntoShape, IntoTensor};
use crate::variable::VariableInfo;
use crate::variable_scope::VariableScope;
use ferroflow_core::{Code, DType, Error, PartialShape, Result, Tensor, err};
use ferroflow_graph::{Catalog, Endpoint, GraphDef, NodeId};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::Location;
use std::sync::Arc;

/// A graph that is being built. Clones are handles of the same graph.
///
/// Calls that add nodes return [`Output`]s and never fail. The graph keeps the first error, such as
/// a wrong type or incompatible shapes, with its source line. Later calls that depend on it add
/// nothing. [`Graph::check`] reports the error, and so does opening a session. Only one thread may
/// build at a time, since all threads share the scopes.
///
/// ```
/// # fn main() -> ferroflow_core::Result<()> {
/// use ferroflow_train::Graph;
/// let g = Graph::new();
/// let x = g.placeholder::<f32>("x", [None, Some(3)]);
/// let y = (&x * 2.0 + 1.0).sum_all();
/// assert_eq!(y.shape().to_string(), "[]");
/// let bad = &x + g.constant([1.0, 2.0]); // 3 and 2 columns
/// assert!(g.check().unwrap_err().message().contains(".rs:"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Graph(pub(crate) Arc<SharedGraph>);

pub(crate) struct SharedGraph {
    pub catalog: Arc<Catalog>,
    state: Mutex<GraphState>,
}

pub(crate) struct GraphState {
    pub catalog: Arc<Catalog>,
    pub ir: ferroflow_graph::GraphIr,
    /// The shapes of the outputs of each node, as far as they are known.
    pub shapes: Vec<Vec<PartialShape>>,
    /// The source line that made each node.
    pub made_at: Vec<&'static Location<'static>>,
    /// The branch or loop each node is in.
    pub places: Vec<ContextId>,
    pub contexts: Vec<Context>,
    pub context: ContextId,
    pub names: Names,
    pub name_scope: String,
    pub devices: Vec<DeviceScope>,
    pub controls: Vec<Controls>,
    pub collections: BTreeMap<String, Vec<CollectionItem>>,
    pub variables: Vec<Arc<VariableInfo>>,
    pub variables_by_name: HashMap<String, usize>,
    pub variable_scope: VariableScope,
    pub seed: Option<i64>,
    pub error: Option<Error>,
    /// Counts changes to existing nodes. An open session cannot adopt them.
    pub rewrites: u64,
}

/// A `control_dependencies` scope: new nodes inside depend on `nodes`.
pub(crate) struct Controls {
    pub nodes: Vec<NodeId>,
    /// Nodes made inside. Their consumers need no control dependency of their own.
    pub within: HashSet<NodeId>,
}

/// A member of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectionItem {
    Output(Endpoint),
    Operation(NodeId),
    Variable(usize),
}

/// Names of collections, as TensorFlow spells them.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::keys;
/// g.variable("w", 0.0);
/// assert_eq!(g.variables_of(keys::TRAINABLE_VARIABLES).len(), 1);
/// ```
pub mod keys {
    /// Variables that checkpoints save.
    pub const GLOBAL_VARIABLES: &str = "variables";
    /// Variables of one worker, which checkpoints do not save.
    pub const LOCAL_VARIABLES: &str = "local_variables";
    /// Variables that optimizers train.
    pub const TRAINABLE_VARIABLES: &str = "trainable_variables";
    /// Variables that have moving averages.
    pub const MOVING_AVERAGE_VARIABLES: &str = "moving_average_variables";
    /// Variables that inference uses.
    pub const MODEL_VARIABLES: &str = "model_variables";
    /// Variables of metrics.
    pub const METRIC_VARIABLES: &str = "metric_variables";
    /// The global step.
    pub const GLOBAL_STEP: &str = "global_step";
    /// Losses.
    pub const LOSSES: &str = "losses";
    /// Regularization losses.
    pub const REGULARIZATION_LOSSES: &str = "regularization_losses";
    /// Summaries.
    pub const SUMMARIES: &str = "summaries";
    /// Operations to run with each training step, such as updates of batch normalization.
    pub const UPDATE_OPS: &str = "update_ops";
    /// The training operation.
    pub const TRAIN_OP: &str = "train_op";
    /// The initialization operation.
    pub const INIT_OP: &str = "init_op";
    /// The operation that lists uninitialized variables.
    pub const READY_OP: &str = "ready_op";
    /// The initialization operation of local variables.
    pub const LOCAL_INIT_OP: &str = "local_init_op";
    /// The initializers of lookup tables.
    pub const TABLE_INITIALIZERS: &str = "table_initializer";
    /// Tensors that hold the paths of asset files.
    pub const ASSET_FILEPATHS: &str = "asset_filepaths";
    /// Queue runners.
    pub const QUEUE_RUNNERS: &str = "queue_runners";
}

impl Graph {
    /// An empty graph of the ops Ferroflow has.
    ///
    /// ```
    /// use ferroflow_train::{Graph, Session};
    /// let g = Graph::new();
    /// let x = g.constant([1.0, 2.0]);
    /// let y = (&x * 2.0).sum_all();
    /// assert_eq!(Session::local(&g)?.run(y.scalar::<f32>())?, 6.0);
    /// # Ok::<(), ferroflow_core::Error>(())
    /// ```
    pub fn new() -> Graph {
        Graph::with_catalog(default_catalog())
    }

    /// An empty graph of the ops in `catalog`.
    pub fn with_catalog(catalog: Arc<Catalog>) -> Graph {
        let state = GraphState {
            catalog: catalog.clone(),
            ir: ferroflow_graph::GraphIr::default(),
            shapes: Vec::new(),
            made_at: Vec::new(),
            places: Vec::new(),
            contexts: vec![Context::root()],
            context: ROOT,
            names: Names::default(),
            name_scope: String::new(),
            devices: Vec::new(),
            controls: Vec::new(),
            collections: BTreeMap::new(),
            variables: Vec::new(),
            variables_by_name: HashMap::new(),
            variable_scope: VariableScope::default(),
            seed: None,
            error: None,
            rewrites: 0,
        };
        Graph(Arc::new(SharedGraph { catalog, state: Mutex::new(state) }))
    }

    /// The ops this graph is made of.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.0.catalog
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, GraphState> {
        self.0.state.lock()
    }

    pub(crate) fn is(&self, other: &Graph) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The first error so far, with its source line.
    pub fn check(&self) -> Result<()> {
        match &self.state().error {
            Some(e) => Err(e.clone()),
            None => Ok(()),
        }
    }

    /// Keeps an error with the caller's line.
    #[track_caller]
    pub(crate) fn fail(&self, error: Error) {
        let at = Location::caller();
        self.state().fail(error, at);
    }

    /// The value; an error is kept and gives `None`.
    #[track_caller]
    pub(crate) fn or_fail<T>(&self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(e) => {
                self.fail(e);
                None
            }
        }
    }

    /// Outputs of a node that could not be made. A failed call returns them, so that callers that
    /// index its outputs do not panic and the first error is reported.
    pub(crate) fn broken(&self, count: usize) -> Vec<Output> {
        vec![Output::new(self, None); count]
    }

    /// The node of an operation of this graph; an operation of another graph is an error at line
    /// `at`.
    pub(crate) fn own(
        &self,
        operation: &Operation,
        at: &'static Location<'static>,
    ) -> Option<NodeId> {
        if operation.graph.is(self) {
            return operation.id;
        }
        let name = operation.name();
        let e = err!(InvalidArgument, "control dependency '{name}' belongs to another graph");
        self.state().fail(e, at);
        None
    }

    /// The graph as a GraphDef.
    pub fn to_def(&self) -> Result<GraphDef> {
        let state = self.state();
        match &state.error {
            Some(e) => Err(e.clone()),
            None => Ok(state.ir.to_def()),
        }
    }

    /// How many nodes it has.
    pub fn len(&self) -> usize {
        self.state().ir.len()
    }

    /// Whether it has no node.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The nodes from number `from` on, with the functions of the whole graph: what a session that
    /// has the first `from` nodes lacks. Also returns the number of nodes and of changes to older
    /// nodes.
    pub fn additions(&self, from: usize) -> Result<(GraphDef, usize, u64)> {
        let state = self.state();
        if let Some(e) = &state.error {
            return Err(e.clone());
        }
        let mut def = state.ir.to_def();
        def.nodes.drain(..from.min(def.nodes.len()));
        Ok((def, state.ir.len(), state.rewrites))
    }

    /// The number of nodes and of changes to older nodes. Cheap to compare.
    pub fn version(&self) -> (usize, u64) {
        let state = self.state();
        (state.ir.len(), state.rewrites)
    }

    /// The source line that made a node.
    pub fn made_at(&self, node: &str) -> Option<&'static Location<'static>> {
        let state = self.state();
        let id = state.ir.find(node)?;
        state.made_at.get(id.index()).copied()
    }

    /// The tensor `node` or `node:k`.
    pub fn tensor(&self, name: &str) -> Result<Output> {
        let endpoint = self.state().ir.endpoint(name)?;
        Ok(Output::new(self, Some(endpoint)))
    }

    /// The node with this name.
    pub fn operation(&self, name: &str) -> Result<Operation> {
        let found = self.state().ir.find(name);
        let id = found.ok_or_else(|| err!(NotFound, "node '{name}' is not in the graph"))?;
        Ok(Operation::new(self, Some(id)))
    }

    /// Sets the graph's random seed, so that every run draws the same numbers.
    pub fn set_seed(&self, seed: i64) {
        self.state().seed = Some(seed);
    }

    /// Both seeds of a random op, derived as in TensorFlow.
    pub(crate) fn seeds(&self, op_seed: Option<i64>) -> (i64, i64) {
        /// The graph's seed if only the op has one.
        const DEFAULT_GRAPH_SEED: i64 = 87_654_321;
        let state = self.state();
        match (state.seed, op_seed) {
            (None, None) => (0, 0),
            (None, Some(op)) => (DEFAULT_GRAPH_SEED, op),
            (Some(graph), op) => {
                let pair = (graph, op.unwrap_or(state.ir.len() as i64));
                // Two zeros would mean no seed at all.
                if pair == (0, 0) { (0, i64::from(i32::MAX)) } else { pair }
            }
        }
    }

    /// A constant.
    #[track_caller]
    pub fn constant(&self, value: impl IntoTensor) -> Output {
        self.constant_from(value.into_tensor(), None)
    }

    /// A constant with a name.
    #[track_caller]
    pub fn named_constant(&self, name: &str, value: impl IntoTensor) -> Output {
        self.constant_from(value.into_tensor(), Some(name))
    }

    #[track_caller]
    pub(crate) fn constant_from(&self, value: Result<Tensor>, name: Option<&str>) -> Output {
        match value {
            Ok(value) => self
                .op("Const")
                .name_opt(name)
                .attr("dtype", value.dtype())
                .attr("value", value)
                .output(),
            Err(e) => {
                self.fail(e);
                Output::new(self, None)
            }
        }
    }

    /// A placeholder: a tensor of `T`s that the caller feeds.
    #[track_caller]
    pub fn placeholder<T: ferroflow_core::Element>(
        &self,
        name: &str,
        shape: impl IntoShape,
    ) -> Output {
        self.placeholder_of(T::DTYPE, name, shape)
    }

    /// A placeholder of a type known at run time.
    #[track_caller]
    pub fn placeholder_of(&self, dtype: DType, name: &str, shape: impl IntoShape) -> Output {
        let op = self.op("Placeholder").name(name).attr("dtype", dtype);
        op.attr("shape", shape.into_shape()).output()
    }

    /// A placeholder with a default for steps that do not feed it.
    #[track_caller]
    pub fn placeholder_with_default(
        &self,
        name: &str,
        default: impl crate::value::IntoOutput,
        shape: impl IntoShape,
    ) -> Output {
        let default = default.into_output(self, None);
        let op = self.op("PlaceholderWithDefault").name(name);
        op.input(&default).attr("shape", shape.into_shape()).output()
    }

    /// Runs `build`, whose new nodes get names under `name/`. A used name gets a number. A name
    /// that ends in `/` stays unchanged and reopens an earlier scope. The closure receives the full
    /// name of the scope.
    pub fn name_scope<R>(&self, name: &str, build: impl FnOnce(&str) -> R) -> R {
        let before = {
            let mut state = self.state();
            let scope = match name.strip_suffix('/') {
                Some(exact) => exact.to_string(),
                None if name.is_empty() => String::new(),
                None => {
                    let full = join(&state.name_scope, name);
                    state.names.unique(&full)
                }
            };
            std::mem::replace(&mut state.name_scope, scope)
        };
        let graph = self.clone();
        let _restore = Restore(move || graph.state().name_scope = before.clone());
        let scope = self.state().name_scope.clone();
        build(&scope)
    }

    /// Runs `build`; all nodes it makes depend on `first`.
    #[track_caller]
    pub fn control_dependencies<R>(&self, first: &[Operation], build: impl FnOnce() -> R) -> R {
        let at = Location::caller();
        let nodes = first.iter().filter_map(|op| self.own(op, at)).collect();
        self.state().controls.push(Controls { nodes, within: HashSet::new() });
        let graph = self.clone();
        let _restore = Restore(move || {
            graph.state().controls.pop();
        });
        build()
    }

    /// Runs `build` outside all branches, loops and control dependencies, as variables need it.
    pub(crate) fn at_root<R>(&self, build: impl FnOnce() -> R) -> R {
        let (context, controls) = {
            let mut state = self.state();
            (std::mem::replace(&mut state.context, ROOT), std::mem::take(&mut state.controls))
        };
        let mut kept = Some(controls);
        let graph = self.clone();
        let _restore = Restore(move || {
            let mut state = graph.state();
            state.context = context;
            state.controls = kept.take().unwrap_or_default();
        });
        build()
    }

    /// An operation that runs `operations`.
    #[track_caller]
    pub fn group(&self, name: &str, operations: &[Operation]) -> Operation {
        let mut op = self.op("NoOp").name(name);
        for operation in operations {
            op = op.after(operation);
        }
        op.operation()
    }

    /// An operation that initializes all lookup tables of the graph.
    #[track_caller]
    pub fn tables_initializer(&self) -> Operation {
        self.group("init_all_tables", &self.operations_of(keys::TABLE_INITIALIZERS))
    }

    pub(crate) fn add_item(&self, collection: &str, item: CollectionItem) {
        let mut state = self.state();
        let items = state.collections.entry(collection.to_string()).or_default();
        items.push(item);
    }

    /// Puts a tensor into a collection.
    pub fn add_to_collection(&self, collection: &str, output: &Output) {
        if let Some(endpoint) = output.endpoint {
            self.add_item(collection, CollectionItem::Output(endpoint));
        }
    }

    /// Puts an operation into a collection.
    pub fn add_operation_to_collection(&self, collection: &str, operation: &Operation) {
        if let Some(id) = operation.id {
            self.add_item(collection, CollectionItem::Operation(id));
        }
    }

    pub(crate) fn items(&self, collection: &str) -> Vec<CollectionItem> {
        self.state().collections.get(collection).cloned().unwrap_or_default()
    }

    /// The tensors of a collection.
    pub fn collection(&self, collection: &str) -> Vec<Output> {
        let output = |item: &CollectionItem| match item {
            CollectionItem::Output(e) => Some(Output::new(self, Some(*e))),
            _ => None,
        };
        self.items(collection).iter().filter_map(output).collect()
    }

    /// The operations of a collection.
    pub fn operations_of(&self, collection: &str) -> Vec<Operation> {
        let operation = |item: &CollectionItem| match item {
            CollectionItem::Operation(id) => Some(Operation::new(self, Some(*id))),
            CollectionItem::Output(e) => Some(Operation::new(self, Some(e.node))),
            CollectionItem::Variable(_) => None,
        };
        self.items(collection).iter().filter_map(operation).collect()
    }
}

impl GraphState {
    /// Keeps the first error, with its source line.
    pub fn fail(&mut self, error: Error, at: &Location<'_>) {
        if self.error.is_none() {
            let text =
                format!("{} (at {}:{}:{})", error.message(), at.file(), at.line(), at.column());
            let code = if error.code() == Code::Ok { Code::Unknown } else { error.code() };
            self.error = Some(Error::new(code, text));
        }
    }

    pub fn shape(&self, e: Endpoint) -> PartialShape {
        let of_node = self.shapes.get(e.node.index());
        of_node.and_then(|s| s.get(e.slot as usize)).cloned().unwrap_or_default()
    }
}

/// Runs a closure when dropped, so that a scope ends even if its closure panics.
pub(crate) struct Restore<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for Restore<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl Default for Graph {
    fn default() -> Graph {
        Graph::new()
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "graph of {} nodes", self.len())
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{graph, initialized, session};
    use crate::{Reuse, init};

    #[test]
    fn names_nest_and_are_unique() {
        let g = graph();
        let names = g.name_scope("a", |_| {
            let one = g.constant(1.0);
            let inner = g.name_scope("b", |_| g.named_constant("x", 1.0));
            [one.name(), g.constant(1.0).name(), inner.name()]
        });
        assert_eq!(names, ["a/Const:0", "a/Const_1:0", "a/b/x:0"]);
        assert_eq!(g.name_scope("a", |_| g.constant(1.0).name()), "a_1/Const:0");
        assert_eq!(g.name_scope("a/", |_| g.constant(1.0).name()), "a/Const_2:0");
    }

    #[test]
    fn an_error_names_its_source_line() {
        let g = graph();
        let x = g.placeholder::<f32>("x", [2, 3]);
        let line = line!() + 1;
        let y = &x + g.constant([1.0, 2.0]);
        let _ = (y * 2.0).sum_all();
        let e = session(&g).map(|_| ()).unwrap_err();
        assert!(e.message().contains(&format!("graph.rs:{line}:")), "{e}");
        assert!(e.message().contains("Incompatible shapes"), "{e}");
    }

    #[test]
    fn an_error_of_a_step_names_the_source_line_of_the_node() {
        let g = graph();
        let x = g.placeholder::<f32>("x", [None]);
        let line = line!() + 1;
        let y = x.reshape([2, 2]);
        let s = session(&g).unwrap();
        let e = s.run_fed((&x, [1.0]), &y).unwrap_err();
        assert!(e.message().contains(&format!("graph.rs:{line}")), "{e}");
    }

    #[test]
    fn control_dependencies_order_reads_after_writes() {
        let g = graph();
        let v = g.variable("v", 1.0);
        let double = v.assign(&*v * 2.0);
        let after = g.control_dependencies(&[double], || v.read());
        let s = initialized(&g).unwrap();
        assert_eq!(s.run(after.scalar::<f32>()).unwrap(), 2.0);
        assert_eq!(s.run(after.scalar::<f32>()).unwrap(), 4.0);
    }

    #[test]
    fn variables_are_shared_by_scope() {
        let g = graph();
        let layer = || g.get_variable("w", init::zeros([2]));
        let made = g.variable_scope("net", Reuse::Auto, layer);
        let found = g.variable_scope("net", Reuse::Auto, layer);
        assert_eq!(made.name(), found.name());
        assert_eq!(g.global_variables().len(), 1);
        g.variable_scope("net", Reuse::No, layer);
        assert!(g.check().unwrap_err().message().contains("already exists"));
    }

    #[test]
    fn a_partitioned_variable_concatenates_to_its_whole() {
        let g = graph();
        let v = g.partitioned_variable("big", init::filled([7, 2], 3.0), 3);
        let rows: Vec<_> = v.parts().iter().map(|p| p.variable_shape().dim(0).unwrap()).collect();
        assert_eq!(rows, [3, 2, 2]);
        let s = initialized(&g).unwrap();
        assert_eq!(s.run(v.whole()).unwrap().shape().to_string(), "[7,2]");
        assert_eq!(v.parts()[1].info.slice.as_ref().unwrap().spec(), "7 2 3,2:0,2");
    }

    #[test]
    fn partitions_start_from_slices_of_the_initial_value() {
        let g = graph();
        let values = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
        let fixed = g.partitioned_variable("fixed", values, 2);
        // The scale of random values is that of [1000, 8], not of [1, 8].
        let random = g.partitioned_variable("random", init::glorot_uniform([1000, 8]), 1000);
        let s = initialized(&g).unwrap();
        let whole = s.run(fixed.whole()).unwrap();
        assert_eq!(whole.as_slice::<f32>().unwrap(), values.as_flattened());
        let largest = s.run(random.whole().abs().max_all().scalar::<f32>()).unwrap();
        let limit = (6.0f32 / 1008.0).sqrt();
        assert!((limit * 0.9..=limit).contains(&largest), "{largest} {limit}");
    }

    #[test]
    fn an_error_before_control_flow_is_the_one_reported() {
        let g = graph();
        let line = line!() + 1;
        let wrong = g.constant([1.0, 2.0]) + g.constant([1.0, 2.0, 3.0]);
        let rest = wrong.split(2, 0);
        let start = [g.constant(0), wrong.clone(), rest[1].clone()];
        let end = g.while_loop(
            &start,
            |v| v[2].less(1),
            |v| vec![v[0].clone(), &v[1] + 1.0, v[2].clone()],
        );
        let sides = g.cond(&end[2].greater(0.0), || vec![end[0].clone(), end[1].clone()], Vec::new);
        let any = (ferroflow_core::DType::Float, ferroflow_core::PartialShape::unknown());
        let both = g.function("both", &[any], |_, x| vec![x[0].clone(), x[0].clone()]);
        let both = both.call(&[sides[1].clone()]);
        let (all, state) = crate::layers::rnn("rnn", &crate::layers::Gru::new(2), &both[1]);
        let next = g.dataset(&[all]).iterator().next();
        let _ = &next[0] + &state[0];
        let e = g.check().unwrap_err();
        assert!(e.message().contains(&format!("graph.rs:{line}:")), "{e}");
    }

    #[test]
    fn dependencies_on_another_graph_are_errors() {
        let (g, other) = (graph(), graph());
        let there = other.variable("v", 1.0).assign(2.0);
        let line = line!() + 1;
        g.control_dependencies(std::slice::from_ref(&there), || g.constant(1.0));
        let e = g.check().unwrap_err();
        assert!(e.message().contains("another graph"), "{e}");
        assert!(e.message().contains(&format!("graph.rs:{line}:")), "{e}");
        let g = graph();
        g.group("all", &[there]);
        assert!(g.check().unwrap_err().message().contains("another graph"));
        let g = graph();
        let x = other.constant(1.0);
        g.gradients(&[x.square()], &[&x]);
        assert!(g.check().unwrap_err().message().contains("another graph"));
    }

    #[test]
    fn graphs_grow_while_a_session_is_open() {
        let g = graph();
        let x = g.constant(2.0);
        let s = session(&g).unwrap();
        assert_eq!(s.run((&x * 3.0).scalar::<f32>()).unwrap(), 6.0);
        let call = s.callable(&[&x], (&x * &x).scalar::<f32>()).unwrap();
        assert_eq!(call.call(&[ferroflow_core::Tensor::scalar(5.0f32)]).unwrap(), 25.0);
    }

    #[test]
    fn numbers_take_the_type_they_are_used_with() {
        let g = graph();
        let x = g.constant(7);
        let s = session(&g).unwrap();
        let values = (&x / 2, &x % 4.0, 10 - &x);
        let _ = (g.constant(1.5) * 2).sqrt(); // the type is known without a hint
        let (a, b, c) = s.run(&values).unwrap();
        let int = |t: ferroflow_core::Tensor| t.scalar_value::<i32>().unwrap();
        assert_eq!((int(a), int(b), int(c)), (3, 3, 3));
        let _ = &x * 0.5;
        assert!(g.check().unwrap_err().message().contains("fraction"));
    }
}
