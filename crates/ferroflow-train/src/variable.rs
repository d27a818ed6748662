//! Variables: state that steps read and change, and that checkpoints save.

use crate::graph::{CollectionItem, Graph, keys};
use crate::init::{Initializer, IntoInitializer};
use crate::names::join;
use crate::output::{Operation, Output};
use crate::value::IntoOutput;
use ferroflow_core::{DType, PartialShape, Result, Shape, ensure, err};
use ferroflow_graph::{Endpoint, NodeId};
use std::ops::Deref;
use std::sync::Arc;

/// A variable. It dereferences to an [`Output`], its value at the start of the step, so it can be
/// used like a tensor. [`Variable::read`] reads it again, after the current control dependencies.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::init;
/// let w = g.variable("w", init::zeros([2, 3]));
/// let count = g.variable("count", 0);
/// let next = count.assign_add(1);
/// assert_eq!(w.variable_shape().to_string(), "[2,3]");
/// assert_eq!(next.name(), "count/AssignAdd");
/// ```
#[derive(Clone)]
pub struct Variable {
    value: Output,
    pub(crate) info: Arc<VariableInfo>,
}

/// A variable of a graph.
#[derive(Debug)]
pub(crate) struct VariableInfo {
    pub index: usize,
    pub name: String,
    pub dtype: DType,
    pub shape: PartialShape,
    pub handle: Endpoint,
    pub initial_value: Endpoint,
    pub initializer: NodeId,
    pub snapshot: Endpoint,
    pub is_initialized: Endpoint,
    pub is_trainable: bool,
    pub slice: Option<SliceInfo>,
}

/// The place of a partition in the whole variable.
#[derive(Clone, Debug)]
pub(crate) struct SliceInfo {
    pub full_name: String,
    pub full_shape: Shape,
    pub offset: Vec<usize>,
    pub shape: Shape,
}

impl SliceInfo {
    /// The slice specification of checkpoints: the full shape, and begin and length of each
    /// dimension.
    pub fn spec(&self) -> String {
        let mut text = String::new();
        for d in self.full_shape.iter() {
            text.push_str(&format!("{d} "));
        }
        let parts: Vec<String> =
            self.offset.iter().zip(self.shape.iter()).map(|(o, n)| format!("{o},{n}")).collect();
        text + &parts.join(":")
    }
}

/// The options of a new variable.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::VariableOptions;
/// g.variable_with("seen", 0, VariableOptions::untrained());
/// g.variable_with("scratch", 0.0, VariableOptions::local());
/// assert_eq!((g.global_variables().len(), g.trainable_variables().len()), (1, 0));
/// ```
#[derive(Clone, Debug)]
pub struct VariableOptions {
    /// Whether optimizers train it by default.
    pub trainable: bool,
    /// Its collections, besides that of trainable variables.
    pub collections: Vec<String>,
}

impl Default for VariableOptions {
    fn default() -> VariableOptions {
        VariableOptions { trainable: true, collections: vec![keys::GLOBAL_VARIABLES.into()] }
    }
}

impl VariableOptions {
    /// Neither trained nor saved, such as the counters of metrics.
    pub fn local() -> VariableOptions {
        VariableOptions { trainable: false, collections: vec![keys::LOCAL_VARIABLES.into()] }
    }

    /// Saved but not trained.
    pub fn untrained() -> VariableOptions {
        VariableOptions { trainable: false, ..VariableOptions::default() }
    }
}

impl Deref for Variable {
    type Target = Output;
    fn deref(&self) -> &Output {
        &self.value
    }
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "variable {} {}{}", self.info.name, self.info.dtype, self.info.shape)
    }
}

impl IntoOutput for &Variable {
    fn into_output(self, _: &Graph, _: Option<DType>) -> Output {
        self.value.clone()
    }
}

impl Graph {
    /// A variable that is trained and saved. Its initial value is a tensor or an initializer of
    /// [`crate::init`]. A used name gets a number.
    #[track_caller]
    pub fn variable(&self, name: &str, initial: impl IntoInitializer) -> Variable {
        self.variable_with(name, initial, VariableOptions::default())
    }

    /// [`Graph::variable`] with options.
    #[track_caller]
    pub fn variable_with(
        &self,
        name: &str,
        initial: impl IntoInitializer,
        options: VariableOptions,
    ) -> Variable {
        let initial = self.or_fail(initial.into_initializer()).unwrap_or_default();
        let full = {
            let mut state = self.state();
            let full = join(&state.name_scope, name);
            state.names.unique(&full)
        };
        self.make_variable(&full, initial, options, None)
    }

    /// Makes a variable under exactly this name.
    #[track_caller]
    pub(crate) fn make_variable(
        &self,
        name: &str,
        initial: Initializer,
        options: VariableOptions,
        slice: Option<SliceInfo>,
    ) -> Variable {
        let at = std::panic::Location::caller();
        let made = self.at_root(|| {
            let scope = format!("{name}/");
            let (dtype, shape) = (initial.dtype, PartialShape::from(&initial.shape));
            let mut handle = self.op("VarHandleOp").exact_name(name).made_at(at);
            if options.collections.iter().any(|c| c == keys::LOCAL_VARIABLES)
                && !self.state().devices.is_empty()
            {
                // Local variables stay on the worker, even if others go to parameter servers.
                let here = self.op("NoOp").name("here").made_at(at).operation();
                handle = handle.device(&here.device());
            }
            let handle = handle
                .attr("dtype", dtype)
                .attr("shape", shape.clone())
                .attr("shared_name", name)
                .output();
            let device = handle.device();
            self.name_scope(&scope, |_| {
                let start =
                    self.name_scope("Initializer", |_| self.device(&device, || initial.make(self)));
                let initializer = self
                    .op("AssignVariableOp")
                    .name("Assign")
                    .made_at(at)
                    .input(&handle)
                    .input(&start)
                    .operation();
                let is_initialized = self
                    .op("VarIsInitializedOp")
                    .name("IsInitialized/VarIsInitializedOp")
                    .made_at(at)
                    .input(&handle)
                    .output();
                let read = self
                    .op("ReadVariableOp")
                    .name("Read/ReadVariableOp")
                    .made_at(at)
                    .device(&device)
                    .input(&handle)
                    .attr("dtype", dtype)
                    .output();
                read.set_shape(shape.clone());
                let info = VariableInfo {
                    index: self.state().variables.len(),
                    name: name.to_string(),
                    dtype,
                    shape,
                    handle: handle.endpoint?,
                    initial_value: start.endpoint?,
                    initializer: initializer.id?,
                    snapshot: read.endpoint?,
                    is_initialized: is_initialized.endpoint?,
                    is_trainable: options.trainable,
                    slice,
                };
                Some(info)
            })
        });
        match made {
            Some(info) => {
                let mut state = self.state();
                let index = info.index;
                state.variables_by_name.insert(info.name.clone(), index);
                state.variables.push(Arc::new(info));
                let mut collections = options.collections;
                if options.trainable {
                    collections.push(keys::TRAINABLE_VARIABLES.into());
                }
                for c in collections {
                    state.collections.entry(c).or_default().push(CollectionItem::Variable(index));
                }
                drop(state);
                self.variable_at(index)
            }
            None => self.broken_variable(name),
        }
    }

    /// Takes the place of an invalid variable; the graph has the error.
    fn broken_variable(&self, name: &str) -> Variable {
        let nowhere = Endpoint::new(NodeId(u32::MAX), 0);
        let info = VariableInfo {
            index: usize::MAX,
            name: name.to_string(),
            dtype: DType::Float,
            shape: PartialShape::unknown(),
            handle: nowhere,
            initial_value: nowhere,
            initializer: nowhere.node,
            snapshot: nowhere,
            is_initialized: nowhere,
            is_trainable: false,
            slice: None,
        };
        Variable { value: Output::new(self, None), info: Arc::new(info) }
    }

    pub(crate) fn variable_at(&self, index: usize) -> Variable {
        let info = self.state().variables[index].clone();
        Variable { value: Output::new(self, Some(info.snapshot)), info }
    }

    /// The variable with this name.
    pub fn find_variable(&self, name: &str) -> Result<Variable> {
        let found = self.state().variables_by_name.get(name).copied();
        let index = found.ok_or_else(|| err!(NotFound, "there is no variable '{name}'"))?;
        Ok(self.variable_at(index))
    }

    /// The variables of a collection; see [`keys`].
    pub fn variables_of(&self, collection: &str) -> Vec<Variable> {
        let variable = |item: &CollectionItem| match item {
            CollectionItem::Variable(index) => Some(self.variable_at(*index)),
            _ => None,
        };
        self.items(collection).iter().filter_map(variable).collect()
    }

    /// The variables that checkpoints save.
    pub fn global_variables(&self) -> Vec<Variable> {
        self.variables_of(keys::GLOBAL_VARIABLES)
    }

    /// The variables that optimizers train.
    pub fn trainable_variables(&self) -> Vec<Variable> {
        self.variables_of(keys::TRAINABLE_VARIABLES)
    }

    /// An operation that initializes these variables.
    #[track_caller]
    pub fn initializer_of(&self, name: &str, variables: &[Variable]) -> Operation {
        let operations: Vec<Operation> = variables.iter().map(|v| v.initializer()).collect();
        self.group(name, &operations)
    }

    /// An operation that initializes all global variables.
    #[track_caller]
    pub fn global_initializer(&self) -> Operation {
        self.initializer_of("init", &self.global_variables())
    }

    /// An operation that initializes all local variables.
    #[track_caller]
    pub fn local_initializer(&self) -> Operation {
        self.initializer_of("local_init", &self.variables_of(keys::LOCAL_VARIABLES))
    }
}

impl Variable {
    /// Its name, without `:0`.
    pub fn variable_name(&self) -> &str {
        &self.info.name
    }

    /// Its declared shape.
    pub fn variable_shape(&self) -> &PartialShape {
        &self.info.shape
    }

    fn is_broken(&self) -> bool {
        self.value.endpoint.is_none()
    }

    fn known(&self, e: Endpoint) -> Output {
        Output::new(&self.value.graph, Some(e).filter(|_| !self.is_broken()))
    }

    /// Its resource handle.
    pub fn handle(&self) -> Output {
        self.known(self.info.handle)
    }

    /// Its initial value.
    pub fn initial_value(&self) -> Output {
        self.known(self.info.initial_value)
    }

    /// An operation that initializes it.
    pub fn initializer(&self) -> Operation {
        Operation::new(
            &self.value.graph,
            self.known(Endpoint::new(self.info.initializer, 0)).endpoint.map(|e| e.node),
        )
    }

    /// Whether it is initialized, as a tensor.
    pub fn is_initialized(&self) -> Output {
        self.known(self.info.is_initialized)
    }

    /// Whether optimizers train it by default.
    pub fn is_trainable(&self) -> bool {
        self.info.is_trainable
    }

    /// Reads its value, after the current control dependencies.
    #[track_caller]
    pub fn read(&self) -> Output {
        let read = self
            .value
            .graph
            .op("ReadVariableOp")
            .input(&self.handle())
            .attr("dtype", self.info.dtype)
            .output();
        read.set_shape(self.info.shape.clone());
        read
    }

    #[track_caller]
    fn update(&self, op: &str, name: &str, value: impl IntoOutput) -> Operation {
        let graph = &self.value.graph;
        let value = value.into_output(graph, Some(self.info.dtype));
        let checked = self.info.shape.merge(&value.shape()).map_err(|e| {
            err!(
                InvalidArgument,
                "cannot assign {} to variable '{}' of shape {}: {}",
                value.shape(),
                self.info.name,
                self.info.shape,
                e.message()
            )
        });
        let checked = checked.and_then(|_| {
            ensure!(
                value.dtype() == self.info.dtype,
                InvalidArgument,
                "cannot assign {} to variable '{}' of type {}",
                value.dtype(),
                self.info.name,
                self.info.dtype
            );
            Ok(())
        });
        if value.endpoint.is_some() {
            graph.or_fail(checked);
        }
        let scope = format!("{}/", self.info.name);
        graph.name_scope(&scope, |_| {
            graph.op(op).name(name).input(&self.handle()).input(&value).operation()
        })
    }

    /// Assigns a value.
    #[track_caller]
    pub fn assign(&self, value: impl IntoOutput) -> Operation {
        self.update("AssignVariableOp", "AssignValue", value)
    }

    /// Adds a value.
    #[track_caller]
    pub fn assign_add(&self, value: impl IntoOutput) -> Operation {
        self.update("AssignAddVariableOp", "AssignAdd", value)
    }

    /// Subtracts a value.
    #[track_caller]
    pub fn assign_sub(&self, value: impl IntoOutput) -> Operation {
        self.update("AssignSubVariableOp", "AssignSub", value)
    }

    /// Adds the rows of `value` to the rows `indices`.
    #[track_caller]
    pub fn scatter_add(&self, indices: &Output, value: &Output) -> Operation {
        let op = self.value.graph.op("ResourceScatterAdd");
        op.input(&self.handle())
            .input(indices)
            .input(value)
            .attr("dtype", self.info.dtype)
            .operation()
    }

    /// The rows `indices`. Its gradient is sparse.
    #[track_caller]
    pub fn gather(&self, indices: &Output) -> Output {
        let op = self.value.graph.op("ResourceGather").input(&self.handle()).input(indices);
        let rows = op.attr("dtype", self.info.dtype).output();
        if let (Some(dims), Some(index)) = (self.info.shape.dims(), indices.shape().dims())
            && !dims.is_empty()
        {
            rows.set_shape(PartialShape::new(index.iter().chain(&dims[1..]).copied()));
        }
        rows
    }
}

/// A variable split along its first dimension, so that its partitions can be on several servers.
/// Checkpoints save it as one tensor.
#[derive(Clone, Debug)]
pub struct PartitionedVariable {
    graph: Graph,
    name: String,
    parts: Vec<Variable>,
}

impl Graph {
    /// A variable in `parts` partitions of nearly equal size. Each partition starts with its slice
    /// of `initial`.
    #[track_caller]
    pub fn partitioned_variable(
        &self,
        name: &str,
        initial: impl IntoInitializer,
        parts: usize,
    ) -> PartitionedVariable {
        let initial = self.or_fail(initial.into_initializer()).unwrap_or_default();
        let full = {
            let mut state = self.state();
            let full = join(&state.name_scope, name);
            state.names.unique(&full)
        };
        let mut made = Vec::new();
        for (name, slice) in self.or_fail(slices(&full, &initial.shape, parts)).unwrap_or_default()
        {
            let initial = initial.part(slice.offset.clone(), slice.shape.clone());
            self.state().names.take(&name);
            let options = VariableOptions::default();
            made.push(self.make_variable(&name, initial, options, Some(slice)));
        }
        PartitionedVariable { graph: self.clone(), name: full, parts: made }
    }

    /// The partitioned variable `name` of the current variable scope, new or reused.
    ///
    /// ```
    /// # let g = ferroflow_train::Graph::new();
    /// use ferroflow_train::{Reuse, init};
    /// let get = || g.get_partitioned_variable("table", init::glorot_uniform([100, 8]), 4);
    /// let table = g.variable_scope("words", Reuse::Auto, get);
    /// let again = g.variable_scope("words", Reuse::Auto, get);
    /// assert_eq!(table.parts()[3].variable_name(), "words/table/part_3");
    /// assert_eq!(g.trainable_variables().len(), 4);
    /// ```
    #[track_caller]
    pub fn get_partitioned_variable(
        &self,
        name: &str,
        initial: impl IntoInitializer,
        parts: usize,
    ) -> PartitionedVariable {
        let initial = self.or_fail(initial.into_initializer()).unwrap_or_default();
        let full = join(&self.state().variable_scope.name, name);
        let mut found = Vec::new();
        for (name, slice) in self.or_fail(slices(&full, &initial.shape, parts)).unwrap_or_default()
        {
            let initial = initial.part(slice.offset.clone(), slice.shape.clone());
            let options = VariableOptions::default();
            found.push(self.get_exactly(&name, initial, options, Some(slice)));
        }
        PartitionedVariable { graph: self.clone(), name: full, parts: found }
    }
}

/// The names and slices of the partitions of a variable of this shape.
fn slices(name: &str, whole: &Shape, parts: usize) -> Result<Vec<(String, SliceInfo)>> {
    let Some(&rows) = whole.first() else {
        return Err(err!(InvalidArgument, "'{name}': a scalar variable has no parts"));
    };
    ensure!(
        (1..=rows.max(1)).contains(&parts),
        InvalidArgument,
        "'{name}': {rows} rows do not make {parts} parts"
    );
    let mut begin = 0;
    let slice = |part: usize| {
        // The first partitions get one row more if the division has a remainder.
        let len = rows / parts + usize::from(part < rows % parts);
        let mut shape = whole.to_vec();
        shape[0] = len;
        let mut offset = vec![0; shape.len()];
        offset[0] = begin;
        begin += len;
        let (full_name, full_shape) = (name.to_string(), whole.clone());
        let slice = SliceInfo { full_name, full_shape, offset, shape: Shape::from(shape) };
        (format!("{name}/part_{part}"), slice)
    };
    Ok((0..parts).map(slice).collect())
}

impl PartitionedVariable {
    /// Its name, also in checkpoints.
    pub fn variable_name(&self) -> &str {
        &self.name
    }

    /// Its partitions, in order.
    pub fn parts(&self) -> &[Variable] {
        &self.parts
    }

    /// Its whole value as one tensor.
    #[track_caller]
    pub fn whole(&self) -> Output {
        let values: Vec<Output> = self.parts.iter().map(|p| (**p).clone()).collect();
        self.graph.concat(&values, 0)
    }
}
