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

/// Allocations of other processes that this one has opened. They stay open: allocators keep their
/// large chunks, so there are few.
#[derive(Default)]
pub(crate) struct Imported {
    bases: Mutex<HashMap<Vec<u8>, u64>>,
}

impl Imported {
    /// The address in this process of memory that [`export`] named in another one.
    pub fn import(&self, exported: &[u8]) -> Result<u64> {
        ensure!(
            exported.len() == HANDLE_BYTES + 8,
            InvalidArgument,
            "{} bytes are no name of a GPU's memory",
            exported.len()
        );
        let (name, offset) = exported.split_at(HANDLE_BYTES);
        let offset = u64::from_le_bytes(offset.try_into().unwrap_or_default());
        let mut bases = self.bases.lock();
        if let Some(base) = bases.get(name) {
            return Ok(base + offset);
        }
        let mut bytes = [0u8; HANDLE_BYTES];
        bytes.copy_from_slice(name);
        // SAFETY: the handle is plain bytes.
        let handle: CUipcMemHandle = unsafe { std::mem::transmute(bytes) };
        let flags = CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        let mut base = 0;
        // SAFETY: the driver checks the handle and sets the address.
        let status = unsafe { sys::cuIpcOpenMemHandle_v2(&mut base, handle, flags) };
        status::driver(status, "memory of another process")?;
        bases.insert(name.to_vec(), base);
        Ok(base + offset)
    }
}
