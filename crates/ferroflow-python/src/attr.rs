//! Converts attributes from and to Python's values. The signature of the op gives the kind of an
//! attribute. An annotation (`_class`) has no signature, so its value gives the kind.

use crate::array;
use crate::error::{of_graph, wrong_type, wrong_value};
use crate::hooks::hooks;
use crate::wire;
use bytes::Bytes;
use ferroflow_core::{DType, PartialShape};
use ferroflow_graph::{AttrDef, AttrKind, AttrList, AttrValue, Attrs, FuncRef};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// The attribute `name` with the signature `def`, from Python's value.
pub fn from_python(
    py: Python<'_>,
    def: Option<&AttrDef>,
    name: &str,
    value: &Bound<'_, PyAny>,
) -> PyResult<AttrValue> {
    // An `AttrValue` message.
    if let Ok(method) = value.getattr(intern!(py, "SerializeToString"))
        && is_message(value, "AttrValue")
    {
        let bytes: Vec<u8> = method.call0()?.extract()?;
        return wire::decode_attr(bytes.into()).map_err(|e| of_graph(&e));
    }
    let Some(def) = def else { return guess(py, name, value) };
    if !def.is_list {
        return one(py, def.kind, name, value);
    }
    let items: Vec<Bound<'_, PyAny>> = match value.try_iter() {
        Ok(items) if !value.is_instance_of::<PyString>() => items.collect::<PyResult<_>>()?,
        _ => {
            let kind = value.get_type().name()?;
            return Err(wrong_type(format!(
                "Expected list for attr {name}, obtained {kind} instead."
            )));
        }
    };
    list(py, def.kind, name, &items)
}

fn is_message(value: &Bound<'_, PyAny>, name: &str) -> bool {
    value.get_type().name().is_ok_and(|n| n.to_cow().is_ok_and(|n| n == name))
}

fn list(
    py: Python<'_>,
    kind: AttrKind,
    name: &str,
    items: &[Bound<'_, PyAny>],
) -> PyResult<AttrValue> {
    if items.is_empty() {
        return Ok(AttrValue::List(AttrList::Empty));
    }
    macro_rules! gather {
        ($variant:ident, $list:ident) => {{
            let mut all = Vec::with_capacity(items.len());
            for item in items {
                match one(py, kind, name, item)? {
                    AttrValue::$variant(x) => all.push(x),
                    _ => unreachable!("one() returns the kind that it is asked for"),
                }
            }
            AttrList::$list(all)
        }};
    }
    Ok(AttrValue::List(match kind {
        AttrKind::Str => gather!(Str, Strs),
        AttrKind::Int => gather!(Int, Ints),
        AttrKind::Float => gather!(Float, Floats),
        AttrKind::Bool => gather!(Bool, Bools),
        AttrKind::Type => gather!(Type, Types),
        AttrKind::Shape => gather!(Shape, Shapes),
        AttrKind::Tensor => gather!(Tensor, Tensors),
        AttrKind::Func => gather!(Func, Funcs),
    }))
}

fn one(
    py: Python<'_>,
    kind: AttrKind,
    name: &str,
    value: &Bound<'_, PyAny>,
) -> PyResult<AttrValue> {
    let wrong = |what: &str| {
        let text = value.repr().map_or_else(|_| String::new(), |r| r.to_string());
        wrong_type(format!("Expected {what} for argument '{name}' not {text}."))
    };
    Ok(match kind {
        AttrKind::Str => AttrValue::Str(text(value).ok_or_else(|| wrong("string"))?),
        AttrKind::Int => {
            if value.is_instance_of::<PyString>() || value.is_instance_of::<PyFloat>() {
                return Err(wrong("int"));
            }
            let number = match value.extract::<i64>() {
                Ok(number) => number,
                Err(_) => {
                    let int = value.call_method0(intern!(py, "__int__"));
                    int.and_then(|i| i.extract()).map_err(|_| wrong("int"))?
                }
            };
            AttrValue::Int(number)
        }
        AttrKind::Float => {
            AttrValue::Float(value.extract::<f64>().map_err(|_| wrong("float"))? as f32)
        }
        AttrKind::Bool => {
            if let Ok(truth) = value.extract::<bool>() {
                AttrValue::Bool(truth)
            } else if value.is_instance_of::<PyInt>() {
                AttrValue::Bool(value.is_truthy()?)
            } else {
                return Err(wrong("bool"));
            }
        }
        AttrKind::Type => AttrValue::Type(dtype_from_python(py, value)?),
        AttrKind::Shape => AttrValue::Shape(shape_from_python(py, value)?),
        AttrKind::Tensor => AttrValue::Tensor(array::from_attr(py, value)?),
        AttrKind::Func => AttrValue::Func(function(py, name, value)?),
    })
}

/// The value of an annotation.
fn guess(py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    if value.is_instance_of::<PyBool>() {
        return one(py, AttrKind::Bool, name, value);
    }
    if value.is_instance_of::<PyInt>() {
        return one(py, AttrKind::Int, name, value);
    }
    if value.is_instance_of::<PyFloat>() {
        return one(py, AttrKind::Float, name, value);
    }
    if text(value).is_some() {
        return one(py, AttrKind::Str, name, value);
    }
    if value.hasattr(intern!(py, "_type_enum"))? {
        return one(py, AttrKind::Type, name, value);
    }
    if value.hasattr(intern!(py, "_dims"))? {
        return one(py, AttrKind::Shape, name, value);
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items: Vec<Bound<'_, PyAny>> = value.try_iter()?.collect::<PyResult<_>>()?;
        let Some(first) = items.first() else { return Ok(AttrValue::List(AttrList::Empty)) };
        let kind = match guess(py, name, first)? {
            AttrValue::Bool(_) => AttrKind::Bool,
            AttrValue::Int(_) => AttrKind::Int,
            AttrValue::Float(_) => AttrKind::Float,
            AttrValue::Type(_) => AttrKind::Type,
            AttrValue::Shape(_) => AttrKind::Shape,
            AttrValue::Str(_) => AttrKind::Str,
            _ => return Err(wrong_type(format!("attr '{name}': lists of lists are not allowed"))),
        };
        return list(py, kind, name, &items);
    }
    let kind = value.get_type().name()?;
    Err(wrong_type(format!("attr '{name}' cannot be a {kind}")))
}

fn text(value: &Bound<'_, PyAny>) -> Option<Bytes> {
    if let Ok(text) = value.downcast::<PyString>() {
        return Some(Bytes::copy_from_slice(text.to_cow().ok()?.as_bytes()));
    }
    value.downcast::<PyBytes>().ok().map(|b| Bytes::copy_from_slice(b.as_bytes()))
}

/// A dtype from a `DType`, a number, a numpy dtype or a name. A reference counts as its base.
pub fn dtype_from_python(py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<DType> {
    let number = intern!(py, "_type_enum");
    let number: i32 = match value.getattr(number) {
        Ok(number) => number.extract()?,
        Err(_) => hooks(py)?.as_dtype.bind(py).call1((value,))?.getattr(number)?.extract()?,
    };
    DType::from_number(number % 100).map_err(|e| wrong_type(e.message()))
}

/// A shape from a `TensorShape`, a list, a number, a message or None.
pub fn shape_from_python(py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<PartialShape> {
    if value.is_none() {
        return Ok(PartialShape::unknown());
    }
    let dims = intern!(py, "_dims");
    let dims = match value.getattr(dims) {
        Ok(dims) => dims,
        Err(_) => hooks(py)?.as_shape.bind(py).call1((value,))?.getattr(dims)?,
    };
    if dims.is_none() {
        return Ok(PartialShape::unknown());
    }
    let mut all = Vec::new();
    for dim in dims.try_iter()? {
        let dim = dim?;
        all.push(if dim.is_none() { -1 } else { dim.extract::<i64>()? });
    }
    PartialShape::from_i64s(&all).map_err(|e| wrong_value(e.message()))
}

/// A function by its name, as `(name, attrs)`, as a `NameAttrList` or as an object with a name.
fn function(py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<FuncRef> {
    if is_message(value, "NameAttrList") {
        let bytes: Vec<u8> = value.call_method0("SerializeToString")?.extract()?;
        return wire::decode_function_ref(bytes.into()).map_err(|e| of_graph(&e));
    }
    if let Ok((name, attrs)) = value.extract::<(String, Bound<'_, PyDict>)>() {
        let mut all = Attrs::new();
        for (key, value) in attrs {
            let key: String = key.extract()?;
            let value = from_python(py, None, &key, &value)?;
            all.set(key, value);
        }
        return Ok(FuncRef { name, attrs: all });
    }
    let named = match text(value) {
        Some(name) => Some(String::from_utf8_lossy(&name).into_owned()),
        None => value.getattr(intern!(py, "name")).and_then(|n| n.extract()).ok(),
    };
    match named {
        Some(name) => Ok(FuncRef { name, attrs: Attrs::new() }),
        None => Err(wrong_type(format!("attr '{name}' should be a function"))),
    }
}

/// An attribute as Python's value. Tensors and functions are serialized messages, marked by a
/// tuple of the message's name and its bytes.
pub fn to_python<'py>(py: Python<'py>, value: &AttrValue) -> PyResult<Bound<'py, PyAny>> {
    let message = |name: &str, bytes: Vec<u8>| -> PyResult<Bound<'py, PyAny>> {
        Ok((name, PyBytes::new(py, &bytes)).into_pyobject(py)?.into_any())
    };
    Ok(match value {
        AttrValue::Str(s) => PyBytes::new(py, s).into_any(),
        AttrValue::Int(i) => i.into_pyobject(py)?.into_any(),
        AttrValue::Float(f) => f.into_pyobject(py)?.into_any(),
        AttrValue::Bool(b) => PyBool::new(py, *b).to_owned().into_any(),
        AttrValue::Type(t) => hooks(py)?.dtype(py, t.number() as usize)?,
        AttrValue::Shape(s) => message("TensorShapeProto", wire::encode_shape(s))?,
        AttrValue::Tensor(t) => {
            message("TensorProto", wire::encode_tensor(t, None).map_err(|e| of_graph(&e))?)?
        }
        AttrValue::Func(f) => {
            message("NameAttrList", wire::encode_function_ref(f).map_err(|e| of_graph(&e))?)?
        }
        AttrValue::Placeholder(name) => PyString::new(py, name).into_any(),
        AttrValue::List(list) => {
            let items: Vec<AttrValue> = match list {
                AttrList::Empty => Vec::new(),
                AttrList::Strs(v) => v.iter().cloned().map(AttrValue::Str).collect(),
                AttrList::Ints(v) => v.iter().copied().map(AttrValue::Int).collect(),
                AttrList::Floats(v) => v.iter().copied().map(AttrValue::Float).collect(),
                AttrList::Bools(v) => v.iter().copied().map(AttrValue::Bool).collect(),
                AttrList::Types(v) => v.iter().copied().map(AttrValue::Type).collect(),
                AttrList::Shapes(v) => v.iter().cloned().map(AttrValue::Shape).collect(),
                AttrList::Tensors(v) => v.iter().cloned().map(AttrValue::Tensor).collect(),
                AttrList::Funcs(v) => v.iter().cloned().map(AttrValue::Func).collect(),
            };
            let items: Vec<_> = items.iter().map(|v| to_python(py, v)).collect::<PyResult<_>>()?;
            PyList::new(py, items)?.into_any()
        }
    })
}

/// A shape as None or a tuple.
pub fn dims<'py>(py: Python<'py>, shape: &PartialShape) -> PyResult<Option<Bound<'py, PyTuple>>> {
    shape.dims().map(|dims| PyTuple::new(py, dims)).transpose()
}

/// A shape as TensorFlow's Python prints it.
pub fn shape_text(shape: &PartialShape) -> String {
    match shape.dims() {
        None => "<unknown>".to_string(),
        Some([one]) => format!("({},)", one.map_or("?".to_string(), |d| d.to_string())),
        Some(dims) => {
            let all: Vec<String> =
                dims.iter().map(|d| d.map_or("?".to_string(), |d| d.to_string())).collect();
            format!("({})", all.join(", "))
        }
    }
}
