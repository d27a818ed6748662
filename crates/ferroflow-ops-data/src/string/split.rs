//! StringSplit and StringSplitV2: strings to the values of a sparse matrix.

use super::TextList;
use super::case::is_space;
use crate::prelude::*;
use bytes::Bytes;

/// The pieces of each string, as a sparse matrix with a row per string.
fn split(ctx: &mut Ctx<'_>, pieces: impl Fn(&Bytes, &mut TextList) -> Result<()>) -> Result<()> {
    let input = ctx.input(0)?;
    ensure!(
        input.rank() == 1,
        InvalidArgument,
        "input must be a vector, got shape: {}",
        input.shape()
    );
    let (mut values, mut widest) = (TextList::new(), 0);
    let rows = input.elements();
    let mut counts = Vec::with_capacity(rows);
    for s in input.strings()? {
        let before = values.len();
        pieces(s, &mut values)?;
        let found = values.len() - before;
        widest = std::cmp::max(widest, found);
        counts.push(found);
    }
    let n = values.len();
    let mut indices = Tensor::zeros(DType::Int64, [n, 2])?;
    let mut to = indices.as_mut_slice::<i64>()?.chunks_exact_mut(2);
    for (row, &found) in counts.iter().enumerate() {
        for (i, pair) in to.by_ref().take(found).enumerate() {
            pair.copy_from_slice(&[row as i64, i as i64]);
        }
    }
    ctx.set(0, indices)?;
    ctx.set(1, values.tensor([n])?)?;
    ctx.set(2, Tensor::vector(&[rows as i64, widest as i64]))
}

/// Splits at any of the bytes in the delimiter; an empty delimiter splits between all bytes.
fn by_any(s: &Bytes, delimiters: &[u8], skip_empty: bool, to: &mut TextList) -> Result<()> {
    if delimiters.is_empty() {
        return (0..s.len()).try_for_each(|i| to.push(s.slice(i..i + 1)));
    }
    if s.is_empty() {
        return Ok(());
    }
    let pieces = s.split(|b| delimiters.contains(b)).map(|p| s.slice_ref(p));
    pieces.filter(|p| !skip_empty || !p.is_empty()).try_for_each(|piece| to.push(piece))
}

/// Splits as Python does: at a separator, or at white space if the separator is empty.
fn as_python(s: &Bytes, sep: &[u8], max: usize, to: &mut TextList) -> Result<()> {
    let (mut found, mut at) = (0, 0);
    if max == 0 {
        return to.push(s.clone());
    }
    if sep.is_empty() {
        let skip = |at: usize| at + s[at..].iter().take_while(|b| is_space(b)).count();
        at = skip(at);
        while at < s.len() && found < max {
            let len = s[at..].iter().take_while(|b| !is_space(b)).count();
            to.push(s.slice(at..at + len))?;
            found += 1;
            at = skip(at + len);
        }
        // Unlike in Python, the rest after the last split counts even when it is empty.
        if found == max {
            to.push(s.slice(at..))?;
        }
        return Ok(());
    }
    while found < max
        && let Some(i) = s[at..].windows(sep.len()).position(|w| w == sep)
    {
        to.push(s.slice(at..at + i))?;
        found += 1;
        at += i + sep.len();
    }
    to.push(s.slice(at..))
}

fn scalar(ctx: &Ctx<'_>, name: &str) -> Result<Bytes> {
    let t = ctx.input(1)?;
    ensure!(t.rank() == 0, InvalidArgument, "{name} must be a scalar, got shape: {}", t.shape());
    Ok(t.scalar_string()?.clone())
}

fn sparse_matrix(_: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let indices = PartialShape::new([None, Some(2)]);
    Ok(vec![indices, PartialShape::of_rank(1), PartialShape::from([2])])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("StringSplit")
        .doc("Pieces of strings between any of the delimiting bytes.")
        .input("input: string")
        .input("delimiter: string")
        .output("indices: int64")
        .output("values: string")
        .output("shape: int64")
        .attr("skip_empty: bool = true")
        .shape(sparse_matrix)
        .cpu(|init| {
            let skip_empty = init.bool("skip_empty")?;
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
                let delimiter = scalar(ctx, "delimiter")?;
                split(ctx, |s, to| by_any(s, &delimiter, skip_empty, to))
            }))
        });
    c.op("StringSplitV2")
        .doc("Pieces of strings between separators, as Python splits.")
        .input("input: string")
        .input("sep: string")
        .output("indices: int64")
        .output("values: string")
        .output("shape: int64")
        .attr("maxsplit: int = -1")
        .shape(sparse_matrix)
        .cpu(|init| {
            let max = usize::try_from(init.int("maxsplit")?).unwrap_or(usize::MAX);
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
                let sep = scalar(ctx, "sep")?;
                split(ctx, |s, to| as_python(s, &sep, max, to))
            }))
        });
    c.no_gradient(&["StringSplit"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn pieces(c: Check<'_>) -> Vec<String> {
        let out = c.run().unwrap();
        let texts = out[1].strings().unwrap().iter();
        texts.map(|s| String::from_utf8(s.to_vec()).unwrap()).collect()
    }

    fn of(op: &str, s: &'static str, sep: &'static str) -> Check<'static> {
        let input = Tensor::from_strings([1], vec![s.into()]).unwrap();
        check(op).input(input).input(Tensor::string(sep))
    }

    #[test]
    fn any_delimiter_splits() {
        assert_eq!(pieces(of("StringSplit", "a b,c", " ,")), ["a", "b", "c"]);
        assert_eq!(pieces(of("StringSplit", "d  e", " ")), ["d", "e"]);
        let all = of("StringSplit", "d  e", " ").attr("skip_empty", false);
        assert_eq!(pieces(all), ["d", "", "e"]);
        assert_eq!(pieces(of("StringSplit", "abc", "")), ["a", "b", "c"]);
        assert!(pieces(of("StringSplit", "", " ")).is_empty());
    }

    #[test]
    fn python_splits() {
        let once = |s, sep| pieces(of("StringSplitV2", s, sep).attr("maxsplit", 1i64));
        assert_eq!(pieces(of("StringSplitV2", "a<>b<>c<>", "<>")), ["a", "b", "c", ""]);
        assert_eq!(pieces(of("StringSplitV2", "", " ")), [""]);
        assert_eq!(pieces(of("StringSplitV2", " a \tb\n c ", "")), ["a", "b", "c"]);
        assert_eq!(once("  a b c ", ""), ["a", "b c "]);
        assert_eq!(once("a b c", " "), ["a", "b c"]);
    }

    #[test]
    fn rows_and_columns_are_counted() {
        let input = ["a b c", "", "d  e"].map(bytes::Bytes::from).to_vec();
        let split = |t| check("StringSplitV2").input(t).input(Tensor::string(""));
        let out = split(Tensor::from_strings([3], input).unwrap()).run().unwrap();
        let want = [0i64, 0, 0, 1, 0, 2, 2, 0, 2, 1];
        assert_eq!(out[0], Tensor::from_slice([5, 2], &want).unwrap());
        assert_eq!(out[2], Tensor::vector(&[3i64, 3]));
        split(Tensor::string("a"))
            .fails(Code::InvalidArgument, "input must be a vector, got shape: []");
    }
}
