//! Substr.

use super::case::char_starts;
use crate::prelude::*;
use bytes::Bytes;

/// `len` units of `s` from `pos`, which counts from the end when negative; `None` when it is out
/// of range. A negative length takes all the bytes there are, but no characters.
fn substr(s: &Bytes, pos: i64, len: i64, in_chars: bool) -> Option<Bytes> {
    let length = usize::try_from(len).unwrap_or(if in_chars { 0 } else { usize::MAX });
    if in_chars {
        let starts: Vec<usize> = char_starts(s).chain([s.len()]).collect();
        let units = starts.len() - 1;
        let from = place(pos, units)?;
        let to = from.saturating_add(length).min(units);
        return Some(s.slice(starts[from]..starts[to]));
    }
    let from = place(pos, s.len())?;
    let to = from.saturating_add(length).min(s.len());
    Some(s.slice(from..to))
}

fn place(pos: i64, len: usize) -> Option<usize> {
    let at = if pos < 0 { pos.checked_add(len as i64)? } else { pos };
    usize::try_from(at).ok().filter(|&at| at <= len)
}

fn make(init: &KernelInit<'_>) -> Result<KernelBox> {
    let in_chars = init.string("unit")? == "UTF8_CHAR";
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| compute(ctx, in_chars)))
}

fn compute(ctx: &mut Ctx<'_>, in_chars: bool) -> Result<()> {
    let (input, pos, len) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    ensure!(
        pos.shape() == len.shape(),
        InvalidArgument,
        "pos and len should have the same shape, got: {} vs. {}",
        pos.shape(),
        len.shape()
    );
    let (a, b) = (input.shape(), pos.shape());
    let shape = shape::broadcast_shapes(&a.into(), &b.into()).ok().and_then(|s| s.known());
    let Some(shape) = shape else {
        bail!(InvalidArgument, "Incompatible shapes: {a} vs. {b}");
    };
    let (strings, pos, len) = (input.strings()?, pos.to_indices()?, len.to_indices()?);
    let strides = shape.strides();
    let index = |of: &Shape, at: usize| -> usize {
        let (lead, own) = (shape.rank() - of.rank(), of.strides());
        let dims = (0..of.rank()).filter(|&d| of[d] != 1);
        dims.map(|d| at / strides[lead + d] % shape[lead + d] * own[d]).sum()
    };
    let mut out = Vec::with_capacity(shape.elements());
    for at in 0..shape.checked_elements()? {
        let (i, j) = (index(a, at), index(b, at));
        let Some(part) = substr(&strings[i], pos[j], len[j], in_chars) else {
            let what = match in_chars {
                true => String::new(),
                false => format!(" b'{}'", strings[i].escape_ascii()),
            };
            bail!(InvalidArgument, "pos {} out of range for string{what} at index {i}", pos[j]);
        };
        out.push(part);
    }
    ctx.set(0, Tensor::from_strings(shape, out)?)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Substr")
        .doc("Parts of strings, from `pos` and `len` long.")
        .input("input: string")
        .input("pos: T")
        .input("len: T")
        .output("output: string")
        .attr("T: {int32, int64}")
        .attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
        .broadcasts()
        .cpu(make);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};
    use bytes::Bytes;

    fn part(s: &'static str, pos: i32, len: i32) -> Check<'static> {
        let c = check("Substr").input(Tensor::string(s));
        c.input(Tensor::scalar(pos)).input(Tensor::scalar(len))
    }

    #[test]
    fn parts_are_cut() {
        part("hello", 1, 2).gives(Tensor::string("el"));
        part("hello", -3, 2).gives(Tensor::string("ll"));
        part("hello", 5, 2).gives(Tensor::string(""));
        part("hello", 1, -2).gives(Tensor::string("ello"));
        part("hello", 1, 200).gives(Tensor::string("ello"));
        part("wörld", 1, 2).attr("unit", "UTF8_CHAR").gives(Tensor::string("ör"));
        part("hello", 6, 1)
            .fails(Code::InvalidArgument, "pos 6 out of range for string b'hello' at index 0");
        part("hello", i32::MIN, 1).fails(Code::InvalidArgument, "out of range");
    }

    #[test]
    fn positions_broadcast() {
        let words = ["hello", "world"].map(Bytes::from).to_vec();
        let grid = |v: [i32; 2]| Tensor::from_slice([2, 1], &v).unwrap();
        let want = ["e", "o", "l", "r"].map(Bytes::from).to_vec();
        check("Substr")
            .input(Tensor::from_strings([2], words).unwrap())
            .input(grid([1, 2]))
            .input(grid([1, 1]))
            .gives(Tensor::from_strings([2, 2], want).unwrap());
    }
}
