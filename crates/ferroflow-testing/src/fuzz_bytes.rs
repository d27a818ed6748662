//! Short runs of the fuzz targets that parse bytes: the same inputs each time, most of them valid
//! inputs with some changes.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Inputs of one run.
const CASES: u64 = 3000;

/// Runs `parse` on random bytes and on changed `samples`. `FERROFLOW_FUZZ_CASES=first..last`
/// chooses other seeds.
///
/// # Panics
/// If `parse` panics for one of them; the message has its seed and bytes.
pub fn fuzz_bytes(parse: fn(&[u8]), samples: &[Vec<u8>]) {
    samples.iter().for_each(|sample| parse(sample));
    parse(&[]);
    let cases = match std::env::var("FERROFLOW_FUZZ_CASES") {
        Ok(text) => {
            let (first, last) = text.split_once("..").expect("FERROFLOW_FUZZ_CASES=first..last");
            first.parse().expect("a number")..last.parse().expect("a number")
        }
        Err(_) => 0..CASES,
    };
    for seed in cases {
        let mut random = fastrand::Rng::with_seed(seed);
        let input = match samples.is_empty() || random.u8(..8) == 0 {
            true => random_bytes(&mut random, 600),
            false => changed(&mut random, samples),
        };
        if catch_unwind(AssertUnwindSafe(|| parse(&input))).is_err() {
            panic!("case {seed} panicked: {}", input.escape_ascii());
        }
    }
}

fn random_bytes(random: &mut fastrand::Rng, most: usize) -> Vec<u8> {
    let mut bytes = vec![0; random.usize(..most)];
    random.fill(&mut bytes);
    bytes
}

/// A sample with up to five changes.
fn changed(random: &mut fastrand::Rng, samples: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = samples[random.usize(..samples.len())].clone();
    for _ in 0..random.usize(1..6) {
        let at = random.usize(..=bytes.len());
        match random.u8(..7) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.u8(..)),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 if at < bytes.len() => bytes[at] ^= 1 << random.u8(..8),
            4 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.usize(..5)],
            // A length of any size.
            5 => {
                let number = u64::MAX >> random.u32(..64);
                let number = &number.to_le_bytes()[..[2, 4, 8][random.usize(..3)]];
                for (to, from) in bytes.iter_mut().skip(at).zip(number) {
                    *to = *from;
                }
            }
            _ => {
                let other = &samples[random.usize(..samples.len())];
                let from = random.usize(..=other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
        }
    }
    bytes
}
