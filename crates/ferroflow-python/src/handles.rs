//! The handles that Python holds: operations and their outputs. Both are small and immutable; the
//! graph has all other data. Python adds the methods that need no speed (`framework/ops.py`).

use crate::attr;
use crate::error::{of_graph, wrong_value};
use crate::graph::GraphCore;
use crate::hooks::hooks;
use crate::rewire::widen;
use crate::wire;
use ferroflow_graph::{Endpoint, NodeId};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

/// A node of a graph.
#[pyclass(frozen, dict, weakref, name = "Operation", module = "ferroflow._ferroflow")]
pub struct PyOperation {
    pub(crate) graph: Py<GraphCore>,
    pub(crate) id: NodeId,
    pub(crate) name: Py<PyString>,
}

impl PyOperation {
    /// The name. `Display` of a Python string would run pending signal handlers, and on Ctrl-C
    /// give another text and lose the exception.
    pub(crate) fn text(&self, py: Python<'_>) -> String {
        self.name.bind(py).to_string_lossy().into_owned()
    }
}

/// One output of an operation.
#[pyclass(frozen, dict, weakref, name = "Tensor", module = "ferroflow._ferroflow")]
pub struct PyTensor {
    pub(crate) op: Py<PyOperation>,
    pub(crate) graph: Py<GraphCore>,
    pub(crate) endpoint: Endpoint,
    /// The number of its dtype; a reference is numbered 100 above.
    pub(crate) number: u8,
}

#[pymethods]
impl PyOperation {
    #[getter]
    fn graph(&self, py: Python<'_>) -> Py<GraphCore> {
        self.graph.clone_ref(py)
    }

    #[getter]
    fn name(&self, py: Python<'_>) -> Py<PyString> {
        self.name.clone_ref(py)
    }

    #[getter]
    fn _id(&self) -> u32 {
        self.id.0
    }

    #[getter(r#type)]
    fn op_type(&self, py: Python<'_>) -> String {
        self.graph.borrow(py).ir.node(self.id).op.name.clone()
    }

    #[getter]
    fn device(&self, py: Python<'_>) -> String {
        self.graph.borrow(py).ir.node(self.id).device.clone()
    }

    fn _set_device_from_string(&self, py: Python<'_>, device: &str) {
        let mut graph = self.graph.borrow_mut(py);
        graph.ir.node_mut(self.id).device = device.to_string();
        graph.changed(self.id);
    }

    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let graph = self.graph.borrow(py);
        PyList::new(py, graph.handles[self.id.index()].outputs.iter().map(|t| t.bind(py)))
    }

    /// Output `i`, without a list of all.
    fn _output(&self, py: Python<'_>, i: usize) -> PyResult<Py<PyTensor>> {
        let graph = self.graph.borrow(py);
        match graph.handles[self.id.index()].outputs.get(i) {
            Some(t) => Ok(t.clone_ref(py)),
            None => Err(wrong_value(format!("{} has no output {i}", self.text(py)))),
        }
    }

    #[getter]
    fn _num_outputs(&self, py: Python<'_>) -> usize {
        self.graph.borrow(py).handles[self.id.index()].outputs.len()
    }

    #[getter]
    fn _inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let graph = self.graph.borrow(py);
        let inputs = graph.ir.node(self.id).inputs.iter();
        PyTuple::new(py, inputs.map(|e| graph.tensor(py, *e)).collect::<Vec<_>>())
    }

    /// The dtypes that the op declares for its inputs, as numbers; a reference is 100 above.
    #[getter]
    fn _input_numbers(&self, py: Python<'_>) -> Vec<i32> {
        let graph = self.graph.borrow(py);
        let types = graph.ir.node(self.id).input_types.iter();
        types.map(|t| t.dtype.number() + if t.is_ref { 100 } else { 0 }).collect()
    }

    #[getter]
    fn control_inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let graph = self.graph.borrow(py);
        let controls = graph.ir.node(self.id).controls.iter();
        let all: Vec<_> = controls.map(|c| graph.handles[c.index()].op.clone_ref(py)).collect();
        PyList::new(py, all)
    }

    /// The operations that wait for this one by a control edge.
    #[getter]
    fn _control_outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let graph = self.graph.borrow(py);
        let waits = graph.ir.iter().filter(|(_, node)| node.controls.contains(&self.id));
        let all: Vec<_> = waits.map(|(id, _)| graph.handles[id.index()].op.clone_ref(py)).collect();
        PyList::new(py, all)
    }

    fn _add_control_inputs(
        &self,
        py: Python<'_>,
        ops: Vec<PyRef<'_, PyOperation>>,
    ) -> PyResult<()> {
        let ids: Vec<NodeId> = ops.iter().map(|op| op.id).collect();
        let mut graph = self.graph.borrow_mut(py);
        let controls = &mut graph.ir.node_mut(self.id).controls;
        for id in ids {
            if !controls.contains(&id) {
                controls.push(id);
            }
        }
        graph.changed(self.id);
        Ok(())
    }

    fn _remove_all_control_inputs(&self, py: Python<'_>) {
        let mut graph = self.graph.borrow_mut(py);
        graph.ir.node_mut(self.id).controls.clear();
        graph.changed(self.id);
    }

    fn _update_input(
        &self,
        py: Python<'_>,
        index: usize,
        tensor: PyRef<'_, PyTensor>,
    ) -> PyResult<()> {
        let endpoint = tensor.endpoint;
        let mut graph = self.graph.borrow_mut(py);
        graph.update_input(self.id, index, endpoint).map_err(|e| of_graph(&e))
    }

    /// Adds inputs and replaces attributes; outputs that follow from the attributes are added.
    fn _widen(
        slf: &Bound<'_, Self>,
        inputs: Vec<PyRef<'_, PyTensor>>,
        attrs: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        let py = slf.py();
        let op = slf.get().graph.borrow(py).ir.node(slf.get().id).op.clone();
        let mut values = Vec::new();
        for (name, value) in attrs {
            let name: String = name.extract()?;
            let value = attr::from_python(py, op.attr(&name), &name, &value)?;
            values.push((name, value));
        }
        widen(slf, inputs.iter().map(|t| t.endpoint).collect(), values)
    }

    /// An attribute as Python's value. Raises ValueError if there is none.
    #[pyo3(name = "_attr")]
    fn attr<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let graph = self.graph.borrow(py);
        match graph.ir.node(self.id).attrs.get(name) {
            Some(value) => attr::to_python(py, value),
            None => Err(wrong_value(format!(
                "Operation '{}' has no attr named '{name}'.",
                self.text(py)
            ))),
        }
    }

    /// The serialized `AttrValue` of an attribute; None if there is none.
    fn _attr_bytes<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let graph = self.graph.borrow(py);
        let Some(value) = graph.ir.node(self.id).attrs.get(name) else { return Ok(None) };
        let form = graph.forms.get(&self.id).copied();
        let bytes = wire::encode_attr(value, form).map_err(|e| of_graph(&e))?;
        Ok(Some(PyBytes::new(py, &bytes)))
    }

    fn _has_attr(&self, py: Python<'_>, name: &str) -> bool {
        self.graph.borrow(py).ir.node(self.id).attrs.contains(name)
    }

    /// Sets an attribute from Python's value. The op's signature gives its kind, or else the value.
    fn _set_attr_value(
        &self,
        py: Python<'_>,
        name: &str,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let op = self.graph.borrow(py).ir.node(self.id).op.clone();
        let value = attr::from_python(py, op.attr(name), name, value)?;
        self.graph.borrow_mut(py).set_attr(self.id, name, Some(value)).map_err(|e| of_graph(&e))
    }

    fn _clear_attr(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.graph.borrow_mut(py).set_attr(self.id, name, None).map_err(|e| of_graph(&e))
    }

    /// The names of all attributes.
    fn _attr_names(&self, py: Python<'_>) -> Vec<String> {
        let graph = self.graph.borrow(py);
        graph.ir.node(self.id).attrs.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The serialized `NodeDef`.
    fn _node_def<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let graph = self.graph.borrow(py);
        let bytes = wire::encode_node(&graph, self.id, false).map_err(|e| of_graph(&e))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The serialized `OpDef`.
    fn _op_def<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let graph = self.graph.borrow(py);
        let bytes = wire::encode_op(&graph.ir.node(self.id).op).map_err(|e| of_graph(&e))?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[getter]
    fn _is_stateful(&self, py: Python<'_>) -> bool {
        self.graph.borrow(py).ir.node(self.id).op.is_stateful
    }

    /// `(name, first, count, is_list)` of each output argument.
    fn _output_args(&self, py: Python<'_>) -> PyResult<Vec<(String, usize, usize, bool)>> {
        let graph = self.graph.borrow(py);
        let node = graph.ir.node(self.id);
        let one = |arg: &ferroflow_graph::ArgDef| {
            let range = node.op.output_range(&node.attrs, &arg.name)?;
            let is_list = !matches!(arg.types, ferroflow_graph::ArgTypes::One(_));
            Ok((arg.name.clone(), range.start, range.len(), is_list))
        };
        let all: ferroflow_core::Result<Vec<_>> = node.op.outputs.iter().map(one).collect();
        all.map_err(|e| of_graph(&e))
    }

    /// Where the user's program made the operation: file, line and function.
    #[getter]
    fn _made_at(&self, py: Python<'_>) -> Option<(String, u32, String)> {
        self.graph.borrow(py).handles[self.id.index()].made_at.as_ref().map(|at| {
            let text = |s: &Py<PyAny>| {
                let text = s.bind(py).downcast::<PyString>();
                text.map_or_else(|_| String::new(), |s| s.to_string_lossy().into_owned())
            };
            (text(&at.file), at.line, text(&at.function))
        })
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<tf.Operation '{}' type={}>", self.text(py), self.op_type(py))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.graph)
    }
}

#[pymethods]
impl PyTensor {
    #[getter]
    fn op(&self, py: Python<'_>) -> Py<PyOperation> {
        self.op.clone_ref(py)
    }

    #[getter]
    fn graph(&self, py: Python<'_>) -> Py<GraphCore> {
        self.graph.clone_ref(py)
    }

    #[getter]
    fn value_index(&self) -> u32 {
        self.endpoint.slot
    }

    #[getter]
    fn name(&self, py: Python<'_>) -> String {
        format!("{}:{}", self.op.get().text(py), self.endpoint.slot)
    }

    #[getter]
    fn device(&self, py: Python<'_>) -> String {
        self.op.get().device(py)
    }

    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        hooks(py)?.dtype(py, self.number as usize)
    }

    #[getter]
    fn _dtype_number(&self) -> u8 {
        self.number
    }

    /// The static shape: None, or a tuple with None for each unknown dimension.
    #[getter]
    fn _dims<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let graph = self.graph.borrow(py);
        attr::dims(py, graph.shape(self.endpoint))
    }

    #[getter]
    fn _rank(&self, py: Python<'_>) -> Option<usize> {
        self.graph.borrow(py).shape(self.endpoint).rank()
    }

    /// Refines the static shape. Raises ValueError if the shapes are not compatible.
    fn _merge_shape(&self, py: Python<'_>, shape: &Bound<'_, PyAny>) -> PyResult<()> {
        let shape = attr::shape_from_python(py, shape)?;
        let mut graph = self.graph.borrow_mut(py);
        let old = graph.shape(self.endpoint).clone();
        match old.merge(&shape) {
            Ok(merged) => {
                graph.set_shape(self.endpoint, merged);
                Ok(())
            }
            Err(_) => Err(wrong_value(format!(
                "Tensor's shape {} is not compatible with supplied shape {}.",
                attr::shape_text(&old),
                attr::shape_text(&shape)
            ))),
        }
    }

    /// Replaces the static shape.
    fn _replace_shape(&self, py: Python<'_>, shape: &Bound<'_, PyAny>) -> PyResult<()> {
        let shape = attr::shape_from_python(py, shape)?;
        self.graph.borrow_mut(py).set_shape(self.endpoint, shape);
        Ok(())
    }

    /// The operations that take this tensor.
    fn consumers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let graph = self.graph.borrow(py);
        let takes = graph.ir.iter().filter(|(_, node)| node.inputs.contains(&self.endpoint));
        let all: Vec<_> = takes.map(|(id, _)| graph.handles[id.index()].op.clone_ref(py)).collect();
        PyList::new(py, all)
    }

    /// The value of the tensor if it is a constant or follows from static shapes; else None.
    fn _constant<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = self.graph.borrow(py).constant(self.endpoint);
        value.map(|t| crate::array::to_numpy(py, t, true)).transpose()
    }

    /// The shape that this tensor holds, as far as it is known statically.
    fn _constant_shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let shape = self.graph.borrow(py).constant_shape(self.endpoint);
        attr::dims(py, &shape)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let graph = self.graph.borrow(py);
        let dtype = hooks(py)?.dtype(py, self.number as usize)?;
        Ok(format!(
            "<tf.Tensor '{}' shape={} dtype={}>",
            self.name(py),
            attr::shape_text(graph.shape(self.endpoint)),
            dtype.getattr("name")?
        ))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.op)?;
        visit.call(&self.graph)
    }
}
