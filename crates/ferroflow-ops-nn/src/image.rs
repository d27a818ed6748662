//! Image ops: resizing, cropping, colours, boxes, and the file formats of images.

mod bmp;
mod boxes;
mod claimed;
mod colour;
mod combined_suppression;
mod contrast;
mod crop_resize;
mod decode;
mod encode;
mod gif;
mod glimpse;
mod jpeg;
mod pixels;
mod png;
mod projective;
mod resize;
mod resize_area;
mod resize_bicubic;
pub(crate) mod resize_bilinear;
mod resize_nearest;
mod sample_box;
mod scale_translate;
mod suppression;

pub(crate) use decode::fuzz;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    boxes::register(c);
    colour::register(c);
    combined_suppression::register(c);
    contrast::register(c);
    crop_resize::register(c);
    decode::register(c);
    encode::register(c);
    glimpse::register(c);
    projective::register(c);
    resize_area::register(c);
    resize_bicubic::register(c);
    resize_bilinear::register(c);
    resize_nearest::register(c);
    sample_box::register(c);
    scale_translate::register(c);
    suppression::register(c);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{check, check_recorded};

    #[test]
    fn recorded_images_come_out_as_tensorflow_has_them() {
        check_recorded(include_str!("../tests/data/recorded/image.txt"));
    }

    #[test]
    fn recorded_jpeg_files_come_out_as_tensorflow_has_them() {
        check_recorded(include_str!("../tests/data/recorded/jpeg.txt"));
    }

    #[test]
    fn unusual_and_broken_files_come_out_as_tensorflow_has_them() {
        check_recorded(include_str!("../tests/data/recorded/unusual_images.txt"));
    }

    #[test]
    fn recorded_files_come_out_as_tensorflow_has_them() {
        check_recorded(include_str!("../tests/data/recorded/decode.txt"));
    }

    /// The files in recorded lines.
    fn files(text: &str) -> Vec<Vec<u8>> {
        let unhex = |hex: &str| {
            let byte = |i: usize| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap();
            (0..hex.len() / 2).map(byte).collect()
        };
        let hex =
            |line: &'_ str| Some(line.split("string[] x").nth(1)?.split(' ').next()?.to_owned());
        text.lines().filter_map(hex).map(|hex| unhex(&hex)).collect()
    }

    #[test]
    fn broken_files_are_refused_or_decoded_and_nothing_worse() {
        let mut files = files(include_str!("../tests/data/recorded/jpeg.txt"));
        files.extend(self::files(include_str!("../tests/data/recorded/decode.txt")));
        let mut random = 1u64;
        let mut draw = |n: usize| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) as usize % n.max(1)
        };
        for file in files {
            for round in 0..8 {
                let mut broken = file.clone();
                for _ in 0..1 + round % 3 {
                    if let Some(byte) = broken.get_mut(draw(file.len())) {
                        *byte = draw(256) as u8;
                    }
                }
                if round == 7 {
                    broken.truncate(draw(file.len()));
                }
                let decode = |op: &str| check(op).input(Tensor::string(broken.clone()));
                let _ = decode("DecodeImage").run();
                let _ = decode("DecodeJpeg").attr("try_recover_truncated", true).run();
                let _ = decode("DecodeJpeg").attr("ratio", 4i64).attr("channels", 3i64).run();
            }
        }
    }

    #[test]
    fn png_files_hold_what_was_encoded() {
        let pixels: Vec<u16> = (0..2 * 3 * 5 * 4).map(|i: u32| (i * 7919 % 65536) as u16).collect();
        let images = Tensor::from_slice([2, 3, 5, 4], &pixels).unwrap();
        let files = check("EncodePng").input(images.clone()).run().unwrap().remove(0);
        for (i, file) in files.strings().unwrap().iter().enumerate() {
            let op = check("DecodePng").input(Tensor::string(file.clone()));
            let image = images.rows(i, 1).unwrap().reshape([3, 5, 4]).unwrap();
            op.attr("dtype", DType::UInt16).gives(image);
        }
        check("EncodePng")
            .input(Tensor::zeros(DType::UInt8, [2, 2, 5]).unwrap())
            .fails(Code::InvalidArgument, "image must have 1, 2, 3, or 4 channels, got 5");
    }

    #[test]
    fn the_first_contrast_op_clips() {
        check("AdjustContrast")
            .input(Tensor::from_slice([1, 3, 1], &[1u8, 2, 6]).unwrap())
            .input(Tensor::scalar(2f32))
            .input(Tensor::scalar(0f32))
            .input(Tensor::scalar(8f32))
            .gives(Tensor::from_slice([1, 3, 1], &[0f32, 1.0, 8.0]).unwrap());
    }

    #[test]
    fn glimpses_beyond_the_edge_are_noise_like_the_image() {
        for noise in ["uniform", "gaussian"] {
            let got = check("ExtractGlimpseV2")
                .input(Tensor::from_slice([1, 1, 2, 1], &[2f32, 3.0]).unwrap())
                .input(Tensor::vector(&[3i32, 4]))
                .input(Tensor::from_slice([1, 2], &[0f32, 0.0]).unwrap())
                .attr("uniform_noise", false)
                .attr("noise", noise)
                .run()
                .unwrap();
            let values = got[0].as_slice::<f32>().unwrap();
            assert!(values.iter().all(|x| (2.0..=3.0).contains(x)), "{values:?}");
            assert_eq!(values[5..7], [2.0, 3.0]);
        }
    }
}
