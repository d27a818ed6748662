//! MatrixDiag, MatrixDiagPart, MatrixSetDiag and their versions: diagonals of batches of matrices.

use super::args::joined;
use super::walk::{self, by_width};
use crate::prelude::*;

/// The side on which short diagonals are aligned in the packed tensor.
#[derive(Clone, Copy)]
struct Align {
    super_left: bool,
    sub_left: bool,
}

impl Align {
    /// Attribute `align`; versions without it align to the left.
    fn new(init: &KernelInit<'_>) -> Result<Align> {
        if !init.contains("align") {
            return Ok(Align { super_left: true, sub_left: true });
        }
        let align = init.string("align")?;
        Ok(Align { super_left: align.starts_with("LEFT"), sub_left: align.ends_with("LEFT") })
    }
}

/// Diagonals `lower..=upper` of matrices of `rows` by `cols`, packed as rows of `width`.
#[derive(Clone, Copy)]
struct Diagonals {
    rows: usize,
    cols: usize,
    lower: i64,
    upper: i64,
    width: usize,
    align: Align,
}

impl Diagonals {
    fn count(&self) -> usize {
        (self.upper - self.lower + 1) as usize
    }

    /// Calls `f` with the position of every diagonal element in the matrix and in the packed
    /// tensor.
    fn each(&self, mut f: impl FnMut(usize, usize)) {
        for row in 0..self.count() {
            let d = self.upper - row as i64;
            // The diagonal begins at (down, right).
            let (down, right) = (Ord::max(-d, 0) as usize, Ord::max(d, 0) as usize);
            let len = self.rows.saturating_sub(down).min(self.cols.saturating_sub(right));
            let len = len.min(self.width);
            let left = (d >= 0 && self.align.super_left) || (d <= 0 && self.align.sub_left);
            let pad = if left { 0 } else { self.width - len };
            for i in 0..len {
                f((down + i) * self.cols + right + i, row * self.width + pad + i);
            }
        }
    }

    /// The length of the longest diagonal.
    fn longest(rows: usize, cols: usize, lower: i64, upper: i64) -> usize {
        let (rows, cols) = (rows as i64, cols as i64);
        Ord::max(Ord::min(rows + Ord::min(upper, 0), cols - Ord::max(lower, 0)), 0) as usize
    }
}

/// The range of diagonals that input `k` names.
fn range_of(k: &Tensor) -> Result<(i64, i64)> {
    ensure!(
        k.rank() <= 1,
        InvalidArgument,
        "diag_index must be a scalar or vector, received shape: {}",
        k.shape()
    );
    let (lower, upper) = match k.to_indices()?[..] {
        [] => bail!(InvalidArgument, "Expected diag_index to have at least 1 element"),
        [k] => (k, k),
        [lower, upper] => (lower, upper),
        ref more => bail!(
            InvalidArgument,
            "diag_index must have only one or two elements, received {} elements.",
            more.len()
        ),
    };
    Ok((lower, upper))
}

fn in_order(lower: i64, upper: i64) -> Result<()> {
    ensure!(
        lower <= upper,
        InvalidArgument,
        "lower_diag_index must not be larger than upper_diag_index: {lower} > {upper}"
    );
    Ok(())
}

/// Returns an error if matrices of this size do not have these diagonals.
fn within(rows: usize, cols: usize, lower: i64, upper: i64, period: &str) -> Result<()> {
    let (low, high) = (-(rows as i64), cols as i64);
    for (k, name, period) in [(lower, "lower", period), (upper, "upper", "")] {
        ensure!(
            low < k && k < high || k == 0,
            InvalidArgument,
            "{name}_diag_index is out of bound: {k}{period} It must be between {low} and {high}"
        );
    }
    in_order(lower, upper)
}

fn scalar<'t>(t: &'t Tensor, name: &str) -> Result<&'t Tensor> {
    ensure!(t.rank() == 0, InvalidArgument, "{name} must be a scalar");
    Ok(t)
}

fn matrix_size(t: &Tensor) -> Result<(usize, usize)> {
    ensure!(
        t.rank() >= 2,
        InvalidArgument,
        "input must be at least 2-dim, received shape: {}",
        t.shape()
    );
    Ok((t.shape()[t.rank() - 2], t.shape()[t.rank() - 1]))
}

/// Copies packed diagonals to matrices, or back.
fn transfer(from: &Tensor, to: &mut Tensor, d: Diagonals, packing: bool) -> Result<()> {
    fn go<W: Movable>(from: &[W], to: &mut [W], d: Diagonals, packing: bool) {
        let (matrix, packed) = (d.rows * d.cols, d.count() * d.width);
        if matrix == 0 || packed == 0 {
            return;
        }
        let (from_len, to_len) = if packing { (matrix, packed) } else { (packed, matrix) };
        for (from, to) in from.chunks_exact(from_len).zip(to.chunks_exact_mut(to_len)) {
            d.each(|m, p| if packing { to[p] = from[m].clone() } else { to[m] = from[p].clone() });
        }
    }
    by_width!(from.dtype(), W => go(W::of(from)?, W::of_mut(to)?, d, packing));
    Ok(())
}

/// The matrices that `MatrixDiag` makes of `diagonal`, and their diagonals.
fn diag_plan(
    diagonal: &Shape,
    (lower, upper): (i64, i64),
    rows: i64,
    cols: i64,
    align: Align,
) -> Result<(Shape, Diagonals)> {
    ensure!(
        diagonal.rank() >= 1,
        InvalidArgument,
        "diagonal must be at least 1-dim, received shape: {diagonal}"
    );
    in_order(lower, upper)?;
    let rank = diagonal.rank();
    let one = lower == upper;
    ensure!(
        one || rank >= 2 && diagonal[rank - 2] as i64 == upper - lower + 1,
        InvalidArgument,
        "The number of diagonals provided in the input does not match the lower_diag_index and \
         upper_diag_index range."
    );
    let width = diagonal[rank - 1];
    let min_rows = (width as i64).saturating_sub(Ord::min(upper, 0));
    let min_cols = (width as i64).saturating_add(Ord::max(lower, 0));
    let (rows, cols) = match (rows, cols) {
        (-1, -1) => (Ord::max(min_rows, min_cols), Ord::max(min_rows, min_cols)),
        (-1, cols) => (min_rows, cols),
        (rows, -1) => (rows, min_cols),
        both => both,
    };
    ensure!(rows >= min_rows, InvalidArgument, "The number of rows is too small.");
    ensure!(cols >= min_cols, InvalidArgument, "The number of columns is too small.");
    ensure!(
        rows == min_rows || cols == min_cols,
        InvalidArgument,
        "The number of rows or columns is not consistent with the specified d_lower, d_upper, and \
         diagonal."
    );
    let batch = &diagonal[..rank - if one { 1 } else { 2 }];
    let shape = joined(&[batch, &[rows as usize, cols as usize]]);
    shape.checked_elements()?;
    let plan = Diagonals { rows: rows as usize, cols: cols as usize, lower, upper, width, align };
    Ok((shape, plan))
}

fn matrix_diag(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (align, steered) = (Align::new(init)?, init.inputs.len() > 1);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let diagonal = ctx.input(0)?;
        let (mut k, mut rows, mut cols) = ((0, 0), -1, -1);
        if steered {
            k = range_of(ctx.input(1)?)?;
            rows = scalar(ctx.input(2)?, "num_rows")?.scalar_index()?;
            cols = scalar(ctx.input(3)?, "num_cols")?.scalar_index()?;
            scalar(ctx.input(4)?, "padding_value")?;
        }
        let (shape, plan) = diag_plan(diagonal.shape(), k, rows, cols, align)?;
        let mut out = Tensor::zeros(diagonal.dtype(), shape)?;
        if steered {
            walk::fill(&mut out, ctx.input(4)?)?;
        }
        transfer(diagonal, &mut out, plan, false)?;
        ctx.set(0, out)
    }))
}

fn matrix_diag_part(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (align, steered) = (Align::new(init)?, init.inputs.len() > 1);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let (rows, cols) = matrix_size(x)?;
        let (lower, upper) = if steered { range_of(ctx.input(1)?)? } else { (0, 0) };
        within(rows, cols, lower, upper, ".")?;
        let width = Diagonals::longest(rows, cols, lower, upper);
        let plan = Diagonals { rows, cols, lower, upper, width, align };
        let mut out = Tensor::zeros(x.dtype(), part_shape(x.shape(), &plan))?;
        if steered {
            walk::fill(&mut out, scalar(ctx.input(2)?, "padding_value")?)?;
        }
        transfer(x, &mut out, plan, true)?;
        ctx.set(0, out)
    }))
}

/// The shape of the packed diagonals of matrices of shape `x`.
fn part_shape(x: &[usize], d: &Diagonals) -> Shape {
    let batch = &x[..x.len() - 2];
    if d.count() == 1 {
        joined(&[batch, &[d.width]])
    } else {
        joined(&[batch, &[d.count(), d.width]])
    }
}

fn matrix_set_diag(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (align, steered) = (Align::new(init)?, init.inputs.len() > 2);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (x, diagonal) = (ctx.input(0)?, ctx.input(1)?);
        let (rows, cols) = matrix_size(x)?;
        ensure!(
            diagonal.rank() >= 1,
            InvalidArgument,
            "diagonal must be at least 1-dim, received shape: {}",
            diagonal.shape()
        );
        let (lower, upper) = if steered { range_of(ctx.input(2)?)? } else { (0, 0) };
        within(rows, cols, lower, upper, "")?;
        let width = Diagonals::longest(rows, cols, lower, upper);
        let plan = Diagonals { rows, cols, lower, upper, width, align };
        let want = part_shape(x.shape(), &plan);
        ensure!(
            *diagonal.shape() == want,
            InvalidArgument,
            "Either first dimensions of diagonal don't match input.shape[:-2], or \
             diagonal.shape[:-1] is not equal to the longests diagonal in range \
             [lower_diag_index:upper_diag_index].\nInput shape: {}\nDiagonal shape: {}\nExpected \
             diagonal shape: {want}",
            x.shape(),
            diagonal.shape()
        );
        let mut out = ctx.take_or_copy(0)?;
        transfer(ctx.input(1)?, &mut out, plan, false)?;
        ctx.set(0, out)
    }))
}

fn matrix_diag_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let diagonal = c.input(0);
    let steered = c.inputs.len() > 1;
    let k = if steered { c.constant(1).map(range_of).transpose()? } else { Some((0, 0)) };
    let (Some(rank), Some(k)) = (diagonal.rank(), k) else { return shape::unknown(c) };
    let out_rank = if k.0 == k.1 { rank + 1 } else { rank };
    let int =
        |i| if steered { c.constant_ints(i).and_then(|v| v.first().copied()) } else { Some(-1) };
    let (Some(known), Some(rows), Some(cols)) = (diagonal.known(), int(2), int(3)) else {
        return Ok(vec![PartialShape::of_rank(out_rank)]);
    };
    let align = Align { super_left: true, sub_left: true };
    Ok(vec![diag_plan(&known, k, rows, cols, align)?.0.into()])
}

fn matrix_diag_part_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let x = c.input(0);
    let k =
        if c.inputs.len() > 1 { c.constant(1).map(range_of).transpose()? } else { Some((0, 0)) };
    let (Some(rank), Some((lower, upper))) = (x.rank(), k) else { return shape::unknown(c) };
    ensure!(rank >= 2, InvalidArgument, "Shape must be at least rank 2 but is rank {rank}");
    let Some(known) = x.known() else {
        return Ok(vec![PartialShape::of_rank(if lower == upper { rank - 1 } else { rank })]);
    };
    let (rows, cols) = (known[rank - 2], known[rank - 1]);
    within(rows, cols, lower, upper, ".")?;
    let width = Diagonals::longest(rows, cols, lower, upper);
    let align = Align { super_left: true, sub_left: true };
    Ok(vec![part_shape(&known, &Diagonals { rows, cols, lower, upper, width, align }).into()])
}

const ALIGN: &str =
    "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'";

pub(crate) fn register(c: &mut Catalog) {
    for name in ["MatrixDiag", "BatchMatrixDiag"] {
        c.op(name)
            .work(work::any)
            .doc("Matrices with the given main diagonals.")
            .input("diagonal: T")
            .output("output: T")
            .attr("T: type")
            .shape(matrix_diag_shape)
            .cpu(matrix_diag);
    }
    for name in ["MatrixDiagV2", "MatrixDiagV3"] {
        let op = c
            .op(name)
            .work(work::any)
            .doc("Matrices with the given diagonals.")
            .input("diagonal: T")
            .input("k: int32")
            .input("num_rows: int32")
            .input("num_cols: int32")
            .input("padding_value: T")
            .output("output: T")
            .attr("T: type");
        let op = if name.ends_with('3') { op.attr(ALIGN) } else { op };
        op.shape(matrix_diag_shape).cpu(matrix_diag);
    }
    for name in ["MatrixDiagPart", "BatchMatrixDiagPart"] {
        c.op(name)
            .work(work::any)
            .doc("The main diagonals of matrices.")
            .input("input: T")
            .output("diagonal: T")
            .attr("T: type")
            .shape(matrix_diag_part_shape)
            .cpu(matrix_diag_part);
    }
    for name in ["MatrixDiagPartV2", "MatrixDiagPartV3"] {
        let op = c
            .op(name)
            .work(work::any)
            .doc("Some diagonals of matrices.")
            .input("input: T")
            .input("k: int32")
            .input("padding_value: T")
            .output("diagonal: T")
            .attr("T: type");
        let op = if name.ends_with('3') { op.attr(ALIGN) } else { op };
        op.shape(matrix_diag_part_shape).cpu(matrix_diag_part);
    }
    for name in ["MatrixSetDiag", "BatchMatrixSetDiag"] {
        c.op(name)
            .work(work::any)
            .doc("Matrices with their main diagonals replaced.")
            .input("input: T")
            .input("diagonal: T")
            .output("output: T")
            .attr("T: type")
            .shape(shape::same_as_input)
            .cpu(matrix_set_diag);
    }
    for name in ["MatrixSetDiagV2", "MatrixSetDiagV3"] {
        let op = c
            .op(name)
            .work(work::any)
            .doc("Matrices with some of their diagonals replaced.")
            .input("input: T")
            .input("diagonal: T")
            .input("k: int32")
            .output("output: T")
            .attr("T: type");
        let op = if name.ends_with('3') { op.attr(ALIGN) } else { op };
        op.shape(shape::same_as_input).cpu(matrix_set_diag);
    }
    c.gradient("MatrixDiag", |_, dy| Ok(vec![dy[0].apply("MatrixDiagPart")]));
    c.gradient("MatrixDiagPart", |g, dy| {
        Ok(vec![g.call("MatrixSetDiag", &[g.input(0).zeros_like(), dy[0]])])
    });
    c.gradient("MatrixSetDiag", |g, dy| {
        let zeros = g.input(1).zeros_like();
        Ok(vec![g.call("MatrixSetDiag", &[dy[0], zeros]), dy[0].apply("MatrixDiagPart")])
    });
    for (diag, part, set) in [
        ("MatrixDiagV2", "MatrixDiagPartV2", "MatrixSetDiagV2"),
        ("MatrixDiagV3", "MatrixDiagPartV3", "MatrixSetDiagV3"),
    ] {
        c.gradient(diag, move |g, dy| {
            Ok(g.only(g.call_like(part, &[dy[0], g.input(1), dy[0].number(0.0)])))
        });
        c.gradient(part, move |g, dy| {
            Ok(g.only(g.call_like(set, &[g.input(0).zeros_like(), dy[0], g.input(1)])))
        });
        c.gradient(set, move |g, dy| {
            let (k, zeros) = (g.input(2), g.input(1).zeros_like());
            Ok(vec![
                g.call_like(set, &[dy[0], zeros, k]),
                g.call_like(part, &[dy[0], k, dy[0].number(0.0)]),
                g.none(),
            ])
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn t(dims: &[usize], values: &[f32]) -> Tensor {
        Tensor::from_slice(Shape::from(dims), values).unwrap()
    }

    fn m() -> Tensor {
        t(&[3, 4], &(0..12).map(|x| x as f32).collect::<Vec<_>>())
    }

    fn k(k: &[i32]) -> Tensor {
        if let [k] = k { Tensor::scalar(*k) } else { Tensor::vector(k) }
    }

    fn diag(diagonal: Tensor, of: &[i32], rows: i32, cols: i32) -> Check<'static> {
        check("MatrixDiagV3")
            .input(diagonal)
            .input(k(of))
            .input(Tensor::scalar(rows))
            .input(Tensor::scalar(cols))
            .input(Tensor::scalar(9.0f32))
    }

    fn part(of: &[i32]) -> Check<'static> {
        check("MatrixDiagPartV3").input(m()).input(k(of)).input(Tensor::scalar(-1.0f32))
    }

    fn set(diagonal: Tensor, of: &[i32]) -> Check<'static> {
        check("MatrixSetDiagV3").input(m()).input(diagonal).input(k(of))
    }

    #[test]
    fn main_diagonals_need_no_steering() {
        check("MatrixDiag")
            .input(t(&[2, 2], &[1.0, 2.0, 3.0, 4.0]))
            .gives(t(&[2, 2, 2], &[1.0, 0.0, 0.0, 2.0, 3.0, 0.0, 0.0, 4.0]));
        check("MatrixDiagPart").input(m()).gives(t(&[3], &[0.0, 5.0, 10.0]));
        check("MatrixDiagPart").input(t(&[0, 2], &[])).gives(t(&[0], &[]));
        check("BatchMatrixSetDiag")
            .input(m())
            .input(t(&[3], &[50.0; 3]))
            .gives(t(&[3, 4], &[50.0, 1.0, 2.0, 3.0, 4.0, 50.0, 6.0, 7.0, 8.0, 9.0, 50.0, 11.0]));
    }

    #[test]
    fn matrices_are_made_as_large_as_needed() {
        let v = || t(&[2], &[1.0, 2.0]);
        diag(v(), &[1], -1, -1).gives(t(&[3, 3], &[9.0, 1.0, 9.0, 9.0, 9.0, 2.0, 9.0, 9.0, 9.0]));
        diag(v(), &[-1], 3, 4)
            .gives(t(&[3, 4], &[9.0, 9.0, 9.0, 9.0, 1.0, 9.0, 9.0, 9.0, 9.0, 2.0, 9.0, 9.0]));
        diag(v(), &[1], 2, -1).gives(t(&[2, 3], &[9.0, 1.0, 9.0, 9.0, 9.0, 2.0]));
        for (of, rows, cols, text) in [
            (&[0][..], 1, -1, "The number of rows is too small."),
            (&[0], -1, 1, "The number of columns is too small."),
            (&[0], 3, 3, "The number of rows or columns is not consistent with"),
            (&[1, 0], -1, -1, "lower_diag_index must not be larger than upper_diag_index: 1 > 0"),
            (&[0, 1], -1, -1, "The number of diagonals provided in the input does not match"),
            (&[0, 1, 2], -1, -1, "must have only one or two elements, received 3 elements."),
        ] {
            diag(v(), of, rows, cols).fails(Code::InvalidArgument, text);
        }
        diag(v(), &[i32::MIN], -1, -1).fails(Code::ResourceExhausted, "OOM");
    }

    #[test]
    fn short_diagonals_are_aligned() {
        let d = || t(&[3, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
        let s = || t(&[3, 3], &[21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0, 28.0, 29.0]);
        let cases = [
            ("LEFT_RIGHT", [1.0, 2.0, 8.0, 9.0], [0.0, 1.0, 2.0], [28.0, 29.0]),
            ("RIGHT_LEFT", [2.0, 3.0, 7.0, 8.0], [2.0, 0.0, 1.0], [27.0, 28.0]),
            ("LEFT_LEFT", [1.0, 2.0, 7.0, 8.0], [0.0, 1.0, 1.0], [27.0, 28.0]),
            ("RIGHT_RIGHT", [2.0, 3.0, 8.0, 9.0], [2.0, 0.0, 2.0], [28.0, 29.0]),
        ];
        for (align, [a, b, c, e], pads, [x, y]) in cases {
            diag(d(), &[-1, 1], 3, 3)
                .attr("align", align)
                .gives(t(&[3, 3], &[4.0, a, 9.0, c, 5.0, b, 9.0, e, 6.0]));
            let got = part(&[-2, 2]).attr("align", align).run().unwrap();
            let got = got[0].as_slice::<f32>().unwrap().to_vec();
            // Where the two-element superdiagonal and the subdiagonals are padded.
            let top = if pads[0] == 0.0 { [2.0, 7.0, -1.0] } else { [-1.0, 2.0, 7.0] };
            let sub = if pads[2] == 2.0 { [-1.0, 4.0, 9.0] } else { [4.0, 9.0, -1.0] };
            assert_eq!(got[..3], top, "{align}");
            assert_eq!(got[9..12], sub, "{align}");
            set(s(), &[-1, 1])
                .attr("align", align)
                .gives(t(&[3, 4], &[24.0, 21.0, 2.0, 3.0, x, 25.0, 22.0, 7.0, 8.0, y, 26.0, 23.0]));
        }
        check("MatrixDiagPartV2")
            .input(m())
            .input(k(&[-1, 1]))
            .input(Tensor::scalar(-1.0f32))
            .gives(t(&[3, 3], &[1.0, 6.0, 11.0, 0.0, 5.0, 10.0, 4.0, 9.0, -1.0]));
    }

    #[test]
    fn diagonals_outside_are_refused() {
        part(&[1]).gives(t(&[3], &[1.0, 6.0, 11.0]));
        part(&[-2]).gives(t(&[1], &[8.0]));
        let invalid = Code::InvalidArgument;
        part(&[4])
            .fails(invalid, "lower_diag_index is out of bound: 4. It must be between -3 and 4");
        part(&[0, 4])
            .fails(invalid, "upper_diag_index is out of bound: 4 It must be between -3 and 4");
        part(&[1, 0]).fails(invalid, "must not be larger than upper_diag_index: 1 > 0");
        set(t(&[2], &[0.0; 2]), &[5]).fails(invalid, "lower_diag_index is out of bound: 5 It must");
        set(t(&[2], &[0.0; 2]), &[-1, 0]).fails(invalid, "Expected diagonal shape: [2,3]");
        check("MatrixDiagPart")
            .input(t(&[1], &[1.0]))
            .fails(invalid, "input must be at least 2-dim, received shape: [1]");
    }
}
