//! Adds a node from the values of its arguments. Infers the attributes that follow from their
//! types, and converts other values to tensors. Follows TensorFlow's rules, including its messages.

use crate::attr;
use crate::error::{wrong_type, wrong_value};
use crate::graph::{GraphCore, NewNode, attr_form, create, same_graph};
use crate::handles::{PyOperation, PyTensor};
use crate::hooks::hooks;
use ferroflow_core::DType;
use ferroflow_graph::{
    AllowedValues, ArgDef, ArgTypes, AttrDef, AttrKind, AttrList, AttrValue, Attrs, OpDef,
    TypeSource,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::sync::Arc;

pub fn apply<'py>(
    graph: &Bound<'py, GraphCore>,
    op: Arc<OpDef>,
    name: Option<&str>,
    values: &[Bound<'py, PyAny>],
    attrs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyOperation>> {
    let py = graph.py();
    if values.len() != op.inputs.len() {
        let text = format!("{} takes {} inputs, not {}", op.name, op.inputs.len(), values.len());
        return Err(wrong_type(text));
    }
    let mut node = NewNode {
        name: String::new(),
        attrs: Attrs::new(),
        inputs: Vec::with_capacity(values.len()),
        controls: Vec::new(),
        form: None,
        op: op.clone(),
    };
    // Given attributes come first: they determine what inputs are converted to.
    for (key, value) in attrs.into_iter().flatten() {
        let key: String = key.extract()?;
        if value.is_none() {
            continue;
        }
        node.form = node.form.or(attr_form(&value));
        let value = attr::from_python(py, op.attr(&key), &key, &value)?;
        node.attrs.set(key, value);
    }
    let (full, outer) = {
        let mut core = graph.borrow_mut();
        let full = core.node_name(name.unwrap_or(&op.name));
        (full, core.scope.clone())
    };
    node.name = full;
    let mut arguments = Arguments { graph, op: &op, node: &mut node, sources: Vec::new() };
    let mut result = Ok(());
    for (arg, value) in op.inputs.iter().zip(values) {
        result = arguments.add(arg, value);
        if result.is_err() {
            break;
        }
    }
    graph.borrow_mut().scope = outer;
    result?;
    for def in &op.attrs {
        match node.attrs.get(&def.name) {
            Some(value) => check_allowed(&op, def, value)?,
            None if def.default.is_none() => {
                return Err(wrong_type(format!(
                    "No argument for attr '{}' of '{}' Op",
                    def.name, op.name
                )));
            }
            None => {}
        }
    }
    create(graph, node)
}

/// The arguments of a node, as they are added.
struct Arguments<'a, 'py> {
    graph: &'a Bound<'py, GraphCore>,
    op: &'a OpDef,
    node: &'a mut NewNode,
    /// The argument that set each attribute.
    sources: Vec<(String, String)>,
}

impl<'py> Arguments<'_, 'py> {
    fn add(&mut self, arg: &ArgDef, value: &Bound<'py, PyAny>) -> PyResult<()> {
        match &arg.types {
            ArgTypes::One(of) => self.add_one(arg, of, value),
            ArgTypes::Repeated { count, of } => self.add_repeated(arg, count, of, value),
            ArgTypes::Listed(list) => self.add_listed(arg, list, value),
        }
    }

    fn add_one(
        &mut self,
        arg: &ArgDef,
        of: &TypeSource,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let want = self.wanted(of);
        let preferred = self.preferred(of);
        let tensor = self.tensor(arg, value, want, preferred, &arg.name)?;
        let dtype = dtype_of(&tensor);
        self.check(arg, of, dtype, tensor.get().number >= 100)?;
        self.node.inputs.push(tensor.get().endpoint);
        Ok(())
    }

    fn add_repeated(
        &mut self,
        arg: &ArgDef,
        count: &str,
        of: &TypeSource,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let items = self.items(arg, value)?;
        let mut want = self.wanted(of);
        if want.is_none() {
            // The first tensor in the list sets the type.
            want =
                items.iter().find_map(|item| item.downcast::<PyTensor>().ok().map(dtype_of_bound));
        }
        let preferred = self.preferred(of);
        for (i, item) in items.iter().enumerate() {
            let tensor = self.tensor(arg, item, want, preferred, &format!("{}_{i}", arg.name))?;
            let dtype = dtype_of(&tensor);
            if let Some(want) = want
                && want != dtype
            {
                let have: Vec<String> = items.iter().map(type_text).collect();
                let have = have.join(", ");
                return Err(wrong_type(format!(
                    "Tensors in list passed to '{}' of '{}' Op have types [{have}] that don't all match.",
                    arg.name, self.op.name
                )));
            }
            want = Some(dtype);
            self.check(arg, of, dtype, tensor.get().number >= 100)?;
            self.node.inputs.push(tensor.get().endpoint);
        }
        let n = items.len() as i64;
        match self.node.attrs.int(count) {
            Ok(before) if before != n => {
                let source = self.source(count);
                return Err(wrong_value(format!(
                    "List argument '{}' to '{}' Op with length {n} must match length {before} of argument '{source}'.",
                    arg.name, self.op.name
                )));
            }
            Ok(_) => {}
            Err(_) => {
                let minimum = self.op.attr(count).and_then(|a| a.minimum).unwrap_or(0);
                if n < minimum {
                    return Err(wrong_value(format!(
                        "List argument '{}' to '{}' Op with length {n} shorter than minimum length {minimum}.",
                        arg.name, self.op.name
                    )));
                }
                self.node.attrs.set(count, n);
                self.sources.push((count.to_string(), arg.name.clone()));
            }
        }
        Ok(())
    }

    fn add_listed(&mut self, arg: &ArgDef, list: &str, value: &Bound<'py, PyAny>) -> PyResult<()> {
        let items = self.items(arg, value)?;
        let given = self.node.attrs.dtypes(list).ok();
        let mut types = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            let want = given.as_ref().and_then(|g| g.get(i).copied());
            let tensor = self.tensor(arg, item, want, None, &format!("{}_{i}", arg.name))?;
            types.push(dtype_of(&tensor));
            self.node.inputs.push(tensor.get().endpoint);
        }
        match given {
            Some(given) if given != types => {
                let text = |t: &[DType]| t.iter().map(|d| d.name()).collect::<Vec<_>>().join(", ");
                return Err(wrong_type(format!(
                    "Input '{}' of '{}' Op has type list of {} that does not match type list {} of argument '{}'.",
                    arg.name,
                    self.op.name,
                    text(&types),
                    text(&given),
                    self.source(list)
                )));
            }
            Some(_) => {}
            None => {
                let minimum = self.op.attr(list).and_then(|a| a.minimum).unwrap_or(0);
                if (types.len() as i64) < minimum {
                    return Err(wrong_value(format!(
                        "List argument '{}' to '{}' Op with length {} shorter than minimum length {minimum}.",
                        arg.name,
                        self.op.name,
                        types.len()
                    )));
                }
                let value = if types.is_empty() { AttrList::Empty } else { AttrList::Types(types) };
                self.node.attrs.set(list, value);
                self.sources.push((list.to_string(), arg.name.clone()));
            }
        }
        Ok(())
    }

    fn items(&self, arg: &ArgDef, value: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            return value.try_iter()?.collect();
        }
        let text = value.repr()?.to_string();
        Err(wrong_type(format!(
            "Expected list for '{}' argument to '{}' Op, not {text}.",
            arg.name, self.op.name
        )))
    }

    /// The dtype that an argument must have, if the attributes so far fix it.
    fn wanted(&self, of: &TypeSource) -> Option<DType> {
        match of {
            TypeSource::Fixed(dtype) => Some(*dtype),
            TypeSource::Attr(name) => self.node.attrs.dtype(name).ok(),
        }
    }

    /// The default of a type attribute: the type for a value without a type, if the value fits it.
    fn preferred(&self, of: &TypeSource) -> Option<DType> {
        let TypeSource::Attr(name) = of else { return None };
        match self.op.attr(name)?.default {
            Some(AttrValue::Type(dtype)) => Some(dtype),
            _ => None,
        }
    }

    fn source(&self, attr: &str) -> String {
        let found = self.sources.iter().find(|(name, _)| name == attr);
        found.map_or_else(|| attr.to_string(), |(_, arg)| arg.clone())
    }

    /// The tensor of an argument's value.
    fn tensor(
        &mut self,
        arg: &ArgDef,
        value: &Bound<'py, PyAny>,
        want: Option<DType>,
        preferred: Option<DType>,
        name: &str,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let py = self.graph.py();
        if let Ok(tensor) = value.downcast::<PyTensor>() {
            same_graph(self.graph, tensor.get())?;
            if let Some(want) = want
                && dtype_of(tensor) != want
            {
                return Err(self.mismatch(arg, &type_text(value)));
            }
            return Ok(tensor.clone());
        }
        // Constants are created in the scope of the node.
        self.graph.borrow_mut().scope = self.node.name.clone();
        let hooks = hooks(py)?;
        let as_object = |d: Option<DType>| match d {
            Some(d) => hooks.dtype(py, d.number() as usize),
            None => Ok(py.None().into_bound(py)),
        };
        let arguments =
            (value, as_object(want)?, name, arg.is_ref, as_object(preferred)?, self.graph);
        let converted = match hooks.convert.bind(py).call1(arguments) {
            Ok(converted) => converted,
            Err(e) if want.is_some() && is_conversion_error(py, &e) => {
                // Tries the same value without the type, to find out whether only the type does not
                // fit.
                let free = (value, py.None(), name, arg.is_ref, py.None(), self.graph);
                match hooks.convert.bind(py).call1(free) {
                    Ok(other) => return Err(self.mismatch(arg, &type_text(&other))),
                    Err(_) => return Err(e),
                }
            }
            Err(e) => return Err(e),
        };
        let tensor = converted.downcast::<PyTensor>()?.clone();
        same_graph(self.graph, tensor.get())?;
        if let Some(want) = want
            && dtype_of(&tensor) != want
        {
            return Err(self.mismatch(arg, &type_text(&converted)));
        }
        Ok(tensor)
    }

    /// The error for an argument whose type differs from that of the op, or of an argument before
    /// it.
    fn mismatch(&self, arg: &ArgDef, have: &str) -> PyErr {
        let source = match &arg.types {
            ArgTypes::One(TypeSource::Attr(name))
            | ArgTypes::Repeated { of: TypeSource::Attr(name), .. } => Some(name),
            _ => None,
        };
        let decided = source.and_then(|name| {
            let (_, by) = self.sources.iter().find(|(attr, _)| attr == name)?;
            Some((by, self.node.attrs.dtype(name).ok()?))
        });
        if let Some((by, want)) = decided {
            return wrong_type(format!(
                "Input '{}' of '{}' Op has type {have} that does not match type {} of argument '{by}'.",
                arg.name,
                self.op.name,
                python_name(want)
            ));
        }
        let want = match &arg.types {
            ArgTypes::One(of) | ArgTypes::Repeated { of, .. } => self.wanted(of),
            ArgTypes::Listed(_) => None,
        };
        let want = want.map_or_else(|| "another type".to_string(), python_name);
        wrong_type(format!(
            "Input '{}' of '{}' Op has type {have} that does not match expected type of {want}.",
            arg.name, self.op.name
        ))
    }

    /// Records or checks the type of an argument.
    fn check(&mut self, arg: &ArgDef, of: &TypeSource, dtype: DType, is_ref: bool) -> PyResult<()> {
        if arg.is_ref && !is_ref {
            return Err(wrong_type(format!(
                "'{}' Op requires that input '{}' be a mutable tensor (e.g.: a tf.Variable)",
                self.op.name, arg.name
            )));
        }
        let TypeSource::Attr(name) = of else { return Ok(()) };
        if self.node.attrs.contains(name) {
            if !self.sources.iter().any(|(attr, _)| attr == name) {
                self.sources.push((name.clone(), arg.name.clone()));
            }
            return Ok(());
        }
        if let Some(def) = self.op.attr(name)
            && let Some(AllowedValues::Types(allowed)) = &def.allowed
            && !allowed.contains(&dtype)
        {
            let list: Vec<String> = allowed.iter().map(|d| python_name(*d)).collect();
            return Err(wrong_type(format!(
                "Value passed to parameter '{}' has DataType {} not in list of allowed values: {}",
                arg.name,
                python_name(dtype),
                list.join(", ")
            )));
        }
        self.node.attrs.set(name.clone(), dtype);
        self.sources.push((name.clone(), arg.name.clone()));
        Ok(())
    }
}

fn is_conversion_error(py: Python<'_>, e: &PyErr) -> bool {
    e.is_instance_of::<pyo3::exceptions::PyTypeError>(py)
        || e.is_instance_of::<pyo3::exceptions::PyValueError>(py)
}

fn check_allowed(op: &OpDef, def: &AttrDef, value: &AttrValue) -> PyResult<()> {
    match (&def.allowed, value) {
        (Some(AllowedValues::Types(allowed)), AttrValue::Type(dtype))
            if !allowed.contains(dtype) =>
        {
            let list: Vec<String> = allowed.iter().map(|d| python_name(*d)).collect();
            Err(wrong_type(format!(
                "Value passed to parameter '{}' has DataType {} not in list of allowed values: {}",
                def.name,
                python_name(*dtype),
                list.join(", ")
            )))
        }
        (Some(AllowedValues::Strs(allowed)), AttrValue::Str(text)) if def.kind == AttrKind::Str => {
            let text = String::from_utf8_lossy(text);
            if allowed.iter().any(|a| *a == text) {
                return Ok(());
            }
            let list: Vec<String> = allowed.iter().map(|s| format!("\"{s}\"")).collect();
            Err(wrong_value(format!(
                "Value for attr '{}' of \"{text}\" is not in the list of allowed values: {} for Op<name={}>",
                def.name,
                list.join(", "),
                op.name
            )))
        }
        (_, AttrValue::Int(n)) if def.minimum.is_some_and(|m| *n < m) => Err(wrong_value(format!(
            "Attr '{}' of '{}' Op passed {n} less than minimum {}.",
            def.name,
            op.name,
            def.minimum.unwrap_or(0)
        ))),
        _ => Ok(()),
    }
}

fn dtype_of(tensor: &Bound<'_, PyTensor>) -> DType {
    dtype_of_bound(tensor)
}

fn dtype_of_bound(tensor: &Bound<'_, PyTensor>) -> DType {
    DType::from_number(i32::from(tensor.get().number % 100)).expect("tensors have known dtypes")
}

/// The type of a tensor for a message.
fn type_text(value: &Bound<'_, PyAny>) -> String {
    match value.downcast::<PyTensor>() {
        Ok(tensor) => {
            let name = python_name(dtype_of_bound(tensor));
            if tensor.get().number >= 100 { format!("{name}_ref") } else { name }
        }
        Err(_) => value.get_type().name().map_or_else(|_| String::new(), |n| n.to_string()),
    }
}

/// The name of a dtype in Python.
pub fn python_name(dtype: DType) -> String {
    match dtype {
        DType::Float => "float32".into(),
        DType::Double => "float64".into(),
        DType::Half => "float16".into(),
        other => other.name().into(),
    }
}
