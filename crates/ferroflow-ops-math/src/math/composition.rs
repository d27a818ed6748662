//! _UnaryOpsComposition: several element-wise functions, one after the other. TensorFlow's
//! optimizer makes it of chains of ops.

use super::fast::Fast;
use crate::prelude::*;
use ferroflow_op_kit::parallel::split_mut;

/// Elements that go through all functions before the next ones do.
const BLOCK: usize = 1024;

/// A function of single or double precision.
type Function<T> = fn(T) -> T;

macro_rules! functions {
    ($($t:ty),*) => {$(
        impl Composed for $t {
            fn function(name: &str) -> Option<Function<$t>> {
                Some(match name {
                    "Abs" => |x| x.abs(),
                    "Acos" => |x| x.acos(),
                    "Acosh" => |x| x.acosh(),
                    "Asin" => |x| x.asin(),
                    "Asinh" => |x| x.asinh(),
                    "Atan" => |x| x.atan(),
                    "Atanh" => |x| x.atanh(),
                    "Ceil" => |x| x.ceil(),
                    "Cos" => |x| x.cos(),
                    "Cosh" => |x| x.cosh(),
                    "Elu" => |x| if x < 0.0 { x.fast_exp_m1() } else { x },
                    "Exp" => |x| x.fast_exp(),
                    "Expm1" => |x| x.fast_exp_m1(),
                    "Floor" => |x| x.floor(),
                    "Inv" | "Reciprocal" => |x| 1.0 / x,
                    "Log" => |x| x.fast_ln(),
                    "Log1p" => |x| x.fast_ln_1p(),
                    "Neg" => |x| -x,
                    "Relu" => |x| Real::max(x, 0.0),
                    "Relu6" => |x| Real::min(Real::max(x, 0.0), 6.0),
                    "Rint" | "Round" => |x| x.round_ties_even(),
                    "Rsqrt" => |x| 1.0 / x.sqrt(),
                    "Selu" => |x| {
                        const SCALE: f64 = 1.050_700_987_355_480_5;
                        const SCALE_ALPHA: f64 = 1.758_099_340_847_376_8;
                        if x < 0.0 { SCALE_ALPHA as $t * x.fast_exp_m1() } else { SCALE as $t * x }
                    },
                    "Sigmoid" => |x| x.fast_sigmoid(),
                    "Sin" => |x| x.sin(),
                    "Sinh" => |x| x.sinh(),
                    "Sqrt" => |x| x.sqrt(),
                    "Square" => |x| x * x,
                    "Tan" => |x| x.tan(),
                    "Tanh" => |x| x.fast_tanh(),
                    _ => return None,
                })
            }
        }
    )*};
}
functions!(f32, f64);

/// Numbers that the functions are defined for.
trait Composed: Float {
    fn function(name: &str) -> Option<Function<Self>>;
}

struct Composition<T: Float> {
    functions: Vec<Function<T::Wide>>,
}

impl<T: Float<Wide: Composed>> Composition<T> {
    fn new(init: &KernelInit<'_>) -> Result<Self> {
        let names = init.byte_strings("op_names")?;
        ensure!(
            !names.is_empty(),
            InvalidArgument,
            "Unary op composition must have at least one op"
        );
        let mut functions = Vec::with_capacity(names.len());
        for name in &names {
            let name = String::from_utf8_lossy(name);
            let Some(function) = T::Wide::function(&name) else {
                bail!(InvalidArgument, "Do not have a compute function registered for op: {name}");
            };
            functions.push(function);
        }
        Ok(Composition { functions })
    }
}

impl<T: Float<Wide: Composed>> Kernel for Composition<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let mut out = ctx.take_or_copy(0)?;
        split_mut(out.as_mut_slice::<T>()?, 1, 4 * self.functions.len(), |_, part| {
            for block in part.chunks_mut(BLOCK) {
                for function in &self.functions {
                    // Half types are rounded after each function, as if it were an op.
                    block.iter_mut().for_each(|x| *x = T::narrow(function(x.wide())));
                }
            }
        });
        ctx.set(0, out)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("_UnaryOpsComposition")
        .doc("Several element-wise functions, one after the other.")
        .input("x: T")
        .output("y: T")
        .attr("T: {float, half, double}")
        .attr("op_names: list(string)")
        .shape(shape::same_as_input)
        .cpu(
            per_dtype!([Half f16, Float f32, Double f64], init, T => Composition::<T>::new(init)?),
        );
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;
    use ferroflow_graph::AttrList;

    #[test]
    fn functions_follow_each_other() {
        let op = |names: &[&str]| {
            let names: Vec<bytes::Bytes> =
                names.iter().map(|n| bytes::Bytes::from(n.to_string())).collect();
            check("_UnaryOpsComposition").attr("op_names", AttrList::Strs(names))
        };
        op(&["Abs", "Sqrt", "Neg"]).maps([4.0f32, -9.0], [-2.0, -3.0]);
        op(&["Square", "Relu6", "Inv"]).maps([2.0f64, 3.0], [0.25, 1.0 / 6.0]);
        // What TensorFlow gives.
        let want = [-0.823_733_5f32, 0.525_350_5, 2.101_402];
        let got = op(&["Elu", "Selu"]).input(Tensor::vector(&[-1f32, 0.5, 2.0])).run().unwrap();
        ferroflow_testing::assert_close(&got[0], &Tensor::vector(&want), 1e-6, 1e-6);
        let text = "Do not have a compute function registered for op: Nothing";
        op(&["Nothing"]).input(Tensor::scalar(1f32)).fails(Code::InvalidArgument, text);
    }
}
