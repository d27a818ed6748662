//! The GPUs that a client's `ConfigProto` asks a process to use.

use ferroflow_core::{GpuChoice, Result, err};
use ferroflow_proto::tensorflow as pb;
use prost::Message;

/// What a serialized `ConfigProto` says about the GPUs of the process that gets it: a server when
/// it starts, or the first session without a server. Memory is always taken as it is needed, which
/// TensorFlow calls `allow_growth`.
pub fn gpu_choice(config: &[u8]) -> Result<GpuChoice> {
    let config = pb::ConfigProto::decode(config)
        .map_err(|e| err!(InvalidArgument, "malformed ConfigProto: {e}"))?;
    let most = config.device_count.get("GPU").map(|n| usize::try_from(*n).unwrap_or(0));
    let gpu = config.gpu_options.unwrap_or_default();
    let part = gpu.per_process_gpu_memory_fraction;
    Ok(GpuChoice {
        most,
        visible: GpuChoice::parse_visible(&gpu.visible_device_list)?,
        memory_fraction: (part != 0.0).then_some(part),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_configuration_choose_gpus() {
        assert_eq!(gpu_choice(&[]).unwrap(), GpuChoice::default());
        let gpu = pb::GpuOptions {
            per_process_gpu_memory_fraction: 0.5,
            visible_device_list: "1,0".into(),
            allow_growth: true,
            ..Default::default()
        };
        let config = pb::ConfigProto {
            device_count: [("GPU".to_string(), 1)].into_iter().collect(),
            gpu_options: Some(gpu),
            ..Default::default()
        };
        let want =
            GpuChoice { most: Some(1), visible: Some(vec![1, 0]), memory_fraction: Some(0.5) };
        assert_eq!(gpu_choice(&config.encode_to_vec()).unwrap(), want);
        assert!(gpu_choice(&[0xff]).is_err());
    }
}
