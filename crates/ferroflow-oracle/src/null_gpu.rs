//! A GPU that does nothing, to measure what the host does in a step.

use ferroflow_core::{
    Buffer, DownloadDone, Gemm, Gpu, GpuFunction, GpuMemory, HashMap, Launch, Result,
};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A GPU whose memory is made up and whose kernels do not run. It counts them.
#[derive(Default)]
pub struct NullGpu {
    launches: AtomicU64,
    /// The next address, and free blocks by size.
    memory: Mutex<(u64, HashMap<usize, Vec<u64>>)>,
}

impl NullGpu {
    /// Kernels, products and copies so far.
    pub fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    fn count(&self) -> Result<()> {
        self.launches.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

impl Gpu for NullGpu {
    fn name(&self) -> &str {
        "GPU:0 (nothing)"
    }

    fn description(&self) -> String {
        "device: 0, name: nothing, pci bus id: 0000:00:00.0, compute capability: 9.0".into()
    }

    fn memory(&self) -> GpuMemory {
        GpuMemory { limit: 1 << 40, in_use: 0, peak: 0 }
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        let size = bytes.max(1).next_multiple_of(256);
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, free) = &mut *memory;
        if let Some(address) = free.get_mut(&size).and_then(Vec::pop) {
            return Ok(address);
        }
        *next += size as u64;
        Ok(*next)
    }

    fn free(&self, address: u64, bytes: usize) {
        let size = bytes.max(1).next_multiple_of(256);
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.1.entry(size).or_default().push(address);
    }

    fn upload(&self, _: &[u8], _: u64) -> Result<()> {
        self.count()
    }

    fn download(&self, _: u64, bytes: usize, done: DownloadDone) {
        done(self.count().and_then(|()| Buffer::zeroed(bytes)));
    }

    fn copy(&self, _: u64, _: u64, _: usize) -> Result<()> {
        self.count()
    }

    fn clear(&self, _: u64, _: usize) -> Result<()> {
        self.count()
    }

    fn load(&self, text: &str, name: &str) -> Result<GpuFunction> {
        let mut hasher = DefaultHasher::new();
        (text, name).hash(&mut hasher);
        Ok(GpuFunction(hasher.finish()))
    }

    fn launch(&self, _: &Launch<'_>) -> Result<()> {
        self.count()
    }

    fn gemm(&self, _: &Gemm) -> Result<()> {
        self.count()
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}
