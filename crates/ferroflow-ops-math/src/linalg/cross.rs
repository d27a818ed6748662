//! Cross.

use crate::prelude::*;

/// Cross products of vectors of three along the last dimension.
fn cross<T: Num>(ctx: &mut Ctx<'_>) -> Result<()> {
    let (a, b) = (ctx.input(0)?, ctx.input(1)?);
    ensure!(
        a.shape() == b.shape(),
        InvalidArgument,
        "Both inputs must be of same shape: {} vs. {}",
        a.shape(),
        b.shape()
    );
    let Some(&last) = a.shape().last() else {
        bail!(InvalidArgument, "Input must be at least 1D{}", a.shape());
    };
    ensure!(
        last == 3,
        FailedPrecondition,
        "Cross-products are only defined for 3-element vectors."
    );
    let mut out = ctx.alloc(T::DTYPE, a.shape().clone())?;
    let (x, y) = (a.as_slice::<T>()?.chunks_exact(3), b.as_slice::<T>()?.chunks_exact(3));
    for ((out, x), y) in out.as_mut_slice::<T>()?.chunks_exact_mut(3).zip(x).zip(y) {
        for i in 0..3 {
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            out[i] = x[j].mul(y[k]).sub(x[k].mul(y[j]));
        }
    }
    ctx.set(0, out)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Cross")
        .doc("Cross products of vectors of three.")
        .input("a: T")
        .input("b: T")
        .output("product: T")
        .attr("T: realnumbertype")
        .shape(shape::merged_inputs)
        .cpu(per_dtype!(REAL, T => cross::<T>));
    c.gradient("Cross", |g, dy| {
        let (u, v) = (g.input(0), g.input(1));
        Ok(vec![v.with("Cross", dy[0]), dy[0].with("Cross", u)])
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn vectors_of_three_are_crossed() {
        let (a, b) = (Tensor::vector(&[1i32, 2, 3]), Tensor::vector(&[4, 5, 7]));
        check("Cross").input(a).input(b).gives(Tensor::vector(&[-1i32, 5, -3]));
        let v = || Tensor::vector(&[1f32, 2.0]);
        let text = "Cross-products are only defined for 3-element vectors.";
        check("Cross").input(v()).input(v()).fails(Code::FailedPrecondition, text);
    }

    #[test]
    fn gradients_of_a_cross_product_are_slopes() {
        let (a, b) = (Tensor::vector(&[0.3f64, -0.7, 0.9]), Tensor::vector(&[1.5f64, 0.2, -0.4]));
        check("Cross").input(a).input(b).gradient();
    }
}
