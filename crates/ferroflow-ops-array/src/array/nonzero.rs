//! Where.

use crate::prelude::*;

fn nonzero<T: Element>(ctx: &mut Ctx<'_>) -> Result<()> {
    let x = ctx.input(0)?;
    ensure!(x.rank() > 0, InvalidArgument, "WhereOp : Unhandled input dimensions: 0");
    let (rank, values) = (x.rank(), x.as_slice::<T>()?);
    let count = values.iter().filter(|v| **v != T::default()).count();
    let mut out = ctx.alloc(DType::Int64, [count, rank])?;
    let mut rows = out.as_mut_slice::<i64>()?.chunks_exact_mut(rank);
    let strides = x.shape().strides();
    for (at, _) in values.iter().enumerate().filter(|(_, v)| **v != T::default()) {
        let Some(row) = rows.next() else { break };
        let mut rest = at;
        for (to, stride) in row.iter_mut().zip(&strides) {
            *to = (rest / stride) as i64;
            rest %= stride;
        }
    }
    ctx.set(0, out)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Where")
        .doc("Where a tensor is true, or not zero: one row of coordinates for each such element.")
        .input("input: T")
        .output("index: int64")
        .attr("T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, bool} = DT_BOOL")
        .shape(|c| Ok(vec![PartialShape::new([None, c.input(0).rank()])]))
        .cpu(per_dtype!([Bool bool, Half f16, BFloat16 bf16, Float f32, Double f64, Int8 i8,
            Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64,
            Complex64 Complex32, Complex128 Complex64], T => nonzero::<T>));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn coordinates_come_in_order() {
        check("Where")
            .input(Tensor::from_slice([2, 2], &[0.0f32, 1.0, f32::NAN, -0.0]).unwrap())
            .gives(Tensor::from_slice([2, 2], &[0i64, 1, 1, 0]).unwrap());
        check("Where")
            .input(Tensor::vector(&[true, false, true]))
            .gives(Tensor::from_slice([2, 1], &[0i64, 2]).unwrap());
        check("Where")
            .input(Tensor::zeros(DType::Bool, [0, 2]).unwrap())
            .gives(Tensor::zeros(DType::Int64, [0, 2]).unwrap());
        check("Where")
            .input(Tensor::vector(&[Complex32::new(0.0, 1.0)]))
            .gives(Tensor::from_slice([1, 1], &[0i64]).unwrap());
    }

    #[test]
    fn a_scalar_has_no_coordinates() {
        check("Where")
            .input(Tensor::scalar(true))
            .fails(Code::InvalidArgument, "WhereOp : Unhandled input dimensions: 0");
    }
}
