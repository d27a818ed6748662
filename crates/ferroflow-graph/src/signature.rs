//! TensorFlow's notation for signatures: `features: T`, `values: N * T`, `ref: Ref(T)`,
//! `T: {float, double} = DT_FLOAT`, `N: int >= 1`. Our declarations use it, so that they can be
//! compared with TensorFlow's.

use crate::attr::{AttrList, AttrValue};
use crate::op_def::{AllowedValues, ArgDef, ArgTypes, AttrDef, AttrKind, TypeSource};
use ferroflow_core::{DType, PartialShape, Result, bail, ensure, err};

/// The types of `numbertype`.
pub const NUMBER_TYPES: [DType; 19] = {
    use DType::*;
    [
        Float, Double, Int32, UInt8, Int16, Int8, Complex64, Int64, QInt8, QUInt8, QInt32,
        BFloat16, QInt16, QUInt16, UInt16, Complex128, Half, UInt32, UInt64,
    ]
};

/// The types of `realnumbertype`.
pub const REAL_NUMBER_TYPES: [DType; 12] = {
    use DType::*;
    [Float, Double, Int32, UInt8, Int16, Int8, Int64, BFloat16, UInt16, Half, UInt32, UInt64]
};

/// The types of `quantizedtype`.
pub const QUANTIZED_TYPES: [DType; 5] = {
    use DType::*;
    [QInt8, QUInt8, QInt32, QInt16, QUInt16]
};

/// Parses `name: type`. A type name can be a list attribute, which is only known once the op's
/// attributes are: see [`resolve_lists`].
pub fn parse_arg(text: &str) -> Result<ArgDef> {
    let (name, mut types) = split_name(text)?;
    let mut is_ref = false;
    if let Some(inner) = types.strip_prefix("Ref(").and_then(|t| t.strip_suffix(')')) {
        (is_ref, types) = (true, inner.trim());
    }
    let source = |t: &str| match DType::from_name(t) {
        Some(dtype) => TypeSource::Fixed(dtype),
        None => TypeSource::Attr(t.to_string()),
    };
    let types = match types.split_once('*') {
        Some((count, of)) => {
            ArgTypes::Repeated { count: count.trim().to_string(), of: source(of.trim()) }
        }
        None => ArgTypes::One(source(types)),
    };
    Ok(ArgDef { name: name.to_string(), is_ref, types })
}

/// Turns arguments whose type is a list attribute into [`ArgTypes::Listed`].
pub fn resolve_lists(args: &mut [ArgDef], attrs: &[AttrDef]) {
    for arg in args {
        if let ArgTypes::One(TypeSource::Attr(name)) = &arg.types
            && attrs.iter().any(|a| a.name == *name && a.is_list)
        {
            arg.types = ArgTypes::Listed(name.clone());
        }
    }
}

/// Parses `name: kind`, with an optional `>= minimum` and an optional `= default`.
pub fn parse_attr(text: &str) -> Result<AttrDef> {
    let (name, rest) = split_name(text)?;
    let mut p = Parser { rest };
    let mut def = p.kind(name)?;
    if p.eat(">=") {
        def.minimum = Some(p.int()?);
    }
    if p.eat("=") {
        def.default = Some(p.default(&def)?);
    }
    ensure!(p.rest.trim().is_empty(), InvalidArgument, "unexpected {:?} in {text:?}", p.rest);
    Ok(def)
}

fn split_name(text: &str) -> Result<(&str, &str)> {
    match text.split_once(':') {
        Some((name, rest)) => Ok((name.trim(), rest.trim())),
        None => bail!(InvalidArgument, "expected `name: type`, got {text:?}"),
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn eat(&mut self, token: &str) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        ensure!(self.eat(token), InvalidArgument, "expected {token:?} at {:?}", self.rest);
        Ok(())
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || "_.+-".contains(c)))
            .unwrap_or(rest.len());
        self.rest = &rest[end..];
        &rest[..end]
    }

    fn quoted(&mut self) -> Result<&'a str> {
        let rest = self.rest.trim_start();
        for quote in ['\'', '"'] {
            if let Some(inner) = rest.strip_prefix(quote)
                && let Some(end) = inner.find(quote)
            {
                self.rest = &inner[end + 1..];
                return Ok(&inner[..end]);
            }
        }
        bail!(InvalidArgument, "expected a quoted string at {rest:?}")
    }

    fn int(&mut self) -> Result<i64> {
        let word = self.word();
        word.parse().map_err(|_| err!(InvalidArgument, "expected an int, got {word:?}"))
    }

    fn dtype(&mut self) -> Result<DType> {
        let word = self.word();
        let name = word.strip_prefix("DT_").map(str::to_ascii_lowercase);
        DType::from_name(name.as_deref().unwrap_or(word))
            .ok_or_else(|| err!(InvalidArgument, "unknown type {word:?}"))
    }

    /// Comma-separated items up to `close`.
    fn items<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        while !self.eat(close) {
            all.push(item(self)?);
            if !self.eat(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(all)
    }

    fn kind(&mut self, name: &str) -> Result<AttrDef> {
        let is_list = self.eat("list(");
        let mut allowed = None;
        let kind = if self.eat("{") {
            if self.rest.trim_start().starts_with(['\'', '"']) {
                let strs = self.items("}", |p| p.quoted().map(str::to_string))?;
                allowed = Some(AllowedValues::Strs(strs));
                AttrKind::Str
            } else {
                allowed = Some(AllowedValues::Types(self.items("}", Parser::dtype)?));
                AttrKind::Type
            }
        } else {
            let (kind, types): (AttrKind, Option<&[DType]>) = match self.word() {
                "string" => (AttrKind::Str, None),
                "int" => (AttrKind::Int, None),
                "float" => (AttrKind::Float, None),
                "bool" => (AttrKind::Bool, None),
                "type" => (AttrKind::Type, None),
                "shape" => (AttrKind::Shape, None),
                "tensor" => (AttrKind::Tensor, None),
                "func" => (AttrKind::Func, None),
                "numbertype" | "numerictype" => (AttrKind::Type, Some(&NUMBER_TYPES)),
                "realnumbertype" => (AttrKind::Type, Some(&REAL_NUMBER_TYPES)),
                "quantizedtype" => (AttrKind::Type, Some(&QUANTIZED_TYPES)),
                other => bail!(InvalidArgument, "unknown attr type {other:?} of {name:?}"),
            };
            allowed = allowed.or(types.map(|t| AllowedValues::Types(t.to_vec())));
            kind
        };
        if is_list {
            self.expect(")")?;
        }
        let name = name.to_string();
        Ok(AttrDef { name, kind, is_list, default: None, minimum: None, allowed })
    }

    fn default(&mut self, def: &AttrDef) -> Result<AttrValue> {
        if !def.is_list {
            return self.scalar(def.kind);
        }
        self.expect("[")?;
        let items = self.items("]", |p| p.scalar(def.kind))?;
        Ok(AttrValue::List(list_of(items)?))
    }

    fn scalar(&mut self, kind: AttrKind) -> Result<AttrValue> {
        Ok(match kind {
            AttrKind::Str => self.quoted()?.into(),
            AttrKind::Int => AttrValue::Int(self.int()?),
            AttrKind::Float => {
                let word = self.word();
                let number = word.parse();
                AttrValue::Float(number.map_err(|_| err!(InvalidArgument, "bad float {word:?}"))?)
            }
            AttrKind::Bool => AttrValue::Bool(self.word() == "true"),
            AttrKind::Type => AttrValue::Type(self.dtype()?),
            AttrKind::Shape => self.shape()?.into(),
            AttrKind::Tensor | AttrKind::Func => {
                bail!(InvalidArgument, "no notation for such a default")
            }
        })
    }

    /// `{ unknown_rank: true }`, `{}` or `[1, -1]`.
    fn shape(&mut self) -> Result<PartialShape> {
        if self.eat("[") {
            return PartialShape::from_i64s(&self.items("]", Parser::int)?);
        }
        self.expect("{")?;
        let unknown = self.eat("unknown_rank");
        if unknown {
            self.expect(":")?;
            self.expect("true")?;
        }
        self.expect("}")?;
        Ok(if unknown { PartialShape::unknown() } else { PartialShape::scalar() })
    }
}

fn list_of(items: Vec<AttrValue>) -> Result<AttrList> {
    let mut list = AttrList::Empty;
    for item in items {
        match (&mut list, item) {
            (AttrList::Empty, AttrValue::Str(x)) => list = AttrList::Strs(vec![x]),
            (AttrList::Empty, AttrValue::Int(x)) => list = AttrList::Ints(vec![x]),
            (AttrList::Empty, AttrValue::Float(x)) => list = AttrList::Floats(vec![x]),
            (AttrList::Empty, AttrValue::Bool(x)) => list = AttrList::Bools(vec![x]),
            (AttrList::Empty, AttrValue::Type(x)) => list = AttrList::Types(vec![x]),
            (AttrList::Strs(v), AttrValue::Str(x)) => v.push(x),
            (AttrList::Ints(v), AttrValue::Int(x)) => v.push(x),
            (AttrList::Floats(v), AttrValue::Float(x)) => v.push(x),
            (AttrList::Bools(v), AttrValue::Bool(x)) => v.push(x),
            (AttrList::Types(v), AttrValue::Type(x)) => v.push(x),
            (_, other) => bail!(InvalidArgument, "no notation for a list with {other:?}"),
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_parse() {
        let arg = parse_arg("ref: Ref(T)").unwrap();
        assert!(arg.is_ref);
        assert_eq!(arg.types, ArgTypes::One(TypeSource::Attr("T".into())));
        let arg = parse_arg("values: N * int32").unwrap();
        let of = TypeSource::Fixed(DType::Int32);
        assert_eq!(arg.types, ArgTypes::Repeated { count: "N".into(), of });
    }

    #[test]
    fn attributes_parse() {
        let a = parse_attr("T: {half, float} = DT_FLOAT").unwrap();
        assert_eq!(a.allowed, Some(AllowedValues::Types(vec![DType::Half, DType::Float])));
        assert_eq!(a.default, Some(AttrValue::Type(DType::Float)));
        let a = parse_attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'").unwrap();
        assert_eq!(a.default, Some("NHWC".into()));
        let a = parse_attr("N: int >= 1").unwrap();
        assert_eq!((a.kind, a.minimum), (AttrKind::Int, Some(1)));
        let a = parse_attr("strides: list(int) = [1, -1]").unwrap();
        assert_eq!(a.default, Some(vec![1i64, -1].into()));
        let a = parse_attr("shape: shape = { unknown_rank: true }").unwrap();
        assert_eq!(a.default, Some(PartialShape::unknown().into()));
        let a = parse_attr("Tin: list(type) >= 0").unwrap();
        assert!(a.is_list && a.minimum == Some(0));
        assert!(parse_attr("T: nonsense").is_err());
        assert!(parse_attr("N: int >= 1 x").is_err());
    }
}
