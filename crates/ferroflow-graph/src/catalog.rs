//! The catalog: the ops a session knows, and how they are declared.

use crate::op_def::{
    ArgDef, AttrDef, CallKind, ControlFlow, FlopsFn, KernelFn, MakeBlockKernel, OpCost, OpDef,
    OpMoves, OpRole, WorkFn,
};
use crate::passes::PrecisionClass;
use crate::{
    GpuFormula, GpuFuser, GpuMover, GpuRows, GpuSupport, GpuTypes, GradientScope, KernelInit,
    OpGradient, ShapeCtx, Term, signature,
};
use ferroflow_core::{KernelBox, PartialShape, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Ops by name. It is a value that a session gets, not a global registry: a test can make one with
/// three ops.
#[derive(Clone, Default)]
pub struct Catalog {
    ops: BTreeMap<String, Arc<OpDef>>,
    gpu_fuser: Option<GpuFuser>,
    gpu_mover: Option<GpuMover>,
}

impl Catalog {
    /// A catalog without ops.
    pub fn new() -> Catalog {
        Catalog::default()
    }

    /// Declares an op; the declaration is complete when the builder is dropped.
    ///
    /// Panics if the declaration does not parse or the name is declared twice. Both are bugs in the
    /// program, and every start and every test would hit them.
    #[track_caller]
    pub fn op<'c>(&'c mut self, name: &str) -> OpBuilder<'c> {
        let source = std::panic::Location::caller().file();
        OpBuilder { catalog: self, def: OpDef { source, ..OpDef::named(name) } }
    }

    /// Declares the gradient of an op that is already declared; see [`OpBuilder::gradient`].
    pub fn gradient(
        &mut self,
        op: &str,
        make: impl for<'g> Fn(&GradientScope<'g>, &[Term<'g>]) -> Result<Vec<Term<'g>>>
        + Send
        + Sync
        + 'static,
    ) {
        self.set_gradient(op, OpGradient::Function(Arc::new(make)));
    }

    /// Declares that gradients stop at these ops; see [`OpBuilder::no_gradient`].
    pub fn no_gradient(&mut self, ops: &[&str]) {
        for op in ops {
            self.set_gradient(op, OpGradient::Stops);
        }
    }

    /// Declares the GPU kernel of an op that is already declared; see [`OpBuilder::gpu`].
    pub fn set_gpu(
        &mut self,
        op: &str,
        types: GpuTypes,
        make: impl Fn(&KernelInit<'_>) -> Result<KernelBox> + Send + Sync + 'static,
    ) {
        let def = self.ops.get_mut(op).unwrap_or_else(|| panic!("op {op:?} is not declared"));
        let support = GpuSupport { types, make: Some(Arc::new(make)), ..GpuSupport::default() };
        let before = Arc::make_mut(def).gpu.replace(support);
        assert!(before.is_none(), "the GPU kernel of {op:?} is declared twice");
    }

    /// Declares what 16-bit floats mean to ops that are already declared.
    pub fn set_precision(&mut self, ops: &[&str], class: PrecisionClass) {
        for op in ops {
            let def = self.ops.get_mut(*op).unwrap_or_else(|| panic!("op {op:?} is not declared"));
            Arc::make_mut(def).precision = class;
        }
    }

    fn set_gradient(&mut self, op: &str, gradient: OpGradient) {
        let def = self.ops.get_mut(op).unwrap_or_else(|| panic!("op {op:?} is not declared"));
        let before = Arc::make_mut(def).gradient.replace(gradient);
        assert!(before.is_none(), "the gradient of {op:?} is declared twice");
    }

    /// Adds signatures without kernels for the ops that are not declared yet.
    pub fn add_signatures(&mut self, defs: impl IntoIterator<Item = OpDef>) {
        for def in defs {
            self.ops.entry(def.name.clone()).or_insert_with(|| Arc::new(def));
        }
    }

    /// The op `name`, if it is declared.
    pub fn get(&self, name: &str) -> Option<&Arc<OpDef>> {
        self.ops.get(name)
    }

    /// The ops of this catalog for which `keep` is true.
    pub fn filtered(&self, keep: impl Fn(&OpDef) -> bool) -> Catalog {
        let kept = self.ops.iter().filter(|(_, op)| keep(op));
        let ops = kept.map(|(name, op)| (name.clone(), op.clone())).collect();
        Catalog { ops, gpu_fuser: self.gpu_fuser, gpu_mover: self.gpu_mover }
    }

    /// Fuses nodes on GPUs that have formulas, by kernels that `fuser` makes.
    pub fn fuse_on_gpus_with(&mut self, fuser: GpuFuser) {
        self.gpu_fuser = Some(fuser);
    }

    /// What makes the kernels of fused nodes on GPUs.
    pub fn gpu_fuser(&self) -> Option<GpuFuser> {
        self.gpu_fuser
    }

    /// Fuses nodes on GPUs that move elements, by kernels that `mover` makes.
    pub fn move_on_gpus_with(&mut self, mover: GpuMover) {
        self.gpu_mover = Some(mover);
    }

    /// What makes the kernels of fused moves on GPUs.
    pub fn gpu_mover(&self) -> Option<GpuMover> {
        self.gpu_mover
    }

    /// All ops, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<OpDef>> {
        self.ops.values()
    }
}

/// A declaration in progress.
pub struct OpBuilder<'c> {
    catalog: &'c mut Catalog,
    def: OpDef,
}

impl OpBuilder<'_> {
    /// Describes the op.
    pub fn doc(mut self, text: &str) -> Self {
        self.def.doc = text.to_string();
        self
    }

    /// `name: type`, in TensorFlow's notation.
    pub fn input(mut self, text: &str) -> Self {
        self.def.inputs.push(parsed::<ArgDef>(signature::parse_arg(text), text));
        self
    }

    /// `name: type`, in TensorFlow's notation.
    pub fn output(mut self, text: &str) -> Self {
        self.def.outputs.push(parsed::<ArgDef>(signature::parse_arg(text), text));
        self
    }

    /// `name: type = default`, in TensorFlow's notation.
    pub fn attr(mut self, text: &str) -> Self {
        self.def.attrs.push(parsed::<AttrDef>(signature::parse_attr(text), text));
        self
    }

    /// An attribute that TensorFlow has added since 2.15, as [`OpBuilder::attr`] takes it. Clients
    /// may send the values that it allows. They change nothing here, and it is not passed on: older
    /// servers of TensorFlow would refuse it.
    pub fn newer_attr(mut self, text: &str) -> Self {
        self.def.newer_attrs.push(parsed::<AttrDef>(signature::parse_attr(text), text));
        self
    }

    /// Several inputs, each as [`OpBuilder::input`] takes it.
    pub fn inputs(self, texts: &[&str]) -> Self {
        texts.iter().fold(self, |op, text| op.input(text))
    }

    /// Several outputs, each as [`OpBuilder::output`] takes it.
    pub fn outputs(self, texts: &[&str]) -> Self {
        texts.iter().fold(self, |op, text| op.output(text))
    }

    /// Several attributes, each as [`OpBuilder::attr`] takes it.
    pub fn attrs(self, texts: &[&str]) -> Self {
        texts.iter().fold(self, |op, text| op.attr(text))
    }

    /// Sets a default of the attribute declared last that the notation cannot express.
    pub fn default(mut self, value: impl Into<crate::AttrValue>) -> Self {
        let last = self.def.attrs.last_mut().expect("an attribute was declared");
        last.default = Some(value.into());
        self
    }

    /// Marks it as stateful: it is never merged, folded or run twice.
    pub fn stateful(mut self) -> Self {
        self.def.is_stateful = true;
        self
    }

    /// Marks it as commutative: its inputs can be exchanged.
    pub fn commutative(mut self) -> Self {
        self.def.is_commutative = true;
        self
    }

    /// Marks it as its own inverse: `f(f(x))` is `x`, to the bit and for every dtype.
    pub fn involution(mut self) -> Self {
        self.def.is_involution = true;
        self
    }

    /// Says how it moves elements.
    pub fn moves(mut self, moves: OpMoves) -> Self {
        self.def.moves = Some(moves);
        self
    }

    /// Marks it as an aggregate: any number of inputs of one type, in any order.
    pub fn aggregate(mut self) -> Self {
        self.def.is_aggregate = true;
        self
    }

    /// Lets it take references to uninitialized variables.
    pub fn allows_uninitialized_input(mut self) -> Self {
        self.def.allows_uninitialized_input = true;
        self
    }

    /// Marks it as a primitive of v1 control flow.
    pub fn control_flow(mut self, which: ControlFlow) -> Self {
        self.def.control_flow = Some(which);
        self
    }

    /// Sets the role that passes treat it by.
    pub fn role(mut self, role: OpRole) -> Self {
        self.def.role = role;
        self
    }

    /// Marks it as expensive: it gets a thread of its own if other nodes are ready too.
    pub fn expensive(mut self) -> Self {
        self.def.cost = OpCost::Expensive;
        self
    }

    /// Estimates the floating-point operations of a node, for placement.
    pub fn flops(mut self, of: FlopsFn) -> Self {
        self.def.flops = Some(of);
        self
    }

    /// Estimates the work of a call beyond the bytes of its inputs. Needed where small inputs can
    /// have large outputs, or take long.
    pub fn work(mut self, of: WorkFn) -> Self {
        self.def.work = Some(of);
        self
    }

    /// Infers the shape of a result to which both inputs are broadcast.
    pub fn broadcasts(self) -> Self {
        self.shape(crate::shape::broadcast).work(crate::work::broadcast)
    }

    /// Marks it as element-wise, so that it can be fused with others; see
    /// [`crate::AnyBlockKernel`].
    pub fn blocks(mut self, of: MakeBlockKernel) -> Self {
        self.def.blocks = Some(of);
        self
    }

    /// Lets a bias and an activation that follow it run as a part of it.
    pub fn takes_epilogue(mut self) -> Self {
        self.def.takes_epilogue = true;
        self
    }

    /// Lets it run on another device than the resources it takes.
    pub fn takes_resources_from_anywhere(mut self) -> Self {
        self.def.takes_resources_from_anywhere = true;
        self
    }

    /// Marks it as reading only metadata of a tensor, such as its shape.
    pub fn metadata(mut self) -> Self {
        self.def.is_metadata = true;
        self
    }

    /// Declares that it changes none of the variables whose references or handles it takes.
    pub fn reads_variables(mut self) -> Self {
        self.def.reads_variables = true;
        self
    }

    /// Marks its kernel as asynchronous: it may wait for more than its inputs.
    pub fn waits(mut self) -> Self {
        self.def.may_wait = true;
        self
    }

    /// Marks it as reading or writing files or the console. It may block, so it runs on a thread of
    /// its own, and is never merged or folded.
    pub fn does_io(mut self) -> Self {
        self.def.does_io = true;
        self.expensive()
    }

    /// Marks it as calling functions. Passes place the functions on their own, and the node waits
    /// for all that they wait for.
    pub fn calls(mut self, how: CallKind) -> Self {
        self.def.calls = Some(how);
        self.takes_resources_from_anywhere().waits()
    }

    /// Sets its shape function.
    pub fn shape(
        mut self,
        infer: impl Fn(&ShapeCtx<'_>) -> Result<Vec<PartialShape>> + Send + Sync + 'static,
    ) -> Self {
        self.def.shape = Some(Arc::new(infer));
        self
    }

    /// Sets its gradient: a function that adds nodes which compute the gradients of the inputs from
    /// those of the outputs; see [`crate::GradientScope`].
    pub fn gradient(
        mut self,
        make: impl for<'g> Fn(&GradientScope<'g>, &[Term<'g>]) -> Result<Vec<Term<'g>>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.def.gradient = Some(OpGradient::Function(Arc::new(make)));
        self
    }

    /// Stops gradients here without an error: its outputs count as constants.
    pub fn no_gradient(mut self) -> Self {
        self.def.gradient = Some(OpGradient::Stops);
        self
    }

    /// Sets what makes its CPU kernel. It runs once per node, never in a step.
    pub fn cpu(
        mut self,
        make: impl Fn(&KernelInit<'_>) -> Result<KernelBox> + Send + Sync + 'static,
    ) -> Self {
        self.def.cpu = Some(Arc::new(make));
        self
    }

    /// Sets what makes its GPU kernel for nodes whose type attributes are among `types`. Inputs and
    /// outputs are in the GPU's memory, except those of [`OpBuilder::host_inputs`] and
    /// [`OpBuilder::host_outputs`].
    pub fn gpu(
        mut self,
        types: GpuTypes,
        make: impl Fn(&KernelInit<'_>) -> Result<KernelBox> + Send + Sync + 'static,
    ) -> Self {
        let make: Option<KernelFn> = Some(Arc::new(make));
        self.def.gpu = Some(GpuSupport { types, make, ..GpuSupport::default() });
        self
    }

    /// Names the formula that the GPU kernel declared before applies to each element.
    pub fn gpu_formula(mut self, formula: GpuFormula) -> Self {
        let gpu = self.def.gpu.as_mut().expect("gpu() comes first");
        gpu.formula = Some(formula);
        self
    }

    /// Names what the GPU kernel declared before does with rows, so that it can be fused.
    pub fn gpu_rows(mut self, rows: GpuRows) -> Self {
        let gpu = self.def.gpu.as_mut().expect("gpu() or anywhere() comes first");
        gpu.rows = Some(rows);
        self
    }

    /// Lets its CPU kernel run for nodes on a GPU: it touches no elements, or moves them by
    /// functions that work in either memory. `int32` tensors stay in host memory, as in TensorFlow.
    pub fn anywhere(mut self) -> Self {
        self.def.gpu = Some(GpuSupport::default());
        self
    }

    /// Limits the GPU kernel declared before to nodes with such attributes.
    pub fn gpu_if(mut self, condition: fn(&crate::Attrs) -> bool) -> Self {
        let gpu = self.def.gpu.as_mut().expect("gpu() or anywhere() comes first");
        gpu.condition = Some(condition);
        self
    }

    /// Names the kernel that also adds a bias, beside the GPU kernel declared before.
    pub fn gpu_with_bias(
        mut self,
        make: impl Fn(&KernelInit<'_>) -> Result<KernelBox> + Send + Sync + 'static,
    ) -> Self {
        let gpu = self.def.gpu.as_mut().expect("gpu() comes first");
        gpu.with_bias = Some(Arc::new(make));
        self
    }

    /// Lets nodes that share these inputs run as one, whose inputs are those of each of them. The
    /// GPU kernel declared before must support that.
    pub fn gpu_joins(mut self, shared_inputs: &[&'static str]) -> Self {
        let gpu = self.def.gpu.as_mut().expect("gpu() comes first");
        gpu.shared_inputs = shared_inputs.to_vec();
        self
    }

    /// Names inputs that the GPU kernel declared before takes in host memory.
    pub fn host_inputs(mut self, names: &[&'static str]) -> Self {
        let gpu = self.def.gpu.as_mut().expect("gpu() or anywhere() comes first");
        gpu.host_inputs = names.to_vec();
        self
    }

    /// Names outputs that the GPU kernel declared before makes in host memory.
    pub fn host_outputs(mut self, names: &[&'static str]) -> Self {
        let gpu = self.def.gpu.as_mut().expect("gpu() or anywhere() comes first");
        gpu.host_outputs = names.to_vec();
        self
    }

    /// Sets a plain function as its CPU kernel, for ops without attributes that matter.
    pub fn cpu_fn(self, kernel: fn(&mut ferroflow_core::Ctx<'_>) -> Result<()>) -> Self {
        self.cpu(move |_| Ok(KernelBox::new(kernel)))
    }
}

impl Drop for OpBuilder<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let mut def = std::mem::replace(&mut self.def, OpDef::named(""));
        signature::resolve_lists(&mut def.inputs, &def.attrs);
        signature::resolve_lists(&mut def.outputs, &def.attrs);
        let name = def.name.clone();
        let before = self.catalog.ops.insert(name.clone(), Arc::new(def));
        assert!(before.is_none(), "op {name:?} is declared twice");
    }
}

fn parsed<T>(result: Result<T>, text: &str) -> T {
    result.unwrap_or_else(|e| panic!("cannot declare {text:?}: {}", e.message()))
}
