//! Every op takes the dtypes that TensorFlow's CPU kernels take, except the listed gaps.

use ferroflow::graph::default_catalog;
use ferroflow_core::{Code, DType, DeviceInfo, NodeInfo};
use ferroflow_graph::{
    AllowedValues, AttrDef, AttrKind, AttrList, AttrValue, Attrs, FuncRef, FunctionInstantiator,
    KernelInit, NoFunctions, OpDef,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Op, number of CPU kernels, and the dtypes of attribute `T` or `dtype` that some of them take.
const TENSORFLOW: &str = include_str!("../data/tf-2.15.1-cpu-kernels.tsv");

/// Op and dtypes that are left out on purpose, with the reason above them.
const GAPS: &str = include_str!("../data/dtype_gaps.txt");

#[test]
fn ops_take_the_dtypes_that_tensorflow_takes() {
    let catalog = default_catalog();
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for line in TENSORFLOW.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [op, _, dtypes] = columns[..] else { continue };
        let Some(op) = catalog.get(op).filter(|op| op.cpu.is_some()) else { continue };
        for name in dtypes.split(',').filter(|d| !d.is_empty()) {
            let Some(dtype) = DType::from_name(name) else {
                found.entry(op.name.clone()).or_default().push(name);
                continue;
            };
            // TensorFlow's kernels may take more dtypes than the op's signature; the signature
            // counts.
            let mut attrs = ["T", "dtype"].into_iter().filter(|a| allows(op, a, dtype)).peekable();
            if attrs.peek().is_some() && !attrs.any(|attr| takes(op, attr, dtype)) {
                found.entry(op.name.clone()).or_default().push(name);
            }
        }
    }
    let listed: BTreeMap<String, Vec<&str>> = GAPS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let mut words = line.split_whitespace();
            (words.next().unwrap().to_string(), words.collect())
        })
        .collect();
    let lines = |gaps: &BTreeMap<String, Vec<&str>>| -> Vec<String> {
        gaps.iter().map(|(op, dtypes)| format!("{op} {}", dtypes.join(" "))).collect()
    };
    let (found, listed) = (lines(&found), lines(&listed));
    let new: Vec<_> = found.iter().filter(|line| !listed.contains(line)).collect();
    let gone: Vec<_> = listed.iter().filter(|line| !found.contains(line)).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "gaps that are not listed: {new:#?}\nlisted, but no such gap: {gone:#?}"
    );
}

/// Whether the signature of an op lets a type attribute have this value.
fn allows(op: &OpDef, attr: &str, dtype: DType) -> bool {
    op.attr(attr).is_some_and(|attr| match &attr.allowed {
        Some(AllowedValues::Types(allowed)) => allowed.contains(&dtype),
        _ => attr.kind == AttrKind::Type,
    })
}

/// Whether there is a kernel for this dtype with some values of the other attributes.
fn takes(op: &OpDef, attr: &str, dtype: DType) -> bool {
    let others: Vec<&AttrDef> = (op.attrs.iter())
        .filter(|a| a.kind == AttrKind::Type && !a.is_list && a.name != attr)
        .collect();
    let mut choices: Vec<Vec<DType>> = vec![Vec::new()];
    for other in others.iter() {
        let mut types = vec![dtype];
        if let Some(AttrValue::Type(t)) = other.default {
            types.push(t);
        }
        match &other.allowed {
            Some(AllowedValues::Types(allowed)) => {
                types.retain(|t| allowed.contains(t));
                types.extend(allowed);
            }
            _ => types.extend([DType::Int32, DType::Int64, DType::Float, DType::String]),
        }
        let longer = |done: &Vec<DType>| -> Vec<Vec<DType>> {
            types.iter().map(|t| [done.as_slice(), &[*t]].concat()).collect()
        };
        choices = choices.iter().flat_map(longer).collect();
    }
    choices.iter().any(|types| {
        let mut attrs = Attrs::default();
        attrs.set(attr, dtype);
        for (other, t) in others.iter().zip(types) {
            attrs.set(other.name.clone(), *t);
        }
        for def in &op.attrs {
            if !attrs.contains(&def.name) && def.default.is_none() {
                attrs.set(def.name.clone(), plain(def, dtype));
            }
        }
        has_kernel(op, attrs)
    })
}

fn has_kernel(op: &OpDef, attrs: Attrs) -> bool {
    let Ok(attrs) = op.complete_attrs(attrs) else { return false };
    let (Ok(inputs), Ok(outputs)) = (op.input_types(&attrs), op.output_types(&attrs)) else {
        return false;
    };
    let node = Arc::new(NodeInfo {
        name: "node".into(),
        op: op.name.clone(),
        device: Arc::new(DeviceInfo::cpu("localhost", 0, 0, 1)),
        default_container: "localhost".into(),
        outputs: outputs.len(),
    });
    let functions: Arc<dyn FunctionInstantiator> = Arc::new(NoFunctions);
    let made = op.kernel(&KernelInit {
        node: &node,
        attrs: &attrs,
        inputs: &inputs,
        outputs: &outputs,
        functions: &functions,
        is_fallback: false,
    });
    // Invalid values of other attributes give other codes.
    !made.is_err_and(|e| e.code() == Code::Unimplemented)
}

/// Some value of an attribute.
fn plain(def: &AttrDef, dtype: DType) -> AttrValue {
    let n = usize::try_from(def.minimum.unwrap_or(1)).unwrap_or(1);
    let text = match &def.allowed {
        Some(AllowedValues::Strs(allowed)) => allowed[0].clone(),
        _ => String::new(),
    };
    if def.is_list {
        return AttrValue::List(match def.kind {
            AttrKind::Str => AttrList::Strs(vec![text.into(); n]),
            AttrKind::Int => AttrList::Ints(vec![1; n]),
            AttrKind::Float => AttrList::Floats(vec![1.0; n]),
            AttrKind::Bool => AttrList::Bools(vec![false; n]),
            AttrKind::Type => AttrList::Types(vec![dtype; n]),
            AttrKind::Shape => AttrList::Shapes(vec![ferroflow_core::PartialShape::unknown(); n]),
            AttrKind::Tensor | AttrKind::Func => AttrList::Empty,
        });
    }
    match def.kind {
        AttrKind::Str => AttrValue::Str(text.into()),
        AttrKind::Int => AttrValue::Int(def.minimum.unwrap_or(1).max(1)),
        AttrKind::Float => AttrValue::Float(1.0),
        AttrKind::Bool => AttrValue::Bool(false),
        AttrKind::Type => AttrValue::Type(dtype),
        AttrKind::Shape => AttrValue::Shape(ferroflow_core::PartialShape::unknown()),
        AttrKind::Tensor => AttrValue::Tensor(ferroflow_core::Tensor::scalar(0i32)),
        AttrKind::Func => AttrValue::Func(FuncRef::default()),
    }
}
