//! InitializeTableFromDataset.

use super::dataset::*;
use super::scope::Scope;
use super::task::run_kernel;
use crate::prelude::*;
use ferroflow_op_kit::pack::concat;
use ferroflow_ops_state::table::{Table, check_fixed};

/// The tensors of one component of all elements, as a vector.
fn joined(parts: &[Tensor]) -> Result<Tensor> {
    let flat: Result<Vec<Tensor>> =
        parts.iter().map(|t| t.reshape(Shape::vector(t.elements()))).collect();
    let dtype = parts.first().map_or(DType::Int64, Tensor::dtype);
    concat(dtype, &Shape::scalar(), flat?.iter())
}

fn fill(ctx: AsyncCtx, done: Done, on: &InlineScope) {
    let scope = Scope::within(&ctx.step);
    let found = (|| {
        let handle = ctx.handle(0)?;
        let table: Arc<Table> = ctx.step.resources.lookup(&handle.container, &handle.name)?;
        check_fixed(&table)?;
        let dataset = DatasetRef::of(ctx.input(1)?)?;
        let dtypes = &dataset.types().dtypes;
        let [key, value] = table.dtypes();
        ensure!(
            *dtypes == [key, value],
            InvalidArgument,
            "Dataset should have two output types (for key and value): {key} and {value}, not {dtypes:?}"
        );
        Ok((table, dataset.iterate(&scope)?))
    })();
    let (table, mut elements) = match found {
        Ok(found) => found,
        Err(e) => return done.fail(e),
    };
    run_kernel(&ctx.step, None, on, done, async move {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        while let Some(element) = elements.next().await? {
            let Ok([key, value]) = <[Tensor; 2]>::try_from(element) else {
                bail!(InvalidArgument, "an element of the dataset is not a key and a value");
            };
            ensure!(
                key.elements() == value.elements(),
                InvalidArgument,
                "keys and values of an element do not go together: {} and {}",
                key.shape(),
                value.shape()
            );
            keys.push(key);
            values.push(value);
        }
        table.replace(&joined(&keys)?, &joined(&values)?)?;
        Ok(Vec::new())
    });
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("InitializeTableFromDataset")
        .doc("Fills a table with the keys and values that are the elements of a dataset.")
        .input("table_handle: resource")
        .input("dataset: variant")
        .stateful()
        .expensive()
        .shape(shape::unknown)
        .waits()
        .cpu(|_| Ok(KernelBox::new_async(fill)));
}
