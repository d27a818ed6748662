//! The forward cosine transform of 8 by 8 samples, in the integer arithmetic of libjpeg.

const BITS: u32 = 13;
const PASS: u32 = 2;

fn round(x: i32, bits: u32) -> i32 {
    (x + (1 << (bits - 1))) >> bits
}

/// Transforms samples less 128; coefficients come out eight times as large.
pub(super) fn transform(x: &mut [i32; 64]) {
    for row in x.chunks_exact_mut(8) {
        let line = [row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]];
        row.copy_from_slice(&one(line, true));
    }
    for col in 0..8 {
        let mut line = [0; 8];
        (0..8).for_each(|i| line[i] = x[8 * i + col]);
        let line = one(line, false);
        (0..8).for_each(|i| x[8 * i + col] = line[i]);
    }
}

fn one(x: [i32; 8], first: bool) -> [i32; 8] {
    let (t0, t7) = (x[0] + x[7], x[0] - x[7]);
    let (t1, t6) = (x[1] + x[6], x[1] - x[6]);
    let (t2, t5) = (x[2] + x[5], x[2] - x[5]);
    let (t3, t4) = (x[3] + x[4], x[3] - x[4]);
    let (t10, t13) = (t0 + t3, t0 - t3);
    let (t11, t12) = (t1 + t2, t1 - t2);
    let flat = |x: i32| if first { x << PASS } else { round(x, PASS) };
    let bits = if first { BITS - PASS } else { BITS + PASS };
    let z1 = (t12 + t13) * 4433;
    let (z1o, z2o, z3o, z4o) = (t4 + t7, t5 + t6, t4 + t6, t5 + t7);
    let z5 = (z3o + z4o) * 9633;
    let (z1o, z2o) = (z1o * -7373, z2o * -20995);
    let (z3o, z4o) = (z3o * -16069 + z5, z4o * -3196 + z5);
    [
        flat(t10 + t11),
        round(t7 * 12299 + z1o + z4o, bits),
        round(z1 + t13 * 6270, bits),
        round(t6 * 25172 + z2o + z3o, bits),
        flat(t10 - t11),
        round(t5 * 16819 + z2o + z4o, bits),
        round(z1 - t12 * 15137, bits),
        round(t4 * 2446 + z1o + z3o, bits),
    ]
}
