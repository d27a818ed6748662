//! XlaDot, XlaDotV2, XlaEinsum: products that contract any dimensions.

use super::{check_dimensions, dimension_numbers};
use crate::linalg::einsum::{einsum, einsum_gradient, einsum_shape};
use crate::linalg::gemm::Product;
use crate::math::cast::cast_to;
use crate::prelude::*;
use std::marker::PhantomData;

/// Which dimensions of the operands are summed over, and which both have in common.
#[derive(Debug)]
struct Dimensions {
    contracting: [Vec<usize>; 2],
    batch: [Vec<usize>; 2],
}

impl Dimensions {
    fn new(attrs: &Attrs) -> Result<Dimensions> {
        let [_, lhs_contracting, rhs_contracting, lhs_batch, rhs_batch] =
            dimension_numbers::<5>(attrs)?;
        ensure!(
            lhs_contracting.len() == rhs_contracting.len() && lhs_batch.len() == rhs_batch.len(),
            InvalidArgument,
            "dimension_numbers must name as many dimensions of one operand as of the other"
        );
        Ok(Dimensions {
            contracting: [lhs_contracting, rhs_contracting],
            batch: [lhs_batch, rhs_batch],
        })
    }

    /// The dimensions of operand `which` that only it has.
    fn free(&self, which: usize, rank: usize) -> Result<Vec<usize>> {
        let named = [self.batch[which].as_slice(), &self.contracting[which]].concat();
        check_dimensions("dimension_numbers", &named, rank)?;
        Ok((0..rank).filter(|d| !named.contains(d)).collect())
    }

    /// The equation of the product, with a letter for each dimension.
    fn equation(&self, ranks: [usize; 2]) -> Result<String> {
        let mut letters = ('A'..='Z').chain('a'..='z').chain('\u{100}'..);
        let mut names = [vec!['?'; ranks[0]], vec!['?'; ranks[1]]];
        let mut output = String::new();
        let free = [self.free(0, ranks[0])?, self.free(1, ranks[1])?];
        let mut letter = || letters.next().ok_or_else(|| err!(Internal, "too many dimensions"));
        for (pairs, is_kept) in [(&self.batch, true), (&self.contracting, false)] {
            for (&l, &r) in pairs[0].iter().zip(&pairs[1]) {
                let name = letter()?;
                (names[0][l], names[1][r]) = (name, name);
                if is_kept {
                    output.push(name);
                }
            }
        }
        for (which, free) in free.iter().enumerate() {
            for &d in free {
                let name = letter()?;
                names[which][d] = name;
                output.push(name);
            }
        }
        let text = |names: &[char]| names.iter().collect::<String>();
        Ok(format!("{},{}->{output}", text(&names[0]), text(&names[1])))
    }
}

/// The operands are converted to the type of the output before they are multiplied.
struct Dot<T> {
    dims: Dimensions,
    marker: PhantomData<T>,
}

impl<T: Product> Kernel for Dot<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (lhs, rhs) = (ctx.input(0)?, ctx.input(1)?);
        let equation = self.dims.equation([lhs.rank(), rhs.rank()])?;
        let (lhs, rhs) = (cast_to(lhs, T::DTYPE)?, cast_to(rhs, T::DTYPE)?);
        let out = einsum::<T>(&equation, &[&lhs, &rhs])?;
        ctx.set(0, out)
    }
}

fn dot_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let dims = Dimensions::new(c.attrs)?;
    let (lhs, rhs) = (c.input(0), c.input(1));
    let (Some(l), Some(r)) = (lhs.rank(), rhs.rank()) else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let (free_l, free_r) = (dims.free(0, l)?, dims.free(1, r)?);
    let batch = dims.batch[0].iter().zip(&dims.batch[1]);
    let batch = batch.map(|(&l, &r)| lhs.dim(l).or(rhs.dim(r)));
    let free_l = free_l.iter().map(|&d| lhs.dim(d));
    let free_r = free_r.iter().map(|&d| rhs.dim(d));
    Ok(vec![PartialShape::new(batch.chain(free_l).chain(free_r))])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("XlaDot")
        .doc("The product of two tensors over any of their dimensions.")
        .input("lhs: T")
        .input("rhs: T")
        .output("output: T")
        .attr("T: numbertype")
        .attr("dimension_numbers: string")
        .attr("precision_config: string")
        .expensive()
        .shape(dot_shape)
        .cpu(per_dtype!([Half f16, BFloat16 bf16, Float f32, Double f64, Int16 i16, Int32 i32,
                Int64 i64, Complex64 Complex32, Complex128 Complex64], init, T => {
            Dot::<T> { dims: Dimensions::new(init)?, marker: PhantomData }
        }));
    c.op("XlaDotV2")
        .doc("The product of two tensors over any of their dimensions, in a given dtype.")
        .input("lhs: LhsT")
        .input("rhs: RhsT")
        .output("output: preferred_element_type")
        .attr("LhsT: numbertype")
        .attr("RhsT: numbertype")
        .attr("dimension_numbers: string")
        .attr("precision_config: string")
        .attr("preferred_element_type: numbertype")
        .expensive()
        .shape(dot_shape)
        .cpu(per_dtype!([Half f16, BFloat16 bf16, Float f32, Double f64, Int16 i16, Int32 i32,
                Int64 i64, Complex64 Complex32, Complex128 Complex64], "preferred_element_type", init, T => {
            Dot::<T> { dims: Dimensions::new(init)?, marker: PhantomData }
        }));
    c.op("XlaEinsum")
        .doc("Einsum of two tensors.")
        .input("a: T")
        .input("b: T")
        .output("product: T")
        .attr("equation: string")
        .attr("T: {complex64, bfloat16, float}")
        .expensive()
        .shape(einsum_shape)
        .cpu(per_dtype!([Complex64 Complex32, BFloat16 bf16, Float f32], init, T => {
            let equation = init.string("equation")?;
            move |ctx: &mut Ctx<'_>| {
                let out = einsum::<T>(&equation, &ctx.inputs(0..2)?)?;
                ctx.set(0, out)
            }
        }));
    c.gradient("XlaEinsum", einsum_gradient);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;
    use ferroflow_op_kit::protobuf::Message;

    #[test]
    fn contradicting_dimension_numbers_are_refused() {
        for (lhs, rhs, text) in [
            (vec![1u64], vec![0u64, 1], "must name as many dimensions"),
            (vec![2], vec![0], "there is no dimension 2 of 2"),
            (vec![1, 1], vec![0, 0], "dimension 1 occurs twice"),
        ] {
            let mut numbers = Message::new();
            for (field, dims) in [(1, lhs), (2, rhs)] {
                for d in dims {
                    numbers.varint(field, d);
                }
            }
            check("XlaDot")
                .attr("dimension_numbers", AttrBytes(numbers))
                .attr("precision_config", "")
                .input(Tensor::from_slice([2, 2], &[1f32; 4]).unwrap())
                .input(Tensor::from_slice([2, 2], &[1f32; 4]).unwrap())
                .fails(Code::InvalidArgument, text);
        }
    }

    /// The bytes of a message as an attribute.
    struct AttrBytes(Message);
    impl From<AttrBytes> for ferroflow_graph::AttrValue {
        fn from(message: AttrBytes) -> Self {
            ferroflow_graph::AttrValue::Str(message.0.into_bytes().into())
        }
    }

    #[test]
    fn einsum_has_a_gradient() {
        check("XlaEinsum")
            .attr("equation", "ab,bc->ac")
            .input(Tensor::from_slice([2, 2], &[1f32, 2.0, 3.0, 4.0]).unwrap())
            .input(Tensor::from_slice([2, 1], &[0.5f32, -1.0]).unwrap())
            .gradient();
    }
}
