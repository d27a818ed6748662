//! An LU factorization that selects pivots by modulus.

use crate::Field;

/// Like [`Field::lu`], which compares complex entries by the sum of the sizes of their parts. The
/// product is the same, but the rows and factors may differ.
pub fn lu_by_modulus<T: Field>(a: &mut [T], n: usize) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..n).collect();
    for k in 0..n {
        let size = |i: usize| a[i * n + k].modulus();
        let pivot = (k + 1..n).fold(k, |best, i| if size(i) > size(best) { i } else { best });
        if pivot != k {
            rows.swap(k, pivot);
            let (above, below) = a.split_at_mut(pivot * n);
            above[k * n..(k + 1) * n].swap_with_slice(&mut below[..n]);
        }
        let (above, below) = a.split_at_mut((k + 1) * n);
        let top = &above[k * n..];
        if top[k] == T::ZERO {
            continue;
        }
        for row in below.chunks_exact_mut(n) {
            let factor = row[k].over(top[k]);
            row[k] = factor;
            for (x, &u) in row[k + 1..].iter_mut().zip(&top[k + 1..]) {
                *x = x.minus(factor.times(u));
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Complex64;

    #[test]
    fn the_pivot_is_the_entry_of_largest_modulus() {
        let z = |re: f64, im: f64| Complex64::new(re, im);
        let whole = [z(3.0, 3.0), z(1.0, 0.0), z(4.5, 0.0), z(2.0, -1.0)];
        let mut lu = whole;
        assert_eq!(lu_by_modulus(&mut lu, 2), [1, 0]);
        assert_eq!(lu[..2], whole[2..]);
        let product = [lu[2] * lu[0], lu[2] * lu[1] + lu[3]];
        for (got, want) in product.iter().zip(&whole[..2]) {
            assert!((got - want).norm() < 1e-12, "{got} is not {want}");
        }
        assert_eq!(Complex64::lu(&mut whole.clone(), 2), [0, 1]);
    }

    #[test]
    fn a_column_of_zeros_gives_a_zero_on_the_diagonal() {
        let mut lu = [0.0, 1.0, 0.0, 2.0];
        lu_by_modulus(&mut lu, 2);
        assert_eq!(lu[0], 0.0);
        assert!(lu_by_modulus::<f64>(&mut [], 0).is_empty());
    }
}
