//! InplaceUpdate, InplaceAdd, InplaceSub: replace or change rows of a tensor.

use super::walk::by_width;
use crate::prelude::*;

/// The rows that input `i` names, reduced modulo their number, after checking that all inputs fit.
fn rows(ctx: &Ctx<'_>) -> Result<Vec<usize>> {
    let (x, i, v) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    ensure!(i.rank() == 1, InvalidArgument, "i must be a vector. {}", i.shape());
    ensure!(
        x.rank() == v.rank(),
        InvalidArgument,
        "x and v shape doesn't match (ranks differ): {} vs. {}",
        x.shape(),
        v.shape()
    );
    ensure!(
        v.shape().first() == Some(&i.elements()),
        InvalidArgument,
        "i and x shape doesn't match at index 0: {} vs. {}",
        i.shape(),
        v.shape()
    );
    for d in 1..x.rank() {
        ensure!(
            x.shape()[d] == v.shape()[d],
            InvalidArgument,
            "x and v shape doesn't match at index {d} : {} vs. {}",
            x.shape(),
            v.shape()
        );
    }
    let n = x.shape()[0] as i64;
    ensure!(n > 0 || i.elements() == 0, InvalidArgument, "x has no rows to change: {}", x.shape());
    Ok(i.to_indices()?.into_iter().map(|i| i.rem_euclid(n) as usize).collect())
}

/// Calls `f` with each row of `x` to change and the row of `v` to change it by.
fn each<T>(x: &mut [T], v: &[T], rows: &[usize], f: impl Fn(&mut [T], &[T])) {
    if v.is_empty() {
        return;
    }
    let len = v.len() / rows.len();
    for (&row, v) in rows.iter().zip(v.chunks_exact(len)) {
        f(&mut x[row * len..][..len], v);
    }
}

fn update(ctx: &mut Ctx<'_>) -> Result<()> {
    let rows = rows(ctx)?;
    let mut x = ctx.take_or_copy(0)?;
    let v = ctx.input(2)?;
    by_width!(x.dtype(), W => {
        each(W::of_mut(&mut x)?, W::of(v)?, &rows, |to, from| to.clone_from_slice(from))
    });
    ctx.set(0, x)
}

fn combine<T: Num>(f: fn(T, T) -> T) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let rows = rows(ctx)?;
        let mut x = ctx.take_or_copy(0)?;
        let v = ctx.input(2)?.as_slice::<T>()?;
        each(x.as_mut_slice::<T>()?, v, &rows, |to, from| {
            to.iter_mut().zip(from).for_each(|(a, b)| *a = f(*a, *b))
        });
        ctx.set(0, x)
    }
}

/// A tensor, row numbers, and values for these rows.
const ROW_UPDATE: [&str; 3] = ["x: T", "i: int32", "v: T"];

pub(crate) fn register(c: &mut Catalog) {
    c.op("InplaceUpdate")
        .doc("Its input with rows replaced.")
        .inputs(&ROW_UPDATE)
        .output("y: T")
        .attr("T: type")
        .shape(shape::same_as_input)
        .cpu_fn(update);
    c.op("InplaceAdd")
        .doc("Its input with something added to rows.")
        .inputs(&ROW_UPDATE)
        .output("y: T")
        .attr("T: type")
        .shape(shape::same_as_input)
        .cpu(per_dtype!(NUMBER, T => combine::<T>(T::add)));
    c.op("InplaceSub")
        .doc("Its input with something subtracted from rows.")
        .inputs(&ROW_UPDATE)
        .output("y: T")
        .attr("T: type")
        .shape(shape::same_as_input)
        .cpu(per_dtype!(NUMBER, T => combine::<T>(T::sub)));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn op(op: &str, i: Tensor, dims: &[usize], v: &[f32]) -> Check<'static> {
        check(op)
            .input(Tensor::from_slice([3, 2], &[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0]).unwrap())
            .input(i)
            .input(Tensor::from_slice(Shape::from(dims), v).unwrap())
    }

    #[test]
    fn rows_count_from_either_end() {
        let v = [10.0, 20.0, 30.0, 40.0];
        for (name, want) in [
            ("InplaceUpdate", [10.0f32, 20.0, 2.0, 3.0, 30.0, 40.0]),
            ("InplaceAdd", [10.0, 21.0, 2.0, 3.0, 34.0, 45.0]),
            ("InplaceSub", [-10.0, -19.0, 2.0, 3.0, -26.0, -35.0]),
        ] {
            op(name, Tensor::vector(&[0i32, -1]), &[2, 2], &v)
                .gives(Tensor::from_slice([3, 2], &want).unwrap());
        }
        op("InplaceAdd", Tensor::vector(&[0i32, 3]), &[2, 2], &v)
            .gives(Tensor::from_slice([3, 2], &[40.0f32, 61.0, 2.0, 3.0, 4.0, 5.0]).unwrap());
    }

    #[test]
    fn rows_that_do_not_fit_are_refused() {
        let fails = |i: Tensor, dims: &[usize], v: &[f32], text: &str| {
            op("InplaceUpdate", i, dims, v).fails(Code::InvalidArgument, text)
        };
        let v = Tensor::vector::<i32>;
        fails(v(&[0]), &[2, 2], &[0.0; 4], "i and x shape doesn't match at index 0: [1] vs. [2,2]");
        fails(Tensor::scalar(0i32), &[2], &[0.0; 2], "i must be a vector. []");
        fails(
            v(&[0, 1]),
            &[2],
            &[0.0; 2],
            "x and v shape doesn't match (ranks differ): [3,2] vs. [2]",
        );
        fails(v(&[0]), &[1, 1], &[0.0], "x and v shape doesn't match at index 1 : [3,2] vs. [1,1]");
    }
}
