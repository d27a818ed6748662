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
use bytes::{Bytes, BytesMut};
use ferroflow_core::{Reservation, limits};

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
fn map(ctx: &mut Ctx<'_>, change: impl Fn(&Bytes) -> Result<Bytes>) -> Result<()> {
    let input = ctx.input(0)?;
    let mut made = TextList::with_capacity(input.elements())?;
    for s in input.strings()? {
        made.push(change(s)?)?;
    }
    let made = made.tensor(input.shape().clone())?;
    ctx.set(0, made)
}

/// Strings that a kernel makes. They count against the limits while they are made, not only when
/// all are there.
pub(crate) struct TextList {
    texts: Vec<Bytes>,
    counted: Reservation,
    /// Bytes that are not counted yet.
    pending: usize,
}

/// Bytes are counted in portions of at least this size.
const PORTION: usize = 64 << 10;

impl TextList {
    pub fn new() -> TextList {
        TextList { texts: Vec::new(), counted: Reservation::default(), pending: 0 }
    }

    /// An empty list with room for `n` strings. An error if there is no memory for them.
    pub fn with_capacity(n: usize) -> Result<TextList> {
        let mut list = TextList::new();
        list.count(n.saturating_mul(size_of::<Bytes>()))?;
        list.texts.reserve_exact(n);
        Ok(list)
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Adds a string. An error if there is no memory for it.
    pub fn push(&mut self, text: Bytes) -> Result<()> {
        // A piece of another string takes no memory of its own.
        let own = if text.is_unique() { text.len() } else { 0 };
        self.count(own.saturating_add(size_of::<Bytes>()))?;
        self.texts.push(text);
        Ok(())
    }

    /// Joins strings and adds the result. An error, before it is made, if there is no memory for
    /// it.
    pub fn push_joined<'a>(
        &mut self,
        parts: impl Iterator<Item = &'a Bytes> + Clone,
        separator: &[u8],
    ) -> Result<()> {
        let (mut len, mut count) = (0usize, 0usize);
        for part in parts.clone() {
            len = len.saturating_add(part.len());
            count += 1;
        }
        len = len.saturating_add(separator.len().saturating_mul(count.saturating_sub(1)));
        limits().string.admit(len, "a join of strings")?;
        self.count(len.saturating_add(size_of::<Bytes>()))?;
        let mut whole = BytesMut::with_capacity(len);
        for (i, part) in parts.enumerate() {
            if i > 0 {
                whole.extend_from_slice(separator);
            }
            whole.extend_from_slice(part);
        }
        self.texts.push(whole.freeze());
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<()> {
        self.pending = self.pending.saturating_add(bytes);
        if self.pending >= PORTION {
            self.counted.grow(std::mem::take(&mut self.pending))?;
        }
        Ok(())
    }

    /// A tensor of the strings, which counts them from now on.
    pub fn tensor(self, shape: impl Into<Shape>) -> Result<Tensor> {
        drop(self.counted);
        Tensor::from_strings(shape, self.texts)
    }
}

/// A string that grows. Its room counts against the limits before it is allocated.
#[derive(Default)]
pub(crate) struct GrowingText {
    bytes: Vec<u8>,
    counted: Reservation,
}

impl GrowingText {
    /// Adds bytes. An error if the string would become too long, or if there is no memory for it.
    pub fn extend(&mut self, more: &[u8]) -> Result<()> {
        let len = self.bytes.len().saturating_add(more.len());
        if len > self.bytes.capacity() {
            limits().string.admit(len, "a string op")?;
            let room = len.max(self.bytes.capacity().saturating_mul(2));
            // While the bytes are copied, there are both.
            let more = Reservation::new(room)?;
            self.bytes.reserve_exact(room - self.bytes.len());
            self.counted = more;
        }
        self.bytes.extend_from_slice(more);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn finish(self) -> Bytes {
        self.bytes.into()
    }
}

/// Bytes for a message, as text.
fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
