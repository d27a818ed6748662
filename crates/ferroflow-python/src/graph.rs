//! The graph behind `tf.Graph`: nodes, static shapes, names, and the handles that Python holds.

use crate::apply;
use crate::attr;
use crate::error::{of_graph, wrong_value};
use crate::handles::{PyOperation, PyTensor};
use crate::infer;
use crate::made_at::{MadeAt, user_frame};
use crate::names::UniqueNames;
use crate::ops;
use crate::wire;
use ferroflow_core::{PartialShape, Result, Tensor, ensure, err};
use ferroflow_graph::{AttrValue, Attrs, Endpoint, GraphIr, Node, NodeId, OpDef, PortType};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use std::collections::HashMap;
use std::sync::Arc;

/// The Python objects of one node.
pub struct Handles {
    pub op: Py<PyOperation>,
    pub outputs: Vec<Py<PyTensor>>,
    pub made_at: Option<MadeAt>,
}

/// A graph. `framework/ops.py` derives `Graph` from it.
#[pyclass(subclass, dict, weakref, module = "ferroflow._ferroflow")]
#[derive(Default)]
pub struct GraphCore {
    pub(crate) ir: GraphIr,
    /// The static shape of each output of each node.
    pub(crate) shapes: Vec<Vec<PartialShape>>,
    pub(crate) handles: Vec<Handles>,
    pub(crate) names: UniqueNames,
    /// The name scope, without the slash at its end.
    pub(crate) scope: String,
    /// The device of new nodes, unless a device function must choose it.
    device: String,
    /// Whether Python must be called for each new node, because a device function, a colocation, a
    /// control dependency or a control flow context is active.
    watched: bool,
    finalized: bool,
    /// For constants whose message has fewer values than elements: the number of values.
    pub(crate) forms: HashMap<NodeId, usize>,
    /// Ops of functions in the library, by name.
    functions: HashMap<String, Arc<OpDef>>,
    /// Nodes that were changed after they were made, in order.
    changes: Vec<NodeId>,
}

/// A node to be added.
pub struct NewNode {
    pub op: Arc<OpDef>,
    pub name: String,
    pub attrs: Attrs,
    pub inputs: Vec<Endpoint>,
    pub controls: Vec<NodeId>,
    /// The number of values in a constant's message, if it has fewer than elements.
    pub form: Option<usize>,
}

impl GraphCore {
    /// The op with this name: of the catalog or of the graph's functions.
    pub fn op_def(&mut self, name: &str) -> Option<Arc<OpDef>> {
        if let Some(op) = ops::find(name).or_else(|| self.functions.get(name)) {
            return Some(op.clone());
        }
        let op = self.ir.library.op(name)?;
        self.functions.insert(name.to_string(), op.clone());
        Some(op)
    }

    pub fn shape(&self, e: Endpoint) -> &PartialShape {
        &self.shapes[e.node.index()][e.slot as usize]
    }

    pub fn set_shape(&mut self, e: Endpoint, shape: PartialShape) {
        self.shapes[e.node.index()][e.slot as usize] = shape;
    }

    /// The value of a tensor that is known without running the graph.
    pub fn constant(&self, e: Endpoint) -> Option<Tensor> {
        infer::constant(&self.ir, &|e| self.shape(e).clone(), e)
    }

    /// The shape that a tensor holds.
    pub fn constant_shape(&self, e: Endpoint) -> PartialShape {
        infer::constant_shape(&self.ir, &|e| self.shape(e).clone(), e)
    }

    pub fn tensor(&self, py: Python<'_>, e: Endpoint) -> Py<PyTensor> {
        self.handles[e.node.index()].outputs[e.slot as usize].clone_ref(py)
    }

    /// Remembers a change of a node, which a session may already have.
    pub fn changed(&mut self, id: NodeId) {
        self.changes.push(id);
    }

    pub fn change_count(&self) -> usize {
        self.changes.len()
    }

    /// The name of a node below number `len` that was changed after change number `seen`.
    pub fn changed_below(&self, seen: usize, len: usize) -> Option<&str> {
        let id = self.changes[seen..].iter().find(|id| id.index() < len)?;
        Some(&self.ir.node(*id).name)
    }

    /// Removes all but the first `len` nodes. Python must not have handles to the removed ones.
    pub fn truncate(&mut self, len: usize) {
        self.ir.truncate(len);
        self.shapes.truncate(len);
        self.forms.retain(|id, _| id.index() < len);
    }

    pub fn update_input(&mut self, id: NodeId, index: usize, e: Endpoint) -> Result<()> {
        let node = self.ir.node(id);
        ensure!(index < node.inputs.len(), OutOfRange, "node '{}' has no input {index}", node.name);
        let (want, have) = (node.input_types[index], self.ir.type_of(e));
        ensure!(
            want.dtype == have.dtype,
            InvalidArgument,
            "Input {index} of node {} was passed {} from {}:{} incompatible with expected {}.",
            node.name,
            have.dtype,
            self.ir.node(e.node).name,
            e.slot,
            want.dtype
        );
        self.ir.node_mut(id).inputs[index] = e;
        self.changed(id);
        Ok(())
    }

    pub fn set_attr(&mut self, id: NodeId, name: &str, value: Option<AttrValue>) -> Result<()> {
        let node = self.ir.node_mut(id);
        let attrs = Arc::make_mut(&mut node.attrs);
        match value {
            Some(value) => attrs.set(name, value),
            None => drop(attrs.remove(name)),
        }
        // Annotations do not change the result of a node.
        if !name.starts_with('_') {
            self.changed(id);
        }
        Ok(())
    }

    /// Adds a node and infers its shapes. On an error the graph is unchanged.
    fn add_node(&mut self, node: NewNode) -> Result<NodeId> {
        let NewNode { op, name, attrs, inputs, controls, form } = node;
        let before = self.ir.len();
        ensure!(
            self.ir.find(&name).is_none(),
            InvalidArgument,
            "Duplicate node name in graph: '{name}'"
        );
        let id = self.ir.add(name, op, attrs, inputs, controls)?;
        match infer::shapes(&self.ir, &|e| self.shape(e).clone(), id) {
            Ok(shapes) => self.shapes.push(shapes),
            Err(e) => {
                let text = format!("{} for {}", e.message(), self.described(id));
                self.ir.truncate(before);
                return Err(err!(InvalidArgument, "{text}"));
            }
        }
        if let Some(values) = form {
            self.forms.insert(id, values);
        }
        Ok(id)
    }

    /// A node and the shapes of its inputs, as TensorFlow's messages have it.
    fn described(&self, id: NodeId) -> String {
        let node = self.ir.node(id);
        let attr = |(name, value): (&String, &AttrValue)| {
            let text = match value {
                AttrValue::Type(t) => format!("DT_{}", t.name().to_uppercase()),
                AttrValue::Int(i) => i.to_string(),
                AttrValue::Bool(b) => b.to_string(),
                AttrValue::Float(f) => f.to_string(),
                AttrValue::Str(s) => format!("{:?}", String::from_utf8_lossy(s)),
                _ => return None,
            };
            Some(format!("{name}={text}"))
        };
        let attrs: Vec<String> =
            node.attrs.iter().filter(|(n, _)| !n.starts_with('_')).filter_map(attr).collect();
        let attrs =
            if attrs.is_empty() { String::new() } else { format!("[{}]", attrs.join(", ")) };
        let input = |e: &Endpoint| {
            let name = &self.ir.node(e.node).name;
            if e.slot == 0 { name.clone() } else { format!("{name}:{}", e.slot) }
        };
        let inputs: Vec<String> = node.inputs.iter().map(input).collect();
        let shapes: Vec<String> = node.inputs.iter().map(|e| self.shape(*e).to_string()).collect();
        format!(
            "'{{{{node {}}}}} = {}{attrs}({})' with input shapes: {}.",
            node.name,
            node.op.name,
            inputs.join(", "),
            shapes.join(", ")
        )
    }

    /// Adds a node whose inputs may not exist yet. [`GraphCore::connect`] follows.
    pub fn add_unconnected(&mut self, node: Node) -> Result<NodeId> {
        let outputs = node.output_types.len();
        let id = self.ir.push(node)?;
        self.shapes.push(vec![PartialShape::unknown(); outputs]);
        Ok(id)
    }

    pub fn infer_again(&mut self, id: NodeId) -> Result<()> {
        self.shapes[id.index()] = infer::shapes(&self.ir, &|e| self.shape(e).clone(), id)?;
        Ok(())
    }

    pub fn add_functions(&mut self, library: wire::Library) -> Result<()> {
        self.functions.clear();
        self.ir.library.add(library.functions, library.gradients, ops::catalog())
    }

    /// The name of a new node: `name` in the current scope, made unique. A name that ends in a
    /// slash is used unchanged.
    pub fn node_name(&mut self, name: &str) -> String {
        match name.strip_suffix('/') {
            Some(whole) => whole.to_string(),
            None => self.unique(name, true),
        }
    }

    pub fn unique(&mut self, name: &str, mark: bool) -> String {
        if self.scope.is_empty() {
            return self.names.unique(name, mark);
        }
        let full = format!("{}/{name}", self.scope);
        self.names.unique(&full, mark)
    }
}

/// Adds a node with its surroundings: control dependencies, device, colocation, context.
pub fn create<'py>(
    graph: &Bound<'py, GraphCore>,
    mut node: NewNode,
) -> PyResult<Bound<'py, PyOperation>> {
    let py = graph.py();
    let (watched, finalized) = {
        let core = graph.borrow();
        (core.watched, core.finalized)
    };
    if finalized {
        return Err(PyRuntimeError::new_err("Graph is finalized and cannot be modified."));
    }
    if watched {
        let inputs: Vec<Py<PyOperation>> = {
            let core = graph.borrow();
            let ops = node.inputs.iter().map(|e| core.handles[e.node.index()].op.clone_ref(py));
            ops.collect()
        };
        let controls = graph.call_method1("_control_dependencies_for_inputs", (inputs,))?;
        for op in controls.try_iter()? {
            let id = op?.downcast::<PyOperation>()?.get().id;
            if !node.controls.contains(&id) {
                node.controls.push(id);
            }
        }
    }
    if !is_node_name(&node.name) {
        return Err(wrong_value(format!(
            "'{}' is not a valid node name. Accepted names conform to Regex \
             /^[A-Za-z0-9.][A-Za-z0-9_.\\\\/>-]*$/",
            node.name
        )));
    }
    let refs = reference_inputs(&graph.borrow(), &node);
    let id = graph.borrow_mut().add_node(node).map_err(|e| of_graph(&e))?;
    let op = publish(graph, id)?;
    if watched {
        let refs: Vec<_> =
            refs.iter().map(|id| graph.borrow().handles[id.index()].op.clone_ref(py)).collect();
        graph.call_method1("_finish_op", (&op, refs))?;
    } else if let [first, ..] = refs[..] {
        colocate(graph, id, first, &refs)?;
    }
    Ok(op)
}

/// Whether TensorFlow accepts a name of a node.
fn is_node_name(name: &str) -> bool {
    let first = |c: u8| c.is_ascii_alphanumeric() || c == b'.';
    let rest = |c: u8| first(c) || matches!(c, b'_' | b'/' | b'\\' | b'>' | b'-');
    name.bytes().next().is_some_and(first) && name.bytes().all(rest)
}

/// The nodes whose references a new node takes. It must be on their device.
fn reference_inputs(core: &GraphCore, node: &NewNode) -> Vec<NodeId> {
    if !node.op.inputs.iter().any(|arg| arg.is_ref) {
        return Vec::new();
    }
    let Ok(types) = node.op.input_types(&node.attrs) else { return Vec::new() };
    let pairs = node.inputs.iter().zip(types);
    pairs.filter(|(e, t)| t.is_ref && core.ir.type_of(**e).is_ref).map(|(e, _)| e.node).collect()
}

/// Puts a node in the colocation groups, and on the device, of the nodes that it refers to.
fn colocate(
    graph: &Bound<'_, GraphCore>,
    id: NodeId,
    first: NodeId,
    with: &[NodeId],
) -> PyResult<()> {
    let mut core = graph.borrow_mut();
    let mut groups: Vec<bytes::Bytes> =
        with.iter().flat_map(|id| groups_of(&core.ir, *id)).collect();
    groups.sort();
    groups.dedup();
    let list = AttrValue::List(ferroflow_graph::AttrList::Strs(groups));
    let device = core.ir.node(first).device.clone();
    let node = core.ir.node_mut(id);
    Arc::make_mut(&mut node.attrs).set("_class", list);
    node.device = device;
    Ok(())
}

/// The colocation groups of a node: those of its `_class`, or its own.
fn groups_of(ir: &GraphIr, id: NodeId) -> Vec<bytes::Bytes> {
    let node = ir.node(id);
    let groups = node.attrs.byte_strings("_class").unwrap_or_default();
    let groups: Vec<_> = groups.into_iter().filter(|g| g.starts_with(b"loc:@")).collect();
    if groups.is_empty() { vec![format!("loc:@{}", node.name).into()] } else { groups }
}

/// Makes the Python objects of a node.
pub fn publish<'py>(
    graph: &Bound<'py, GraphCore>,
    id: NodeId,
) -> PyResult<Bound<'py, PyOperation>> {
    let py = graph.py();
    let (name, types) = {
        let core = graph.borrow();
        let node = core.ir.node(id);
        (PyString::new(py, &node.name).unbind(), node.output_types.clone())
    };
    let op = Bound::new(py, PyOperation { graph: graph.clone().unbind(), id, name })?;
    let outputs = output_handles(graph, &op, &types, 0)?;
    let made_at = user_frame(py)?;
    let mut core = graph.borrow_mut();
    let device = core.device.clone();
    if !device.is_empty() {
        let node = core.ir.node_mut(id);
        if node.device.is_empty() {
            node.device = device;
        }
    }
    debug_assert_eq!(core.handles.len(), id.index());
    core.handles.push(Handles { op: op.clone().unbind(), outputs, made_at });
    Ok(op)
}

/// The Python objects of a node's outputs from number `first` on.
pub fn output_handles(
    graph: &Bound<'_, GraphCore>,
    op: &Bound<'_, PyOperation>,
    types: &[PortType],
    first: usize,
) -> PyResult<Vec<Py<PyTensor>>> {
    let handle = |(slot, port): (usize, &PortType)| {
        let tensor = PyTensor {
            op: op.clone().unbind(),
            graph: graph.clone().unbind(),
            endpoint: Endpoint::new(op.get().id, slot),
            number: port.dtype.number() as u8 + if port.is_ref { 100 } else { 0 },
        };
        Py::new(graph.py(), tensor)
    };
    types.iter().enumerate().skip(first).map(handle).collect()
}

#[pymethods]
impl GraphCore {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, pyo3::types::PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> GraphCore {
        GraphCore::default()
    }

    /// Adds a node with these input tensors. `attrs` are Python's values by name.
    #[pyo3(signature = (op_type, inputs, attrs, name=None, control_inputs=None))]
    fn _create_op<'py>(
        slf: &Bound<'py, Self>,
        op_type: &str,
        inputs: &Bound<'py, PyAny>,
        attrs: Option<&Bound<'py, PyDict>>,
        name: Option<&str>,
        control_inputs: Option<Vec<PyRef<'py, PyOperation>>>,
    ) -> PyResult<Bound<'py, PyOperation>> {
        let py = slf.py();
        let op = find_op(slf, op_type)?;
        let mut node = NewNode {
            name: String::new(),
            attrs: Attrs::new(),
            inputs: Vec::new(),
            controls: control_inputs.iter().flatten().map(|op| op.id).collect(),
            form: None,
            op,
        };
        let mut types = Vec::new();
        for input in inputs.try_iter()? {
            let input = input?;
            let tensor = input.downcast::<PyTensor>()?.get();
            same_graph(slf, tensor)?;
            node.inputs.push(tensor.endpoint);
            types.push(slf.borrow().ir.type_of(tensor.endpoint).dtype);
        }
        for (key, value) in attrs.into_iter().flatten() {
            let key: String = key.extract()?;
            if value.is_none() {
                continue;
            }
            node.form = node.form.or(attr_form(&value));
            let value = attr::from_python(py, node.op.attr(&key), &key, &value)?;
            node.attrs.set(key, value);
        }
        node.op.clone().attrs_from_inputs(&types, &mut node.attrs);
        node.name = slf.borrow_mut().node_name(name.unwrap_or(op_type));
        create(slf, node)
    }

    /// Adds a node from the values of its arguments, which are converted to tensors. `inputs` has
    /// an entry for each input argument of the op, and a list for a list argument.
    #[pyo3(signature = (op_type, name, inputs, attrs=None))]
    fn apply_op<'py>(
        slf: &Bound<'py, Self>,
        op_type: &str,
        name: Option<&str>,
        inputs: Vec<Bound<'py, PyAny>>,
        attrs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyOperation>> {
        let op = find_op(slf, op_type)?;
        apply::apply(slf, op, name, &inputs, attrs)
    }

    /// A name that no node or scope has, in the current scope.
    #[pyo3(signature = (name, mark_as_used=true))]
    fn unique_name(&mut self, name: &str, mark_as_used: bool) -> String {
        self.unique(name, mark_as_used)
    }

    /// A scope name that is not in use, regardless of the current scope.
    fn _unique_scope(&mut self, name: &str) -> String {
        self.names.unique(name, true)
    }

    #[getter]
    fn _name_stack(&self) -> &str {
        &self.scope
    }

    #[setter(_name_stack)]
    fn set_name_stack(&mut self, scope: String) {
        self.scope = scope;
    }

    /// The device of all new nodes, and whether `_finish_op` has to be called for each.
    fn _surroundings(&mut self, device: String, watched: bool) {
        self.device = device;
        self.watched = watched;
    }

    #[getter]
    fn finalized(&self) -> bool {
        self.finalized
    }

    #[setter(_finalized)]
    fn set_finalized(&mut self, finalized: bool) {
        self.finalized = finalized;
    }

    /// The number of nodes.
    #[getter]
    fn _size(&self) -> usize {
        self.ir.len()
    }

    fn get_operations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.handles.iter().map(|h| h.op.bind(py)))
    }

    /// For each node, whether it depends on one of `ops` through outputs with these dtypes.
    fn _dependents(&self, ops: Vec<PyRef<'_, PyOperation>>, dtypes: Vec<u8>) -> Vec<bool> {
        self.dependents(ops.iter().map(|op| op.id).collect(), &dtypes)
    }

    /// The operation with this name; KeyError if there is none.
    fn _operation(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyOperation>> {
        match self.ir.find(name) {
            Some(id) => Ok(self.handles[id.index()].op.clone_ref(py)),
            None => Err(PyKeyError::new_err(format!(
                "The name '{name}' refers to an Operation not in the graph."
            ))),
        }
    }

    fn _operation_by_id(&self, py: Python<'_>, id: usize) -> PyResult<Py<PyOperation>> {
        match self.handles.get(id) {
            Some(handles) => Ok(handles.op.clone_ref(py)),
            None => Err(PyKeyError::new_err(format!("there is no operation number {id}"))),
        }
    }

    /// The serialized `GraphDef` of the nodes from number `first` on, with all functions.
    #[pyo3(signature = (first=0, add_shapes=false))]
    fn _graph_def<'py>(
        &self,
        py: Python<'py>,
        first: usize,
        add_shapes: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = wire::encode_graph(self, first, add_shapes).map_err(|e| of_graph(&e))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Adds the nodes of a serialized `GraphDef` below `prefix`. `input_map` replaces inputs, by
    /// their name in the message. Returns the new operations in the order of the message.
    #[pyo3(signature = (graph_def, prefix, input_map))]
    fn _import<'py>(
        slf: &Bound<'py, Self>,
        graph_def: &[u8],
        prefix: &str,
        input_map: &Bound<'py, PyDict>,
    ) -> PyResult<Vec<Bound<'py, PyOperation>>> {
        crate::import::import(slf, graph_def, prefix, input_map)
    }

    /// Adds a serialized `FunctionDef`; a second one of the same name must be equal.
    #[pyo3(signature = (function_def, gradient=None))]
    fn _add_function_def(&mut self, function_def: &[u8], gradient: Option<String>) -> PyResult<()> {
        let library = wire::decode_function(function_def, gradient).map_err(|e| of_graph(&e))?;
        self.add_functions(library).map_err(|e| of_graph(&e))
    }

    fn _has_function(&self, name: &str) -> bool {
        self.ir.library.get(name).is_some()
    }

    fn _function_names(&self) -> Vec<String> {
        self.ir.library.functions().map(|f| f.name().to_string()).collect()
    }

    /// The serialized `FunctionDef` of a function.
    fn _function_def<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let def = self.ir.library.get(name);
        let def = def.ok_or_else(|| wrong_value(format!("there is no function '{name}'")))?;
        let bytes = wire::encode_function(def).map_err(|e| of_graph(&e))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Makes a serialized `FunctionDef` of this graph: a body with these inputs and outputs.
    #[pyo3(signature = (name, inputs, outputs, output_names, control_outputs=Vec::new(), attrs=None))]
    fn _to_function<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        inputs: Vec<PyRef<'py, PyTensor>>,
        outputs: Vec<PyRef<'py, PyTensor>>,
        output_names: Vec<String>,
        control_outputs: Vec<PyRef<'py, PyOperation>>,
        attrs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut all = Attrs::new();
        for (key, value) in attrs.into_iter().flatten() {
            let key: String = key.extract()?;
            let value = attr::from_python(py, None, &key, &value)?;
            all.set(key, value);
        }
        let body = crate::body::Body {
            name,
            inputs: inputs.iter().map(|t| t.endpoint).collect(),
            outputs: outputs.iter().map(|t| t.endpoint).collect(),
            output_names,
            controls: control_outputs.iter().map(|op| op.id).collect(),
            attrs: all,
        };
        let def = crate::body::function(self, body).map_err(|e| of_graph(&e))?;
        let bytes = wire::encode_function(&def).map_err(|e| of_graph(&e))?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[getter]
    fn _versions(&self) -> (i32, i32) {
        (self.ir.versions.producer, self.ir.versions.min_consumer)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        for handles in &self.handles {
            visit.call(&handles.op)?;
            for output in &handles.outputs {
                visit.call(output)?;
            }
        }
        Ok(())
    }

    fn __clear__(&mut self) {
        self.handles.clear();
    }
}

fn find_op(graph: &Bound<'_, GraphCore>, name: &str) -> PyResult<Arc<OpDef>> {
    graph.borrow_mut().op_def(name).ok_or_else(|| {
        PyRuntimeError::new_err(format!(
            "Unrecognized Op name {name}: it is neither an op nor a function of the graph"
        ))
    })
}

/// Fails if a tensor belongs to another graph.
pub fn same_graph(graph: &Bound<'_, GraphCore>, tensor: &PyTensor) -> PyResult<()> {
    if tensor.graph.is(graph) {
        return Ok(());
    }
    let name = tensor.op.get().text(graph.py());
    Err(wrong_value(format!(
        "Tensor(\"{name}:{}\") must be from the same graph as the operation that takes it (graphs \
         are {} and {graph}).",
        tensor.endpoint.slot,
        tensor.graph.bind(graph.py())
    )))
}

/// The number of values in a constant's message, if the value states it.
pub fn attr_form(value: &Bound<'_, PyAny>) -> Option<usize> {
    value.getattr("_values_given").ok()?.extract().ok().flatten()
}

impl GraphCore {
    /// A node by name.
    pub fn named(&self, name: &str) -> Result<NodeId> {
        self.ir.find(name).ok_or_else(|| err!(NotFound, "there is no node '{name}'"))
    }
}
