//! StringToHashBucket, its Fast and Strong versions, Fingerprint and SdcaFprint.

use super::text;
use crate::prelude::*;
use ferroflow_op_kit::farmhash::{fingerprint64, fingerprint128};
use ferroflow_op_kit::siphash::siphash;

/// TensorFlow's own 64-bit hash: MurmurHash64A with its seed.
fn hash64(s: &[u8]) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mut h = 0x00de_cafc_affe ^ (s.len() as u64).wrapping_mul(M);
    let chunks = s.chunks_exact(8);
    let tail = chunks.remainder();
    for chunk in chunks {
        let mut k = u64::from_le_bytes(chunk.try_into().expect("eight bytes")).wrapping_mul(M);
        k ^= k >> 47;
        h = (h ^ k.wrapping_mul(M)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        h = (h ^ u64::from_le_bytes(last)).wrapping_mul(M);
    }
    h ^= h >> 47;
    h = h.wrapping_mul(M);
    h ^ (h >> 47)
}

/// A kernel that puts each string into one of `num_buckets` by a hash.
fn buckets(
    init: &KernelInit<'_>,
    hash: impl Fn(&[u8]) -> u64 + Send + Sync + 'static,
) -> Result<KernelBox> {
    let buckets = init.int("num_buckets")? as u64;
    ensure!(buckets > 0, InvalidArgument, "num_buckets must be positive");
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let strings = ctx.input(0)?;
        let mut out = ctx.alloc(DType::Int64, strings.shape().clone())?;
        for (to, s) in out.as_mut_slice::<i64>()?.iter_mut().zip(strings.strings()?) {
            *to = (hash(s) % buckets) as i64;
        }
        ctx.set(0, out)
    }))
}

/// A kernel that puts each integer into one of `num_buckets` by its decimal digits.
fn integer_buckets(init: &KernelInit<'_>) -> Result<KernelBox> {
    fn run<T: Element + std::fmt::Display>(ctx: &mut Ctx<'_>, buckets: u64) -> Result<()> {
        let x = ctx.input(0)?;
        let mut out = ctx.alloc(DType::Int64, x.shape().clone())?;
        for (to, x) in out.as_mut_slice::<i64>()?.iter_mut().zip(x.as_slice::<T>()?) {
            *to = (fingerprint64(x.to_string().as_bytes()) % buckets) as i64;
        }
        ctx.set(0, out)
    }
    let buckets = init.int("num_buckets")? as u64;
    ensure!(buckets > 0, InvalidArgument, "num_buckets must be positive");
    per_dtype!(INTEGER, T => move |ctx: &mut Ctx<'_>| run::<T>(ctx, buckets))(init)
}

/// A row of 8 bytes per row of data: its fingerprint, little end first.
fn fingerprint(ctx: &mut Ctx<'_>) -> Result<()> {
    let (data, method) = (ctx.input(0)?, ctx.input(1)?);
    ensure!(
        method.rank() == 0,
        InvalidArgument,
        "`method` should be a scalar string: {}",
        method.shape()
    );
    let method = text(method.scalar_string()?);
    ensure!(method == "farmhash64", InvalidArgument, "Unsupported fingerprint method: {method}");
    let Some(&rows) = data.shape().first() else {
        bail!(InvalidArgument, "`data` should have at least one dimension: {}", data.shape());
    };
    let per_row = data.elements().checked_div(rows).unwrap_or(0);
    let mut out = ctx.alloc(DType::UInt8, [rows, 8])?;
    // A row of several strings is fingerprinted by the fingerprints of its strings.
    let hashes: Vec<u8>;
    let (bytes, row): (&[u8], usize) = match data.strings() {
        Ok(strings) => {
            hashes = strings.iter().flat_map(|s| fingerprint64(s).to_le_bytes()).collect();
            (&hashes, per_row * 8)
        }
        Err(_) => (data.bytes()?, per_row * data.dtype().size().unwrap_or(0)),
    };
    let is_done = data.dtype() == DType::String && per_row == 1;
    for (i, to) in out.bytes_mut()?.chunks_mut(8).enumerate() {
        let part = &bytes[i * row..(i + 1) * row];
        if is_done {
            to.copy_from_slice(part);
        } else {
            to.copy_from_slice(&fingerprint64(part).to_le_bytes());
        }
    }
    ctx.set(0, out)
}

/// Two words for each string. The first is never 0 or 1, which mark empty keys of hash tables.
fn long_fingerprint(ctx: &mut Ctx<'_>) -> Result<()> {
    let strings = ctx.input(0)?;
    ensure!(
        strings.rank() == 1,
        InvalidArgument,
        "Input must be a vector, got shape {}",
        strings.shape()
    );
    let mut out = ctx.alloc(DType::Int64, [strings.elements(), 2])?;
    for (to, s) in out.as_mut_slice::<i64>()?.chunks_mut(2).zip(strings.strings()?) {
        let (low, high) = fingerprint128(s);
        let low = if low >= 2 { low } else { low.wrapping_sub(2) };
        to.copy_from_slice(&[low as i64, high as i64]);
    }
    ctx.set(0, out)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("StringToHashBucket")
        .doc("Each string's bucket, by TensorFlow's first hash.")
        .input("string_tensor: string")
        .output("output: int64")
        .attr("num_buckets: int >= 1")
        .shape(shape::same_as_input)
        .cpu(|init| buckets(init, hash64));
    c.op("StringToHashBucketFast")
        .doc("Each string's bucket, by FarmHash.")
        .input("input: string")
        .output("output: int64")
        .attr("num_buckets: int >= 1")
        .shape(shape::same_as_input)
        .cpu(|init| buckets(init, fingerprint64));
    c.op("_TensorToHashBucketFast")
        .doc("The bucket of each integer's decimal digits, by FarmHash.")
        .input("input: T")
        .output("output: int64")
        .attr("T: {int8, uint8, int16, uint16, int32, uint32, int64, uint64}")
        .attr("num_buckets: int >= 1")
        .shape(shape::same_as_input)
        .cpu(integer_buckets);
    c.op("StringToHashBucketStrong")
        .doc("Each string's bucket, by a hash with a key.")
        .input("input: string")
        .output("output: int64")
        .attr("num_buckets: int >= 1")
        .attr("key: list(int)")
        .shape(shape::same_as_input)
        .cpu(|init| {
            let key = init.ints("key")?;
            let &[a, b] = key.as_slice() else {
                bail!(InvalidArgument, "Key must have 2 elements");
            };
            buckets(init, move |s| siphash([a as u64, b as u64], s))
        });
    c.op("Fingerprint")
        .doc("A fingerprint for each row of data.")
        .input("data: T")
        .input("method: string")
        .output("fingerprint: uint8")
        .attr("T: type")
        .shape(|c| Ok(vec![PartialShape::new([c.input(0).dim(0), Some(8)])]))
        .cpu_fn(fingerprint);
    c.op("SdcaFprint")
        .doc("Two words that identify each string, for the examples of stochastic dual coordinate ascent.")
        .input("input: string")
        .output("output: int64")
        .shape(|c| Ok(vec![PartialShape::new([c.input(0).dim(0), Some(2)])]))
        .cpu_fn(long_fingerprint);
    c.no_gradient(&[
        "SdcaFprint",
        "StringToHashBucket",
        "StringToHashBucketFast",
        "StringToHashBucketStrong",
    ]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;
    use bytes::Bytes;

    /// `0123456789…` of these lengths.
    fn texts(lengths: &[usize]) -> Tensor {
        let text = |&n: &usize| (0..n).map(|i| b'0' + (i % 10) as u8).collect::<Bytes>();
        Tensor::from_strings([lengths.len()], lengths.iter().map(text).collect()).unwrap()
    }

    #[test]
    fn integers_are_hashed_by_their_digits() {
        check("_TensorToHashBucketFast")
            .attr("num_buckets", 1000)
            .input(Tensor::vector(&[0i64, -5, 123_456_789, 7]))
            .gives(Tensor::vector(&[735i64, 816, 306, 88]));
    }

    #[test]
    fn buckets_are_those_of_tensorflow() {
        let buckets = |op: &str| {
            let lengths = [0, 1, 5, 12, 20, 50, 64, 65, 200];
            check(op).attr("num_buckets", 1_000_000_007i64).input(texts(&lengths))
        };
        buckets("StringToHashBucketFast").gives(Tensor::vector(&FAST));
        buckets("StringToHashBucket").gives(Tensor::vector(&FIRST));
        buckets("StringToHashBucketStrong")
            .attr("key", vec![123i64, -5])
            .gives(Tensor::vector(&STRONG));
    }

    #[test]
    fn long_fingerprints_are_those_of_tensorflow() {
        let lengths = [0, 1, 5, 12, 20, 50, 64, 65, 130, 200, 300];
        #[rustfmt::skip]
        let want: [i64; 22] = [
            4_463_240_938_071_824_939, 4_374_473_821_787_594_281,
            -4_760_701_053_712_781_221, 7_471_692_414_560_395_893,
            -7_235_598_885_056_696_019, 6_412_767_756_418_363_989,
            -579_143_658_009_657_004, -7_115_817_891_595_013_662,
            -2_415_186_961_570_104_544, -1_740_834_090_454_896_717,
            6_802_298_178_552_553_029, 909_908_148_681_551_500,
            -1_433_415_710_896_500_289, -5_936_217_143_494_556_132,
            -4_974_610_710_603_231_170, 3_010_880_225_990_801_382,
            -1_086_675_567_071_418_790, -1_432_884_694_946_604_717,
            7_630_613_783_989_334_158, -6_037_115_230_231_893_044,
            8_717_677_139_612_322_781, 5_980_324_449_478_029_676,
        ];
        let want = Tensor::from_slice([lengths.len(), 2], &want).unwrap();
        check("SdcaFprint").input(texts(&lengths)).gives(want);
        let matrix = Tensor::from_strings([1, 1], vec!["a".into()]).unwrap();
        check("SdcaFprint").input(matrix).fails(Code::InvalidArgument, "must be a vector");
    }

    #[test]
    fn a_row_has_a_fingerprint() {
        let print = |t: Tensor| check("Fingerprint").input(t).input(Tensor::string("farmhash64"));
        let rows = |bytes: [u8; 16]| Tensor::from_slice([2, 8], &bytes).unwrap();
        let words = ["hello", "world"].map(Bytes::from).to_vec();
        print(Tensor::from_strings([2], words).unwrap())
            .gives(rows([232, 12, 56, 49, 169, 229, 139, 180, 110, 180, 184, 94, 67, 84, 26, 228]));
        let words = ["hello", "a", "world", "b"].map(Bytes::from).to_vec();
        print(Tensor::from_strings([2, 2], words).unwrap())
            .gives(rows([46, 48, 234, 243, 168, 22, 29, 236, 43, 28, 157, 102, 228, 9, 116, 103]));
        print(Tensor::from_slice([2, 2], &[1i32, 2, 3, 4]).unwrap()).gives(rows([
            76, 18, 253, 133, 168, 204, 240, 10, 254, 162, 60, 240, 103, 244, 53, 255,
        ]));
        print(Tensor::scalar(1i32)).fails(Code::InvalidArgument, "at least one dimension: []");
    }

    const FAST: [i64; 9] = [
        912170738, 859788559, 269349793, 428194284, 836674113, 866831802, 324027420, 480655515,
        561920572,
    ];
    const FIRST: [i64; 9] = [
        727638525, 537363116, 902929827, 254680792, 377343387, 919743424, 672996069, 19489031,
        999716392,
    ];
    const STRONG: [i64; 9] = [
        684930872, 403205877, 903026060, 29071724, 340395162, 998394116, 816569556, 334841253,
        753583811,
    ];
}
