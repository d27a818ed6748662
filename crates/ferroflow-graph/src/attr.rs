//! Attributes of nodes: the constants an op is configured with.

use bytes::Bytes;
use ferroflow_core::{DType, PartialShape, Result, Tensor, bail, err};

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrValue {
    /// A byte string.
    Str(Bytes),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f32),
    /// A truth value.
    Bool(bool),
    /// A dtype.
    Type(DType),
    /// A shape, which may be partly unknown.
    Shape(PartialShape),
    /// A tensor.
    Tensor(Tensor),
    /// A function.
    Func(FuncRef),
    /// Stands for an attribute of the enclosing function.
    Placeholder(String),
    /// A list.
    List(AttrList),
}

/// The value of a list attribute. A message does not say the element type of an empty list, so that
/// is `Empty`.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrList {
    /// An empty list of any kind.
    Empty,
    /// Byte strings.
    Strs(Vec<Bytes>),
    /// Integers.
    Ints(Vec<i64>),
    /// Numbers.
    Floats(Vec<f32>),
    /// Truth values.
    Bools(Vec<bool>),
    /// Dtypes.
    Types(Vec<DType>),
    /// Shapes.
    Shapes(Vec<PartialShape>),
    /// Tensors.
    Tensors(Vec<Tensor>),
    /// Functions.
    Funcs(Vec<FuncRef>),
}

/// A function by name, with attributes that instantiate it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FuncRef {
    /// The name of the function.
    pub name: String,
    /// The attributes of the instantiation.
    pub attrs: Attrs,
}

impl AttrValue {
    /// The kind of the value, for error messages: the value itself may be very long.
    pub fn kind(&self) -> &'static str {
        match self {
            AttrValue::Str(_) => "a string",
            AttrValue::Int(_) => "an int",
            AttrValue::Float(_) => "a float",
            AttrValue::Bool(_) => "a bool",
            AttrValue::Type(_) => "a type",
            AttrValue::Shape(_) => "a shape",
            AttrValue::Tensor(_) => "a tensor",
            AttrValue::Func(_) => "a function",
            AttrValue::Placeholder(_) => "a placeholder",
            AttrValue::List(_) => "a list",
        }
    }
}

impl From<&str> for AttrValue {
    fn from(s: &str) -> AttrValue {
        AttrValue::Str(Bytes::copy_from_slice(s.as_bytes()))
    }
}

macro_rules! into_attr {
    ($($t:ty => $make:expr;)*) => {$(
        impl From<$t> for AttrValue {
            fn from(x: $t) -> AttrValue { $make(x) }
        }
    )*};
}
into_attr! {
    Bytes => AttrValue::Str;
    i64 => AttrValue::Int;
    f32 => AttrValue::Float;
    bool => AttrValue::Bool;
    DType => AttrValue::Type;
    PartialShape => AttrValue::Shape;
    Tensor => AttrValue::Tensor;
    FuncRef => AttrValue::Func;
    AttrList => AttrValue::List;
    Vec<i64> => |v| AttrValue::List(AttrList::Ints(v));
    Vec<DType> => |v| AttrValue::List(AttrList::Types(v));
    Vec<PartialShape> => |v| AttrValue::List(AttrList::Shapes(v));
}

/// Attributes by name. Typed getters fail with `InvalidArgument` naming the attribute.
///
/// A sorted list. Nodes have few attributes and a graph may have a million nodes: a tree for each
/// would take ten times the memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attrs(Vec<(String, AttrValue)>);

macro_rules! scalar_getters {
    ($($fn:ident -> $t:ty, $variant:ident, $what:literal;)*) => {$(
        #[doc = concat!("Attribute `name`, ", $what, ".")]
        pub fn $fn(&self, name: &str) -> Result<$t> {
            match self.required(name)? {
                AttrValue::$variant(x) => Ok(x.clone()),
                other => Err(wrong(name, $what, other)),
            }
        }
    )*};
}

macro_rules! list_getters {
    ($($fn:ident -> $t:ty, $variant:ident, $what:literal;)*) => {$(
        #[doc = concat!("Attribute `name`, ", $what, ".")]
        pub fn $fn(&self, name: &str) -> Result<Vec<$t>> {
            match self.required(name)? {
                AttrValue::List(AttrList::$variant(x)) => Ok(x.clone()),
                AttrValue::List(AttrList::Empty) => Ok(Vec::new()),
                other => Err(wrong(name, $what, other)),
            }
        }
    )*};
}

impl Attrs {
    /// No attributes.
    pub fn new() -> Attrs {
        Attrs::default()
    }

    /// The attribute `name`, if it is set.
    pub fn get(&self, name: &str) -> Option<&AttrValue> {
        self.position(name).ok().map(|i| &self.0[i].1)
    }

    /// Sets an attribute.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<AttrValue>) {
        let (name, value) = (name.into(), value.into());
        match self.position(&name) {
            Ok(i) => self.0[i].1 = value,
            Err(i) => self.0.insert(i, (name, value)),
        }
    }

    fn position(&self, name: &str) -> std::result::Result<usize, usize> {
        self.0.binary_search_by(|(n, _)| n.as_str().cmp(name))
    }

    /// Adds one attribute.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<AttrValue>) -> Attrs {
        self.set(name, value);
        self
    }

    /// Removes an attribute and returns it.
    pub fn remove(&mut self, name: &str) -> Option<AttrValue> {
        self.position(name).ok().map(|i| self.0.remove(i).1)
    }

    /// Whether the attribute `name` is set.
    pub fn contains(&self, name: &str) -> bool {
        self.position(name).is_ok()
    }

    /// All attributes, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &AttrValue)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// Whether there are no attributes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    scalar_getters! {
        int -> i64, Int, "an int";
        float -> f32, Float, "a float";
        bool -> bool, Bool, "a bool";
        bytes -> Bytes, Str, "a string";
        dtype -> DType, Type, "a type";
        shape -> PartialShape, Shape, "a shape";
        tensor -> Tensor, Tensor, "a tensor";
        func -> FuncRef, Func, "a function";
    }

    list_getters! {
        ints -> i64, Ints, "a list of ints";
        floats -> f32, Floats, "a list of floats";
        bools -> bool, Bools, "a list of bools";
        byte_strings -> Bytes, Strs, "a list of strings";
        dtypes -> DType, Types, "a list of types";
        shapes -> PartialShape, Shapes, "a list of shapes";
        tensors -> Tensor, Tensors, "a list of tensors";
        funcs -> FuncRef, Funcs, "a list of functions";
    }

    /// Attribute `name`, a string that is UTF-8.
    pub fn string(&self, name: &str) -> Result<String> {
        match String::from_utf8(self.bytes(name)?.to_vec()) {
            Ok(s) => Ok(s),
            Err(_) => bail!(InvalidArgument, "attr '{name}' is not UTF-8"),
        }
    }

    fn required(&self, name: &str) -> Result<&AttrValue> {
        self.get(name).ok_or_else(|| err!(InvalidArgument, "missing attr '{name}'"))
    }
}

impl FromIterator<(String, AttrValue)> for Attrs {
    fn from_iter<I: IntoIterator<Item = (String, AttrValue)>>(items: I) -> Attrs {
        let mut attrs = Attrs::new();
        for (name, value) in items {
            attrs.set(name, value);
        }
        attrs
    }
}

impl IntoIterator for Attrs {
    type Item = (String, AttrValue);
    type IntoIter = std::vec::IntoIter<(String, AttrValue)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

fn wrong(name: &str, what: &str, got: &AttrValue) -> ferroflow_core::Error {
    err!(InvalidArgument, "attr '{name}' should be {what}, got {}", got.kind())
}
