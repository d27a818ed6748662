//! XlaReduceWindow, XlaSelectAndScatter: functions of the elements under a window that moves.

use super::calls::{Calling, Next, Program};
use super::elements::{for_each_index, integers, joined, picked, repeated};
use super::scatter::Updates;
use crate::prelude::*;
use ferroflow_op_kit::dispatch::NUMBERS_AND_BOOL;

/// One dimension of a window.
#[derive(Clone, Copy, Debug)]
struct Side {
    input: usize,
    output: usize,
    size: usize,
    stride: i64,
    base_dilation: i64,
    dilation: i64,
    low: i64,
}

impl Side {
    /// The element under place `w` of the window, when it is at `place`.
    fn under(&self, place: usize, w: usize) -> Option<usize> {
        let at = place as i64 * self.stride + w as i64 * self.dilation - self.low;
        let element = usize::try_from(at / self.base_dilation).ok()?;
        (at >= 0 && at % self.base_dilation == 0 && element < self.input).then_some(element)
    }
}

/// A window that moves over a tensor.
struct Window(Vec<Side>);

/// Lists with an element for each dimension.
struct Sizes {
    size: Vec<i64>,
    stride: Vec<i64>,
    base_dilation: Vec<i64>,
    dilation: Vec<i64>,
    padding: Vec<(i64, i64)>,
}

impl Sizes {
    /// Padding is input `i`, a matrix with a row for each dimension.
    fn padding(ctx: &AsyncCtx, i: usize, rank: usize) -> Result<Vec<(i64, i64)>> {
        let padding = ctx.input(i)?;
        ensure!(
            padding.shape()[..] == [rank, 2],
            InvalidArgument,
            "padding must have shape [{rank},2], got {}",
            padding.shape()
        );
        Ok(padding.to_indices()?.chunks_exact(2).map(|p| (p[0], p[1])).collect())
    }
}

impl Window {
    fn new(shape: &Shape, sizes: &Sizes) -> Result<Window> {
        let positive = [&sizes.size, &sizes.stride, &sizes.base_dilation, &sizes.dilation];
        ensure!(
            positive.iter().all(|list| list.iter().all(|&x| x > 0)),
            InvalidArgument,
            "the sizes, strides and dilations of a window must be positive"
        );
        let dilated = |n: i64, by: i64| Ord::max((n - 1).saturating_mul(by).saturating_add(1), 0);
        let sides = (0..shape.rank()).map(|d| {
            let (low, high) = sizes.padding[d];
            let base = dilated(shape[d] as i64, sizes.base_dilation[d]);
            let base = base.saturating_add(low).saturating_add(high);
            let window = dilated(sizes.size[d], sizes.dilation[d]);
            let output = if base < window { 0 } else { (base - window) / sizes.stride[d] + 1 };
            Side {
                input: shape[d],
                output: output as usize,
                size: sizes.size[d] as usize,
                stride: sizes.stride[d],
                base_dilation: sizes.base_dilation[d],
                dilation: sizes.dilation[d],
                low,
            }
        });
        let window = Window(sides.collect());
        window.output().checked_elements()?;
        let elements = window.size().checked_elements()?;
        // A window that is larger than the padded tensor fits nowhere.
        ensure!(
            window.output().elements() == 0 || elements < 1 << 40,
            InvalidArgument,
            "a window of {elements} elements is too large"
        );
        Ok(window)
    }

    fn size(&self) -> Shape {
        self.0.iter().map(|side| side.size).collect()
    }

    fn output(&self) -> Shape {
        self.0.iter().map(|side| side.output).collect()
    }

    /// For each place of the output, the element under element `w` of the window.
    fn under(&self, w: &[usize], strides: &[usize]) -> Vec<Option<usize>> {
        let mut places = Vec::with_capacity(self.output().elements());
        for_each_index(&self.output(), |place| {
            let sides = self.0.iter().zip(place).zip(w).zip(strides);
            places.push(sides.map(|(((s, &p), &w), n)| Some(s.under(p, w)? * n)).sum());
        });
        places
    }
}

/// The elements of a window, in order.
struct Offsets {
    dims: Vec<usize>,
    next: Option<Vec<usize>>,
}

impl Offsets {
    fn new(dims: &[usize]) -> Offsets {
        let next = (!dims.contains(&0)).then(|| vec![0; dims.len()]);
        Offsets { dims: dims.to_vec(), next }
    }
}

impl Iterator for Offsets {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        let now = self.next.take()?;
        let mut after = now.clone();
        for d in (0..after.len()).rev() {
            after[d] += 1;
            if after[d] < self.dims[d] {
                self.next = Some(after);
                break;
            }
            after[d] = 0;
        }
        Some(now)
    }
}

/// Combines the elements under the window, one after the other, for all places at once.
struct WindowReduction {
    /// The elements, and the initial value behind them, which stands for padding.
    elements: Tensor,
    sums: Tensor,
    window: Window,
    strides: Vec<usize>,
    offsets: Offsets,
}

impl WindowReduction {
    fn new(ctx: &AsyncCtx) -> Result<WindowReduction> {
        let (input, init) = (ctx.input(0)?, ctx.input(1)?);
        let rank = input.rank();
        let sizes = Sizes {
            size: integers(ctx, 2, "window_dimensions", rank)?,
            stride: integers(ctx, 3, "window_strides", rank)?,
            base_dilation: integers(ctx, 4, "base_dilations", rank)?,
            dilation: integers(ctx, 5, "window_dilations", rank)?,
            padding: Sizes::padding(ctx, 6, rank)?,
        };
        let window = Window::new(input.shape(), &sizes)?;
        ensure!(
            init.rank() == 0,
            InvalidArgument,
            "init_value must be a scalar, got shape {}",
            init.shape()
        );
        Ok(WindowReduction {
            elements: joined(&[input, init])?,
            sums: repeated(init, window.output().elements())?,
            strides: input.shape().strides().to_vec(),
            offsets: Offsets::new(&window.size()),
            window,
        })
    }
}

impl Program for WindowReduction {
    fn next(&mut self, mut results: Vec<Tensor>) -> Result<Next> {
        if let Some(sums) = results.pop() {
            ensure!(
                sums.dtype() == self.sums.dtype() && results.is_empty(),
                InvalidArgument,
                "the computation gave {} results, expected one {}",
                results.len() + 1,
                self.sums.dtype()
            );
            self.sums = sums;
        }
        match self.offsets.next().filter(|_| self.sums.elements() > 0) {
            Some(offset) => {
                let padding = self.elements.elements() - 1;
                let under = self.window.under(&offset, &self.strides);
                let places: Vec<usize> =
                    under.into_iter().map(|at| at.unwrap_or(padding)).collect();
                let args = vec![self.sums.clone(), picked(&self.elements, &places)?];
                Ok(Next::Call { function: 0, args })
            }
            None => Ok(Next::Done(vec![self.sums.reshape(self.window.output())?])),
        }
    }
}

/// Selects an element under each place of the window, then adds the source of the place to it.
struct SelectAndScatter {
    operand: Tensor,
    source: Tensor,
    init: Tensor,
    window: Window,
    strides: Vec<usize>,
    offsets: Offsets,
    /// The element that is selected so far for each place.
    selected: Vec<Option<usize>>,
    /// The places that are compared now, and the candidates with which they are compared.
    candidates: Vec<(usize, usize)>,
    updates: Option<Updates>,
}

impl SelectAndScatter {
    fn new(ctx: &AsyncCtx) -> Result<SelectAndScatter> {
        let (operand, source, init) = (ctx.input(0)?, ctx.input(4)?, ctx.input(5)?);
        let rank = operand.rank();
        let sizes = Sizes {
            size: integers(ctx, 1, "window_dimensions", rank)?,
            stride: integers(ctx, 2, "window_strides", rank)?,
            base_dilation: vec![1; rank],
            dilation: vec![1; rank],
            padding: Sizes::padding(ctx, 3, rank)?,
        };
        let window = Window::new(operand.shape(), &sizes)?;
        ensure!(
            *source.shape() == window.output(),
            InvalidArgument,
            "source must have shape {}, got {}",
            window.output(),
            source.shape()
        );
        ensure!(
            init.rank() == 0,
            InvalidArgument,
            "init_value must be a scalar, got shape {}",
            init.shape()
        );
        Ok(SelectAndScatter {
            operand: operand.clone(),
            source: source.clone(),
            init: init.clone(),
            strides: operand.shape().strides().to_vec(),
            offsets: Offsets::new(&window.size()),
            selected: vec![None; source.elements()],
            candidates: Vec::new(),
            updates: None,
            window,
        })
    }

    /// Replaces the elements that the function did not keep.
    fn decide(&mut self, results: &[Tensor]) -> Result<()> {
        let [kept] = results else {
            bail!(InvalidArgument, "select gave {} results, expected one", results.len());
        };
        for (&(place, candidate), &is_kept) in self.candidates.iter().zip(kept.as_slice::<bool>()?)
        {
            if !is_kept {
                self.selected[place] = Some(candidate);
            }
        }
        Ok(())
    }
}

impl Program for SelectAndScatter {
    fn next(&mut self, results: Vec<Tensor>) -> Result<Next> {
        if let Some(updates) = &mut self.updates {
            updates.finish_round(&results)?;
            return updates.next_round();
        }
        if !results.is_empty() {
            self.decide(&results)?;
        }
        for offset in self.offsets.by_ref() {
            self.candidates.clear();
            let under = self.window.under(&offset, &self.strides);
            for (place, candidate) in under.into_iter().enumerate() {
                match (self.selected[place], candidate) {
                    (_, None) => {}
                    (None, first) => self.selected[place] = first,
                    (Some(_), Some(candidate)) => self.candidates.push((place, candidate)),
                }
            }
            if !self.candidates.is_empty() {
                let current: Option<Vec<usize>> =
                    self.candidates.iter().map(|c| self.selected[c.0]).collect();
                let current = current.ok_or_else(|| err!(Internal, "nothing was selected"))?;
                let others: Vec<usize> = self.candidates.iter().map(|c| c.1).collect();
                let args = vec![picked(&self.operand, &current)?, picked(&self.operand, &others)?];
                return Ok(Next::Call { function: 0, args });
            }
        }
        let target = repeated(&self.init, self.operand.elements())?;
        let target = target.into_shape(self.operand.shape().clone())?;
        let places = self.selected.iter().enumerate();
        let pairs: Vec<(usize, usize)> =
            places.filter_map(|(place, &element)| Some((element?, place))).collect();
        let updates = self.updates.insert(Updates::new(target, self.source.clone(), pairs, 1));
        updates.next_round()
    }
}

fn same_rank(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![c.input(0).rank().map(PartialShape::of_rank).unwrap_or_default()])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("XlaReduceWindow")
        .work(work::any)
        .doc("Combines the elements under a window that moves, by a function of two scalars.")
        .input("input: T")
        .input("init_value: T")
        .input("window_dimensions: Tindices")
        .input("window_strides: Tindices")
        .input("base_dilations: Tindices")
        .input("window_dilations: Tindices")
        .input("padding: Tindices")
        .output("output: T")
        .attr(NUMBERS_AND_BOOL)
        .attr("Tindices: {int32, int64}")
        .attr("computation: func")
        .expensive()
        .waits()
        .shape(same_rank)
        .cpu(|init| {
            Calling::kernel(init, &["computation"], |ctx| Ok(Box::new(WindowReduction::new(ctx)?)))
        });
    c.op("XlaSelectAndScatter")
        .work(work::any)
        .doc("Selects an element under each place of a window, and adds a source to it.")
        .input("operand: T")
        .input("window_dimensions: Tindices")
        .input("window_strides: Tindices")
        .input("padding: Tindices")
        .input("source: T")
        .input("init_value: T")
        .output("output: T")
        .attr("T: numbertype")
        .attr("Tindices: {int32, int64}")
        .attr("select: func")
        .attr("scatter: func")
        .expensive()
        .waits()
        .shape(shape::same_as_input)
        .cpu(|init| {
            Calling::kernel(init, &["select", "scatter"], |ctx| {
                Ok(Box::new(SelectAndScatter::new(ctx)?))
            })
        });
}
