//! Short texts of tensors: for Assert, Print, StringFormat.

use crate::prelude::*;
use crate::string::{short_f32, short_f64};

/// The first `most` elements (all when negative), nested by dimension, as Assert prints them.
pub(crate) fn first_elements(t: &Tensor, most: i64) -> Result<String> {
    let all = t.elements();
    let limit = usize::try_from(most).map_or(all, |n| std::cmp::min(n, all));
    let mut out = String::new();
    if t.dtype().is_complex() {
        // TensorFlow prints nothing for complex numbers here.
        out = vec!["?"; limit].join(" ");
        return Ok(out + if all > limit { "..." } else { "" });
    }
    let write = Writer::new(t)?;
    if t.rank() == 0 {
        (0..limit).for_each(|i| write.element(i, false, &mut out));
    } else {
        let mut at = 0;
        nested(&write, t.shape(), 0, limit, &mut at, &mut out);
    }
    if all > limit {
        out.push_str("...");
    }
    Ok(out)
}

fn nested(
    write: &Writer<'_>,
    shape: &Shape,
    dim: usize,
    limit: usize,
    at: &mut usize,
    out: &mut String,
) {
    if *at >= limit {
        return;
    }
    if dim + 1 == shape.rank() {
        for i in 0..shape[dim] {
            if *at >= limit {
                // Rows of the outermost dimension get their ellipsis at the very end.
                if dim != 0 {
                    out.push_str("...");
                }
                return;
            }
            if i > 0 {
                out.push(' ');
            }
            write.element(*at, false, out);
            *at += 1;
        }
        return;
    }
    for _ in 0..shape[dim] {
        let is_open = *at < limit;
        if is_open {
            out.push('[');
        }
        nested(write, shape, dim + 1, limit, at, out);
        if *at < limit || is_open {
            out.push(']');
        }
    }
}

/// The `ends` first and last elements of each dimension (all when negative), as `tf.print` shows
/// them.
pub(crate) fn in_full_or_ends(t: &Tensor, ends: i64) -> Result<String> {
    let ends = usize::try_from(ends).unwrap_or(usize::MAX);
    if t.dtype().is_complex() || (t.rank() == 0 && ends == 0) {
        return first_elements(t, i64::try_from(ends).unwrap_or(-1));
    }
    let write = Writer::new(t)?;
    let mut out = String::new();
    if t.rank() == 0 {
        write.element(0, true, &mut out);
    } else {
        bracketed(&write, t.shape(), 0, ends, 0, &mut out);
    }
    Ok(out)
}

fn bracketed(
    write: &Writer<'_>,
    shape: &Shape,
    dim: usize,
    ends: usize,
    at: usize,
    out: &mut String,
) {
    if dim == shape.rank() {
        return write.element(at, true, out);
    }
    let step: usize = shape[dim + 1..].iter().product();
    let n = shape[dim];
    let space = |out: &mut String| match shape.rank() - dim - 1 {
        0 => out.push(' '),
        lines => {
            out.push_str(&"\n".repeat(lines));
            out.push_str(&" ".repeat(dim + 1));
        }
    };
    out.push('[');
    let is_cut = ends.checked_mul(2).is_some_and(|both| n > both);
    for i in 0..n {
        if is_cut && i == ends {
            space(out);
            out.push_str("...");
        }
        if is_cut && i >= ends && i < n - ends {
            continue;
        }
        if i > 0 {
            space(out);
        }
        bracketed(write, shape, dim + 1, ends, at + i * step, out);
    }
    out.push(']');
}

/// Writes single elements.
struct Writer<'a>(Box<dyn Fn(usize) -> String + 'a>, bool);

impl<'a> Writer<'a> {
    fn new(t: &'a Tensor) -> Result<Writer<'a>> {
        fn of<'a, T: Element>(t: &'a Tensor, write: fn(T) -> String) -> Result<Writer<'a>> {
            let values = t.as_slice::<T>()?;
            Ok(Writer(Box::new(move |i| write(values[i])), false))
        }
        match t.dtype() {
            DType::Float => of::<f32>(t, short_f32),
            DType::Double => of::<f64>(t, short_f64),
            DType::Half => of::<f16>(t, |x| short_f32(x.to_f32())),
            DType::BFloat16 => of::<bf16>(t, |x| short_f32(x.to_f32())),
            DType::Bool => of::<bool>(t, |x| u8::from(x).to_string()),
            DType::UInt64 => of::<u64>(t, |x| x.to_string()),
            DType::QInt8 => of::<i8>(t, |x| x.to_string()),
            DType::QUInt8 => of::<u8>(t, |x| x.to_string()),
            DType::QInt16 => of::<i16>(t, |x| x.to_string()),
            DType::QUInt16 => of::<u16>(t, |x| x.to_string()),
            DType::QInt32 => of::<i32>(t, |x| x.to_string()),
            DType::String => {
                let strings = t.strings()?;
                Ok(Writer(Box::new(move |i| escaped(&strings[i])), true))
            }
            DType::Variant => {
                let variants = t.variants()?;
                let write = move |i: usize| format!("<Variant type: {:?}>", variants[i]);
                Ok(Writer(Box::new(write), false))
            }
            DType::Resource => {
                let handles = t.handles()?;
                let write = move |i: usize| {
                    let h: &ResourceHandle = &handles[i];
                    format!("<ResourceHandle(name=\"{}\", device=\"{}\")>", h.name, h.device)
                };
                Ok(Writer(Box::new(write), false))
            }
            _ => {
                let values = t.to_indices()?;
                Ok(Writer(Box::new(move |i| values[i].to_string()), false))
            }
        }
    }

    fn element(&self, i: usize, is_quoted: bool, out: &mut String) {
        let text = (self.0)(i);
        if is_quoted && self.1 {
            *out += &format!("\"{text}\"");
        } else {
            *out += &text;
        }
    }
}

/// Text with control characters, quotes and backslashes escaped as in C; UTF-8 is left alone.
fn escaped(s: &[u8]) -> String {
    let mut out = String::new();
    for chunk in s.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '"' => out.push_str("\\\""),
                '\'' => out.push_str("\\'"),
                '\\' => out.push_str("\\\\"),
                c if c.is_ascii_control() => out.push_str(&format!("\\{:03o}", c as u32)),
                c => out.push(c),
            }
        }
        for &b in chunk.invalid() {
            out.push_str(&format!("\\{b:03o}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_elements_are_nested() {
        let t = Tensor::from_slice([2, 3], &[1i32, 2, 3, 4, 5, 6]).unwrap();
        for (most, want) in [
            (3, "[1 2 3]..."),
            (4, "[1 2 3][4...]..."),
            (6, "[1 2 3][4 5 6]"),
            (-1, "[1 2 3][4 5 6]"),
            (0, "..."),
        ] {
            assert_eq!(first_elements(&t, most).unwrap(), want, "{most}");
        }
        assert_eq!(first_elements(&Tensor::vector(&[1.5f32, 2.0]), 1).unwrap(), "1.5...");
        assert_eq!(first_elements(&Tensor::string("a\n"), 3).unwrap(), "a\\n");
    }

    #[test]
    fn the_ends_are_shown() {
        let t = Tensor::from_slice([2, 2, 2], &[1i32, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        let want = "[[[1 2]\n  [3 4]]\n\n [[5 6]\n  [7 8]]]";
        assert_eq!(in_full_or_ends(&t, 3).unwrap(), want);
        let ten: Vec<i32> = (0..10).collect();
        assert_eq!(in_full_or_ends(&Tensor::vector(&ten), 1).unwrap(), "[0 ... 9]");
        assert_eq!(in_full_or_ends(&Tensor::vector(&ten[..0]), 1).unwrap(), "[]");
    }
}
