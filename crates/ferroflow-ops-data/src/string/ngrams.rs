//! StringNGrams.

use super::TextList;
use crate::prelude::*;
use bytes::Bytes;

struct StringNGrams {
    separator: Bytes,
    widths: Vec<usize>,
    left_pad: Bytes,
    right_pad: Bytes,
    /// If absent: one pad less than the width.
    pad_width: Option<usize>,
    preserve_short: bool,
}

impl StringNGrams {
    fn pads(&self, width: usize) -> usize {
        let enough = width - 1;
        self.pad_width.map_or(enough, |most| std::cmp::min(most, enough))
    }

    fn ngrams(&self, words: &[Bytes], to: &mut TextList) -> Result<()> {
        let before = to.len();
        for &width in &self.widths {
            let pads = self.pads(width);
            let left = std::iter::repeat_n(&self.left_pad, pads);
            let right = std::iter::repeat_n(&self.right_pad, pads);
            let all: Vec<&Bytes> = left.chain(words).chain(right).collect();
            for ngram in all.windows(width) {
                to.push_joined(ngram.iter().copied(), &self.separator)?;
            }
        }
        // A sequence too short for any width becomes one n-gram of all it has.
        if self.preserve_short && to.len() == before && !words.is_empty() {
            let pads = self.pad_width.unwrap_or(0);
            let left = std::iter::repeat_n(&self.left_pad, pads);
            let right = std::iter::repeat_n(&self.right_pad, pads);
            let all: Vec<&Bytes> = left.chain(words).chain(right).collect();
            to.push_joined(all.iter().copied(), &self.separator)?;
        }
        Ok(())
    }
}

impl Kernel for StringNGrams {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (data, splits) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            data.rank() == 1,
            InvalidArgument,
            "data must be a vector, got shape: {}",
            data.shape()
        );
        let (words, dtype) = (data.strings()?, splits.dtype());
        let splits = splits.to_indices()?;
        if splits.len() <= 1 || words.is_empty() {
            // Without words there are no n-grams, and all splits are 0.
            check_splits(&splits, words.len())?;
            let counts = vec![0; splits.len()];
            ctx.set(0, Tensor::zeros(DType::String, [0])?)?;
            return ctx.set(1, index_vector(dtype, &counts)?);
        }
        check_splits(&splits, words.len())?;
        let (mut ngrams, mut counts) = (TextList::new(), vec![0]);
        for pair in splits.windows(2) {
            self.ngrams(&words[pair[0] as usize..pair[1] as usize], &mut ngrams)?;
            counts.push(ngrams.len() as i64);
        }
        let len = ngrams.len();
        ctx.set(0, ngrams.tensor([len])?)?;
        ctx.set(1, index_vector(dtype, &counts)?)
    }
}

fn check_splits(splits: &[i64], len: usize) -> Result<()> {
    if let Some(&first) = splits.first() {
        ensure!(first == 0, InvalidArgument, "First split value must be 0, got {first}");
    }
    for pair in splits.windows(2) {
        ensure!(
            pair[0] <= pair[1] && pair[1] <= len as i64,
            InvalidArgument,
            "Invalid split value {}, must be in [{}, {len}]",
            pair[1],
            pair[0]
        );
    }
    if let Some(&last) = splits.last() {
        ensure!(
            last == len as i64,
            InvalidArgument,
            "Last split value must be data size. Expected {len}, got {last}"
        );
    }
    Ok(())
}

fn index_vector(dtype: DType, values: &[i64]) -> Result<Tensor> {
    Ok(match dtype {
        DType::Int32 => Tensor::vector(&values.iter().map(|&x| x as i32).collect::<Vec<_>>()),
        _ => Tensor::vector(values),
    })
}

fn make(init: &KernelInit<'_>) -> Result<KernelBox> {
    let mut widths = Vec::new();
    for width in init.ints("ngram_widths")? {
        ensure!(
            (1..1 << 20).contains(&width),
            InvalidArgument,
            "ngram_widths must contain positive values"
        );
        widths.push(width as usize);
    }
    let pad_width = init.int("pad_width")?;
    ensure!(pad_width < 1 << 20, InvalidArgument, "pad_width is too large: {pad_width}");
    Ok(KernelBox::new(StringNGrams {
        separator: init.bytes("separator")?,
        widths,
        left_pad: init.bytes("left_pad")?,
        right_pad: init.bytes("right_pad")?,
        pad_width: usize::try_from(pad_width).ok(),
        preserve_short: init.bool("preserve_short_sequences")?,
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("StringNGrams")
        .work(work::any)
        .doc("Sequences of neighbouring words, joined.")
        .input("data: string")
        .input("data_splits: Tsplits")
        .output("ngrams: string")
        .output("ngrams_splits: Tsplits")
        .attr("separator: string")
        .attr("ngram_widths: list(int) >= 0")
        .attr("left_pad: string")
        .attr("right_pad: string")
        .attr("pad_width: int")
        .attr("preserve_short_sequences: bool")
        .attr("Tsplits: {int32, int64} = DT_INT64")
        .shape(|c| Ok(vec![PartialShape::of_rank(1), c.input(1)]))
        .cpu(make);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};
    use bytes::Bytes;

    fn ngrams(widths: &[i64], pad: i64, splits: &[i64]) -> Check<'static> {
        let data = ["a", "b", "c", "d"].map(Bytes::from).to_vec();
        check("StringNGrams")
            .attr("separator", "|")
            .attr("ngram_widths", widths.to_vec())
            .attr("left_pad", "L")
            .attr("right_pad", "R")
            .attr("pad_width", pad)
            .attr("preserve_short_sequences", false)
            .input(Tensor::from_strings([4], data).unwrap())
            .input(Tensor::vector(splits))
    }

    fn texts(c: Check<'_>) -> Vec<String> {
        let out = c.run().unwrap();
        let texts = out[0].strings().unwrap().iter();
        texts.map(|s| String::from_utf8(s.to_vec()).unwrap()).collect()
    }

    #[test]
    fn neighbours_are_joined() {
        assert_eq!(texts(ngrams(&[2], -1, &[0, 3, 4])), ["L|a", "a|b", "b|c", "c|R", "L|d", "d|R"]);
        assert_eq!(texts(ngrams(&[2, 3], 0, &[0, 3, 4])), ["a|b", "b|c", "a|b|c"]);
        let short = ngrams(&[3], 0, &[0, 3, 4]).attr("preserve_short_sequences", true);
        assert_eq!(texts(short), ["a|b|c", "d"]);
    }

    #[test]
    fn long_ngrams_of_long_pads_are_refused() {
        ngrams(&[1 << 19], -1, &[0, 4])
            .attr("left_pad", "L".repeat(1 << 20).as_str())
            .attr("right_pad", "R".repeat(1 << 20).as_str())
            .fails(Code::ResourceExhausted, "--max-string");
    }

    #[test]
    fn splits_are_checked() {
        let bad = Code::InvalidArgument;
        ngrams(&[2], 0, &[0, 3, 5]).fails(bad, "Invalid split value 5, must be in [3, 4]");
        ngrams(&[2], 0, &[1, 3, 4]).fails(bad, "First split value must be 0, got 1");
        ngrams(&[2], 0, &[0, 3, 2, 4]).fails(bad, "Invalid split value 2, must be in [3, 4]");
        ngrams(&[0], 0, &[0, 4]).fails(bad, "ngram_widths must contain positive values");
    }
}
