//! Copies between host and GPU, by way of pinned memory. A thread waits for downloads and hands
//! over their bytes.

use crate::gpu::Context;
use crate::status;
use cudarc::driver::sys::{self, CUevent, CUresult};
use ferroflow_core::{Buffer, DownloadDone, Error, Result, err};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The smallest piece of pinned memory.
const SMALLEST: usize = 4 << 10;
/// Uploads are cut into pieces of at most this size.
const PIECE: usize = 16 << 20;
/// Larger pieces of pinned memory are not kept.
const LARGEST_KEPT: usize = 64 << 20;
/// Checks of an event before its thread sleeps until the event happens.
const SPINS: u32 = 20_000;

/// Pinned memory with the event that says when its last use is over.
struct Pinned {
    address: *mut u8,
    len: usize,
    event: CUevent,
}

// SAFETY: it is plain memory and a handle; its holder is the only user.
unsafe impl Send for Pinned {}

impl Pinned {
    fn new(len: usize) -> Result<Pinned> {
        let mut address: *mut c_void = std::ptr::null_mut();
        // SAFETY: the context is current. The driver sets `address`.
        status::driver(unsafe { sys::cuMemHostAlloc(&mut address, len, 0) }, "pinned memory")?;
        let mut event = std::ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32
            | sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32;
        // SAFETY: the context is current. The driver sets `event`.
        let made = status::driver(unsafe { sys::cuEventCreate(&mut event, flags) }, "an event");
        let pinned = Pinned { address: address.cast(), len, event };
        made.map(|()| pinned)
    }

    /// Whether its last use is over.
    fn is_ready(&self) -> Result<bool> {
        // SAFETY: the event is valid.
        match unsafe { sys::cuEventQuery(self.event) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            other => status::driver(other, "work on the GPU").map(|()| true),
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: both are valid, and the holder is the only user.
        unsafe {
            if !self.event.is_null() {
                let _ = sys::cuEventDestroy_v2(self.event);
            }
            let _ = sys::cuMemFreeHost(self.address.cast());
        }
    }
}

/// A download under way.
struct Download {
    pinned: Pinned,
    bytes: usize,
    done: DownloadDone,
}

struct Shared {
    context: Context,
    /// Pinned memory whose last upload may still be under way, oldest first.
    uploads: Mutex<VecDeque<Pinned>>,
    /// Pinned memory that no one uses.
    idle: Mutex<Vec<Pinned>>,
    queue: Mutex<(VecDeque<Download>, bool)>,
    changed: Condvar,
}

/// Copies of one GPU.
pub(crate) struct Transfers {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Transfers {
    pub fn new(context: Context) -> Result<Transfers> {
        let shared = Arc::new(Shared {
            context,
            uploads: Mutex::default(),
            idle: Mutex::default(),
            queue: Mutex::default(),
            changed: Condvar::new(),
        });
        let mine = shared.clone();
        let thread = std::thread::Builder::new().name("gpu-downloads".into());
        let thread = thread.spawn(move || mine.run());
        let thread = thread.map_err(|e| err!(ResourceExhausted, "a thread for downloads: {e}"))?;
        Ok(Transfers { shared, thread: Some(thread) })
    }

    /// Enqueues a copy to the GPU.
    pub fn upload(&self, from: &[u8], to: u64) -> Result<()> {
        for (i, piece) in from.chunks(PIECE).enumerate() {
            let pinned = self.shared.pinned(piece.len())?;
            // SAFETY: the pinned memory is at least as large, and its last use is over. The GPU's
            // memory belongs to a tensor that is alive.
            let status = unsafe {
                std::ptr::copy_nonoverlapping(piece.as_ptr(), pinned.address, piece.len());
                let to = to + (i * PIECE) as u64;
                let from = pinned.address.cast_const().cast();
                sys::cuMemcpyHtoDAsync_v2(to, from, piece.len(), self.shared.context.stream())
            };
            status::driver(status, "a copy to the GPU")?;
            self.shared.record(&pinned)?;
            self.shared.uploads.lock().push_back(pinned);
        }
        Ok(())
    }

    /// Enqueues a copy to the host, and calls `done` when it is complete.
    pub fn download(&self, from: u64, bytes: usize, done: DownloadDone) {
        match self.start(from, bytes) {
            Ok(pinned) => {
                self.shared.queue.lock().0.push_back(Download { pinned, bytes, done });
                self.shared.changed.notify_one();
            }
            Err(e) => done(Err(e)),
        }
    }

    fn start(&self, from: u64, bytes: usize) -> Result<Pinned> {
        let pinned = self.shared.pinned(bytes)?;
        if bytes > 0 {
            let to = pinned.address.cast();
            // SAFETY: as for uploads.
            let status =
                unsafe { sys::cuMemcpyDtoHAsync_v2(to, from, bytes, self.shared.context.stream()) };
            status::driver(status, "a copy to the host")?;
        }
        self.shared.record(&pinned)?;
        Ok(pinned)
    }
}

impl Drop for Transfers {
    fn drop(&mut self) {
        self.shared.queue.lock().1 = true;
        self.shared.changed.notify_one();
        let id = std::thread::current().id();
        // The last owner may be a callback on the thread itself.
        if let Some(thread) = self.thread.take().filter(|t| t.thread().id() != id) {
            drop(thread.join());
        }
    }
}

impl Shared {
    fn record(&self, pinned: &Pinned) -> Result<()> {
        // SAFETY: event and stream are valid.
        let status = unsafe { sys::cuEventRecord(pinned.event, self.context.stream()) };
        status::driver(status, "an event")
    }

    /// Pinned memory for `bytes` bytes.
    fn pinned(&self, bytes: usize) -> Result<Pinned> {
        let size = bytes.next_power_of_two().max(SMALLEST);
        let mut finished = Vec::new();
        {
            let mut uploads = self.uploads.lock();
            while let Some(first) = uploads.front() {
                if !first.is_ready()? {
                    break;
                }
                finished.extend(uploads.pop_front());
            }
        }
        let mut idle = self.idle.lock();
        idle.append(&mut finished);
        match idle.iter().position(|p| p.len == size) {
            Some(at) => Ok(idle.swap_remove(at)),
            None => {
                drop(idle);
                Pinned::new(size)
            }
        }
    }

    fn run(&self) {
        if self.context.make_current().is_err() {
            return;
        }
        loop {
            let download = {
                let mut queue = self.queue.lock();
                self.changed.wait_while(&mut queue, |q| q.0.is_empty() && !q.1);
                match queue.0.pop_front() {
                    Some(download) => download,
                    None => return,
                }
            };
            let Download { pinned, bytes, done } = download;
            let copied = wait(&pinned).and_then(|()| copy_of(&pinned, bytes));
            if pinned.len <= LARGEST_KEPT {
                self.idle.lock().push(pinned);
            }
            done(copied);
        }
    }
}

fn wait(pinned: &Pinned) -> Result<(), Error> {
    for _ in 0..SPINS {
        if pinned.is_ready()? {
            return Ok(());
        }
        std::hint::spin_loop();
    }
    // SAFETY: the event is valid.
    status::driver(unsafe { sys::cuEventSynchronize(pinned.event) }, "work on the GPU")
}

fn copy_of(pinned: &Pinned, bytes: usize) -> Result<Buffer> {
    let mut buffer = Buffer::alloc(bytes)?;
    let to = buffer.bytes_mut().ok_or_else(|| err!(Internal, "a new buffer is not ours"))?;
    // SAFETY: the copy into the pinned memory is complete, and it is at least as large.
    unsafe { std::ptr::copy_nonoverlapping(pinned.address, to.as_mut_ptr(), bytes) };
    Ok(buffer)
}
