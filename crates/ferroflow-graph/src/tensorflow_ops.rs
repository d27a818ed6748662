//! The signatures of all ops of TensorFlow 2.15. Graphs for TensorFlow workers are checked against
//! them, and our own declarations are compared with them.

use crate::attr::{AttrList, AttrValue};
use crate::op_def::{AllowedValues, ArgDef, ArgTypes, AttrDef, OpDef, TypeSource};
use crate::wire::{MessageReader, graph};
use bytes::Bytes;
use ferroflow_core::Result;
use flate2::read::GzDecoder;
use std::collections::{BTreeSet, HashMap};
use std::io::Read;
use std::sync::LazyLock;

/// An `OpList`, recorded from TensorFlow 2.15.1.
static RECORDED: LazyLock<Bytes> = LazyLock::new(|| {
    let packed = include_bytes!("../data/tf-2.15.1-opdefs.pb.gz");
    let mut list = Vec::new();
    let unpacked = GzDecoder::new(&packed[..]).read_to_end(&mut list);
    unpacked.expect("the recorded ops are part of this program and whole");
    list.into()
});

/// Name to serialized `OpDef`.
static BY_NAME: LazyLock<HashMap<String, Bytes>> =
    LazyLock::new(|| index().expect("the recorded ops are part of this program and parse"));

/// The signatures of all of TensorFlow's ops, without shape functions and kernels.
pub fn tensorflow_signatures() -> Vec<OpDef> {
    graph::decode_ops(RECORDED.clone())
        .expect("the recorded ops are part of this program and parse")
}

/// The signature of one of TensorFlow's ops.
pub fn tensorflow_signature(name: &str) -> Option<OpDef> {
    graph::decode_op(BY_NAME.get(name)?.clone()).ok()
}

/// How a declaration differs from TensorFlow's of the same name, one line for each difference in
/// arguments, attributes, defaults, allowed values or properties. Descriptions and the order of
/// allowed values are not compared. An op that TensorFlow does not have is one difference.
pub fn signature_differences(op: &OpDef) -> Vec<String> {
    let Some(theirs) = tensorflow_signature(&op.name) else {
        return vec![format!("{}: TensorFlow has no such op", op.name)];
    };
    let mut all = Vec::new();
    compare_args(&mut all, "input", &op.inputs, &theirs.inputs);
    compare_args(&mut all, "output", &op.outputs, &theirs.outputs);
    compare_attrs(&mut all, &op.attrs, &theirs.attrs);
    let flags = [
        ("is_stateful", op.is_stateful, theirs.is_stateful),
        ("is_commutative", op.is_commutative, theirs.is_commutative),
        ("is_aggregate", op.is_aggregate, theirs.is_aggregate),
        (
            "allows_uninitialized_input",
            op.allows_uninitialized_input,
            theirs.allows_uninitialized_input,
        ),
    ];
    for (what, ours, theirs) in flags.into_iter().filter(|f| f.1 != f.2) {
        all.push(format!("{what} is {ours}, TensorFlow's is {theirs}"));
    }
    all.into_iter().map(|line| format!("{}: {line}", op.name)).collect()
}

fn index() -> Result<HashMap<String, Bytes>> {
    let mut all = HashMap::new();
    let mut list = MessageReader::from(RECORDED.clone());
    while let Some(key) = list.key()? {
        let bytes = list.bytes(key)?;
        let mut op = MessageReader::from(bytes.clone());
        // The name is the first field.
        if let Some(key) = op.key()? {
            all.insert(op.string(key)?, bytes);
        }
    }
    Ok(all)
}

fn compare_args(all: &mut Vec<String>, what: &str, ours: &[ArgDef], theirs: &[ArgDef]) {
    for i in 0..ours.len().max(theirs.len()) {
        let text = |args: &[ArgDef]| args.get(i).map_or("missing".to_string(), arg_text);
        if ours.get(i) != theirs.get(i) {
            all.push(format!("{what} {i} is {}, TensorFlow's is {}", text(ours), text(theirs)));
        }
    }
}

fn compare_attrs(all: &mut Vec<String>, ours: &[AttrDef], theirs: &[AttrDef]) {
    for a in ours {
        if !theirs.iter().any(|b| b.name == a.name) {
            all.push(format!("attr '{}' is not TensorFlow's", a.name));
        }
    }
    for b in theirs {
        let Some(a) = ours.iter().find(|a| a.name == b.name) else {
            all.push(format!("attr '{}' is missing: {}", b.name, attr_text(b)));
            continue;
        };
        let same = (a.kind, a.is_list, a.minimum) == (b.kind, b.is_list, b.minimum)
            && a.default == b.default
            && allowed_set(a) == allowed_set(b);
        if !same {
            let (ours, theirs) = (attr_text(a), attr_text(b));
            all.push(format!("attr '{}' is {ours}, TensorFlow's is {theirs}", a.name));
        }
    }
}

fn allowed_set(a: &AttrDef) -> Option<BTreeSet<String>> {
    a.allowed.as_ref().map(|allowed| match allowed {
        AllowedValues::Types(types) => types.iter().map(|t| t.name().to_string()).collect(),
        AllowedValues::Strs(strs) => strs.iter().map(|s| format!("'{s}'")).collect(),
    })
}

/// An argument in TensorFlow's notation.
fn arg_text(arg: &ArgDef) -> String {
    let source = |s: &TypeSource| match s {
        TypeSource::Fixed(dtype) => dtype.name().to_string(),
        TypeSource::Attr(name) => name.clone(),
    };
    let types = match &arg.types {
        ArgTypes::One(s) => source(s),
        ArgTypes::Repeated { count, of } => format!("{count} * {}", source(of)),
        ArgTypes::Listed(list) => list.clone(),
    };
    match arg.is_ref {
        true => format!("\"{}: Ref({types})\"", arg.name),
        false => format!("\"{}: {types}\"", arg.name),
    }
}

/// An attribute in nearly TensorFlow's notation.
fn attr_text(a: &AttrDef) -> String {
    let mut text = match allowed_set(a) {
        Some(set) => format!("{{{}}}", set.into_iter().collect::<Vec<_>>().join(", ")),
        None => format!("{:?}", a.kind).to_lowercase(),
    };
    if a.is_list {
        text = format!("list({text})");
    }
    if let Some(minimum) = a.minimum {
        text += &format!(" >= {minimum}");
    }
    if let Some(default) = &a.default {
        text += &format!(" = {}", value_text(default));
    }
    text
}

fn value_text(value: &AttrValue) -> String {
    match value {
        AttrValue::Str(s) => format!("'{}'", String::from_utf8_lossy(s)),
        AttrValue::Int(i) => i.to_string(),
        AttrValue::Float(f) => f.to_string(),
        AttrValue::Bool(b) => b.to_string(),
        AttrValue::Type(t) => t.to_string(),
        AttrValue::Shape(s) => s.to_string(),
        AttrValue::List(AttrList::Empty) => "[]".to_string(),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalog;

    #[test]
    fn all_recorded_ops_can_be_read() {
        let ops = tensorflow_signatures();
        assert_eq!(ops.len(), 1862);
        assert_eq!(BY_NAME.len(), ops.len());
        for op in &ops {
            assert_eq!(signature_differences(op), Vec::<String>::new());
        }
    }

    #[test]
    fn named_type_sets_equal_tensorflows() {
        let mut c = Catalog::new();
        c.op("Sum").attr("T: numbertype");
        c.op("ReluGrad").attr("T: realnumbertype");
        c.op("Requantize").attr("Tinput: quantizedtype");
        let of = |name: &str, attr: &str| {
            let theirs = tensorflow_signature(name).unwrap();
            (
                allowed_set(c.get(name).unwrap().attr(attr).unwrap()),
                allowed_set(theirs.attr(attr).unwrap()),
            )
        };
        for (name, attr) in [("Sum", "T"), ("ReluGrad", "T"), ("Requantize", "Tinput")] {
            let (ours, theirs) = of(name, attr);
            assert_eq!(ours, theirs, "{name}");
        }
    }

    #[test]
    fn signature_differences_are_listed() {
        let mut c = Catalog::new();
        c.op("MatMul")
            .input("a: T")
            .input("c: T")
            .output("product: T")
            .attr("transpose_a: bool = true")
            .attr("transpose_b: bool = false")
            .attr("extra: int")
            .stateful();
        c.op("NoSuchOp");
        let of = |name: &str| signature_differences(c.get(name).unwrap());
        assert_eq!(of("NoSuchOp"), ["NoSuchOp: TensorFlow has no such op"]);
        let found = of("MatMul");
        let begins = [
            "MatMul: input 1 is \"c: T\", TensorFlow's is \"b: T\"",
            "MatMul: attr 'extra' is not TensorFlow's",
            "MatMul: attr 'transpose_a' is bool = true, TensorFlow's is bool = false",
            "MatMul: attr 'T' is missing: {bfloat16, ",
            "MatMul: is_stateful is true, TensorFlow's is false",
        ];
        assert_eq!(found.len(), begins.len(), "{found:?}");
        for (line, begin) in found.iter().zip(begins) {
            assert!(line.starts_with(begin), "{line}");
        }
    }
}
