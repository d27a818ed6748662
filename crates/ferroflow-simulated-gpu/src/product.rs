//! Matrix products of the simulated GPU, in the plainest way.

use ferroflow_core::{DType, Gemm, bf16, f16};

/// Computes the products.
///
/// # Safety
/// The addresses must be valid for matrices of these sizes, and `c` must not overlap the others.
pub(crate) unsafe fn multiply(gemm: &Gemm) {
    // SAFETY: the caller vouches for the addresses.
    unsafe {
        match gemm.dtype {
            DType::Double => each::<f64, f64>(gemm, |x| x, |x| x),
            DType::Half => each::<f16, f32>(gemm, f16::to_f32, f16::from_f32),
            DType::BFloat16 => each::<bf16, f32>(gemm, bf16::to_f32, bf16::from_f32),
            _ => each::<f32, f32>(gemm, |x| x, |x| x),
        }
    }
}

unsafe fn each<T, W>(gemm: &Gemm, wide: fn(T) -> W, narrow: fn(W) -> T)
where
    T: Copy,
    W: Copy + Default + std::ops::Add<Output = W> + std::ops::Mul<Output = W>,
{
    let &Gemm { m, n, k, batch, strides, .. } = gemm;
    for i in 0..batch {
        // SAFETY: the caller vouches for `batch` matrices at these distances.
        let (a, b, c) = unsafe {
            (
                std::slice::from_raw_parts((gemm.a as *const T).add(i * strides[0]), m * k),
                std::slice::from_raw_parts((gemm.b as *const T).add(i * strides[1]), k * n),
                std::slice::from_raw_parts_mut((gemm.c as *mut T).add(i * strides[2]), m * n),
            )
        };
        for row in 0..m {
            let mut sums = vec![W::default(); n];
            for step in 0..k {
                let x = wide(a[if gemm.transpose_a { step * m + row } else { row * k + step }]);
                for (col, sum) in sums.iter_mut().enumerate() {
                    let y = b[if gemm.transpose_b { col * k + step } else { step * n + col }];
                    *sum = *sum + x * wide(y);
                }
            }
            // SAFETY: the caller vouches for the address.
            let bias =
                gemm.bias.map(|bias| unsafe { std::slice::from_raw_parts(bias as *const T, n) });
            for (i, x) in bias.unwrap_or(&[]).iter().enumerate() {
                sums[i] = sums[i] + wide(*x);
            }
            for (to, sum) in c[row * n..(row + 1) * n].iter_mut().zip(sums) {
                *to = narrow(if gemm.accumulate { wide(*to) + sum } else { sum });
            }
        }
    }
}
