//! Formulas over single elements, and the loops that run them over slices.
//!
//! Each loop, here and in other uses of `multiversion!`, is compiled for any x86-64 and for AVX2.
//! The fastest version is chosen at run time. Loops that compute more than they move are compiled
//! for AVX-512 too. All versions do the same operations in the same order, so results do not depend
//! on the machine.

/// A formula of one argument.
pub trait Unary<T, U = T> {
    /// About how many nanoseconds an element takes.
    const COST: usize = 1;
    fn eval(x: T) -> U;
}

/// A formula of two arguments.
pub trait Binary<T, U = T> {
    const COST: usize = 1;
    fn eval(a: T, b: T) -> U;
}

/// Defines loops of the form `fn(args)`: an inlined body behind a choice of instruction sets. A
/// preceding `wide(condition)` says when AVX-512 is worth a third copy of the code.
#[macro_export]
macro_rules! multiversion {
    ($(#[$doc:meta])* $vis:vis fn $($rest:tt)*) => {
        $crate::multiversion! { $(#[$doc])* wide(false) $vis fn $($rest)* }
    };
    ($(#[$doc:meta])* wide($wide:expr) $vis:vis fn $name:ident[$($g:tt)*]<$($use:ident),*>($($arg:ident: $t:ty),*) $body:block) => {
        $(#[$doc])*
        $vis fn $name<$($g)*>($($arg: $t),*) {
            #[inline(always)]
            fn body<$($g)*>($($arg: $t),*) $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2<$($g)*>($($arg: $t),*) {
                body::<$($use),*>($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            fn avx512<$($g)*>($($arg: $t),*) {
                body::<$($use),*>($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            if $wide && $crate::vector::has_avx512() {
                // SAFETY: the processor has these instructions.
                return unsafe { avx512::<$($use),*>($($arg),*) };
            }
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2.
                return unsafe { avx2::<$($use),*>($($arg),*) };
            }
            body::<$($use),*>($($arg),*)
        }
    };
}
/// Whether this processor has the instructions that `wide` loops are compiled for.
#[cfg(target_arch = "x86_64")]
pub fn has_avx512() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl")
}

/// `x = f(x)` for every element, through a copy. Where a formula may leave an element unchanged, a
/// loop in place would compile to masked stores, which are very slow on some processors.
pub fn map_in_place<F: Unary<T>, T: Copy>(xs: &mut [T]) {
    const BLOCK: usize = 64;
    for block in xs.chunks_mut(BLOCK) {
        let n = block.len();
        let mut old = [block[0]; BLOCK];
        old[..n].copy_from_slice(block);
        map::<F, T, T>(&old[..n], block);
    }
}

multiversion! {
    /// `out = f(x)`, up to the shorter slice. Uses AVX-512 for single precision, where the
    /// functions are our own and vectorised. Simple arithmetic is limited by memory instead.
    wide(F::COST >= 5 && size_of::<T>() <= 4)
    pub fn map[F: Unary<T, U>, T: Copy, U]<F, T, U>(xs: &[T], out: &mut [U]) {
        for (to, &x) in out.iter_mut().zip(xs) {
            *to = F::eval(x);
        }
    }
}

multiversion! {
    /// `out = f(a, b)`, up to the shortest slice.
    pub fn zip[F: Binary<T, U>, T: Copy, U]<F, T, U>(a: &[T], b: &[T], out: &mut [U]) {
        for ((to, &x), &y) in out.iter_mut().zip(a).zip(b) {
            *to = F::eval(x, y);
        }
    }
}
