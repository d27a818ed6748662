//! An op: its signature, its properties, and how to compute it.

use crate::attr::{AttrList, AttrValue, Attrs};
use crate::passes::PrecisionClass;
use crate::unsupported::unsupported_reason;
use crate::{AnyBlockKernel, GpuSupport, KernelInit, NodeSizes, OpGradient, ShapeCtx};
use ferroflow_core::{DType, KernelBox, PartialShape, Result, Value, bail, ensure, err};
use std::sync::Arc;

/// Infers the output shapes of a node.
pub type ShapeFn = Arc<dyn Fn(&ShapeCtx<'_>) -> Result<Vec<PartialShape>> + Send + Sync>;
/// Makes the kernel of a node.
pub type KernelFn = Arc<dyn Fn(&KernelInit<'_>) -> Result<KernelBox> + Send + Sync>;
/// Makes the block kernel for a node's attributes; `None` for a dtype that is not fused.
pub type MakeBlockKernel = fn(&Attrs) -> Option<AnyBlockKernel>;

/// Estimates the floating-point operations of a node.
pub type FlopsFn = fn(&NodeSizes<'_>) -> f64;

/// The bytes that a call moves, or as much work, as the shapes and values of its inputs say. An
/// estimate: a network thread leaves calls with much work to other threads, and so does the folding
/// of constants to the step.
pub type WorkFn = fn(&[Value]) -> u64;

/// How an op moves elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpMoves {
    /// Cuts input 1 into equal parts along the dimension that input 0 names.
    Split,
    /// Joins its inputs along the dimension that the last one names.
    Join,
    /// Gives input 0 another shape.
    Reshape,
    /// Puts the dimensions of input 0 in the order of input 1.
    Transpose,
}

/// An op: signature, properties, and how to compute it.
#[derive(Clone)]
pub struct OpDef {
    /// The name.
    pub name: String,
    /// A short description.
    pub doc: String,
    /// The source file that declares it; empty for recorded signatures of TensorFlow.
    pub source: &'static str,
    /// The input arguments.
    pub inputs: Vec<ArgDef>,
    /// The output arguments.
    pub outputs: Vec<ArgDef>,
    /// The attributes.
    pub attrs: Vec<AttrDef>,
    /// Attributes that TensorFlow has added since 2.15. They are checked and then dropped.
    pub newer_attrs: Vec<AttrDef>,
    /// Has state or an effect, so it is never merged, folded or run twice.
    pub is_stateful: bool,
    /// Its inputs can be exchanged.
    pub is_commutative: bool,
    /// It has one input and is its own inverse, to the bit: `f(f(x))` is `x`.
    pub is_involution: bool,
    /// How it moves the elements of its inputs, if that is all it does.
    pub moves: Option<OpMoves>,
    /// It takes any number of inputs of one type, in any order.
    pub is_aggregate: bool,
    /// Accepts references to uninitialized variables.
    pub allows_uninitialized_input: bool,
    /// Which primitive of v1 control flow it is, if it is one.
    pub control_flow: Option<ControlFlow>,
    /// How much work it is.
    pub cost: OpCost,
    /// Estimates its operations; `None` means about one for each output element.
    pub flops: Option<FlopsFn>,
    /// Estimates the work of a call beyond the bytes of its inputs; `None` means that there is
    /// little.
    pub work: Option<WorkFn>,
    /// The role that passes treat it by.
    pub role: OpRole,
    /// Makes its block kernel, if it is element-wise and pure.
    pub blocks: Option<MakeBlockKernel>,
    /// What 16-bit floats mean to it.
    pub precision: PrecisionClass,
    /// A bias and an activation that follow its one output can run as a part of it.
    pub takes_epilogue: bool,
    /// It only passes resources on, so it can run on another device than they are on.
    pub takes_resources_from_anywhere: bool,
    /// It reads only metadata of a tensor, so it belongs on the device of the tensor.
    pub is_metadata: bool,
    /// It reads the variables whose references or handles it takes, and changes none of them.
    pub reads_variables: bool,
    /// Its kernel is asynchronous: it may wait for more than its inputs, such as another task or
    /// another step.
    pub may_wait: bool,
    /// It reads or writes files or the console, so it can block for any time. It is never merged or
    /// folded, and runs on a thread that may block.
    pub does_io: bool,
    /// How it calls the functions in its attributes.
    pub calls: Option<CallKind>,
    /// Its shape function.
    pub shape: Option<ShapeFn>,
    /// Its gradient; `None` if it cannot be differentiated.
    pub gradient: Option<OpGradient>,
    /// Makes its CPU kernel.
    pub cpu: Option<KernelFn>,
    /// How it runs on a GPU, if it does.
    pub gpu: Option<GpuSupport>,
}

/// What an op means to passes and to the executor. They look at this, never at the op's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpRole {
    /// No special meaning.
    #[default]
    Plain,
    /// Holds its value in the attribute `value`.
    Constant,
    /// A reference or a handle to the variable that its attributes name.
    Variable,
    /// Must be fed.
    Placeholder,
    /// Passes its one input on unchanged.
    Identity,
    /// Computes nothing; only orders other nodes.
    NoOp,
    /// Publishes its input under a rendezvous key.
    Send,
    /// Receives the value of a rendezvous key.
    Recv,
    /// Argument number `index` of a function.
    Argument,
    /// Result number `index` of a function.
    Return,
    /// Copies its input to the memory of a GPU.
    ToDevice,
    /// Copies its input from the memory of a GPU to the host's.
    ToHost,
    /// Reads or writes something outside the graph, such as a file, although TensorFlow does not
    /// call it stateful. It is never merged or folded.
    Outside,
}

/// The primitives of v1 control flow. A reference variant counts as its plain op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFlow {
    /// Passes its input to one of two outputs.
    Switch,
    /// `_SwitchN`: one live output of many.
    SwitchN,
    /// Passes on the first live input.
    Merge,
    /// Enters a loop.
    Enter,
    /// Leaves a loop.
    Exit,
    /// Passes a value to the next iteration.
    NextIteration,
    /// The condition of a loop.
    LoopCond,
    /// Fires whether its inputs are dead or alive.
    ControlTrigger,
}

/// How an op calls functions. The pass that inlines function bodies needs this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// Calls `f` with all inputs.
    Function,
    /// Calls the function with the op's own name, with all inputs.
    Own,
    /// Calls `then_branch` or `else_branch`, as input 0 says, with the other inputs.
    If,
    /// Calls one of `branches`, as input 0 says, with the other inputs.
    Case,
    /// Calls `body` as long as `cond` is true, from inputs to outputs.
    While,
}

/// How much work the op is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpCost {
    /// Runs on the thread that made it ready.
    #[default]
    Cheap,
    /// Gets a thread of its own if other nodes are ready too.
    Expensive,
}

/// An input or output argument, which may stand for several tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgDef {
    /// The name.
    pub name: String,
    /// Whether it is a reference.
    pub is_ref: bool,
    /// The types of its tensors.
    pub types: ArgTypes,
}

/// The types of the tensors an argument stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgTypes {
    /// One tensor.
    One(TypeSource),
    /// Several tensors of one type; an int attribute holds their number.
    Repeated {
        /// The int attribute.
        count: String,
        /// The type of each tensor.
        of: TypeSource,
    },
    /// One tensor for each type in the list attribute.
    Listed(String),
}

/// Where the type of a tensor comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeSource {
    /// It is always the same.
    Fixed(DType),
    /// A type attribute holds it.
    Attr(String),
}

/// An attribute of an op.
#[derive(Clone, Debug, PartialEq)]
pub struct AttrDef {
    /// The name.
    pub name: String,
    /// The kind of its value, or of the elements of a list.
    pub kind: AttrKind,
    /// Whether the value is a list.
    pub is_list: bool,
    /// The default value.
    pub default: Option<AttrValue>,
    /// The least value of an int, or the least length of a list.
    pub minimum: Option<i64>,
    /// The allowed values; any if there are none.
    pub allowed: Option<AllowedValues>,
}

/// The kind of an attribute's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttrKind {
    /// A byte string.
    Str,
    /// An integer.
    Int,
    /// A number.
    Float,
    /// A truth value.
    Bool,
    /// A dtype.
    Type,
    /// A shape.
    Shape,
    /// A tensor.
    Tensor,
    /// A function.
    Func,
}

/// The allowed values of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AllowedValues {
    /// Of a type attribute.
    Types(Vec<DType>),
    /// Of a string attribute.
    Strs(Vec<String>),
}

/// The type of one input or output tensor of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortType {
    /// The dtype.
    pub dtype: DType,
    /// Whether it is a reference to a variable.
    pub is_ref: bool,
}

impl OpDef {
    /// Whether it is known to compute each element from those at the same place of its inputs.
    pub fn is_elementwise(&self) -> bool {
        self.blocks.is_some() || self.gpu.as_ref().is_some_and(|gpu| gpu.formula.is_some())
    }

    /// An op with this name and nothing else.
    pub fn named(name: impl Into<String>) -> OpDef {
        OpDef {
            name: name.into(),
            doc: String::new(),
            source: "",
            inputs: Vec::new(),
            outputs: Vec::new(),
            attrs: Vec::new(),
            newer_attrs: Vec::new(),
            is_stateful: false,
            is_commutative: false,
            is_involution: false,
            moves: None,
            is_aggregate: false,
            allows_uninitialized_input: false,
            control_flow: None,
            cost: OpCost::Cheap,
            flops: None,
            work: None,
            role: OpRole::Plain,
            blocks: None,
            precision: PrecisionClass::Unlisted,
            takes_epilogue: false,
            takes_resources_from_anywhere: false,
            is_metadata: false,
            reads_variables: false,
            may_wait: false,
            does_io: false,
            calls: None,
            shape: None,
            gradient: None,
            cpu: None,
            gpu: None,
        }
    }

    /// The attribute `name`.
    pub fn attr(&self, name: &str) -> Option<&AttrDef> {
        self.attrs.iter().find(|a| a.name == name)
    }

    /// Checks `attrs` against the signature and fills in defaults. Attributes that start with `_`
    /// are annotations and are not checked.
    pub fn complete_attrs(&self, mut attrs: Attrs) -> Result<Attrs> {
        for def in &self.newer_attrs {
            if let Some(value) = attrs.remove(&def.name) {
                def.check(&value)?;
            }
        }
        for def in &self.attrs {
            match (attrs.get(&def.name), &def.default) {
                (Some(value), _) => def.check(value)?,
                (None, Some(default)) => attrs.set(def.name.clone(), default.clone()),
                // TensorFlow's error code: it looks up the types of a node first.
                (None, None) if self.sets_types(&def.name) => {
                    bail!(NotFound, "No attr named '{}' in NodeDef:", def.name)
                }
                (None, None) => bail!(
                    InvalidArgument,
                    "NodeDef missing attr '{}' from Op<name={}>",
                    def.name,
                    self.name
                ),
            }
        }
        for (name, _) in attrs.iter() {
            ensure!(
                name.starts_with('_') || self.attr(name).is_some(),
                InvalidArgument,
                "NodeDef mentions attr '{name}' not in Op<name={}>",
                self.name
            );
        }
        Ok(attrs)
    }

    /// Sets the missing attributes that follow from the types of the inputs. Several arguments with
    /// one count share the remaining tensors.
    pub fn attrs_from_inputs(&self, types: &[DType], attrs: &mut Attrs) {
        let mut at = 0;
        for (i, arg) in self.inputs.iter().enumerate() {
            let later = self.inputs.get(i + 1..).unwrap_or_default();
            let mut set = |name: &str, value: AttrValue| {
                if !attrs.contains(name) {
                    attrs.set(name, value);
                }
            };
            if let ArgTypes::One(of) | ArgTypes::Repeated { of, .. } = &arg.types
                && let (TypeSource::Attr(name), Some(t)) = (of, types.get(at))
            {
                set(name, (*t).into());
            }
            match &arg.types {
                ArgTypes::One(_) => at += 1,
                ArgTypes::Repeated { count, .. } => {
                    let shares = |a: &&ArgDef| matches!(&a.types, ArgTypes::Repeated { count: other, .. } if other == count);
                    let sharing = later.iter().filter(shares).count();
                    let left = types.len().saturating_sub(at + later.len() - sharing);
                    set(count, ((left / (1 + sharing)) as i64).into());
                    let n = attrs.int(count).unwrap_or(0);
                    at = at.saturating_add(usize::try_from(n).unwrap_or(0));
                }
                ArgTypes::Listed(name) => {
                    let end = types.len().saturating_sub(later.len()).max(at.min(types.len()));
                    let list = types.get(at..end).unwrap_or_default();
                    set(name, AttrValue::List(AttrList::Types(list.to_vec())));
                    at = at.saturating_add(attrs.dtypes(name).map_or(0, |list| list.len()));
                }
            }
        }
    }

    /// Whether the number or types of inputs or outputs depend on an attribute.
    fn sets_types(&self, attr: &str) -> bool {
        let is_attr = |of: &TypeSource| matches!(of, TypeSource::Attr(name) if name == attr);
        self.inputs.iter().chain(&self.outputs).any(|arg| match &arg.types {
            ArgTypes::One(of) => is_attr(of),
            ArgTypes::Repeated { count, of } => count == attr || is_attr(of),
            ArgTypes::Listed(list) => list == attr,
        })
    }

    /// The types of all input tensors, in order.
    pub fn input_types(&self, attrs: &Attrs) -> Result<Vec<PortType>> {
        port_types(&self.inputs, attrs)
    }

    /// The types of all output tensors, in order.
    pub fn output_types(&self, attrs: &Attrs) -> Result<Vec<PortType>> {
        port_types(&self.outputs, attrs)
    }

    /// The first output of output argument `name` of a node, and its number of tensors.
    pub fn output_range(&self, attrs: &Attrs, name: &str) -> Result<std::ops::Range<usize>> {
        let mut start = 0;
        for arg in &self.outputs {
            let len = arg.port_types(attrs)?.len();
            if arg.name == name {
                return Ok(start..start + len);
            }
            start += len;
        }
        bail!(InvalidArgument, "Op<name={}> has no output '{name}'", self.name)
    }

    /// The first input of input argument `name` of a node, and its number of tensors.
    pub fn input_range(&self, attrs: &Attrs, name: &str) -> Result<std::ops::Range<usize>> {
        let mut start = 0;
        for arg in &self.inputs {
            let len = arg.port_types(attrs)?.len();
            if arg.name == name {
                return Ok(start..start + len);
            }
            start += len;
        }
        bail!(InvalidArgument, "Op<name={}> has no input '{name}'", self.name)
    }

    /// Makes the kernel for a node on a device of this kind.
    pub fn kernel(&self, init: &KernelInit<'_>) -> Result<KernelBox> {
        let on_gpu = init.node.device.gpu.is_some();
        let gpu = self.gpu.as_ref().filter(|gpu| on_gpu && gpu.takes(init.attrs));
        let own = gpu.and_then(|gpu| gpu.make.as_ref());
        match own.or(self.cpu.as_ref()) {
            Some(make) => {
                let kernel = make(init)?;
                debug_assert!(
                    self.may_wait || matches!(kernel, KernelBox::Sync(_)),
                    "{} has an async kernel but was not declared with waits()",
                    self.name
                );
                Ok(kernel)
            }
            None => Err(err!(
                Unimplemented,
                "no {} kernel for op '{}' (node '{}'): {}",
                init.node.device.kind(),
                self.name,
                init.node.name,
                unsupported_reason(&self.name)
                    .unwrap_or("Ferroflow knows the op's signature but does not implement it")
            )),
        }
    }

    /// Whether a node with these attributes has a kernel for GPUs.
    pub fn runs_on_gpu(&self, attrs: &Attrs) -> bool {
        self.gpu.as_ref().is_some_and(|gpu| gpu.takes(attrs))
    }

    /// Whether two nodes of this op with equal inputs and attributes have the same value.
    pub fn is_pure(&self) -> bool {
        !self.is_stateful
            && !self.does_io
            && self.control_flow.is_none()
            && matches!(self.role, OpRole::Plain | OpRole::Constant | OpRole::Identity)
            && !self.inputs.iter().chain(&self.outputs).any(|a| a.is_ref)
    }
}

impl ArgDef {
    pub(crate) fn port_types(&self, attrs: &Attrs) -> Result<Vec<PortType>> {
        let port = |dtype| PortType { dtype, is_ref: self.is_ref };
        Ok(match &self.types {
            ArgTypes::One(source) => vec![port(source.resolve(attrs)?)],
            ArgTypes::Repeated { count, of } => {
                let n = attrs.int(count)?;
                // Refuse an absurd count before memory is allocated for it.
                ensure!(
                    (0..1 << 20).contains(&n),
                    InvalidArgument,
                    "attr '{count}' = {n} is not a number of inputs"
                );
                vec![port(of.resolve(attrs)?); n as usize]
            }
            ArgTypes::Listed(list) => attrs.dtypes(list)?.into_iter().map(port).collect(),
        })
    }
}

impl TypeSource {
    fn resolve(&self, attrs: &Attrs) -> Result<DType> {
        match self {
            TypeSource::Fixed(dtype) => Ok(*dtype),
            TypeSource::Attr(name) => attrs.dtype(name),
        }
    }
}

fn port_types(args: &[ArgDef], attrs: &Attrs) -> Result<Vec<PortType>> {
    let mut all = Vec::with_capacity(args.len());
    for arg in args {
        all.extend(arg.port_types(attrs)?);
    }
    Ok(all)
}

impl AttrDef {
    /// Whether `value` has this attribute's type and obeys its constraints.
    pub fn check(&self, value: &AttrValue) -> Result<()> {
        if matches!(value, AttrValue::Placeholder(_)) {
            return Ok(());
        }
        ensure!(
            self.has_type(value),
            InvalidArgument,
            "AttrValue for attr '{}' had value with type '{}' when '{}' was expected",
            self.name,
            value.kind(),
            self.type_name()
        );
        if let Some(minimum) = self.minimum {
            let (n, what) = match value {
                AttrValue::Int(n) => (*n, "value"),
                AttrValue::List(list) => (list.len() as i64, "length"),
                _ => (i64::MAX, "value"),
            };
            ensure!(
                n >= minimum,
                InvalidArgument,
                "attr '{}' has {what} {n}, which is less than the minimum {minimum}",
                self.name
            );
        }
        match (&self.allowed, value) {
            (Some(AllowedValues::Types(allowed)), AttrValue::Type(t)) => {
                self.check_type(allowed, *t)?
            }
            (Some(AllowedValues::Types(allowed)), AttrValue::List(AttrList::Types(list))) => {
                list.iter().try_for_each(|t| self.check_type(allowed, *t))?
            }
            (Some(AllowedValues::Strs(allowed)), AttrValue::Str(s)) => ensure!(
                allowed.iter().any(|a| a.as_bytes() == &s[..]),
                InvalidArgument,
                "Value for attr '{}' of {:?} is not in the list of allowed values: {}",
                self.name,
                String::from_utf8_lossy(s),
                allowed.join(", ")
            ),
            _ => {}
        }
        Ok(())
    }

    fn type_name(&self) -> String {
        let item = format!("{:?}", self.kind).to_lowercase();
        if self.is_list { format!("list({item})") } else { item }
    }

    fn check_type(&self, allowed: &[DType], t: DType) -> Result<()> {
        let names = || allowed.iter().map(|d| d.name()).collect::<Vec<_>>().join(", ");
        ensure!(
            allowed.contains(&t),
            InvalidArgument,
            "Value for attr '{}' of {t} is not in the list of allowed values: {}",
            self.name,
            names()
        );
        Ok(())
    }

    fn has_type(&self, value: &AttrValue) -> bool {
        use AttrKind::*;
        if self.is_list {
            let AttrValue::List(list) = value else { return false };
            return matches!(
                (list, self.kind),
                (AttrList::Empty, _)
                    | (AttrList::Strs(_), Str)
                    | (AttrList::Ints(_), Int)
                    | (AttrList::Floats(_), Float)
                    | (AttrList::Bools(_), Bool)
                    | (AttrList::Types(_), Type)
                    | (AttrList::Shapes(_), Shape)
                    | (AttrList::Tensors(_), Tensor)
                    | (AttrList::Funcs(_), Func)
            );
        }
        matches!(
            (value, self.kind),
            (AttrValue::Str(_), Str)
                | (AttrValue::Int(_), Int)
                | (AttrValue::Float(_), Float)
                | (AttrValue::Bool(_), Bool)
                | (AttrValue::Type(_), Type)
                | (AttrValue::Shape(_), Shape)
                | (AttrValue::Tensor(_), Tensor)
                | (AttrValue::Func(_), Func)
        )
    }
}

impl AttrList {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            AttrList::Empty => 0,
            AttrList::Strs(v) => v.len(),
            AttrList::Ints(v) => v.len(),
            AttrList::Floats(v) => v.len(),
            AttrList::Bools(v) => v.len(),
            AttrList::Types(v) => v.len(),
            AttrList::Shapes(v) => v.len(),
            AttrList::Tensors(v) => v.len(),
            AttrList::Funcs(v) => v.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl std::fmt::Debug for OpDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Op<name={}>", self.name)
    }
}
