//! MapDefun: a function of each row of its arguments.

use super::batch::stack;
use super::function::Captured;
use super::scope::Scope;
use super::task::{run_kernel, take_turn};
use crate::prelude::*;
use ferroflow_core::MemoryOwner;

struct MapDefun {
    function: Arc<FunctionHandle>,
    /// How many inputs are cut into rows; the others are captured.
    arguments: usize,
    dtypes: Vec<DType>,
    shapes: Vec<PartialShape>,
}

/// The length of the first dimension, which all arguments share.
fn rows(arguments: &[Tensor]) -> Result<usize> {
    let mut rows = None;
    for (i, t) in arguments.iter().enumerate() {
        let Some(&first) = t.shape().first() else {
            bail!(
                InvalidArgument,
                "All inputs must have rank at least 1. Input {i} has a rank of 0"
            );
        };
        ensure!(
            *rows.get_or_insert(first) == first,
            InvalidArgument,
            "All inputs must have the same dimension 0. Input {i} has leading dimension {first}, \
             while all previous inputs have leading dimension {}",
            rows.unwrap_or(0)
        );
    }
    rows.ok_or_else(|| err!(InvalidArgument, "Must have at least one input to map over."))
}

impl AsyncKernel for MapDefun {
    fn start(&self, mut ctx: AsyncCtx, done: Done, scope: &InlineScope) {
        let n = ctx.inputs.len();
        let taken = ctx.take_inputs(0..self.arguments).and_then(|arguments| {
            let captured = ctx.take_inputs(self.arguments..n)?;
            Ok((rows(&arguments)?, arguments, captured))
        });
        let (rows, arguments, captured) = match taken {
            Ok(taken) => taken,
            Err(e) => return done.fail(e),
        };
        let f = Captured::new(&self.function, captured);
        let calls = Scope::within(&ctx.step);
        let (dtypes, shapes) = (self.dtypes.clone(), self.shapes.clone());
        run_kernel(&ctx.step, None, scope, done, async move {
            let mut results = Vec::new();
            for i in 0..rows {
                take_turn().await;
                MemoryOwner::check_current()?;
                let row: Result<Vec<Tensor>> = arguments.iter().map(|t| t.row(i)).collect();
                let result = f.call(&calls, row?).await?;
                for (t, want) in result.iter().zip(&shapes) {
                    ensure!(
                        want.admits(t.shape()),
                        InvalidArgument,
                        "Mismatch in function retval shape, {}, and expected output shape, {want}.",
                        t.shape()
                    );
                }
                results.push(result);
            }
            if rows > 0 {
                return stack(results);
            }
            let pairs = dtypes.into_iter().zip(&shapes);
            pairs.map(|(dtype, shape)| none_of(dtype, shape)).collect()
        });
    }
}

/// No results of a function.
fn none_of(dtype: DType, shape: &PartialShape) -> Result<Tensor> {
    let Some(shape) = shape.known() else {
        bail!(InvalidArgument, "of no rows, the shapes of results must be known, got {shape}");
    };
    Tensor::alloc(dtype, ferroflow_op_kit::pack::with_rows(0, shape.dims()))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("MapDefun")
        .doc("A function of each row of its arguments.")
        .input("arguments: Targuments")
        .input("captured_inputs: Tcaptured")
        .output("output: output_types")
        .attr("Targuments: list(type) >= 1")
        .attr("Tcaptured: list(type) >= 0 = []")
        .attr("output_types: list(type) >= 1")
        .attr("output_shapes: list(shape) >= 1")
        .attr("f: func")
        .attr("max_intra_op_parallelism: int = 1")
        .expensive()
        .waits()
        .shape(|c| {
            let rows = c.input(0).dim(0);
            let with_rows = |shape: PartialShape| match shape.dims() {
                Some(dims) => PartialShape::new(std::iter::once(rows).chain(dims.iter().copied())),
                None => PartialShape::unknown(),
            };
            Ok(c.attrs.shapes("output_shapes")?.into_iter().map(with_rows).collect())
        })
        .cpu(|init| {
            Ok(KernelBox::new_async(MapDefun {
                function: Arc::new(init.function("f")?),
                arguments: init.dtypes("Targuments")?.len(),
                dtypes: init.dtypes("output_types")?,
                shapes: init.shapes("output_shapes")?,
            }))
        });
}
