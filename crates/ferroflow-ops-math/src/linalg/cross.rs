//! Cross.

use crate::prelude::*;
use ferroflow_op_kit::gpu::{self, GpuKernel, address, c_type, length};

/// Checks that both are vectors of three, along the last dimension.
fn checked(a: &Tensor, b: &Tensor) -> Result<()> {
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
    Ok(())
}

/// Cross products of vectors of three along the last dimension.
fn cross<T: Num>(ctx: &mut Ctx<'_>) -> Result<()> {
    let (a, b) = (ctx.input(0)?, ctx.input(1)?);
    checked(a, b)?;
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

const TEXT: &str = r#"
extern "C" __global__ void cross(i64 n, const T *x, const T *y, T *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 first = i / 3 * 3, j = first + (i + 1) % 3, k = first + (i + 2) % 3;
        // The products are rounded, as those of the processor are.
        T a = Narrow<T>::from(wide(x[j]) * wide(y[k])), b = Narrow<T>::from(wide(x[k]) * wide(y[j]));
        out[i] = Narrow<T>::from(wide(a) - wide(b));
    }
}
"#;

fn on_gpu(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("T")?;
    let text = format!("typedef {} T;\n{TEXT}", c_type(dtype)?);
    let kernel = GpuKernel::new(text, "cross").prepared(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (a, b) = (ctx.input(0)?, ctx.input(1)?);
        checked(a, b)?;
        let gpu = ctx.gpu()?.clone();
        let out = Tensor::on_device(&gpu, dtype, a.shape().clone())?;
        let n = out.elements();
        kernel.over(gpu.as_ref(), n, &[length(n), address(a)?, address(b)?, address(&out)?])?;
        ctx.set(0, out)
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Cross")
        .doc("Cross products of vectors of three.")
        .input("a: T")
        .input("b: T")
        .output("product: T")
        .attr("T: realnumbertype")
        .shape(shape::merged_inputs)
        .gpu(gpu::REAL, on_gpu)
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
