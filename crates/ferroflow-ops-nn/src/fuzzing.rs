//! Decoders of images, for the fuzz target. An input may be an error. It must not panic or take
//! memory beyond its limits.

/// An image of any format.
pub fn images(data: &[u8]) {
    crate::image::fuzz(data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;
    use ferroflow_core::Tensor;
    use ferroflow_testing::fuzz_bytes;

    /// A small image in each format.
    fn samples() -> Vec<Vec<u8>> {
        let gif =
            b"GIF89a\x02\0\x02\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x02\0\x02\0\0\x02\x02\x84Q\0;";
        let mut bmp = vec![0u8; 54];
        bmp[..2].copy_from_slice(b"BM");
        bmp[10..14].copy_from_slice(&54i32.to_le_bytes());
        bmp[18..22].copy_from_slice(&2i32.to_le_bytes());
        bmp[22..26].copy_from_slice(&2i32.to_le_bytes());
        bmp[28..30].copy_from_slice(&24i16.to_le_bytes());
        bmp.extend([7; 16]);
        let pixels = Tensor::from_slice([4, 4, 3], &[5u8; 48]).unwrap();
        let encoded = |op: &str| {
            let files = check(op).input(pixels.clone()).run().unwrap();
            files[0].scalar_string().unwrap().to_vec()
        };
        vec![gif.to_vec(), bmp, encoded("EncodePng"), encoded("EncodeJpeg")]
    }

    #[test]
    fn images_do_not_panic() {
        fuzz_bytes(images, &samples());
    }
}
