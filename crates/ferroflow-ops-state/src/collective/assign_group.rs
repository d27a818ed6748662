//! CollectiveAssignGroupV2: finds the group of a device.

use crate::prelude::*;

struct Groups<'a> {
    /// The devices of all groups, `size` rows for each group.
    devices: &'a [i32],
    groups: usize,
    size: usize,
}

impl Groups<'_> {
    /// The key of a device's group. Groups have consecutive keys from `base` on.
    fn key(&self, device: i32, base: i32) -> Result<i32> {
        for group in 0..self.groups {
            let key = base.wrapping_add(group as i32);
            ensure!(
                key != 0,
                InvalidArgument,
                "Using the reserved group_key = 0 is not allowed: group_id = {group}, base_key = {base}"
            );
            for &member in &self.devices[group * self.size..(group + 1) * self.size] {
                ensure!(
                    usize::try_from(member).is_ok_and(|m| m < self.devices.len()),
                    InvalidArgument,
                    "Not all items in group_assignment are within [0, number of devices): {member} of {}",
                    self.devices.len()
                );
                if member == device {
                    return Ok(key);
                }
            }
        }
        bail!(InvalidArgument, "device_index {device} is not found in group_assignment")
    }
}

fn assign(ctx: &mut Ctx<'_>) -> Result<()> {
    let scalar = |i: usize, name: &str| -> Result<i32> {
        let t = ctx.input(i)?;
        ensure!(
            t.rank() == 0,
            InvalidArgument,
            "{name} must be a scalar, but received tensor of shape: {}",
            t.shape()
        );
        t.scalar_value::<i32>()
    };
    let device = scalar(1, "device_index")?;
    let assignment = ctx.input(0)?;
    let &[groups, size] = assignment.shape().dims() else {
        bail!(
            InvalidArgument,
            "group_assignment must be a 2-d Tensor, but received tensor of shape: {}",
            assignment.shape()
        );
    };
    let base = scalar(2, "base_key")?;
    let key = Groups { devices: assignment.as_slice()?, groups, size }.key(device, base)?;
    ctx.set(0, Tensor::scalar(size as i32))?;
    ctx.set(1, Tensor::scalar(key))
}

pub(super) fn register(c: &mut Catalog) {
    c.op("CollectiveAssignGroupV2")
        .doc("The size and the key of the group that a device is in, of groups that are rows of a matrix.")
        .input("group_assignment: int32")
        .input("device_index: int32")
        .input("base_key: int32")
        .output("group_size: int32")
        .output("group_key: int32")
        .stateful()
        .shape(shape::scalar)
        .cpu(|_| Ok(KernelBox::new(assign)));
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use ferroflow_core::{Code, Tensor};

    fn assign(
        groups: [usize; 2],
        devices: &[i32],
        device: i32,
        base: i32,
    ) -> ferroflow_testing::Check<'static> {
        check("CollectiveAssignGroupV2")
            .input(Tensor::from_slice(groups, devices).unwrap())
            .input(Tensor::scalar(device))
            .input(Tensor::scalar(base))
    }

    #[test]
    fn a_group_has_the_key_of_its_row() {
        let of = |device: i32, base: i32| {
            let out = assign([2, 2], &[0, 1, 2, 3], device, base).run().unwrap();
            (out[0].scalar_value::<i32>().unwrap(), out[1].scalar_value::<i32>().unwrap())
        };
        assert_eq!((of(0, 100), of(3, 100)), ((2, 100), (2, 101)));
        assert_eq!(of(2, i32::MAX), (2, i32::MIN));
    }

    #[test]
    fn a_device_is_in_a_group_whose_key_is_not_0() {
        let fails =
            |c: ferroflow_testing::Check<'static>, why: &str| c.fails(Code::InvalidArgument, why);
        fails(assign([2, 2], &[0, 1, 2, 3], 4, 100), "device_index 4 is not found");
        fails(assign([2, 0], &[], 0, 1), "device_index 0 is not found");
        fails(assign([2, 2], &[0, 1, 2, 3], 2, -1), "group_id = 1, base_key = -1");
        fails(assign([2, 2], &[0, 1, 2, 7], 3, 1), "within [0, number of devices)");
        let vector = check("CollectiveAssignGroupV2")
            .input(Tensor::vector(&[0i32]))
            .input(Tensor::scalar(0i32))
            .input(Tensor::scalar(1i32));
        fails(vector, "must be a 2-d Tensor");
    }
}
