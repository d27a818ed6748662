//! Functions with a state: ScanDataset, and ReduceDataset, which returns only the last state.

use super::dataset::*;
use super::function::Captured;
use super::iterator::{check_components, component_shapes};
use super::map::mapped;
use super::scope::Scope;
use super::task::run_kernel;
use crate::prelude::*;

struct Scan {
    types: ElementTypes,
    input: DatasetRef,
    f: Captured,
    state: Tuple,
    preserve_cardinality: bool,
}

impl Dataset for Scan {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(Scanning {
            types: self.types.clone(),
            input: self.input.iterate(scope)?,
            f: self.f.clone(),
            scope: scope.clone(),
            state: self.state.clone(),
            preserve_cardinality: self.preserve_cardinality,
        }))
    }

    fn cardinality(&self) -> i64 {
        if self.preserve_cardinality { self.input.cardinality() } else { UNKNOWN }
    }
}

struct Scanning {
    types: ElementTypes,
    input: Elements,
    f: Captured,
    scope: Scope,
    state: Tuple,
    preserve_cardinality: bool,
}

impl Produce for Scanning {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            let Some(element) = self.input.next().await? else { return Ok(None) };
            let mut args = self.state.clone();
            args.extend(element);
            let result = self.f.call(&self.scope, args).await;
            let Some(mut result) = mapped(result, self.preserve_cardinality)? else {
                return Ok(None);
            };
            let n = self.state.len();
            ensure!(
                result.len() >= n,
                InvalidArgument,
                "`f` gave {} results, expected {n} for the state and more for the element",
                result.len()
            );
            let element = result.split_off(n);
            let dtypes: Vec<DType> = self.state.iter().map(Tensor::dtype).collect();
            check_components(&result, &dtypes)?;
            self.state = result;
            self.types.admit_element(&element)?;
            Ok(Some(element))
        })
    }
}

fn scan(init: &KernelInit<'_>) -> Result<KernelBox> {
    let f = Arc::new(init.function("f")?);
    let states = init.dtypes("Tstate")?.len();
    let preserve_cardinality = init.bool("preserve_cardinality")?;
    let types = ElementTypes::from_attrs(init)?;
    makes(init, move |ctx| {
        let n = ctx.num_inputs();
        let state: Result<Tuple> = (1..1 + states).map(|i| ctx.take(i)).collect();
        Ok(Scan {
            types: types.clone(),
            input: input(ctx, 0)?,
            state: state?,
            f: Captured::from_inputs(&f, ctx, 1 + states..n)?,
            preserve_cardinality,
        })
    })
}

struct Reduce {
    f: Arc<FunctionHandle>,
    states: usize,
    dtypes: Vec<DType>,
}

impl AsyncKernel for Reduce {
    fn start(&self, mut ctx: AsyncCtx, done: Done, on: &InlineScope) {
        let parts = (|| {
            let (n, scope) = (ctx.inputs.len(), Scope::within(&ctx.step));
            let elements = DatasetRef::of(ctx.input(0)?)?.iterate(&scope)?;
            let state = ctx.take_inputs(1..1 + self.states)?;
            let f = Captured::new(&self.f, ctx.take_inputs(1 + self.states..n)?);
            Ok((elements, f, state, scope))
        })();
        let (mut elements, f, mut state, scope) = match parts {
            Ok(parts) => parts,
            Err(e) => return done.fail(e),
        };
        let dtypes = self.dtypes.clone();
        run_kernel(&ctx.step, None, on, done, async move {
            while let Some(element) = elements.next().await? {
                let mut args = state;
                args.extend(element);
                state = match f.call(&scope, args).await {
                    Err(e) if e.code() == Code::OutOfRange => bail!(
                        InvalidArgument,
                        "Function invocation produced OutOfRangeError: {}",
                        e.message()
                    ),
                    result => result?,
                };
                check_components(&state, &dtypes)?;
            }
            Ok(state)
        });
    }
}

/// The function, and the types of its state and of its other arguments.
const SCAN_ATTRS: [&str; 3] = ["f: func", "Tstate: list(type) >= 1", "Targuments: list(type) >= 0"];

/// The dataset, the state, and other arguments of the function.
const SCAN_INPUTS: [&str; 3] =
    ["input_dataset: variant", "initial_state: Tstate", "other_arguments: Targuments"];

pub(crate) fn register(c: &mut Catalog) {
    for op in ["ScanDataset", "ExperimentalScanDataset"] {
        let b = c
            .op(op)
            .doc("A dataset of what `f` makes of each element and of a state it carries along.")
            .inputs(&SCAN_INPUTS)
            .makes_dataset()
            .attrs(&SCAN_ATTRS)
            .element_types()
            .attr("preserve_cardinality: bool = false")
            .cpu(scan);
        if op == "ScanDataset" {
            drop(b.attr("use_default_device: bool = true").metadata_attr());
        }
    }
    c.op("ReduceDataset")
        .doc("What `f` makes of a state and all elements, one after the other.")
        .inputs(&SCAN_INPUTS)
        .output("components: output_types")
        .attrs(&SCAN_ATTRS)
        .element_types()
        .attr("use_inter_op_parallelism: bool = true")
        .metadata_attr()
        .stateful()
        .expensive()
        .shape(component_shapes)
        .waits()
        .cpu(|init| {
            Ok(KernelBox::new_async(Reduce {
                f: Arc::new(init.function("f")?),
                states: init.dtypes("Tstate")?.len(),
                dtypes: init.dtypes("output_types")?,
            }))
        });
    c.no_gradient(&["ReduceDataset"]);
}
