//! Device scopes, and the placement of variables on parameter servers.

use crate::graph::{Graph, Restore};
use ferroflow_core::{DType, DeviceName, PartialShape, Result};
use parking_lot::Mutex;
use std::sync::Arc;

/// The properties of a node that a device function sees.
///
/// ```
/// use ferroflow_core::{DType, PartialShape};
/// use ferroflow_train::NodeSpec;
/// let large_apart = |node: &NodeSpec| if node.bytes() > 1 << 20 { "/cpu:1" } else { "/cpu:0" };
/// let (dtype, shape) = (Some(DType::Float), PartialShape::scalar());
/// let small = NodeSpec { dtype, shape, ..NodeSpec::default() };
/// assert_eq!((small.bytes(), large_apart(&small)), (4, "/cpu:0"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
    /// Its op.
    pub op: String,
    /// The device that inner scopes set.
    pub device: String,
    /// Type and shape of its first output; of the variable, for a variable's handle.
    pub dtype: Option<DType>,
    /// The shape of its first output.
    pub shape: PartialShape,
}

impl NodeSpec {
    /// The size of its first output in bytes; 0 if the shape is unknown.
    pub fn bytes(&self) -> u64 {
        let size = self.dtype.and_then(|t| t.size()).unwrap_or(0);
        self.shape.elements().map_or(0, |n| (n as u64).saturating_mul(size as u64))
    }
}

/// The content of a `device` scope.
#[derive(Clone)]
pub enum DeviceScope {
    /// A device name. Outer scopes fill in the parts that it leaves open.
    Name(DeviceName),
    /// A function from a node, with the device of inner scopes, to its device.
    Function(DeviceFn),
    /// Ignores the outer scopes.
    Nowhere,
}

/// A function from a node to its device.
pub type DeviceFn = Arc<dyn Fn(&NodeSpec) -> Result<DeviceName> + Send + Sync>;

/// A value for a device scope: a device name or a function.
pub trait IntoDevice {
    /// The scope.
    fn into_device(self) -> Result<DeviceScope>;
}

impl IntoDevice for &str {
    fn into_device(self) -> Result<DeviceScope> {
        DeviceName::parse(self).map(DeviceScope::Name)
    }
}

impl IntoDevice for &String {
    fn into_device(self) -> Result<DeviceScope> {
        self.as_str().into_device()
    }
}

impl IntoDevice for DeviceName {
    fn into_device(self) -> Result<DeviceScope> {
        Ok(DeviceScope::Name(self))
    }
}

impl IntoDevice for Option<&str> {
    fn into_device(self) -> Result<DeviceScope> {
        self.map_or(Ok(DeviceScope::Nowhere), |name| name.into_device())
    }
}

impl IntoDevice for DeviceFn {
    fn into_device(self) -> Result<DeviceScope> {
        Ok(DeviceScope::Function(self))
    }
}

/// A function from a node to the name of its device. It overrides inner scopes.
impl<F, D> IntoDevice for F
where
    F: Fn(&NodeSpec) -> D + Send + Sync + 'static,
    D: AsRef<str>,
{
    fn into_device(self) -> Result<DeviceScope> {
        let function: DeviceFn = Arc::new(move |node| DeviceName::parse(self(node).as_ref()));
        Ok(DeviceScope::Function(function))
    }
}

impl IntoDevice for ReplicaDeviceSetter {
    fn into_device(self) -> Result<DeviceScope> {
        Ok(DeviceScope::Function(self.into_function()?))
    }
}

impl Graph {
    /// Runs `build` with everything it makes on a device: a name such as `/job:ps/task:0` or
    /// `/cpu:0`, a function, a [`ReplicaDeviceSetter`], or `None` to leave all scopes. Scopes nest:
    /// outer scopes fill in what an inner one leaves open.
    ///
    /// ```
    /// # let g = ferroflow_train::Graph::new();
    /// use ferroflow_train::NodeSpec;
    /// let x = g.device("/job:worker/task:1", || g.device("/cpu:0", || g.constant(1.0)));
    /// assert_eq!(x.device(), "/job:worker/task:1/device:CPU:0");
    /// let by_op = |node: &NodeSpec| if node.op == "Const" { "/cpu:0" } else { "/cpu:1" };
    /// let y = g.device(by_op, || g.constant(1.0).square());
    /// assert_eq!(y.device(), "/device:CPU:1");
    /// ```
    #[track_caller]
    pub fn device<R>(&self, device: impl IntoDevice, build: impl FnOnce() -> R) -> R {
        let scope = self.or_fail(device.into_device());
        let before = {
            let mut state = self.state();
            let before = state.devices.clone();
            match scope {
                Some(DeviceScope::Nowhere) => state.devices.clear(),
                Some(scope) => state.devices.push(scope),
                None => {}
            }
            before
        };
        let graph = self.clone();
        let _restore = Restore(move || graph.state().devices = before.clone());
        build()
    }
}

/// The device of a node, from its scopes, outermost first.
pub(crate) fn apply(scopes: &[DeviceScope], mut spec: NodeSpec) -> Result<String> {
    for scope in scopes.iter().rev() {
        let current = DeviceName::parse(&spec.device)?;
        spec.device = match scope {
            DeviceScope::Name(name) => current.or(name).to_string(),
            DeviceScope::Function(function) => function(&spec)?.to_string(),
            DeviceScope::Nowhere => break,
        };
    }
    Ok(spec.device)
}

/// How variables are distributed over the parameter servers.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{PsStrategy, ReplicaDeviceSetter, init};
/// let setter = ReplicaDeviceSetter::new(2).strategy(PsStrategy::GreedyByBytes);
/// g.device(setter, || {
///     let devices = [100, 10, 20].map(|n| g.variable("v", init::zeros([n])).device());
///     assert_eq!(devices, ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:1"]);
/// });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PsStrategy {
    /// Round robin.
    #[default]
    RoundRobin,
    /// The server that holds the fewest bytes so far.
    GreedyByBytes,
}

/// Puts variables on the tasks of a `ps` job and everything else on a worker: between-graph
/// replication in one scope.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{ReplicaDeviceSetter, init};
/// let setter = ReplicaDeviceSetter::new(2).worker("/job:worker/task:1");
/// g.device(setter, || {
///     let w = g.variable("w", init::zeros([3, 4]));
///     let b = g.variable("b", init::zeros([4]));
///     assert_eq!(w.device(), "/job:ps/task:0");
///     assert_eq!(b.device(), "/job:ps/task:1");
///     assert_eq!((&*w * 2.0).device(), "/job:worker/task:1");
/// });
/// ```
#[derive(Clone, Debug)]
pub struct ReplicaDeviceSetter {
    ps_tasks: u32,
    ps: String,
    worker: String,
    strategy: PsStrategy,
}

/// The ops that hold the state of a model.
const PS_OPS: [&str; 11] = [
    "Variable",
    "VariableV2",
    "AutoReloadVariable",
    "VarHandleOp",
    "MutableHashTable",
    "MutableHashTableV2",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "ResourceConditionalAccumulator",
];

/// Whether an op holds the state of a model.
pub(crate) fn holds_state(op: &str) -> bool {
    PS_OPS.contains(&op)
}

impl ReplicaDeviceSetter {
    /// A setter over `ps_tasks` parameter servers; with none everything goes to the worker.
    pub fn new(ps_tasks: u32) -> ReplicaDeviceSetter {
        ReplicaDeviceSetter {
            ps_tasks,
            ps: "/job:ps".into(),
            worker: "/job:worker".into(),
            strategy: PsStrategy::RoundRobin,
        }
    }

    /// The device of everything but variables.
    pub fn worker(mut self, device: &str) -> Self {
        self.worker = device.into();
        self
    }

    /// The job of the parameter servers, if it is not `/job:ps`.
    pub fn ps(mut self, device: &str) -> Self {
        self.ps = device.into();
        self
    }

    /// How variables are distributed; round robin by default.
    pub fn strategy(mut self, strategy: PsStrategy) -> Self {
        self.strategy = strategy;
        self
    }

    fn into_function(self) -> Result<DeviceFn> {
        let (ps, worker) = (DeviceName::parse(&self.ps)?, DeviceName::parse(&self.worker)?);
        let loads = Mutex::new((0usize, vec![0u64; self.ps_tasks as usize]));
        Ok(Arc::new(move |node| {
            let current = DeviceName::parse(&node.device)?;
            if self.ps_tasks == 0 || !holds_state(&node.op) {
                return Ok(current.or(&worker));
            }
            let mut ps = ps.clone();
            if ps.task.is_none() {
                let (next, loads) = &mut *loads.lock();
                let task = match self.strategy {
                    PsStrategy::RoundRobin => *next % loads.len(),
                    PsStrategy::GreedyByBytes => {
                        let least = (0..loads.len()).min_by_key(|&i| loads[i]);
                        least.expect("there is a parameter server")
                    }
                };
                *next += 1;
                loads[task] = loads[task].saturating_add(node.bytes());
                ps.task = Some(task as u32);
            }
            Ok(current.or(&ps))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init;
    use crate::testing::graph;

    #[test]
    fn greedy_placement_balances_bytes() {
        let g = graph();
        let setter = ReplicaDeviceSetter::new(2).strategy(PsStrategy::GreedyByBytes);
        g.device(setter, || {
            let devices: Vec<String> =
                [100, 10, 20, 30].map(|n| g.variable("v", init::zeros([n])).device()).to_vec();
            let ps = |i: u32| format!("/job:ps/task:{i}");
            assert_eq!(devices, [ps(0), ps(1), ps(1), ps(1)]);
        });
    }

    #[test]
    fn ops_on_a_variable_are_placed_with_it() {
        let g = graph();
        g.device(ReplicaDeviceSetter::new(1).worker("/job:worker/task:3"), || {
            let v = g.variable("v", init::normal([2], 0.0, 1.0));
            assert_eq!(v.assign_add([1.0, 1.0]).device(), "/job:ps/task:0");
            assert_eq!(v.initial_value().device(), "/job:ps/task:0");
            assert_eq!(g.device("/job:chief", || g.constant(1.0)).device(), "/job:chief/task:3");
            assert_eq!(g.device(None::<&str>, || g.constant(1.0)).device(), "");
        });
        g.device("/nonsense", || ());
        assert!(g.check().is_err());
    }

    #[test]
    fn device_functions_place_nodes() {
        let g = graph();
        let heavy = |node: &NodeSpec| match node.op.as_str() {
            "MatMul" => "/job:worker/task:7".to_string(),
            _ => node.device.clone(),
        };
        g.device(heavy, || {
            let x = g.device("/cpu:0", || g.constant([[1.0]]));
            assert_eq!(x.device(), "/device:CPU:0");
            assert_eq!(x.matmul(&x).device(), "/job:worker/task:7");
        });
        assert!(g.check().is_ok());
        g.device(|_: &NodeSpec| "/nonsense", || g.constant(1.0));
        assert!(g.check().unwrap_err().message().contains("device.rs:"));
    }
}
