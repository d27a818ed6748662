//! mimalloc, the allocator of our programs.

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc,
    mi_zalloc_aligned,
};
use std::alloc::{GlobalAlloc, Layout};

/// mimalloc. The wrapper of the crate `mimalloc` asks for the alignment of each block, which takes
/// twice the instructions. Nearly all blocks have their alignment by themselves.
pub struct Mimalloc;

/// The alignment of all blocks.
const LEAST_ALIGN: usize = 8;
/// The alignment of blocks of at least as many bytes (`MI_MAX_ALIGN_SIZE`).
const USUAL_ALIGN: usize = 16;

/// Whether a block for this layout is aligned without asking for it.
#[inline]
fn is_aligned(size: usize, align: usize) -> bool {
    align <= LEAST_ALIGN || (align <= USUAL_ALIGN && size >= USUAL_ALIGN)
}

// SAFETY: mimalloc keeps the contract of an allocator. Its blocks are aligned as `is_aligned` says,
// and as was asked for otherwise.
unsafe impl GlobalAlloc for Mimalloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: any size and any power of two are allowed.
        let block = unsafe {
            match is_aligned(size, align) {
                true => mi_malloc(size),
                false => mi_malloc_aligned(size, align),
            }
        };
        block.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: any size and any power of two are allowed.
        let block = unsafe {
            match is_aligned(size, align) {
                true => mi_zalloc(size),
                false => mi_zalloc_aligned(size, align),
            }
        };
        block.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, ptr: *mut u8, _: Layout) {
        // SAFETY: by the contract of `dealloc` this block is from this allocator and in use.
        unsafe { mi_free(ptr.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: by the contract of `realloc` this block is from this allocator and in use.
        let block = unsafe {
            match is_aligned(new_size, layout.align()) {
                true => mi_realloc(ptr.cast(), new_size),
                false => mi_realloc_aligned(ptr.cast(), new_size, layout.align()),
            }
        };
        block.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri cannot call C")]
    fn blocks_of_all_sizes_are_aligned_and_keep_their_bytes() {
        for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
            for size in (1..300).chain([1000, 1024, 5000, 65_536, 1 << 20]) {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: the layout has a size; blocks are used up to their size and freed once.
                unsafe {
                    let block = Mimalloc.alloc(layout);
                    assert!(!block.is_null() && block.align_offset(align) == 0, "{layout:?}");
                    block.write_bytes(7, size);
                    let block = Mimalloc.realloc(block, layout, size + 1);
                    assert_eq!(block.align_offset(align), 0, "{layout:?}");
                    assert!((0..size).all(|at| *block.add(at) == 7));
                    let zero = Mimalloc.alloc_zeroed(layout);
                    assert_eq!(zero.align_offset(align), 0, "{layout:?}");
                    assert!((0..size).all(|at| *zero.add(at) == 0));
                    Mimalloc.dealloc(zero, layout);
                    Mimalloc.dealloc(block, Layout::from_size_align(size + 1, align).unwrap());
                }
            }
        }
    }
}
