//! StringToNumber and AsString.

use super::c_format::{CFormat, Style};
use super::case::strip;
use super::text;
use crate::prelude::*;
use bytes::Bytes;

/// A decimal (or hexadecimal) number with white space around it, `inf` or `nan` in any case.
pub(crate) fn parse_f64(s: &[u8]) -> Option<f64> {
    parse_float(s, |t| t.parse().ok(), |x| x)
}

/// [`parse_f64`], rounded once.
pub(crate) fn parse_f32(s: &[u8]) -> Option<f32> {
    parse_float(s, |t| t.parse().ok(), |x| x as f32)
}

fn parse_float<T: std::ops::Neg<Output = T>>(
    s: &[u8],
    decimal: impl Fn(&str) -> Option<T>,
    from: impl Fn(f64) -> T,
) -> Option<T> {
    let s = std::str::from_utf8(strip(s)).ok()?;
    let (is_negative, digits) = match s.as_bytes().first()? {
        b'-' => (true, &s[1..]),
        b'+' => (false, &s[1..]),
        _ => (false, s),
    };
    let lower = digits.to_ascii_lowercase();
    let value = match lower.as_str() {
        "inf" => from(f64::INFINITY),
        "nan" => from(f64::NAN),
        hex if hex.starts_with("0x") => {
            let hex = &hex[2..];
            if hex.is_empty() || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
                return None;
            }
            let digit = |b: u8| f64::from((b as char).to_digit(16).unwrap_or(0));
            from(hex.bytes().fold(0.0, |x, b| x * 16.0 + digit(b)))
        }
        // Rust reads a few words more than C++ does; a number has digits only.
        number if number.bytes().all(|b| b.is_ascii_digit() || b"+-.e".contains(&b)) => {
            if number.starts_with(['+', '-']) {
                return None;
            }
            decimal(number)?
        }
        _ => return None,
    };
    Some(if is_negative { -value } else { value })
}

/// Digits, with a minus sign perhaps and white space around.
pub(crate) fn parse_i64(s: &[u8]) -> Option<i64> {
    let s = std::str::from_utf8(strip(s)).ok()?;
    if s.starts_with('+') {
        return None;
    }
    s.parse().ok()
}

fn to_numbers<T: Element>(ctx: &mut Ctx<'_>, parse: impl Fn(&[u8]) -> Option<T>) -> Result<()> {
    let strings = ctx.input(0)?;
    let mut out = ctx.alloc(T::DTYPE, strings.shape().clone())?;
    for (to, s) in out.as_mut_slice::<T>()?.iter_mut().zip(strings.strings()?) {
        *to = parse(s).ok_or_else(|| {
            err!(
                InvalidArgument,
                "StringToNumberOp could not correctly convert string: {}",
                text(s)
            )
        })?;
    }
    ctx.set(0, out)
}

fn string_to_number(init: &KernelInit<'_>) -> Result<KernelBox> {
    Ok(match init.dtype("out_type")? {
        DType::Float => KernelBox::new(|ctx: &mut Ctx<'_>| to_numbers(ctx, parse_f32)),
        DType::Double => KernelBox::new(|ctx: &mut Ctx<'_>| to_numbers(ctx, parse_f64)),
        DType::Int32 => KernelBox::new(|ctx: &mut Ctx<'_>| {
            to_numbers(ctx, |s| parse_i64(s).and_then(|x| i32::try_from(x).ok()))
        }),
        DType::Int64 => KernelBox::new(|ctx: &mut Ctx<'_>| to_numbers(ctx, parse_i64)),
        other => return Err(unsupported(init, "out_type", other)),
    })
}

/// The attributes of AsString as a conversion.
fn conversion(init: &KernelInit<'_>) -> Result<CFormat> {
    let dtype = init.dtype("T")?;
    let (precision, width) = (init.int("precision")?, init.int("width")?);
    let (scientific, shortest) = (init.bool("scientific")?, init.bool("shortest")?);
    let fill = init.bytes("fill")?;
    let is_float = dtype.is_floating() || dtype.is_complex();
    ensure!(fill.len() <= 1, InvalidArgument, "Fill string must be one or fewer characters");
    if !is_float && dtype != DType::String {
        ensure!(
            !(scientific || shortest),
            InvalidArgument,
            "scientific and shortest format not supported for datatype {dtype}"
        );
        ensure!(precision < 0, InvalidArgument, "precision not supported for datatype {dtype}");
    }
    ensure!(
        !(scientific && shortest),
        InvalidArgument,
        "Cannot select both scientific and shortest notation"
    );
    if let Some(flag) = fill.first() {
        ensure!(
            b" +-0#".contains(flag),
            InvalidArgument,
            "Fill argument not supported: \"{}\"",
            text(&fill)
        );
    }
    // A larger precision or width is of no use, and would take too much memory.
    const MOST: i64 = 1 << 16;
    ensure!(
        precision <= MOST && width <= MOST,
        InvalidArgument,
        "precision and width must not exceed {MOST}"
    );
    let style = match (scientific, shortest) {
        (true, _) => Style::Scientific,
        (_, true) => Style::Shortest,
        _ => Style::Fixed,
    };
    let width = usize::try_from(width).unwrap_or(0);
    let flag = fill.first().copied();
    Ok(CFormat { style, precision: usize::try_from(precision).ok(), width, flag })
}

fn each<T: Element>(t: &Tensor, write: impl Fn(T) -> String) -> Result<Vec<Bytes>> {
    Ok(t.as_slice::<T>()?.iter().map(|&x| Bytes::from(write(x))).collect())
}

fn as_string(init: &KernelInit<'_>) -> Result<KernelBox> {
    let f = conversion(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let t = ctx.input(0)?;
        let complex = |re: f64, im: f64| format!("({},{})", f.float(re), f.float(im));
        let strings = match t.dtype() {
            DType::Float => each::<f32>(t, |x| f.float(f64::from(x))),
            DType::Double => each::<f64>(t, |x| f.float(x)),
            DType::Half => each::<f16>(t, |x| f.float(x.to_f64())),
            DType::BFloat16 => each::<bf16>(t, |x| f.float(x.to_f64())),
            DType::Complex64 => each::<Complex32>(t, |z| complex(z.re.into(), z.im.into())),
            DType::Complex128 => each::<Complex64>(t, |z| complex(z.re, z.im)),
            DType::Bool => each::<bool>(t, |x| x.to_string()),
            DType::UInt64 => each::<u64>(t, |x| f.unsigned(x)),
            DType::UInt8 => each::<u8>(t, |x| f.unsigned(x.into())),
            DType::UInt16 => each::<u16>(t, |x| f.unsigned(x.into())),
            DType::UInt32 => each::<u32>(t, |x| f.unsigned(x.into())),
            DType::String => Ok(t.strings()?.iter().map(|s| f.text(s)).collect()),
            DType::Variant => Ok(t
                .variants()?
                .iter()
                .map(|v| Bytes::from(format!("Variant<type: {v:?}>")))
                .collect()),
            _ => Ok(t.to_indices()?.into_iter().map(|x| Bytes::from(f.signed(x))).collect()),
        }?;
        let shape = t.shape().clone();
        ctx.set(0, Tensor::from_strings(shape, strings)?)
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("StringToNumber")
        .doc("The numbers that strings spell.")
        .input("string_tensor: string")
        .output("output: out_type")
        .attr("out_type: {float, double, int32, int64} = DT_FLOAT")
        .shape(shape::same_as_input)
        .cpu(string_to_number);
    c.op("AsString")
        .work(work::any)
        .doc("Numbers and booleans spelled out.")
        .input("input: T")
        .output("output: string")
        .attr(
            "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, \
             uint64, complex64, complex128, bool, variant, string}",
        )
        .attr("precision: int = -1")
        .attr("scientific: bool = false")
        .attr("shortest: bool = false")
        .attr("width: int = -1")
        .attr("fill: string = ''")
        .shape(shape::same_as_input)
        .cpu(as_string);
    c.no_gradient(&["AsString", "StringToNumber"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn strings_spell_numbers() {
        let read = |s: &'static str, to: DType| {
            check("StringToNumber").attr("out_type", to).input(Tensor::string(s))
        };
        for (s, want) in [
            (" 2 ", 2.0f32),
            ("1e400", f32::INFINITY),
            ("-inf", f32::NEG_INFINITY),
            ("0x10", 16.0),
            ("+3", 3.0),
            (".5", 0.5),
            ("5.", 5.0),
        ] {
            read(s, DType::Float).gives(Tensor::scalar(want));
        }
        for s in ["abc", "", "1_000", "1e", "infinity", "+-3", "0x"] {
            read(s, DType::Double).fails(
                Code::InvalidArgument,
                &format!("StringToNumberOp could not correctly convert string: {s}"),
            );
        }
        read("\t-7\n", DType::Int32).gives(Tensor::scalar(-7i32));
        for s in ["99999999999", "+3", "1.0", "- 5", "0x10"] {
            read(s, DType::Int32).fails(Code::InvalidArgument, s);
        }
    }

    #[test]
    fn numbers_are_spelled() {
        let spell = |t: Tensor| check("AsString").input(t);
        spell(Tensor::scalar(1.5f32)).gives(Tensor::string("1.500000"));
        spell(Tensor::scalar(1.5f32)).attr("shortest", true).gives(Tensor::string("1.5"));
        spell(Tensor::scalar(1.5f64))
            .attr("precision", 2i64)
            .attr("width", 8i64)
            .attr("fill", "0")
            .gives(Tensor::string("00001.50"));
        spell(Tensor::scalar(-7i8)).gives(Tensor::string("-7"));
        spell(Tensor::scalar(u64::MAX)).gives(Tensor::string("18446744073709551615"));
        spell(Tensor::scalar(true)).gives(Tensor::string("true"));
        spell(Tensor::scalar(Complex32::new(1.0, -2.0)))
            .attr("precision", 1i64)
            .gives(Tensor::string("(1.0,-2.0)"));
        spell(Tensor::scalar(1i32))
            .attr("precision", 1i64)
            .fails(Code::InvalidArgument, "precision");
    }
}
