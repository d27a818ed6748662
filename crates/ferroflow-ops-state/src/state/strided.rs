//! Assigning to a strided slice of a variable.

use crate::prelude::*;
use ferroflow_op_kit::handle::Target;
use ferroflow_ops_array::array::strided_slice::{MASKS, SliceMasks, Slicing};

fn assign_slice(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (target, masks) = (Target::new(init, 0), SliceMasks::new(init)?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let variable = target.get(ctx)?;
        let (begin, end, strides) = (ctx.input(1)?, ctx.input(2)?, ctx.input(3)?);
        let value = ctx.input(4)?;
        variable.modify(|params| {
            ensure!(
                params.dtype() == value.dtype(),
                InvalidArgument,
                "l-value dtype {} does not match r-value dtype {}",
                params.dtype(),
                value.dtype()
            );
            let slicing = Slicing::new(params.shape(), begin, end, strides, masks)?;
            if slicing.shape().contains(&0) {
                return Ok(());
            }
            // Leading ones of the value beyond the slice's rank are dropped.
            let extra = value.rank().saturating_sub(slicing.shape().rank());
            let (ones, rest) = value.shape().split_at(extra);
            match ones.iter().all(|&d| d == 1) {
                true => slicing.assign(params, &value.clone().into_shape(rest)?),
                false => slicing.assign(params, value),
            }
        })?;
        target.pass_on(ctx, variable)
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    for is_ref in [true, false] {
        let op = match is_ref {
            true => c
                .op("StridedSliceAssign")
                .input("ref: Ref(T)")
                .output("output_ref: Ref(T)")
                .shape(shape::same_as_input),
            false => c
                .op("ResourceStridedSliceAssign")
                .input("ref: resource")
                .stateful()
                .shape(shape::unknown),
        };
        op.doc("Assigns to a strided slice of a variable.")
            .inputs(&["begin: Index", "end: Index", "strides: Index", "value: T"])
            .attr("T: type")
            .attr("Index: {int32, int64}")
            .attrs(&MASKS)
            .cpu(assign_slice)
            .anywhere()
            .host_inputs(&["begin", "end", "strides"]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Held;
    use super::*;
    use crate::testing::Check;

    fn on(held: &Held, bounds: [&[i32]; 3], value: Tensor) -> Check<'static> {
        let check = held.on(held.op("StridedSliceAssign", "ResourceStridedSliceAssign"));
        bounds.into_iter().fold(check, |c, b| c.input(Tensor::vector(b))).input(value)
    }

    fn vector() -> [Held; 2] {
        Held::both(Tensor::vector(&[1.0f32, 2.0, 3.0, 4.0, 5.0]))
    }

    #[test]
    fn slices_are_replaced() {
        for held in vector() {
            on(&held, [&[1], &[5], &[2]], Tensor::vector(&[9.0f32, 8.0])).run_values().unwrap();
            assert_eq!(held.value(), Tensor::vector(&[1.0f32, 9.0, 3.0, 8.0, 5.0]));
            on(&held, [&[0], &[-2], &[-1]], Tensor::scalar(7.0f32))
                .attr("begin_mask", 1)
                .run_values()
                .unwrap();
            assert_eq!(held.value(), Tensor::vector(&[1.0f32, 9.0, 3.0, 8.0, 7.0]));
            on(&held, [&[-3], &[0], &[1]], Tensor::scalar(6.0f32))
                .attr("shrink_axis_mask", 1)
                .run_values()
                .unwrap();
            assert_eq!(held.value(), Tensor::vector(&[1.0f32, 9.0, 6.0, 8.0, 7.0]));
            on(&held, [&[3], &[3], &[1]], Tensor::scalar(0.0f32)).run_values().unwrap();
            assert_eq!(held.value(), Tensor::vector(&[1.0f32, 9.0, 6.0, 8.0, 7.0]));
        }
    }

    #[test]
    fn masks_and_broadcasting_apply() {
        let held = Held::by_ref(Tensor::zeros(DType::Int32, [2, 2, 2]).unwrap());
        // v[..., newaxis, 1] = [[[1], [2]], [[3], [4]]]
        let value = Tensor::from_slice([2, 2, 1], &[1i32, 2, 3, 4]).unwrap();
        on(&held, [&[0, 0, 1], &[0, 0, 2], &[1, 1, 1]], value)
            .attr("ellipsis_mask", 1)
            .attr("new_axis_mask", 2)
            .attr("shrink_axis_mask", 4)
            .run_values()
            .unwrap();
        let want = Tensor::from_slice([2, 2, 2], &[0i32, 1, 0, 2, 0, 3, 0, 4]).unwrap();
        assert_eq!(held.value(), want);
        // v[1] = [5, 6], for both rows.
        on(&held, [&[1], &[0], &[1]], Tensor::vector(&[5i32, 6]))
            .attr("shrink_axis_mask", 1)
            .run_values()
            .unwrap();
        let want = Tensor::from_slice([2, 2, 2], &[0i32, 1, 0, 2, 5, 6, 5, 6]).unwrap();
        assert_eq!(held.value(), want);
    }

    #[test]
    fn bad_slices_are_refused() {
        for held in vector() {
            let fails = |bounds: [&[i32]; 3], value: Tensor, shrink: i64, text: &str| {
                on(&held, bounds, value)
                    .attr("shrink_axis_mask", shrink)
                    .fails(Code::InvalidArgument, text);
            };
            let one = || Tensor::scalar(9.0f32);
            fails(
                [&[0], &[2], &[1]],
                Tensor::vector(&[9.0f32, 8.0, 7.0]),
                0,
                "Cannot broadcast input shape [3] into final shape [2]",
            );
            fails([&[5], &[6], &[1]], one(), 1, "slice index 5 of dimension 0 out of bounds.");
            fails([&[0], &[6], &[0]], one(), 0, "strides[0] must be non-zero");
            fails(
                [&[0, 0], &[1, 1], &[1, 1]],
                one(),
                0,
                "Index out of range using input dim 1; input has only 1 dims",
            );
        }
    }
}
