//! Datasets and their elements. A dataset is the value of a variant tensor; iterating over it gives
//! [`Elements`], which are pulled one by one.

use super::scope::{MAX_LEVEL, Scope};
use super::task::{before_io, take_turn};
use crate::prelude::*;
use ferroflow_core::{MemoryOwner, Variant, VariantObject};
use ferroflow_graph::OpBuilder;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;

/// The components of one element.
pub(super) type Tuple = Vec<Tensor>;

/// The cardinality of an endless dataset.
pub(super) const INFINITE: i64 = -1;
/// The cardinality is unknown.
pub(super) const UNKNOWN: i64 = -2;

/// Describes a sequence of elements. It can be iterated over any number of times.
pub(super) trait Dataset: Send + Sync + 'static {
    /// Starts an iteration at the first element.
    fn iterate(&self, scope: &Scope) -> Result<Elements>;

    /// How many elements there are, or [`INFINITE`] or [`UNKNOWN`].
    fn cardinality(&self) -> i64 {
        UNKNOWN
    }

    /// What the dataset knows about its elements beyond the attributes of its op.
    fn refine(&self, _types: &mut ElementTypes) {}
}

/// The next element, later; `None` behind the last one.
pub(super) type Next<'a> = Pin<Box<dyn Future<Output = Result<Option<Tuple>>> + Send + 'a>>;

/// Produces the elements of one iteration.
///
/// A future that is dropped before it is ready may lose elements that it had pulled. The next call
/// continues behind them, also after an error.
pub(super) trait Produce: Send + 'static {
    fn next(&mut self) -> Next<'_>;
}

/// One iteration over a dataset. After the last element it returns `None` forever.
pub(super) struct Elements(Option<Box<dyn Produce>>);

impl Elements {
    pub fn new(of: impl Produce) -> Elements {
        Elements(Some(Box::new(of)))
    }

    /// The result of a function that need not wait.
    pub fn from_fn(next: impl FnMut() -> Result<Option<Tuple>> + Send + 'static) -> Elements {
        struct Source<F>(F);
        impl<F: FnMut() -> Result<Option<Tuple>> + Send + 'static> Produce for Source<F> {
            fn next(&mut self) -> Next<'_> {
                Box::pin(std::future::ready((self.0)()))
            }
        }
        Elements::new(Source(next))
    }

    /// The elements that a function reads from files. It runs on a thread that may block.
    pub fn from_files(next: impl FnMut() -> Result<Option<Tuple>> + Send + 'static) -> Elements {
        struct Source<F>(F);
        impl<F: FnMut() -> Result<Option<Tuple>> + Send + 'static> Produce for Source<F> {
            fn next(&mut self) -> Next<'_> {
                Box::pin(async {
                    before_io().await;
                    (self.0)()
                })
            }
        }
        Elements::new(Source(next))
    }

    /// No elements.
    pub fn none() -> Elements {
        Elements(None)
    }

    pub async fn next(&mut self) -> Result<Option<Tuple>> {
        take_turn().await;
        MemoryOwner::check_current()?;
        let Some(producer) = &mut self.0 else { return Ok(None) };
        let next = producer.next().await?;
        if next.is_none() {
            self.0 = None;
        }
        Ok(next)
    }
}

/// A dataset as the value of a tensor.
#[derive(Clone)]
pub(super) struct DatasetRef(Arc<Made>);

struct Made {
    dataset: Box<dyn Dataset>,
    types: ElementTypes,
    /// The depth of nested datasets that it consists of.
    depth: u32,
    /// Known once it was asked for. A dataset may have inputs that share inputs, to any depth, so
    /// no dataset asks its inputs twice.
    cardinality: OnceLock<i64>,
}

/// The dtypes and shapes of the components of its elements.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ElementTypes {
    pub dtypes: Vec<DType>,
    pub shapes: Vec<PartialShape>,
}

impl ElementTypes {
    /// From the attributes `output_types` (or `Toutput_types`) and `output_shapes`.
    pub fn from_attrs(init: &KernelInit<'_>) -> Result<ElementTypes> {
        let types = if init.contains("output_types") { "output_types" } else { "Toutput_types" };
        Ok(ElementTypes { dtypes: init.dtypes(types)?, shapes: init.shapes("output_shapes")? })
    }

    /// One scalar.
    pub fn scalar(dtype: DType) -> ElementTypes {
        ElementTypes { dtypes: vec![dtype], shapes: vec![PartialShape::scalar()] }
    }

    /// Fails with TensorFlow's message unless elements of `other` fit these types.
    pub fn admit(&self, other: &ElementTypes) -> Result<()> {
        ensure!(
            self.dtypes.len() == other.dtypes.len(),
            InvalidArgument,
            "Number of components does not match: expected {} types but got {}.",
            self.dtypes.len(),
            other.dtypes.len()
        );
        for (i, (a, b)) in self.dtypes.iter().zip(&other.dtypes).enumerate() {
            ensure!(
                a == b,
                InvalidArgument,
                "Data type mismatch at component {i}: expected {a} but got {b}."
            );
        }
        ensure!(
            self.shapes.len() == other.shapes.len(),
            InvalidArgument,
            "Number of components does not match: expected {} shapes but got {}.",
            self.shapes.len(),
            other.shapes.len()
        );
        for (i, (a, b)) in self.shapes.iter().zip(&other.shapes).enumerate() {
            ensure!(
                a.merge(b).is_ok(),
                InvalidArgument,
                "Incompatible shapes at component {i}: expected {a} but got {b}."
            );
        }
        Ok(())
    }
}

impl ElementTypes {
    /// Checks the types of an element: a function may return others than its dataset declared.
    pub fn admit_element(&self, element: &[Tensor]) -> Result<()> {
        super::iterator::check_components(element, &self.dtypes)?;
        for (i, (t, shape)) in element.iter().zip(&self.shapes).enumerate() {
            ensure!(
                shape.admits(t.shape()),
                InvalidArgument,
                "Incompatible shapes at component {i}: expected {shape} but got {}.",
                t.shape()
            );
        }
        Ok(())
    }
}

impl VariantObject for DatasetRef {
    fn type_name(&self) -> &str {
        "tensorflow::DatasetVariantWrapper"
    }
}

impl DatasetRef {
    pub fn new(
        dataset: impl Dataset,
        types: ElementTypes,
        inputs: &[&DatasetRef],
    ) -> Result<DatasetRef> {
        let depth = inputs.iter().map(|d| d.0.depth + 1).max().unwrap_or(0);
        DatasetRef::nested(Box::new(dataset), types, depth)
    }

    fn nested(dataset: Box<dyn Dataset>, types: ElementTypes, depth: u32) -> Result<DatasetRef> {
        ensure!(depth < MAX_LEVEL, InvalidArgument, "datasets are nested deeper than {MAX_LEVEL}");
        let mut types = types;
        dataset.refine(&mut types);
        Ok(DatasetRef(Arc::new(Made { dataset, types, depth, cardinality: OnceLock::new() })))
    }

    /// The dataset that a tensor holds.
    pub fn of(t: &Tensor) -> Result<&DatasetRef> {
        let found = match (t.rank(), t.variants()) {
            (0, Ok([one])) => one.get::<DatasetRef>(),
            _ => bail!(InvalidArgument, "Dataset tensor must be a scalar of dtype DT_VARIANT."),
        };
        found.ok_or_else(|| err!(InvalidArgument, "Tensor must be a Dataset object."))
    }

    pub fn into_tensor(self) -> Tensor {
        Tensor::variant(Variant::new(self))
    }

    pub fn iterate(&self, scope: &Scope) -> Result<Elements> {
        // Inputs that share inputs have an iterator for each use: any number of them.
        MemoryOwner::check_current()?;
        scope.check_cancelled()?;
        self.0.dataset.iterate(&scope.deeper()?)
    }

    pub fn cardinality(&self) -> i64 {
        *self.0.cardinality.get_or_init(|| self.0.dataset.cardinality())
    }

    pub fn types(&self) -> &ElementTypes {
        &self.0.types
    }
}

/// The kernel of an op that makes a dataset out of its inputs, of the types its attributes say.
pub(super) fn makes<D: Dataset>(
    init: &KernelInit<'_>,
    make: impl Fn(&mut Ctx<'_>) -> Result<D> + Send + Sync + 'static,
) -> Result<KernelBox> {
    makes_typed(ElementTypes::from_attrs(init)?, make)
}

/// The kernel of an op that makes a dataset of these types out of its inputs.
pub(super) fn makes_typed<D: Dataset>(
    types: ElementTypes,
    make: impl Fn(&mut Ctx<'_>) -> Result<D> + Send + Sync + 'static,
) -> Result<KernelBox> {
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let depth = input_depth(ctx);
        let dataset = make(ctx)?;
        let made = DatasetRef::nested(Box::new(dataset), types.clone(), depth)?;
        ctx.set(0, made.into_tensor())
    }))
}

/// The depth of a dataset made from this node's inputs, including captured ones.
fn input_depth(ctx: &Ctx<'_>) -> u32 {
    let depth = |t: &Tensor| {
        let all = t.variants().unwrap_or_default();
        all.iter().filter_map(|v| v.get::<DatasetRef>()).map(|d| d.0.depth + 1).max()
    };
    (0..ctx.num_inputs()).filter_map(|i| depth(ctx.input(i).ok()?)).max().unwrap_or(0)
}

/// The dataset in input `i`.
pub(super) fn input(ctx: &Ctx<'_>, i: usize) -> Result<DatasetRef> {
    DatasetRef::of(ctx.input(i)?).cloned()
}

/// The number or bool in scalar input `i`, which messages call `name`.
pub(super) fn scalar<T: ferroflow_core::Element>(ctx: &Ctx<'_>, i: usize, name: &str) -> Result<T> {
    let t = ctx.input(i)?;
    ensure!(t.rank() == 0, InvalidArgument, "{name} must be a scalar");
    t.scalar_value()
}

/// The text in scalar input `i`.
pub(super) fn text(ctx: &Ctx<'_>, i: usize, name: &str) -> Result<String> {
    let t = ctx.input(i)?;
    ensure!(t.rank() == 0, InvalidArgument, "{name} must be a scalar");
    Ok(String::from_utf8_lossy(t.scalar_string()?).into_owned())
}

/// The declarations that most ops that make datasets share.
pub(super) trait DatasetOp {
    /// Declares the output. The op is never folded or merged, because it may read files.
    fn makes_dataset(self) -> Self;
    /// The attributes for the types of the elements.
    fn element_types(self) -> Self;
    fn metadata_attr(self) -> Self;
}

impl DatasetOp for OpBuilder<'_> {
    fn makes_dataset(self) -> Self {
        self.output("handle: variant").shape(shape::scalar).role(OpRole::Outside)
    }

    fn element_types(self) -> Self {
        self.attr("output_types: list(type) >= 1").attr("output_shapes: list(shape) >= 1")
    }

    fn metadata_attr(self) -> Self {
        self.attr("metadata: string = ''")
    }
}
