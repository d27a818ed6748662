//! Elements that are moved without being read. The code is compiled once per element width and
//! serves every dtype.

use crate::{ResourceHandle, Result, Tensor, Variant, bail};
use bytes::Bytes;

/// A unit that ops like Concat, Gather and Transpose move. Plain dtypes move as integers of their
/// width. Strings, handles and variants move as themselves.
pub trait Movable: Clone + Default + PartialEq + Send + Sync + 'static {
    /// The elements of `t`. An error if they have another width.
    fn of(t: &Tensor) -> Result<&[Self]>;
    /// The elements of `t` for writing. Copies shared storage first.
    fn of_mut(t: &mut Tensor) -> Result<&mut [Self]>;
}

macro_rules! widths {
    ($($t:ty),*) => {$(
        impl Movable for $t {
            fn of(t: &Tensor) -> Result<&[Self]> {
                check_width(t, size_of::<$t>())?;
                let bytes = t.bytes()?;
                // SAFETY: integers accept any bits. The range holds `elements()` units of exactly
                // this width. Buffers are aligned to 16 bytes and elements lie at multiples of
                // their width, which is at least this type's alignment.
                Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), t.elements()) })
            }
            fn of_mut(t: &mut Tensor) -> Result<&mut [Self]> {
                check_width(t, size_of::<$t>())?;
                let n = t.elements();
                let bytes = t.bytes_mut()?;
                // SAFETY: as above, and `bytes_mut` gave this tensor exclusive access. The caller
                // writes elements of tensors of the same dtype, so `bool`s stay valid.
                Ok(unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), n) })
            }
        }
    )*};
}
widths!(u8, u16, u32, u64, [u64; 2]);

fn check_width(t: &Tensor, width: usize) -> Result<()> {
    if t.dtype().size() != Some(width) {
        bail!(Internal, "a {} tensor is not {width} bytes wide", t.dtype());
    }
    Ok(())
}

impl Movable for Bytes {
    fn of(t: &Tensor) -> Result<&[Self]> {
        t.strings()
    }
    fn of_mut(t: &mut Tensor) -> Result<&mut [Self]> {
        t.strings_mut()
    }
}

impl Movable for ResourceHandle {
    fn of(t: &Tensor) -> Result<&[Self]> {
        t.handles()
    }
    fn of_mut(t: &mut Tensor) -> Result<&mut [Self]> {
        t.handles_mut()
    }
}

impl Movable for Variant {
    fn of(t: &Tensor) -> Result<&[Self]> {
        t.variants()
    }
    fn of_mut(t: &mut Tensor) -> Result<&mut [Self]> {
        t.variants_mut()
    }
}
