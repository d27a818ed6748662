//! The number of a frame instance, as it appears in rendezvous keys. Both ends of a transfer inside
//! a loop compute it on their own, so it equals TensorFlow's bit for bit.

/// The id of the instance of frame `name` that iteration `iteration` of frame `parent` entered. The
/// root frame is 0.
pub(crate) fn child_frame_id(parent: u64, iteration: u64, name: &str) -> u64 {
    combine(parent, combine(iteration, hash(name.as_bytes())))
}

fn combine(a: u64, b: u64) -> u64 {
    a ^ b.wrapping_add(0x9e37_79b9_7f4a_7800).wrapping_add(a << 10).wrapping_add(a >> 4)
}

/// MurmurHash64A with TensorFlow's seed.
fn hash(bytes: &[u8]) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mut h = 0x00DE_CAFC_AFFE_u64 ^ (bytes.len() as u64).wrapping_mul(M);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let mut k = u64::from_le_bytes(word.try_into().expect("chunks of eight"));
        k = k.wrapping_mul(M);
        k ^= k >> 47;
        h = (h ^ k.wrapping_mul(M)).wrapping_mul(M);
    }
    let tail = words.remainder();
    if !tail.is_empty() {
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        h = (h ^ u64::from_le_bytes(last)).wrapping_mul(M);
    }
    h ^= h >> 47;
    h = h.wrapping_mul(M);
    h ^ (h >> 47)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_tensorflows() {
        assert_eq!(hash(b"while/while_context"), 13831510404854872022);
        assert_eq!(hash(b""), 9328806548029283899);
        assert_eq!(child_frame_id(0, 0, "while/while_context"), 18186195969791715286);
    }
}
