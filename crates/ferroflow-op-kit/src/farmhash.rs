//! FarmHash's fingerprints of 64 bits (Pike and Alakuijala; the `na` variant, which is the fixed
//! one) and of 128 bits (the `cc` variant, which is CityHash128).

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;

/// The fingerprint of bytes. It is the same on every machine and in every version.
pub fn fingerprint64(s: &[u8]) -> u64 {
    match s.len() {
        0..=16 => up_to_16(s),
        17..=32 => up_to_32(s),
        33..=64 => up_to_64(s),
        _ => longer(s),
    }
}

/// The fingerprint of two fingerprints. Their order matters.
pub fn fingerprint_cat64(a: u64, b: u64) -> u64 {
    const MUL: u64 = 0xc6a4_a793_5bd1_e995;
    let mut result = a ^ MUL;
    result ^= shift_mix(b.wrapping_mul(MUL)).wrapping_mul(MUL);
    result = result.wrapping_mul(MUL);
    result = shift_mix(result).wrapping_mul(MUL);
    shift_mix(result)
}

/// The fingerprint of 128 bits: its low and its high word.
pub fn fingerprint128(s: &[u8]) -> (u64, u64) {
    match s.len() {
        0..16 => with_seed(s, (K0, K1)),
        _ => with_seed(&s[16..], (word(s, 0), word(s, 8).wrapping_add(K0))),
    }
}

/// The hash of two words.
fn pair(u: u64, v: u64) -> u64 {
    mix(u, v, 0x9ddf_ea08_eb38_2d69)
}

fn with_seed(s: &[u8], seed: (u64, u64)) -> (u64, u64) {
    if s.len() < 128 {
        return short_with_seed(s, seed);
    }
    let (mut x, mut y) = seed;
    let mut z = (s.len() as u64).wrapping_mul(K1);
    let first = rot(y ^ K1, 49).wrapping_mul(K1).wrapping_add(word(s, 0));
    let mut v = (first, rot(first, 42).wrapping_mul(K1).wrapping_add(word(s, 8)));
    let mut w = (
        rot(y.wrapping_add(z), 35).wrapping_mul(K1).wrapping_add(x),
        rot(x.wrapping_add(word(s, 88)), 53).wrapping_mul(K1),
    );
    let mut rounds = s.chunks_exact(128);
    for block in rounds.by_ref().flat_map(|round| round.chunks_exact(64)) {
        x = rot(sum([x, y, v.0, word(block, 8)]), 37).wrapping_mul(K1);
        y = rot(sum([y, v.1, word(block, 48)]), 42).wrapping_mul(K1);
        x ^= w.1;
        y = sum([y, v.0, word(block, 40)]);
        z = rot(z.wrapping_add(w.0), 33).wrapping_mul(K1);
        v = weak(block, v.1.wrapping_mul(K1), x.wrapping_add(w.0));
        w = weak(&block[32..], z.wrapping_add(w.1), y.wrapping_add(word(block, 16)));
        std::mem::swap(&mut z, &mut x);
    }
    x = x.wrapping_add(rot(v.0.wrapping_add(z), 49).wrapping_mul(K0));
    y = y.wrapping_mul(K0).wrapping_add(rot(w.1, 37));
    z = z.wrapping_mul(K0).wrapping_add(rot(w.0, 27));
    w.0 = w.0.wrapping_mul(9);
    v.0 = v.0.wrapping_mul(K0);
    // The rest, in chunks of 32 bytes from the end. The last chunk overlaps bytes that are hashed
    // already.
    let rest = rounds.remainder().len();
    for done in (32..rest + 32).step_by(32) {
        let chunk = &s[s.len() - done..];
        y = rot(x.wrapping_add(y), 42).wrapping_mul(K0).wrapping_add(v.1);
        w.0 = w.0.wrapping_add(word(chunk, 16));
        x = x.wrapping_mul(K0).wrapping_add(w.0);
        z = sum([z, w.1, word(chunk, 0)]);
        w.1 = w.1.wrapping_add(v.0);
        v = weak(chunk, v.0.wrapping_add(z), v.1);
        v.0 = v.0.wrapping_mul(K0);
    }
    x = pair(x, v.0);
    y = pair(y.wrapping_add(z), w.0);
    (pair(x.wrapping_add(v.1), w.1).wrapping_add(y), pair(x.wrapping_add(w.1), y.wrapping_add(v.1)))
}

fn short_with_seed(s: &[u8], seed: (u64, u64)) -> (u64, u64) {
    let (mut a, mut b) = seed;
    let len = s.len();
    let (mut c, mut d);
    if len <= 16 {
        a = shift_mix(a.wrapping_mul(K1)).wrapping_mul(K1);
        c = b.wrapping_mul(K1).wrapping_add(up_to_16(s));
        d = shift_mix(a.wrapping_add(if len >= 8 { word(s, 0) } else { c }));
    } else {
        c = pair(word(s, len - 8).wrapping_add(K1), a);
        d = pair(b.wrapping_add(len as u64), c.wrapping_add(word(s, len - 16)));
        a = a.wrapping_add(d);
        // Blocks of 16 bytes, but for the last 1 to 16 bytes.
        for block in s.chunks_exact(16).take((len - 1) / 16) {
            a ^= shift_mix(word(block, 0).wrapping_mul(K1)).wrapping_mul(K1);
            a = a.wrapping_mul(K1);
            b ^= a;
            c ^= shift_mix(word(block, 8).wrapping_mul(K1)).wrapping_mul(K1);
            c = c.wrapping_mul(K1);
            d ^= c;
        }
    }
    a = pair(a, c);
    b = pair(d, b);
    (a ^ b, pair(b, a))
}

fn word(s: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(s[at..at + 8].try_into().expect("eight bytes"))
}

fn half(s: &[u8], at: usize) -> u64 {
    u64::from(u32::from_le_bytes(s[at..at + 4].try_into().expect("four bytes")))
}

fn shift_mix(x: u64) -> u64 {
    x ^ (x >> 47)
}

fn rot(x: u64, by: u32) -> u64 {
    x.rotate_right(by)
}

/// The wrapping sum of several words.
fn sum<const N: usize>(words: [u64; N]) -> u64 {
    words.iter().fold(0, |a, &b| a.wrapping_add(b))
}

fn mix(u: u64, v: u64, mul: u64) -> u64 {
    let a = shift_mix((u ^ v).wrapping_mul(mul));
    shift_mix((v ^ a).wrapping_mul(mul)).wrapping_mul(mul)
}

fn mul_of(len: usize) -> u64 {
    K2.wrapping_add(len as u64 * 2)
}

fn up_to_16(s: &[u8]) -> u64 {
    let len = s.len();
    let mul = mul_of(len);
    if len >= 8 {
        let a = word(s, 0).wrapping_add(K2);
        let b = word(s, len - 8);
        let c = rot(b, 37).wrapping_mul(mul).wrapping_add(a);
        let d = rot(a, 25).wrapping_add(b).wrapping_mul(mul);
        return mix(c, d, mul);
    }
    if len >= 4 {
        return mix(len as u64 + (half(s, 0) << 3), half(s, len - 4), mul);
    }
    if len > 0 {
        let (a, b, c) = (u64::from(s[0]), u64::from(s[len >> 1]), u64::from(s[len - 1]));
        let (y, z) = (a + (b << 8), len as u64 + (c << 2));
        return shift_mix(y.wrapping_mul(K2) ^ z.wrapping_mul(K0)).wrapping_mul(K2);
    }
    K2
}

fn up_to_32(s: &[u8]) -> u64 {
    let len = s.len();
    let mul = mul_of(len);
    let a = word(s, 0).wrapping_mul(K1);
    let b = word(s, 8);
    let c = word(s, len - 8).wrapping_mul(mul);
    let d = word(s, len - 16).wrapping_mul(K2);
    mix(
        sum([rot(a.wrapping_add(b), 43), rot(c, 30), d]),
        sum([a, rot(b.wrapping_add(K2), 18), c]),
        mul,
    )
}

fn up_to_64(s: &[u8]) -> u64 {
    let len = s.len();
    let mul = mul_of(len);
    let a = word(s, 0).wrapping_mul(K2);
    let b = word(s, 8);
    let c = word(s, len - 8).wrapping_mul(mul);
    let d = word(s, len - 16).wrapping_mul(K2);
    let y = sum([rot(a.wrapping_add(b), 43), rot(c, 30), d]);
    let z = mix(y, sum([a, rot(b.wrapping_add(K2), 18), c]), mul);
    let e = word(s, 16).wrapping_mul(mul);
    let f = word(s, 24);
    let g = y.wrapping_add(word(s, len - 32)).wrapping_mul(mul);
    let h = z.wrapping_add(word(s, len - 24)).wrapping_mul(mul);
    mix(
        sum([rot(e.wrapping_add(f), 43), rot(g, 30), h]),
        sum([e, rot(f.wrapping_add(a), 18), g]),
        mul,
    )
}

/// A weak hash of 32 bytes and two seeds.
fn weak(s: &[u8], a: u64, b: u64) -> (u64, u64) {
    let [w, x, y, z] = [word(s, 0), word(s, 8), word(s, 16), word(s, 24)];
    let a = a.wrapping_add(w);
    let b = rot(sum([b, a, z]), 21);
    let last = sum([a, x, y]);
    (last.wrapping_add(z), sum([b, rot(last, 44), a]))
}

fn longer(s: &[u8]) -> u64 {
    let len = s.len();
    let seed = 81u64;
    let mut y = seed.wrapping_mul(K1).wrapping_add(113);
    let mut z = shift_mix(y.wrapping_mul(K2).wrapping_add(113)).wrapping_mul(K2);
    let mut x = seed.wrapping_mul(K2).wrapping_add(word(s, 0));
    let (mut v, mut w) = ((0u64, 0u64), (0u64, 0u64));
    for block in s.chunks(64).take((len - 1) / 64) {
        x = rot(sum([x, y, v.0, word(block, 8)]), 37).wrapping_mul(K1);
        y = rot(sum([y, v.1, word(block, 48)]), 42).wrapping_mul(K1);
        x ^= w.1;
        y = sum([y, v.0, word(block, 40)]);
        z = rot(z.wrapping_add(w.0), 33).wrapping_mul(K1);
        v = weak(block, v.1.wrapping_mul(K1), x.wrapping_add(w.0));
        w = weak(&block[32..], z.wrapping_add(w.1), y.wrapping_add(word(block, 16)));
        std::mem::swap(&mut z, &mut x);
    }
    let mul = K1.wrapping_add((z & 0xff) << 1);
    let last = &s[len - 64..];
    w.0 = w.0.wrapping_add((len as u64 - 1) & 63);
    v.0 = v.0.wrapping_add(w.0);
    w.0 = w.0.wrapping_add(v.0);
    x = rot(sum([x, y, v.0, word(last, 8)]), 37).wrapping_mul(mul);
    y = rot(sum([y, v.1, word(last, 48)]), 42).wrapping_mul(mul);
    x ^= w.1.wrapping_mul(9);
    y = sum([y, v.0.wrapping_mul(9), word(last, 40)]);
    z = rot(z.wrapping_add(w.0), 33).wrapping_mul(mul);
    v = weak(last, v.1.wrapping_mul(mul), x.wrapping_add(w.0));
    w = weak(&last[32..], z.wrapping_add(w.1), y.wrapping_add(word(last, 16)));
    std::mem::swap(&mut z, &mut x);
    mix(
        sum([mix(v.0, w.0, mul), shift_mix(y).wrapping_mul(K0), z]),
        mix(v.1, w.1, mul).wrapping_add(x),
        mul,
    )
}
