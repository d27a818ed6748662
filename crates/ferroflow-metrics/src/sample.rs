//! Values that are read only when the metrics are requested.

use parking_lot::Mutex;

/// The memory of a GPU.
#[derive(Clone, Debug, Default)]
pub struct GpuSample {
    /// `GPU:0`.
    pub name: String,
    /// Bytes that tensors use.
    pub in_use: u64,
    /// Bytes that tensors may use.
    pub limit: u64,
}

/// The present state of a server.
#[derive(Clone, Debug, Default)]
pub struct ServerSample {
    /// Bytes of tensors that its sessions hold.
    pub session_memory: u64,
    /// Its GPUs.
    pub gpus: Vec<GpuSample>,
    /// Whether it takes new steps.
    pub is_serving: bool,
}

type Sampler = Box<dyn Fn() -> Option<ServerSample> + Send + Sync>;

/// How to read it; nothing before the server has started.
#[derive(Default)]
pub(crate) struct SampleSource(Mutex<Option<std::sync::Arc<Sampler>>>);

impl SampleSource {
    pub fn set(&self, sampler: Sampler) {
        *self.0.lock() = Some(std::sync::Arc::new(sampler));
    }

    pub fn read(&self) -> Option<ServerSample> {
        let sampler = self.0.lock().clone()?;
        sampler()
    }
}
