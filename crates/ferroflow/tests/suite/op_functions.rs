//! The functions of `ferroflow::ops` are what the catalog says: one for each op, in a file for each
//! family. Write them again with `UPDATE_OPS=1 cargo test -p ferroflow --test suite op_functions`.

use ferroflow::graph::{AttrList, AttrValue, default_catalog};
use ferroflow_core::DType;
use ferroflow_graph::{ArgDef, ArgTypes, AttrDef, AttrKind, OpDef, TypeSource};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[test]
fn the_functions_of_all_ops_are_fresh() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ferroflow-train/src/ops/generated");
    let fresh: BTreeMap<PathBuf, String> =
        files().into_iter().map(|(name, text)| (folder.join(name), formatted(&text))).collect();
    if std::env::var_os("UPDATE_OPS").is_some() {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        for (path, text) in &fresh {
            std::fs::write(path, text).unwrap();
        }
    }
    let written: BTreeMap<PathBuf, String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
        .collect();
    let stale: BTreeSet<&PathBuf> = fresh
        .iter()
        .chain(&written)
        .filter(|(path, _)| fresh.get(*path) != written.get(*path))
        .map(|(path, _)| path)
        .collect();
    assert!(
        stale.is_empty(),
        "stale: {stale:?}; run: UPDATE_OPS=1 cargo test -p ferroflow --test suite op_functions"
    );
}

#[test]
fn names_are_in_snake_case() {
    for (op, name) in [
        ("MatMul", "mat_mul"),
        ("Conv2DBackpropInput", "conv2d_backprop_input"),
        ("IRFFT2D", "irfft2d"),
        ("TopKV2", "top_k_v2"),
        ("LSTMBlockCell", "lstm_block_cell"),
        ("SparseTensorDenseMatMul", "sparse_tensor_dense_mat_mul"),
        ("Where", "where_"),
        ("DecodeAndCropJpeg", "decode_and_crop_jpeg"),
        ("QuantizedConv2DAndReluAndRequantize", "quantized_conv2d_and_relu_and_requantize"),
        ("CSRSparseMatrixToSparseTensor", "csr_sparse_matrix_to_sparse_tensor"),
        ("MutableHashTableV2", "mutable_hash_table_v2"),
        ("Tin", "tin"),
        ("N", "n"),
    ] {
        assert_eq!(snake(op), name);
    }
}

/// The files, by name.
fn files() -> BTreeMap<String, String> {
    let catalog = default_catalog();
    let mut families: BTreeMap<String, Vec<&OpDef>> = BTreeMap::new();
    // Names that begin with an underscore are of nodes that passes make.
    for op in catalog.iter().filter(|op| op.cpu.is_some() && !op.name.starts_with('_')) {
        families.entry(family(op.source)).or_default().push(op);
    }
    let mut files = BTreeMap::new();
    for (family, ops) in &families {
        let mut text = String::from(HEADER);
        let functions: String = ops.iter().map(|op| function(op)).collect();
        let _ = writeln!(text, "use crate::output::Output;");
        for (uses, import) in [
            (&["&Function", "&'a Function"][..], "use crate::function::Function;"),
            (&["&Graph"][..], "use crate::graph::Graph;"),
            (&["-> Operation"][..], "use crate::output::Operation;"),
            (&["DType"][..], "use ferroflow_core::DType;"),
            (&["PartialShape"][..], "use ferroflow_core::PartialShape;"),
            (&["&Tensor", "&'a Tensor"][..], "use ferroflow_core::Tensor;"),
            (&[" list("][..], "use crate::ops::attrs::list;"),
        ] {
            if uses.iter().any(|name| functions.contains(name)) {
                let _ = writeln!(text, "{import}");
            }
        }
        text.push_str(&functions);
        files.insert(format!("{family}.rs"), text);
    }
    let mut root = String::from(HEADER);
    for family in families.keys() {
        let _ = writeln!(root, "mod {family};");
    }
    for family in families.keys() {
        let _ = writeln!(root, "pub use {family}::*;");
    }
    files.insert("mod.rs".into(), root);
    files
}

const HEADER: &str =
    "//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.\n\n";

/// The folder or file below `src` that an op is declared in.
fn family(source: &str) -> String {
    let below = source.rsplit("/src/").next().unwrap_or(source);
    below.split('/').next().unwrap_or(below).trim_end_matches(".rs").to_string()
}

/// The text as rustfmt leaves it.
fn formatted(text: &str) -> String {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--emit", "stdout", "--config-path"])
        .arg(config)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("rustfmt is part of the toolchain");
    let mut input = rustfmt.stdin.take().unwrap();
    let text = text.to_owned();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
    let output = rustfmt.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// One op's function, and its options if it has attributes with defaults.
fn function(op: &OpDef) -> String {
    let name = snake(&op.name);
    let inferred = inferred_attrs(op);
    let free: Vec<&AttrDef> =
        op.attrs.iter().filter(|a| !inferred.contains(a.name.as_str())).collect();
    let (optional, required): (Vec<&AttrDef>, Vec<&AttrDef>) =
        free.into_iter().partition(|a| a.default.is_some());
    let of_graph = !op.inputs.iter().any(|arg| matches!(arg.types, ArgTypes::One(_)));
    let mut names = Names::default();
    let mut parameters = Vec::new();
    let mut arguments = Vec::new();
    let mut body = String::new();
    let graph = if of_graph {
        let g = names.unique("g");
        parameters.push(format!("{g}: &Graph"));
        arguments.push(g.clone());
        g
    } else {
        String::new()
    };
    let mut first = None;
    for arg in &op.inputs {
        let parameter = names.unique(&snake(&arg.name));
        match arg.types {
            ArgTypes::One(_) => {
                first.get_or_insert(parameter.clone());
                parameters.push(format!("{parameter}: &Output"));
                let _ = write!(body, ".input({parameter})");
            }
            _ => {
                parameters.push(format!("{parameter}: &[Output]"));
                let _ = write!(body, ".list({parameter})");
            }
        }
        arguments.push(parameter);
    }
    for attr in &required {
        let parameter = names.unique(&snake(&attr.name));
        parameters.push(format!("{parameter}: {}", parameter_type(attr)));
        let _ = write!(body, ".attr({:?}, {})", attr.name, as_value(attr, &parameter));
        arguments.push(parameter);
    }
    let graph = match first {
        Some(first) => format!("{first}.graph()"),
        None => graph,
    };
    let made = |body: &str| format!("{graph}.op({:?}){body}", op.name);
    let outputs = Outputs::of(op);
    let doc = doc(op, &outputs);
    let mut text = String::new();
    outputs.declare(op, &mut text);
    let result = outputs.result_type(op);
    if optional.is_empty() {
        // Inline, so that only programs that call it compile it.
        let _ = writeln!(
            text,
            "\n{doc}#[inline]\n#[track_caller]\npub fn {name}({}) -> {result} {{\n{}\n}}",
            parameters.join(", "),
            outputs.returned(op, &made(&body))
        );
        return text;
    }
    let options = options_name(op);
    let lifetime = optional.iter().any(|a| option_type(a).contains('\''));
    let generic = if lifetime { "<'a>" } else { "" };
    let anonymous = if lifetime { "<'_>" } else { "" };
    let with = format!("{name}_with").replace("__with", "_with");
    let about = format!("The attributes of [`{with}`] that have defaults.");
    let about: Vec<String> =
        wrapped(&about, 96).into_iter().map(|line| format!("/// {line}")).collect();
    let _ = writeln!(
        text,
        "\n{}\n#[derive(Clone, Debug)]\npub struct {options}{generic} {{",
        about.join("\n")
    );
    let mut defaults = String::new();
    for attr in &optional {
        let field = snake(&attr.name);
        let (value, shown) = default_value(attr);
        let _ = writeln!(
            text,
            "/// `{}`: {}{shown}.\npub {field}: {},",
            attr.name,
            kind_name(attr),
            option_type(attr)
        );
        let _ = writeln!(defaults, "{field}: {value},");
        let field = format!("options.{field}");
        let _ = match (attr.kind, attr.is_list) {
            (AttrKind::Func, false) => {
                let function = format!("{field}.map(Function::reference)");
                write!(body, ".attr_if_given({:?}, {function})", attr.name)
            }
            (AttrKind::Tensor, false) => {
                write!(body, ".attr_if_given({:?}, {field}.cloned())", attr.name)
            }
            _ => write!(body, ".attr({:?}, {})", attr.name, option_as_value(attr, &field)),
        };
    }
    let _ = writeln!(
        text,
        "}}\n\nimpl Default for {options}{anonymous} {{\nfn default() -> Self {{\n{options} {{ {defaults} }}\n}}\n}}"
    );
    let _ = writeln!(
        text,
        "\n{doc}#[inline]\n#[track_caller]\npub fn {name}({}) -> {result} {{\n{with}({}, {options}::default())\n}}",
        parameters.join(", "),
        arguments.join(", ")
    );
    parameters.push(format!("options: {options}{anonymous}"));
    let _ = writeln!(
        text,
        "\n/// [`{name}()`] with other attributes.\n#[inline]\n#[track_caller]\npub fn {with}({}) -> {result} {{\n{}\n}}",
        parameters.join(", "),
        outputs.returned(op, &made(&body))
    );
    text.replace("(, ", "(")
}

/// The name of the type of an op's optional attributes. `g.variable_with` and `g.while_loop_with`
/// have options of their own, which are called `VariableOptions` and `WhileOptions`.
fn options_name(op: &OpDef) -> String {
    match op.name.as_str() {
        "Variable" | "While" => format!("{}OpOptions", op.name),
        name => format!("{}Options", camel(name)),
    }
}

/// Parameter names, each once.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    fn unique(&mut self, name: &str) -> String {
        let mut name = name.to_string();
        while name == "options" || !self.0.insert(name.clone()) {
            name.push('_');
        }
        name
    }
}

/// Attributes that follow from the inputs.
fn inferred_attrs(op: &OpDef) -> BTreeSet<&str> {
    let mut all = BTreeSet::new();
    for arg in &op.inputs {
        match &arg.types {
            ArgTypes::One(TypeSource::Attr(name)) | ArgTypes::Listed(name) => {
                all.insert(name.as_str());
            }
            ArgTypes::One(TypeSource::Fixed(_)) => {}
            ArgTypes::Repeated { count, of } => {
                all.insert(count.as_str());
                if let TypeSource::Attr(name) = of {
                    all.insert(name.as_str());
                }
            }
        }
    }
    all
}

/// What a function returns.
enum Outputs {
    Operation,
    One,
    List,
    Tuple,
    Struct,
}

impl Outputs {
    fn of(op: &OpDef) -> Outputs {
        match &op.outputs[..] {
            [] => Outputs::Operation,
            [one] if is_list(one) => Outputs::List,
            [_] => Outputs::One,
            some if some.len() <= 3 => Outputs::Tuple,
            _ => Outputs::Struct,
        }
    }

    fn struct_name(op: &OpDef) -> String {
        format!("{}Outputs", camel(&op.name))
    }

    fn declare(&self, op: &OpDef, text: &mut String) {
        if let Outputs::Struct = self {
            let name = Outputs::struct_name(op);
            let _ = writeln!(
                text,
                "\n/// The outputs of [`{}`].\n#[derive(Clone, Debug)]\npub struct {name} {{",
                snake(&op.name)
            );
            for arg in &op.outputs {
                let _ = writeln!(
                    text,
                    "/// Output `{}`.\npub {}: {},",
                    arg.name,
                    snake(&arg.name),
                    element_type(arg)
                );
            }
            text.push_str("}\n");
        }
    }

    fn result_type(&self, op: &OpDef) -> String {
        match self {
            Outputs::Operation => "Operation".into(),
            Outputs::One => "Output".into(),
            Outputs::List => "Vec<Output>".into(),
            Outputs::Tuple => {
                let all: Vec<&str> = op.outputs.iter().map(element_type).collect();
                format!("({})", all.join(", "))
            }
            Outputs::Struct => Outputs::struct_name(op),
        }
    }

    fn returned(&self, op: &OpDef, node: &str) -> String {
        let plain = !op.outputs.iter().any(is_list);
        let names: Vec<String> = op.outputs.iter().map(|arg| snake(&arg.name)).collect();
        let list = names.join(", ");
        let value = match self {
            Outputs::Operation => return format!("{node}.operation()"),
            Outputs::One => return format!("{node}.output()"),
            Outputs::List => return format!("{node}.list_outputs()"),
            Outputs::Tuple => format!("({list})"),
            Outputs::Struct => format!("{} {{ {list} }}", Outputs::struct_name(op)),
        };
        if plain {
            return format!("let [{list}] = {node}.split();\n{value}");
        }
        let mut text = format!("let mut arguments = {node}.outputs_by_argument();\n");
        for (arg, name) in op.outputs.iter().zip(&names) {
            let take = if is_list(arg) { "next_list" } else { "next_output" };
            let _ = writeln!(text, "let {name} = arguments.{take}();");
        }
        text + &value
    }
}

fn is_list(arg: &ArgDef) -> bool {
    !matches!(arg.types, ArgTypes::One(_))
}

fn element_type(arg: &ArgDef) -> &'static str {
    if is_list(arg) { "Vec<Output>" } else { "Output" }
}

/// The type of a parameter for an attribute without a default.
fn parameter_type(attr: &AttrDef) -> &'static str {
    match (attr.kind, attr.is_list) {
        (AttrKind::Str, false) => "&str",
        (AttrKind::Int, false) => "i64",
        (AttrKind::Float, false) => "f32",
        (AttrKind::Bool, false) => "bool",
        (AttrKind::Type, false) => "DType",
        (AttrKind::Shape, false) => "&PartialShape",
        (AttrKind::Tensor, false) => "&Tensor",
        (AttrKind::Func, false) => "&Function",
        (AttrKind::Str, true) => "&[&str]",
        (AttrKind::Int, true) => "&[i64]",
        (AttrKind::Float, true) => "&[f32]",
        (AttrKind::Bool, true) => "&[bool]",
        (AttrKind::Type, true) => "&[DType]",
        (AttrKind::Shape, true) => "&[PartialShape]",
        (AttrKind::Tensor, true) => "&[Tensor]",
        (AttrKind::Func, true) => "&[&Function]",
    }
}

/// The parameter as the value of its attribute.
fn as_value(attr: &AttrDef, parameter: &str) -> String {
    match (attr.kind, attr.is_list) {
        (
            AttrKind::Str | AttrKind::Int | AttrKind::Float | AttrKind::Bool | AttrKind::Type,
            false,
        ) => parameter.to_string(),
        (AttrKind::Shape | AttrKind::Tensor, false) => format!("{parameter}.clone()"),
        (AttrKind::Func, false) => format!("{parameter}.reference()"),
        (_, true) => format!("list({parameter})"),
    }
}

/// The type of a field for an attribute with a default.
fn option_type(attr: &AttrDef) -> String {
    match (attr.kind, attr.is_list) {
        (AttrKind::Shape, false) => "PartialShape".into(),
        (AttrKind::Func, false) => "Option<&'a Function>".into(),
        (AttrKind::Tensor, false) => "Option<&'a Tensor>".into(),
        (AttrKind::Str, true) => "&'a [&'a str]".into(),
        (AttrKind::Func, true) => "&'a [&'a Function]".into(),
        _ => parameter_type(attr).replace('&', "&'a "),
    }
}

fn option_as_value(attr: &AttrDef, field: &str) -> String {
    match (attr.kind, attr.is_list) {
        (AttrKind::Shape, false) => field.to_string(),
        _ => as_value(attr, field),
    }
}

/// An attribute's default as Rust writes it, and as its documentation says it.
fn default_value(attr: &AttrDef) -> (String, String) {
    let value = attr.default.as_ref().unwrap();
    let text = match value {
        AttrValue::Str(s) => format!("{:?}", std::str::from_utf8(s).unwrap()),
        AttrValue::Int(i) => format!("{i}"),
        AttrValue::Float(x) => float(*x),
        AttrValue::Bool(b) => format!("{b}"),
        AttrValue::Type(t) => dtype(*t),
        AttrValue::Shape(shape) => match shape.dims() {
            None => "PartialShape::unknown()".into(),
            Some([]) => "PartialShape::scalar()".into(),
            Some(dims) => format!("PartialShape::new({dims:?})"),
        },
        AttrValue::Func(_) | AttrValue::Tensor(_) => "None".into(),
        AttrValue::Placeholder(_) => panic!("{attr:?}"),
        AttrValue::List(list) => match list {
            AttrList::Empty => "&[]".into(),
            AttrList::Ints(v) => format!("&{v:?}"),
            AttrList::Bools(v) => format!("&{v:?}"),
            AttrList::Floats(v) => {
                let all: Vec<String> = v.iter().map(|x| float(*x)).collect();
                format!("&[{}]", all.join(", "))
            }
            AttrList::Strs(v) => {
                let all: Vec<&str> = v.iter().map(|s| std::str::from_utf8(s).unwrap()).collect();
                format!("&{all:?}")
            }
            AttrList::Types(v) => {
                let all: Vec<String> = v.iter().map(|t| dtype(*t)).collect();
                format!("&[{}]", all.join(", "))
            }
            other => panic!("{} has the default {other:?}", attr.name),
        },
    };
    let shown = text.trim_start_matches('&').replace("DType::", "");
    let shown = match shown.as_str() {
        "\"\"" => ", empty by default".to_string(),
        "[]" => ", empty by default".to_string(),
        "None" => ", none by default".to_string(),
        "PartialShape::unknown()" => ", unknown by default".to_string(),
        "PartialShape::scalar()" => ", a scalar by default".to_string(),
        shown => format!(", `{shown}` by default"),
    };
    (text, shown)
}

/// A type as Rust writes it.
fn dtype(t: DType) -> String {
    let name = t.to_string();
    let variant = match name.as_str() {
        "bfloat16" => "BFloat16".to_string(),
        name => ["quint", "qint", "uint"]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix).map(|bits| (prefix, bits)))
            .map_or_else(
                || camel(name),
                |(prefix, bits)| prefix.to_uppercase().replace("INT", "Int") + bits,
            ),
    };
    format!("DType::{variant}")
}

fn float(x: f32) -> String {
    match x {
        f32::INFINITY => "f32::INFINITY".into(),
        f32::NEG_INFINITY => "f32::NEG_INFINITY".into(),
        x if x.is_nan() => "f32::NAN".into(),
        x => format!("{x:?}"),
    }
}

fn kind_name(attr: &AttrDef) -> String {
    let one = match attr.kind {
        AttrKind::Str => "string",
        AttrKind::Int => "int",
        AttrKind::Float => "float",
        AttrKind::Bool => "bool",
        AttrKind::Type => "type",
        AttrKind::Shape => "shape",
        AttrKind::Tensor => "tensor",
        AttrKind::Func => "function",
    };
    if attr.is_list { format!("list of {one}s") } else { one.to_string() }
}

/// The documentation of a function.
fn doc(op: &OpDef, outputs: &Outputs) -> String {
    let mut paragraphs = vec![format!("`{}`: {}", op.name, op.doc)];
    if let Outputs::Tuple = outputs {
        let names: Vec<String> = op.outputs.iter().map(|arg| format!("`{}`", arg.name)).collect();
        paragraphs.push(format!("Returns ({}).", names.join(", ")));
    }
    let mut text = String::new();
    for (i, paragraph) in paragraphs.iter().enumerate() {
        if i > 0 {
            text.push_str("///\n");
        }
        for line in wrapped(&paragraph.replace('[', "\\[").replace(']', "\\]"), 96) {
            let _ = writeln!(text, "/// {line}");
        }
    }
    text
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().unwrap();
        if last.is_empty() {
            last.push_str(word);
        } else if last.len() + 1 + word.len() <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_string());
        }
    }
    lines
}

/// `MatMul` as `mat_mul`; words of Rust get an underscore.
fn snake(name: &str) -> String {
    const WORDS: &str = "abstract as async await become box break const continue crate do dyn else enum \
        extern false final fn for gen if impl in let loop macro match mod move mut override priv pub ref \
        return self static struct super trait true try type typeof unsafe unsized use virtual where \
        while yield";
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (i, &c) in chars.iter().enumerate() {
        let before = i.checked_sub(1).map(|i| chars[i]);
        let after = chars.get(i + 1);
        let version = c == 'V' && chars[i + 1..].iter().all(char::is_ascii_digit);
        let begins_word = c.is_uppercase()
            && match before {
                Some(_) if version && i + 1 < chars.len() => true,
                None | Some('_') => false,
                Some(b) if b.is_lowercase() => true,
                // `2D` ends a word, and `FFTInput` has two.
                Some(b) if b.is_ascii_digit() => after.is_some_and(|a| a.is_lowercase()),
                Some(_) => after.is_some_and(|a| a.is_lowercase()),
            };
        if begins_word {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    let out = out.replace("__", "_");
    if WORDS.split_whitespace().any(|word| word == out) { out + "_" } else { out }
}

/// The name of a type for an op.
fn camel(name: &str) -> String {
    name.split('_')
        .map(|part| {
            let mut chars = part.chars();
            chars
                .next()
                .map(|c| c.to_uppercase().chain(chars).collect::<String>())
                .unwrap_or_default()
        })
        .collect()
}
