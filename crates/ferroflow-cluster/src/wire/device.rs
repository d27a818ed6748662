//! Devices on the wire.

use ferroflow_core::DeviceInfo;
use ferroflow_proto::tensorflow as pb;

pub(crate) fn device_to_proto(device: &DeviceInfo) -> pb::DeviceAttributes {
    pb::DeviceAttributes {
        name: device.text.clone(),
        device_type: device.kind().to_string(),
        memory_limit: device.memory_limit,
        locality: Some(pb::DeviceLocality::default()),
        incarnation: device.incarnation,
        xla_global_id: -1,
        ..Default::default()
    }
}
