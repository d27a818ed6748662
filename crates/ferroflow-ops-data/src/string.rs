//! Strings: joining, splitting, matching, converting, hashing.

mod base64;
mod c_format;
mod case;
mod compressed;
mod decode_raw;
mod encoding;
mod format;
mod hash;
mod join;
mod ngrams;
mod number;
mod regex;
mod script;
mod script_table;
mod split;
mod substr;
mod unicode;

pub(crate) use self::base64::decode as decode_base64;
pub(crate) use c_format::{short_f32, short_f64};
pub(crate) use number::{parse_f32, parse_f64, parse_i64};

use crate::prelude::*;
use bytes::Bytes;

pub(crate) fn register(c: &mut Catalog) {
    base64::register(c);
    case::register(c);
    compressed::register(c);
    decode_raw::register(c);
    format::register(c);
    hash::register(c);
    join::register(c);
    ngrams::register(c);
    number::register(c);
    regex::register(c);
    script::register(c);
    split::register(c);
    substr::register(c);
    unicode::register(c);
}

/// Every string of input 0 replaced by `change`; an error stops it.
fn map(ctx: &mut Ctx<'_>, change: impl Fn(&[u8]) -> Result<Bytes>) -> Result<()> {
    let mut t = ctx.take_or_copy(0)?;
    for s in t.strings_mut()? {
        *s = change(s)?;
    }
    ctx.set(0, t)
}

/// Bytes for a message, as text.
fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
