//! Memory of a GPU that several processes of one host use.

use crate::status;
use cudarc::driver::sys::{self, CUipcMem_flags, CUipcMemHandle};
use ferroflow_core::{HashMap, Result, ensure};
use parking_lot::Mutex;

const HANDLE_BYTES: usize = size_of::<CUipcMemHandle>();

/// A name of the memory at `address`: the driver's name of the whole allocation, and the offset in
/// it.
pub(crate) fn export(address: u64) -> Result<Vec<u8>> {
    let (mut base, mut size) = (0, 0);
    // SAFETY: the address belongs to a tensor that is alive, and the driver sets both values.
    let status = unsafe { sys::cuMemGetAddressRange_v2(&mut base, &mut size, address) };
    status::driver(status, "the allocation of a tensor")?;
    // SAFETY: all bytes may be zero.
    let mut handle: CUipcMemHandle = unsafe { std::mem::zeroed() };
    // SAFETY: the allocation is alive, and the driver sets the handle.
    let status = unsafe { sys::cuIpcGetMemHandle(&mut handle, base) };
    status::driver(status, "sharing memory with other processes")?;
    // SAFETY: the handle is plain bytes.
    let bytes: [u8; HANDLE_BYTES] = unsafe { std::mem::transmute(handle) };
    Ok([&bytes[..], &(address - base).to_le_bytes()].concat())
}

/// The most allocations of other processes that are open.
const MOST_OPEN: usize = 4096;

/// Allocations of other processes that this one has opened. They stay open: allocators keep their
/// large chunks, so there are few.
#[derive(Default)]
pub(crate) struct Imported {
    /// The address and the size of each, by the driver's name.
    bases: Mutex<HashMap<Vec<u8>, (u64, usize)>>,
}

impl Imported {
    /// The address in this process of `bytes` bytes that [`export`] named in another one.
    pub fn import(&self, exported: &[u8], bytes: usize) -> Result<u64> {
        ensure!(
            exported.len() == HANDLE_BYTES + 8,
            InvalidArgument,
            "{} bytes are no name of a GPU's memory",
            exported.len()
        );
        let (name, offset) = exported.split_at(HANDLE_BYTES);
        let offset = u64::from_le_bytes(offset.try_into().unwrap_or_default());
        let (base, size) = self.opened(name)?;
        // An access outside of the allocation would end all work on the GPU.
        let end = offset.checked_add(bytes as u64);
        ensure!(
            end.is_some_and(|end| end <= size as u64),
            InvalidArgument,
            "{bytes} bytes at {offset} are outside of another process's memory of {size} bytes"
        );
        Ok(base + offset)
    }

    /// The address and the size of an allocation of another process.
    fn opened(&self, name: &[u8]) -> Result<(u64, usize)> {
        let mut bases = self.bases.lock();
        if let Some(known) = bases.get(name) {
            return Ok(*known);
        }
        ensure!(
            bases.len() < MOST_OPEN,
            ResourceExhausted,
            "{MOST_OPEN} pieces of other processes' memory are open"
        );
        let mut handle = [0u8; HANDLE_BYTES];
        handle.copy_from_slice(name);
        // SAFETY: the handle is plain bytes.
        let handle: CUipcMemHandle = unsafe { std::mem::transmute(handle) };
        let flags = CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        let mut base = 0;
        // SAFETY: the driver checks the handle and sets the address.
        let status = unsafe { sys::cuIpcOpenMemHandle_v2(&mut base, handle, flags) };
        status::driver(status, "memory of another process")?;
        let (mut start, mut size) = (0, 0);
        // SAFETY: the allocation is open, and the driver sets both values.
        let status = unsafe { sys::cuMemGetAddressRange_v2(&mut start, &mut size, base) };
        status::driver(status, "the size of another process's memory")?;
        bases.insert(name.to_vec(), (base, size));
        Ok((base, size))
    }
}
