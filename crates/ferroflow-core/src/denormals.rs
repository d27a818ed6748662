//! Denormal floats are flushed to zero while kernels run, as in TensorFlow: results agree with its
//! own, and arithmetic on values near zero is not slowed down a hundred times.

use std::marker::PhantomData;
use std::sync::OnceLock;

/// Flushes denormal inputs and results of floating-point instructions to zero on this thread until
/// it is dropped. Copies of values keep their bits.
pub struct FlushDenormals {
    before: Option<control::Word>,
    /// The mode belongs to a thread.
    _thread: PhantomData<*const ()>,
}

impl FlushDenormals {
    /// Starts to flush, unless the process keeps denormals.
    pub fn begin() -> FlushDenormals {
        let mut before = None;
        if !keeps_denormals() {
            let word = control::read();
            let flushing = word | control::FLUSH;
            if word != flushing {
                control::write(flushing);
                before = Some(word);
            }
        }
        FlushDenormals { before, _thread: PhantomData }
    }

    /// Flushes on this thread until it ends.
    pub fn for_thread() {
        std::mem::forget(FlushDenormals::begin());
    }
}

impl Drop for FlushDenormals {
    fn drop(&mut self) {
        if let Some(word) = self.before {
            control::write(word);
        }
    }
}

/// Whether `FERROFLOW_DENORMALS=keep` is set in the environment of this process.
fn keeps_denormals() -> bool {
    static KEEPS: OnceLock<bool> = OnceLock::new();
    *KEEPS.get_or_init(|| std::env::var("FERROFLOW_DENORMALS").is_ok_and(|v| v == "keep"))
}

#[cfg(target_arch = "x86_64")]
mod control {
    use std::arch::asm;

    pub(super) type Word = u32;
    /// Flush-to-zero and denormals-are-zero.
    pub(super) const FLUSH: Word = 0x8040;

    pub(super) fn read() -> Word {
        let mut word: Word = 0;
        // SAFETY: stores the control register into `word`.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
        word
    }

    pub(super) fn write(word: Word) {
        // SAFETY: `word` is a value that was read, with or without the two bits above. No other
        // code of the process reads the bits, and none depends on denormals.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, readonly)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod control {
    use std::arch::asm;

    pub(super) type Word = u64;
    /// Flush-to-zero, for inputs and results.
    pub(super) const FLUSH: Word = 1 << 24;

    pub(super) fn read() -> Word {
        let word: Word;
        // SAFETY: reads the control register.
        unsafe { asm!("mrs {}, fpcr", out(reg) word, options(nomem, nostack, preserves_flags)) };
        word
    }

    pub(super) fn write(word: Word) {
        // SAFETY: `word` is a value that was read, with or without the bit above.
        unsafe { asm!("msr fpcr, {}", in(reg) word, options(nomem, nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod control {
    pub(super) type Word = u32;
    pub(super) const FLUSH: Word = 0;

    pub(super) fn read() -> Word {
        0
    }

    pub(super) fn write(_: Word) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn denormals_are_zero_only_while_the_guard_lives() {
        let (small, double) = (black_box(1e-38f32), black_box(1e-307f64));
        let quarter = |x: f32| black_box(x) * black_box(0.25);
        assert!(quarter(small) > 0.0);
        {
            let _outer = FlushDenormals::begin();
            assert_eq!(quarter(small), 0.0);
            assert_eq!(black_box(double) * black_box(0.01), 0.0);
            drop(FlushDenormals::begin());
            assert_eq!(quarter(small), 0.0, "the end of an inner guard changes nothing");
        }
        assert!(quarter(small) > 0.0);
    }
}
