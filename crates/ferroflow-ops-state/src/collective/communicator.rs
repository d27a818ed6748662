//! Communicators: the membership of a device in a group. A communicator numbers its collectives.

use super::Keys;
use crate::prelude::*;
use ferroflow_core::{CollectiveCall, CollectiveKind};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

const CONTAINER: &str = "collective_op_group";
const TYPE: &str = "tensorflow::(anonymous namespace)::CollectiveGroupResource";

pub(super) struct Communicator {
    group_key: i32,
    group_size: i32,
    rank: i32,
    /// The timeout of collectives whose op asks for a timeout.
    pub timeout: Option<Duration>,
    /// The number of collectives so far.
    done: AtomicI32,
}

impl Resource for Communicator {
    fn describe(&self) -> String {
        let Communicator { group_key, group_size, rank, .. } = self;
        format!(
            "Collective Group with group_key = {group_key}, group_size = {group_size}, rank = {rank}"
        )
    }
}

impl Communicator {
    /// The communicator in input 1 of a collective.
    pub fn of(ctx: &AsyncCtx) -> Result<Arc<Communicator>> {
        let handle = ctx.handle(1)?;
        ensure!(
            handle.container == CONTAINER,
            InvalidArgument,
            "{} is no collective communicator but a {}",
            handle.name,
            handle.type_name
        );
        let communicator = ctx.resource(1)?;
        ensure!(
            ctx.input(2)?.elements() == 0,
            Unimplemented,
            "Group assignments are not supported yet."
        );
        Ok(communicator)
    }

    /// As in TensorFlow, a group has one communicator for each rank.
    fn name(&self) -> String {
        format!("{}:r{:04}", self.group_key, self.rank)
    }

    /// The keys of the next collective: all members number them in the same way.
    pub fn next_keys(&self) -> Keys {
        Keys {
            group_size: self.group_size.into(),
            group_key: self.group_key.into(),
            instance_key: self.done.fetch_add(1, Ordering::Relaxed).into(),
        }
    }
}

struct Initialize {
    timeout: Option<Duration>,
}

impl Initialize {
    /// The communicator, and the rendezvous of its members.
    fn prepare(&self, ctx: &AsyncCtx) -> Result<(Communicator, CollectiveCall)> {
        let scalar = |i: usize, name: &str| -> Result<i32> {
            let t = ctx.input(i)?;
            ensure!(
                t.rank() == 0,
                InvalidArgument,
                "Unexpected dimensions on input {name}. It should be a scalar, got tensor with shape {}",
                t.shape()
            );
            t.scalar_value::<i32>()
        };
        let group_size = scalar(2, "group_size")?;
        let (group_key, rank) = (scalar(0, "group_key")?, scalar(1, "rank")?);
        ensure!(
            group_size > 0,
            InvalidArgument,
            "group_size must be positive integer but got {group_size}"
        );
        ensure!(rank >= 0, InvalidArgument, "rank must be non-negative integer but got {rank}");
        ensure!(
            rank < group_size,
            InvalidArgument,
            "rank must be less than group size but got {rank} >= {group_size}"
        );
        let (timeout, done) = (self.timeout, AtomicI32::new(0));
        let communicator = Communicator { group_key, group_size, rank, timeout, done };
        let handle = ResourceHandle {
            device: ctx.node.device.text.clone(),
            container: CONTAINER.into(),
            name: communicator.name(),
            type_name: TYPE.into(),
            ..ResourceHandle::default()
        };
        let call = CollectiveCall {
            kind: CollectiveKind::Meet,
            name: ctx.node.name.clone(),
            group_key,
            group_size: group_size as usize,
            instance_key: 0,
            rank: Some(rank),
            frame_iter: ctx.frame_iter,
            device: ctx.node.device.clone(),
            dtype: DType::Resource,
            shape: Shape::scalar(),
            tensor: Some(Tensor::handle(handle)),
            // The step's own timeout applies; TensorFlow ignores the node's timeout too.
            timeout: None,
        };
        Ok((communicator, call))
    }
}

impl AsyncKernel for Initialize {
    fn start(&self, ctx: AsyncCtx, done: Done, _: &InlineScope) {
        let resources = ctx.step.resources.clone();
        let prepared = self.prepare(&ctx).and_then(|(communicator, call)| {
            let name = communicator.name();
            resources.create(CONTAINER, &name, communicator)?;
            Ok((name, call))
        });
        let (name, call) = match prepared {
            Ok(prepared) => prepared,
            Err(e) => return done.fail(e),
        };
        let done = move |met: Result<Tensor>| {
            if met.is_err() {
                // Another thread has cleared the container. No handle refers to the communicator,
                // so the device may try again.
                let _ = resources.remove::<Communicator>(CONTAINER, &name);
            }
            done.finish_tensors(met.map(|handle| vec![handle]));
        };
        super::start(&ctx.step, call, Box::new(done));
    }
}

pub(super) fn register(c: &mut Catalog) {
    c.op("CollectiveInitializeCommunicator")
        .doc("A device's membership in a group, once all of the group have asked for theirs.")
        .input("group_key: int32")
        .input("rank: int32")
        .input("group_size: int32")
        .output("communicator: resource")
        .attr("communication_hint: string = 'auto'")
        .attr("timeout_seconds: float = 0.0")
        .stateful()
        .waits()
        .shape(shape::scalar)
        .cpu(|init| Ok(KernelBox::new_async(Initialize { timeout: super::timeout(init)? })));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;
    use ferroflow_testing::Check;

    fn initialize(resources: &Arc<Resources>, key: i32, rank: i32, size: i32) -> Check<'static> {
        check("CollectiveInitializeCommunicator")
            .resources(resources)
            .input(Tensor::scalar(key))
            .input(Tensor::scalar(rank))
            .input(Tensor::scalar(size))
    }

    fn reduce(resources: &Arc<Resources>, communicator: Tensor, groups: Tensor) -> Check<'static> {
        check("CollectiveReduceV3")
            .resources(resources)
            .attr("reduction", "Mul")
            .input(Tensor::vector(&[3f32, 4.0]))
            .input(communicator)
            .input(groups)
    }

    fn no_groups() -> Tensor {
        Tensor::vector::<i32>(&[])
    }

    #[test]
    fn a_communicator_is_made_once_and_used_often() {
        let resources = Arc::new(Resources::new());
        let communicator = initialize(&resources, 5, 0, 1).run().unwrap().remove(0);
        initialize(&resources, 5, 0, 1).fails(Code::AlreadyExists, "collective_op_group/5:r0000");
        for _ in 0..2 {
            reduce(&resources, communicator.clone(), no_groups())
                .gives(Tensor::vector(&[3f32, 4.0]));
        }
        let kept = resources.lookup::<Communicator>(CONTAINER, "5:r0000").unwrap();
        assert_eq!(kept.next_keys().instance_key, 2, "its collectives are numbered");
        reduce(&resources, communicator.clone(), Tensor::from_slice([1, 1], &[0i32]).unwrap())
            .fails(Code::Unimplemented, "Group assignments");
        check("CollectiveAllToAllV3")
            .resources(&resources)
            .input(Tensor::vector(&[1i32, 2]))
            .input(communicator)
            .input(no_groups())
            .fails(Code::InvalidArgument, "takes as many rows");
    }

    #[test]
    fn a_rank_is_one_of_the_group() {
        let resources = Arc::new(Resources::new());
        let fails = |rank, size, why: &str| {
            initialize(&resources, 1, rank, size).fails(Code::InvalidArgument, why);
        };
        fails(3, 3, "rank must be less than group size but got 3 >= 3");
        fails(-1, 3, "non-negative");
        fails(0, 0, "group_size must be positive");
    }

    #[test]
    fn what_no_group_has_made_is_no_communicator() {
        let resources = Arc::new(Resources::new());
        for _ in 0..2 {
            // A group that never met leaves no state in the task.
            initialize(&resources, 1, 0, 2).fails(Code::Unimplemented, "needs a server");
        }
        let handle = |container: &str| {
            Tensor::handle(ResourceHandle {
                container: container.into(),
                name: "1:r0000".into(),
                ..ResourceHandle::default()
            })
        };
        reduce(&resources, handle("c"), no_groups())
            .fails(Code::InvalidArgument, "no collective communicator");
        reduce(&resources, handle(CONTAINER), no_groups()).fails(Code::NotFound, "1:r0000");
    }
}
