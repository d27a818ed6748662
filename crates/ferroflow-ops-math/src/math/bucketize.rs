//! Bucketize.

use crate::prelude::*;
use ferroflow_op_kit::gpu::{GpuTypes, elementwise::Elementwise};
use ferroflow_op_kit::parallel::split_mut;

/// For each element, the number of boundaries that are not greater.
fn bucketize<T: Real>(ctx: &mut Ctx<'_>, boundaries: &[f64]) -> Result<()> {
    let x = ctx.input(0)?;
    let mut out = ctx.alloc(DType::Int32, x.shape().clone())?;
    let from = x.as_slice::<T>()?;
    split_mut(out.as_mut_slice::<i32>()?, 1, 10, |first, part| {
        for (to, x) in part.iter_mut().zip(&from[first..]) {
            let x = x.to_f64();
            // NaN is below none of them, so it goes into the last bucket.
            *to = boundaries.partition_point(|b| *b <= x || x.is_nan()) as i32;
        }
    });
    ctx.set(0, out)
}

const ON_GPU: GpuTypes = &[("T", &[DType::Int64, DType::Float, DType::Double])];

/// The same on a GPU. The boundaries are in the kernel's text.
fn on_gpu(init: &KernelInit<'_>) -> Result<KernelBox> {
    let boundaries = init.floats("boundaries")?;
    ensure!(boundaries.is_sorted(), InvalidArgument, "Expected sorted boundaries");
    let bits: Vec<String> = boundaries.iter().map(|b| format!("{:#x}u", b.to_bits())).collect();
    let formula = format!(
        "[](f64 v) {{ const u32 all[] = {{{}, 0}}; i32 n = 0; while (n < {} && !(v < \
         (f64)from_bits(all[n]))) n++; return n; }}((f64)x)",
        if bits.is_empty() { "0".into() } else { bits.join(", ") },
        bits.len()
    );
    Ok(KernelBox::new(Elementwise::new(init, formula)?))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Bucketize")
        .doc("The numbers of the buckets that elements fall into, given their boundaries.")
        .input("input: T")
        .output("output: int32")
        .attr("T: {int32, int64, float, double}")
        .attr("boundaries: list(float)")
        .shape(shape::same_as_input)
        .gpu(ON_GPU, on_gpu)
        .cpu(per_dtype!([Int32 i32, Int64 i64, Float f32, Double f64], init, T => {
            let boundaries: Vec<f64> =
                init.floats("boundaries")?.into_iter().map(f64::from).collect();
            ensure!(
                boundaries.is_sorted(),
                InvalidArgument,
                "Expected sorted boundaries"
            );
            move |ctx: &mut Ctx<'_>| bucketize::<T>(ctx, &boundaries)
        }));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};
    use ferroflow_graph::AttrList;

    fn on(boundaries: &[f32], x: Tensor) -> Check<'static> {
        check("Bucketize").attr("boundaries", AttrList::Floats(boundaries.to_vec())).input(x)
    }

    #[test]
    fn elements_find_their_bucket() {
        let x = Tensor::vector(&[-5.0f32, 0.0, 9.9, 10.0, 200.0, f32::NAN]);
        on(&[0.0, 10.0, 100.0], x).gives(Tensor::vector(&[0, 1, 1, 2, 3, 3]));
        on(&[0.0, 10.0], Tensor::vector(&[-1i64, 10])).gives(Tensor::vector(&[0, 2]));
        on(&[], Tensor::scalar(1.0f64)).gives(Tensor::scalar(0));
    }

    #[test]
    fn boundaries_are_sorted() {
        on(&[1.0, 0.0], Tensor::scalar(1.0f32))
            .fails(Code::InvalidArgument, "Expected sorted boundaries");
    }
}
