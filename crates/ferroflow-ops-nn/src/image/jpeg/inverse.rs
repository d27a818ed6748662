//! Inverse cosine transforms of 8 by 8 coefficients, in the integer arithmetic of libjpeg: the
//! accurate one, the fast one, and those that give smaller blocks.

/// How a block is converted to samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Transform {
    /// 8 by 8, accurate.
    Accurate,
    /// 8 by 8, fast.
    Fast,
    /// 4 by 4, 2 by 2 or 1 by 1.
    Reduced(usize),
}

impl Transform {
    /// Samples across and down.
    pub fn size(self) -> usize {
        match self {
            Transform::Reduced(size) => size,
            _ => 8,
        }
    }

    /// The factors that coefficients are multiplied with.
    pub fn factors(self, table: &[u16; 64]) -> [i32; 64] {
        let mut factors = [0; 64];
        for (i, (to, &q)) in factors.iter_mut().zip(table).enumerate() {
            *to = match self {
                // The fast transform takes scaled coefficients.
                Transform::Fast => (i32::from(q) * scale(i) + (1 << 11)) >> 12,
                _ => i32::from(q),
            };
        }
        factors
    }

    /// Transforms a block; `put(row, samples)` takes each row.
    pub fn run(self, block: &[i16], factors: &[i32; 64], mut put: impl FnMut(usize, &[u8])) {
        let mut x = [0i32; 64];
        for ((x, &c), &f) in x.iter_mut().zip(block).zip(factors) {
            *x = i32::from(c).wrapping_mul(f);
        }
        match self {
            Transform::Accurate => accurate(&mut x),
            Transform::Fast => fast(&mut x),
            Transform::Reduced(4) => four(&mut x),
            Transform::Reduced(2) => two(&mut x),
            Transform::Reduced(_) => x[0] = round(x[0], 3),
        }
        let size = self.size();
        for row in 0..size {
            let mut samples = [0; 8];
            for (to, &x) in samples.iter_mut().zip(&x[8 * row..8 * row + size]) {
                *to = x.saturating_add(128).clamp(0, 255) as u8;
            }
            put(row, &samples[..size]);
        }
    }
}

/// The scale of coefficient `i` in the fast transform, with 14 bits behind the point: the product
/// of those of its row and column.
fn scale(i: usize) -> i32 {
    const SCALES: [f64; 8] =
        [1.0, 1.387039845, 1.306562965, 1.175875602, 1.0, 0.785694958, 0.541196100, 0.275899379];
    (SCALES[i / 8] * SCALES[i % 8] * 16384.0).round() as i32
}

/// Divides by a power of two and rounds to the nearest.
fn round(x: i32, bits: u32) -> i32 {
    x.wrapping_add(1 << (bits - 1)) >> bits
}

/// Runs a transform of eight values over all columns, then over all rows.
fn separable(x: &mut [i32; 64], one: fn([i32; 8], u32) -> [i32; 8], after: [u32; 2]) {
    for col in 0..8 {
        let mut line = [0; 8];
        (0..8).for_each(|i| line[i] = x[8 * i + col]);
        let line = one(line, after[0]);
        (0..8).for_each(|i| x[8 * i + col] = line[i]);
    }
    for row in x.chunks_exact_mut(8) {
        let line = [row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]];
        row.copy_from_slice(&one(line, after[1]));
    }
}

const BITS: u32 = 13;
/// Bits kept between the two passes.
const PASS: u32 = 2;

fn mul(x: i32, y: i32) -> i32 {
    x.wrapping_mul(y)
}

fn sum(terms: &[i32]) -> i32 {
    terms.iter().fold(0, |a, b| a.wrapping_add(*b))
}

fn accurate(x: &mut [i32; 64]) {
    separable(x, accurate_line, [BITS - PASS, BITS + PASS + 3]);
}

fn accurate_line(x: [i32; 8], bits: u32) -> [i32; 8] {
    let z = mul(x[2].wrapping_add(x[6]), 4433);
    let (even2, even3) = (sum(&[z, mul(x[6], -15137)]), sum(&[z, mul(x[2], 6270)]));
    let even0 = x[0].wrapping_add(x[4]) << BITS;
    let even1 = x[0].wrapping_sub(x[4]) << BITS;
    let (t10, t13) = (sum(&[even0, even3]), even0.wrapping_sub(even3));
    let (t11, t12) = (sum(&[even1, even2]), even1.wrapping_sub(even2));
    let (o0, o1, o2, o3) = (x[7], x[5], x[3], x[1]);
    let z5 = mul(sum(&[o0, o2, o1, o3]), 9633);
    let z1 = mul(o0.wrapping_add(o3), -7373);
    let z2 = mul(o1.wrapping_add(o2), -20995);
    let z3 = sum(&[mul(o0.wrapping_add(o2), -16069), z5]);
    let z4 = sum(&[mul(o1.wrapping_add(o3), -3196), z5]);
    let t0 = sum(&[mul(o0, 2446), z1, z3]);
    let t1 = sum(&[mul(o1, 16819), z2, z4]);
    let t2 = sum(&[mul(o2, 25172), z2, z3]);
    let t3 = sum(&[mul(o3, 12299), z1, z4]);
    let add = |a: i32, b: i32| round(a.wrapping_add(b), bits);
    let sub = |a: i32, b: i32| round(a.wrapping_sub(b), bits);
    [
        add(t10, t3),
        add(t11, t2),
        add(t12, t1),
        add(t13, t0),
        sub(t13, t0),
        sub(t12, t1),
        sub(t11, t2),
        sub(t10, t3),
    ]
}

fn fast(x: &mut [i32; 64]) {
    separable(x, fast_line, [0, PASS + 3]);
}

fn fast_line(x: [i32; 8], bits: u32) -> [i32; 8] {
    let times = |x: i32, factor: i32| mul(x, factor) >> 8;
    let (t10, t11) = (x[0].wrapping_add(x[4]), x[0].wrapping_sub(x[4]));
    let t13 = x[2].wrapping_add(x[6]);
    let t12 = times(x[2].wrapping_sub(x[6]), 362).wrapping_sub(t13);
    let (e0, e3) = (t10.wrapping_add(t13), t10.wrapping_sub(t13));
    let (e1, e2) = (t11.wrapping_add(t12), t11.wrapping_sub(t12));
    let (z13, z10) = (x[5].wrapping_add(x[3]), x[5].wrapping_sub(x[3]));
    let (z11, z12) = (x[1].wrapping_add(x[7]), x[1].wrapping_sub(x[7]));
    let o7 = z11.wrapping_add(z13);
    let o11 = times(z11.wrapping_sub(z13), 362);
    let z5 = times(z10.wrapping_add(z12), 473);
    let o10 = times(z12, 277).wrapping_sub(z5);
    let o12 = times(z10, -669).wrapping_add(z5);
    let o6 = o12.wrapping_sub(o7);
    let o5 = o11.wrapping_sub(o6);
    let o4 = o10.wrapping_add(o5);
    let add = |a: i32, b: i32| a.wrapping_add(b) >> bits;
    let sub = |a: i32, b: i32| a.wrapping_sub(b) >> bits;
    [
        add(e0, o7),
        add(e1, o6),
        add(e2, o5),
        sub(e3, o4),
        add(e3, o4),
        sub(e2, o5),
        sub(e1, o6),
        sub(e0, o7),
    ]
}

fn four(x: &mut [i32; 64]) {
    let one = |x: [i32; 8], bits: u32| {
        let even = x[0] << (BITS + 1);
        let tilt = sum(&[mul(x[2], 15137), mul(x[6], -6270)]);
        let (t10, t12) = (even.wrapping_add(tilt), even.wrapping_sub(tilt));
        let t0 = sum(&[mul(x[7], -1730), mul(x[5], 11893), mul(x[3], -17799), mul(x[1], 8697)]);
        let t2 = sum(&[mul(x[7], -4176), mul(x[5], -4926), mul(x[3], 7373), mul(x[1], 20995)]);
        [
            round(t10.wrapping_add(t2), bits),
            round(t12.wrapping_add(t0), bits),
            round(t12.wrapping_sub(t0), bits),
            round(t10.wrapping_sub(t2), bits),
        ]
    };
    for col in (0..8).filter(|&col| col != 4) {
        let mut line = [0; 8];
        (0..8).for_each(|i| line[i] = x[8 * i + col]);
        let line = one(line, BITS - PASS + 1);
        (0..4).for_each(|i| x[8 * i + col] = line[i]);
    }
    for row in x.chunks_exact_mut(8).take(4) {
        let line = [row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]];
        row[..4].copy_from_slice(&one(line, BITS + PASS + 3 + 1));
    }
}

fn two(x: &mut [i32; 64]) {
    let one = |x: [i32; 8], bits: u32| {
        let even = x[0] << (BITS + 2);
        let odd = sum(&[mul(x[7], -5906), mul(x[5], 6967), mul(x[3], -10426), mul(x[1], 29692)]);
        [round(even.wrapping_add(odd), bits), round(even.wrapping_sub(odd), bits)]
    };
    for col in [0, 1, 3, 5, 7] {
        let mut line = [0; 8];
        (0..8).for_each(|i| line[i] = x[8 * i + col]);
        let line = one(line, BITS - PASS + 2);
        (0..2).for_each(|i| x[8 * i + col] = line[i]);
    }
    for row in x.chunks_exact_mut(8).take(2) {
        let line = [row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]];
        row[..2].copy_from_slice(&one(line, BITS + PASS + 3 + 2));
    }
}
