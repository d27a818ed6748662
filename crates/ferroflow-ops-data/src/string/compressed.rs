//! DecodeCompressed.

use super::map;
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::{Reservation, limits};
use flate2::bufread::{GzDecoder, ZlibDecoder};
use std::io::Read;

/// Bytes that are inflated between two checks of the limits.
const INFLATE_BLOCK: u64 = 1 << 20;

const BAD_HEADER: &str = "inflate() failed with error -3: incorrect header check";

/// Reads to the end, and keeps the contents of a truncated stream. A few bytes can expand to any
/// number, so the limits are checked while it reads.
fn inflate(compressed: usize, mut from: impl Read) -> Result<Bytes> {
    let limits = limits();
    let (mut out, mut counted) = (Vec::new(), Reservation::default());
    loop {
        match from.by_ref().take(INFLATE_BLOCK).read_to_end(&mut out) {
            Ok(0) => return Ok(Bytes::from(out)),
            Ok(more) => {
                limits.admit_decompressed(compressed, out.len(), "DecodeCompressed")?;
                counted.grow(more)?;
            }
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(Bytes::from(out)),
            Err(_) => bail!(DataLoss, "{BAD_HEADER}"),
        }
    }
}

fn make(init: &KernelInit<'_>) -> Result<KernelBox> {
    let kind = init.string("compression_type")?;
    let decode: fn(&[u8]) -> Result<Bytes> = match kind.as_str() {
        "" => |s| Ok(Bytes::copy_from_slice(s)),
        "ZLIB" => |s| inflate(s.len(), ZlibDecoder::new(s)),
        "GZIP" => |s| {
            // The first two bytes identify a header of another kind; a truncated one is an error.
            ensure!(s.len() < 2 || s.starts_with(&[0x1f, 0x8b]), DataLoss, "{BAD_HEADER}");
            inflate(s.len(), GzDecoder::new(s))
        },
        _ => bail!(InvalidArgument, "Only ZLIB, GZIP or NONE are supported compressions"),
    };
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| map(ctx, |s| decode(s))))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("DecodeCompressed")
        .doc("What compressed strings hold.")
        .input("bytes: string")
        .output("output: string")
        .attr("compression_type: string = ''")
        .shape(shape::same_as_input)
        .expensive()
        .cpu(make);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;
    use bytes::Bytes;

    #[test]
    fn compressed_strings_inflate() {
        let inflate = |s: &'static [u8], kind: &str| {
            check("DecodeCompressed")
                .attr("compression_type", kind)
                .input(Tensor::string(Bytes::from_static(s)))
        };
        let zlib = b"x\x9c\xcbH\xcd\xc9\xc9\x07\x00\x06,\x02\x15";
        let gzip =
            b"\x1f\x8b\x08\x00\xb56\xf9j\x02\xff\xcbH\xcd\xc9\xc9\x07\x00\x86\xa6\x106\x05\x00\x00\x00";
        inflate(zlib, "ZLIB").gives(Tensor::string("hello"));
        inflate(gzip, "GZIP").gives(Tensor::string("hello"));
        inflate(b"xx", "").gives(Tensor::string("xx"));
        inflate(b"", "GZIP").gives(Tensor::string(""));
        inflate(gzip, "ZLIB").fails(Code::DataLoss, "incorrect header check");
        inflate(b"", "LZ4").fails(Code::InvalidArgument, "Only ZLIB, GZIP or NONE");
    }
}
