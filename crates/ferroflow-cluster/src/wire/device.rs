//! Devices from and to `DeviceAttributes`.

use ferroflow_core::{DeviceInfo, DeviceName, DeviceSpeed, Result, ensure};
use ferroflow_proto::tensorflow as pb;

pub(super) fn device_to_proto(device: &DeviceInfo) -> pb::DeviceAttributes {
    let bus_id = if device.kind() == "GPU" { 1 } else { 0 };
    pb::DeviceAttributes {
        name: device.text.clone(),
        device_type: device.kind().to_string(),
        memory_limit: device.memory_limit,
        locality: Some(pb::DeviceLocality { bus_id, ..Default::default() }),
        incarnation: device.incarnation,
        physical_device_desc: device.description.clone(),
        xla_global_id: -1,
        ferroflow_speed: device.speed.get().map(|speed| pb::FerroflowSpeed {
            flops: speed.flops,
            bandwidth: speed.bandwidth,
            memory: speed.memory,
        }),
    }
}

/// A device as its task describes it. It keeps the fields that we do not use, so that they are
/// passed on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeviceMessage(pub(super) pb::DeviceAttributes);

impl DeviceMessage {
    pub fn of(device: &DeviceInfo) -> DeviceMessage {
        DeviceMessage(device_to_proto(device))
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub fn incarnation(&self) -> u64 {
        self.0.incarnation
    }

    pub fn info(&self) -> Result<DeviceInfo> {
        device_from_proto(&self.0)
    }
}

fn device_from_proto(p: &pb::DeviceAttributes) -> Result<DeviceInfo> {
    let name = DeviceName::parse(&p.name)?;
    ensure!(name.is_full(), InvalidArgument, "{:?} is not the full name of a device", p.name);
    let mut device = DeviceInfo::new(name, p.incarnation);
    device.memory_limit = p.memory_limit;
    device.description = p.physical_device_desc.clone();
    if let Some(speed) = &p.ferroflow_speed {
        let pb::FerroflowSpeed { flops, bandwidth, memory } = *speed;
        device.speed = DeviceSpeed { flops, bandwidth, memory }.into();
    }
    Ok(device)
}
