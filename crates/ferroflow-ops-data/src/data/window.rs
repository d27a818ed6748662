//! WindowDataset: windows of elements, each component a dataset; SlidingWindowDataset: each a
//! batch.

use super::batch::stack;
use super::dataset::*;
use super::scope::Scope;
use crate::prelude::*;
use std::collections::VecDeque;

/// A dataset of elements that are already in memory.
pub(super) struct Kept(pub Arc<Vec<Tuple>>);

impl Dataset for Kept {
    fn iterate(&self, _: &Scope) -> Result<Elements> {
        let (all, mut at) = (self.0.clone(), 0);
        Ok(Elements::from_fn(move || {
            at += 1;
            Ok(all.get(at - 1).cloned())
        }))
    }

    fn cardinality(&self) -> i64 {
        self.0.len() as i64
    }
}

#[derive(Clone, Copy, PartialEq)]
enum As {
    Datasets,
    Batch,
}

#[derive(Clone, Copy)]
struct Windows {
    size: usize,
    shift: usize,
    stride: usize,
    drop_remainder: bool,
    put_out: As,
}

impl Windows {
    /// How many elements a window spans.
    fn span(&self) -> usize {
        (self.size - 1).saturating_mul(self.stride).saturating_add(1)
    }
}

struct Window {
    input: DatasetRef,
    windows: Windows,
}

impl Dataset for Window {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(Windowing {
            input: Some(self.input.iterate(scope)?),
            types: self.input.types().clone(),
            windows: self.windows,
            buffer: VecDeque::new(),
        }))
    }

    fn cardinality(&self) -> i64 {
        let n = self.input.cardinality();
        if n < 0 {
            return n;
        }
        let Windows { shift, drop_remainder, .. } = self.windows;
        let as_i64 = |x: usize| i64::try_from(x).unwrap_or(i64::MAX);
        let (shift, span) = (as_i64(shift), as_i64(self.windows.span()));
        if drop_remainder {
            if n < span { 0 } else { (n - span) / shift + 1 }
        } else {
            n / shift + i64::from(n % shift != 0)
        }
    }
}

struct Windowing {
    input: Option<Elements>,
    types: ElementTypes,
    windows: Windows,
    /// An error takes the place of its element.
    buffer: VecDeque<Result<Tuple>>,
}

impl Windowing {
    /// The next element; drops the input behind the last one.
    async fn pull(&mut self) -> Option<Result<Tuple>> {
        let next = self.input.as_mut()?.next().await.transpose();
        if next.is_none() {
            self.input = None;
        }
        next
    }

    async fn shift(&mut self) {
        let shift = self.windows.shift;
        let mut beyond = shift.saturating_sub(self.buffer.len());
        self.buffer.drain(..Ord::min(shift, self.buffer.len()));
        while beyond > 0 && self.pull().await.is_some() {
            beyond -= 1;
        }
    }
}

impl Produce for Windowing {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            let span = self.windows.span();
            while self.buffer.len() < span {
                match self.pull().await {
                    // Without memory or after a cancellation there is no window, only more errors.
                    Some(Err(e)) if is_final(&e) => return Err(e),
                    Some(next) => self.buffer.push_back(next),
                    None => break,
                }
            }
            let is_short = self.buffer.len() < span;
            if self.buffer.is_empty() || self.windows.drop_remainder && is_short {
                return Ok(None);
            }
            let window: Result<Vec<Tuple>> =
                self.buffer.iter().step_by(self.windows.stride).cloned().collect();
            self.shift().await;
            match self.windows.put_out {
                As::Batch => stack(window?).map(Some),
                As::Datasets => as_datasets(window?, &self.types).map(Some),
            }
        })
    }
}

fn is_final(error: &Error) -> bool {
    matches!(error.code(), Code::ResourceExhausted | Code::Cancelled)
}

fn as_datasets(window: Vec<Tuple>, types: &ElementTypes) -> Result<Tuple> {
    let all = types.dtypes.iter().zip(&types.shapes).enumerate().map(|(i, (dtype, shape))| {
        let column: Option<Vec<Tuple>> =
            window.iter().map(|element| Some(vec![element.get(i)?.clone()])).collect();
        let column = column.ok_or_else(|| err!(InvalidArgument, "no component {i}"))?;
        let types = ElementTypes { dtypes: vec![*dtype], shapes: vec![shape.clone()] };
        Ok(DatasetRef::new(Kept(Arc::new(column)), types, &[])?.into_tensor())
    });
    all.collect()
}

fn length(ctx: &Ctx<'_>, i: usize, name: &str, text: &str) -> Result<usize> {
    let length: i64 = scalar(ctx, i, name)?;
    ensure!(length > 0, InvalidArgument, "{text} must be greater than zero.");
    Ok(length as usize)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("WindowDataset")
        .doc("A dataset of windows of elements: for each component a dataset.")
        .input("input_dataset: variant")
        .input("size: int64")
        .input("shift: int64")
        .input("stride: int64")
        .input("drop_remainder: bool")
        .makes_dataset()
        .element_types()
        .metadata_attr()
        .cpu(|init| {
            makes(init, |ctx| {
                let windows = Windows {
                    size: length(ctx, 1, "size", "Window size")?,
                    shift: length(ctx, 2, "shift", "Window shift")?,
                    stride: length(ctx, 3, "stride", "Window stride")?,
                    drop_remainder: scalar(ctx, 4, "drop_remainder")?,
                    put_out: As::Datasets,
                };
                Ok(Window { input: input(ctx, 0)?, windows })
            })
        });
    c.op("WindowOp")
        .doc("A dataset of the elements that are its inputs, one after the other.")
        .input("inputs: Tinputs")
        .makes_dataset()
        .element_types()
        .attr("Tinputs: list(type) >= 1")
        .cpu(|init| {
            let types = ElementTypes::from_attrs(init)?;
            let width = types.dtypes.len().max(1);
            makes(init, move |ctx| {
                let n = ctx.num_inputs();
                ensure!(
                    n % width == 0,
                    InvalidArgument,
                    "elements have {width} components, got {n} tensors"
                );
                let all: Result<Vec<Tensor>> = (0..n).map(|i| ctx.take(i)).collect();
                let all = all?;
                for element in all.chunks(width) {
                    types.admit_element(element)?;
                }
                Ok(Kept(Arc::new(all.chunks(width).map(<[Tensor]>::to_vec).collect())))
            })
        });
    for op in ["SlidingWindowDataset", "ExperimentalSlidingWindowDataset"] {
        let b = c
            .op(op)
            .doc("A dataset of windows of elements, each a batch.")
            .input("input_dataset: variant")
            .input("window_size: int64")
            .input("window_shift: int64")
            .input("window_stride: int64")
            .makes_dataset()
            .element_types()
            .cpu(|init| {
                let drop_remainder =
                    !init.contains("drop_remainder") || init.bool("drop_remainder")?;
                makes(init, move |ctx| {
                    let windows = Windows {
                        size: length(ctx, 1, "window_size", "Window size")?,
                        shift: length(ctx, 2, "window_shift", "Window shift")?,
                        stride: length(ctx, 3, "window_stride", "window_stride")?,
                        drop_remainder,
                        put_out: As::Batch,
                    };
                    Ok(Window { input: input(ctx, 0)?, windows })
                })
            });
        if !op.starts_with("Experimental") {
            drop(b.attr("drop_remainder: bool = true"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::*;

    fn windows(n: i64, sizes: [i64; 3], drop_remainder: bool) -> Vec<Vec<i64>> {
        let op = dataset("WindowDataset", &[DType::Variant]).input(range(n));
        let op = sizes.iter().fold(op, |c, &x| c.input(Tensor::scalar(x)));
        let windows = elements(&made(op.input(Tensor::scalar(drop_remainder)))).unwrap();
        windows.iter().map(|w| longs(&w[0]).concat()).collect()
    }

    #[test]
    fn a_window_does_not_gather_errors_of_an_input_without_memory() {
        let windowing = |code: Code| {
            let mut pulled = 0;
            let input = Elements::from_fn(move || {
                pulled += 1;
                ensure!(pulled < 1000, Internal, "an element was requested after 999 errors");
                Err(Error::new(code, "no element"))
            });
            let windows = Windows {
                size: usize::MAX,
                shift: 1,
                stride: 1,
                drop_remainder: false,
                put_out: As::Batch,
            };
            let types =
                ElementTypes { dtypes: vec![DType::Int64], shapes: vec![PartialShape::unknown()] };
            let buffer = VecDeque::new();
            let mut windowing = Windowing { input: Some(input), types, windows, buffer };
            wait_for(windowing.next()).unwrap_err().code()
        };
        assert_eq!(windowing(Code::ResourceExhausted), Code::ResourceExhausted);
        assert_eq!(windowing(Code::Cancelled), Code::Cancelled);
    }

    #[test]
    fn windows_move_by_shift_and_take_by_stride() {
        assert_eq!(windows(5, [2, 2, 1], false), [vec![0, 1], vec![2, 3], vec![4]]);
        assert_eq!(windows(4, [2, 1, 1], true), [[0, 1], [1, 2], [2, 3]]);
        assert_eq!(windows(6, [2, 4, 2], false), [vec![0, 2], vec![4]]);
        assert_eq!(windows(9, [2, 5, 1], false), [[0, 1], [5, 6]]);
        assert_eq!(windows(2, [i64::MAX, 1, 1], true), Vec::<Vec<i64>>::new());
    }
}
