//! Lookup tables as resources: keys and values in columns, and an index from key to row.

use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::Reservation;
use ferroflow_op_kit::pack::{copy_into, with_rows};
use parking_lot::RwLock;
use std::collections::HashMap;

/// How a table may be changed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Filled once.
    Fixed,
    Mutable,
    /// Mutable. Keys may be tensors; two keys mark empty and deleted entries.
    Dense {
        empty: Key,
        deleted: Option<Key>,
    },
}

/// The declaration of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spec {
    pub(crate) kind: Kind,
    pub(crate) key: DType,
    pub(crate) key_shape: Shape,
    pub(crate) value: DType,
    pub(crate) value_shape: Shape,
}

/// A key: its bits when it is one plain element, else its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Bits(u64),
    Bytes(Bytes),
}

/// A table.
pub struct Table {
    pub(crate) name: String,
    pub(crate) spec: Spec,
    rows: RwLock<Rows>,
}

struct Rows {
    index: HashMap<Key, usize>,
    keys: Vec<Key>,
    /// The values, in the rows that the index names. There may be more rows than keys.
    values: Tensor,
    initialized: bool,
    /// The bytes of the index and the keys, and the part of them that is counted.
    bytes: usize,
    counted: Reservation,
}

/// The bytes of an entry in the index and in the list of keys, including their free capacity.
const ENTRY: usize = 4 * size_of::<Key>() + 2 * size_of::<usize>();
/// Keys count in portions of so many bytes.
const PORTION: usize = 64 << 10;

impl Key {
    fn bytes(&self) -> usize {
        match self {
            Key::Bits(_) => ENTRY,
            Key::Bytes(bytes) => ENTRY + bytes.len(),
        }
    }
}

impl Resource for Table {
    fn describe(&self) -> String {
        format!("table {} ({}->{})", self.name, self.spec.key, self.spec.value)
    }
}

impl Spec {
    /// The keys in a tensor, whose shape ends with the shape of a key, and the dimensions before
    /// that.
    pub(crate) fn keys(&self, t: &Tensor) -> Result<(Vec<Key>, Shape)> {
        let cut = t.rank().checked_sub(self.key_shape.rank());
        let Some(cut) = cut.filter(|&cut| t.shape()[cut..] == self.key_shape[..]) else {
            bail!(
                InvalidArgument,
                "Input key shape {} must end with the table's key shape {}",
                t.shape(),
                self.key_shape
            );
        };
        let outer = Shape::from(&t.shape()[..cut]);
        // There may be many keys without any element.
        drop(Reservation::new(outer.checked_elements()?.saturating_mul(size_of::<Key>()))?);
        if let Ok(strings) = t.strings() {
            ensure!(self.key_shape.rank() == 0, Unimplemented, "string keys must be scalars");
            return Ok((strings.iter().cloned().map(Key::Bytes).collect(), outer));
        }
        let width = self.key_shape.elements() * t.dtype().size().unwrap_or(1);
        if width == 0 {
            return Ok((vec![Key::Bits(0); outer.elements()], outer));
        }
        let key = |bytes: &[u8]| {
            if self.key_shape.rank() > 0 || bytes.len() > 8 {
                return Key::Bytes(Bytes::copy_from_slice(bytes));
            }
            let mut bits = [0; 8];
            bits[..bytes.len()].copy_from_slice(bytes);
            Key::Bits(u64::from_le_bytes(bits))
        };
        Ok((t.bytes()?.chunks_exact(width).map(key).collect(), outer))
    }

    /// Keys as a tensor, one row each.
    fn keys_tensor(&self, keys: &[Key]) -> Result<Tensor> {
        let shape = with_rows(keys.len(), &self.key_shape);
        if self.key == DType::String {
            let text = |key: &Key| match key {
                Key::Bytes(b) => b.clone(),
                Key::Bits(_) => Bytes::new(),
            };
            return Tensor::from_strings(shape, keys.iter().map(text).collect());
        }
        let mut out = Tensor::zeros(self.key, shape)?;
        let width = self.key_shape.elements() * self.key.size().unwrap_or(1);
        if width > 0 {
            for (to, key) in out.bytes_mut()?.chunks_exact_mut(width).zip(keys) {
                match key {
                    Key::Bytes(bytes) => to.copy_from_slice(bytes),
                    Key::Bits(bits) => to.copy_from_slice(&bits.to_le_bytes()[..to.len()]),
                }
            }
        }
        Ok(out)
    }

    /// Refuses the keys that mark empty and deleted entries.
    fn check_keys(&self, keys: &[Key]) -> Result<()> {
        if let Kind::Dense { empty, deleted } = &self.kind {
            ensure!(
                !keys.contains(empty),
                InvalidArgument,
                "Using the empty_key as a table key is not allowed"
            );
            ensure!(
                deleted.as_ref().is_none_or(|deleted| !keys.contains(deleted)),
                InvalidArgument,
                "Using the deleted_key as a table key is not allowed"
            );
        }
        Ok(())
    }

    fn no_rows(&self) -> Result<Rows> {
        Ok(Rows {
            index: HashMap::new(),
            keys: Vec::new(),
            values: Tensor::zeros(self.value, with_rows(0, &self.value_shape))?,
            initialized: false,
            bytes: 0,
            counted: Reservation::default(),
        })
    }
}

impl Table {
    pub(crate) fn new(name: &str, spec: Spec) -> Result<Table> {
        let rows = RwLock::new(spec.no_rows()?);
        Ok(Table { name: name.into(), spec, rows })
    }

    /// The dtypes of its keys and of its values.
    pub fn dtypes(&self) -> [DType; 2] {
        [self.spec.key, self.spec.value]
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.read().keys.len()
    }

    /// The values of keys. Missing keys have the default: one for all keys, or one for each.
    pub(crate) fn find(&self, keys: &Tensor, default: &Tensor) -> Result<Tensor> {
        let spec = &self.spec;
        let (keys, outer) = spec.keys(keys)?;
        spec.check_keys(&keys)?;
        let shape: Shape = outer.iter().chain(spec.value_shape.iter()).copied().collect();
        let shared = default.shape() == &spec.value_shape;
        ensure!(
            shared || (spec.kind != Kind::Fixed && default.shape() == &shape),
            InvalidArgument,
            "Expected shape {} or {shape} for default value, got {}",
            spec.value_shape,
            default.shape()
        );
        let defaults = match shared {
            true => default.clone(),
            false => default.reshape(with_rows(keys.len(), &spec.value_shape))?,
        };
        let rows = self.rows.read();
        ensure!(
            spec.kind != Kind::Fixed || rows.initialized,
            FailedPrecondition,
            "Table not initialized."
        );
        let each = spec.value_shape.elements();
        let mut out = Tensor::alloc(spec.value, shape)?;
        for (i, key) in keys.iter().enumerate() {
            match rows.index.get(key) {
                Some(&at) => copy_into(&mut out, i * each, &rows.values.row(at)?)?,
                None if shared => copy_into(&mut out, i * each, &defaults)?,
                None => copy_into(&mut out, i * each, &defaults.row(i)?)?,
            }
        }
        Ok(out)
    }

    /// Adds or replaces entries.
    pub(crate) fn insert(&self, keys: &Tensor, values: &Tensor) -> Result<()> {
        self.check_mutable("Insert")?;
        let keys = self.checked(keys, values)?;
        self.spec.check_keys(&keys)?;
        let values = values.reshape(with_rows(keys.len(), &self.spec.value_shape))?;
        let mut rows = self.rows.write();
        for (i, key) in keys.into_iter().enumerate() {
            rows.put(key, &values.row(i)?)?;
        }
        Ok(())
    }

    pub(crate) fn remove(&self, keys: &Tensor) -> Result<()> {
        self.check_mutable("Remove")?;
        let (keys, _) = self.spec.keys(keys)?;
        self.spec.check_keys(&keys)?;
        let mut rows = self.rows.write();
        keys.iter().try_for_each(|key| rows.remove(key))
    }

    fn check_mutable(&self, what: &str) -> Result<()> {
        ensure!(
            self.spec.kind != Kind::Fixed,
            Unimplemented,
            "{what} not supported by InitializableLookupTable implementations"
        );
        Ok(())
    }

    /// The keys, if there are as many values.
    fn checked(&self, keys: &Tensor, values: &Tensor) -> Result<Vec<Key>> {
        let (keys, outer) = self.spec.keys(keys)?;
        let want: Shape = outer.iter().chain(self.spec.value_shape.iter()).copied().collect();
        ensure!(
            *values.shape() == want,
            InvalidArgument,
            "Expected shape {want} for value, got {}",
            values.shape()
        );
        Ok(keys)
    }

    /// Replaces all entries. A fixed table can be filled again only with as many entries.
    pub fn replace(&self, keys: &Tensor, values: &Tensor) -> Result<()> {
        let keys = self.checked(keys, values)?;
        let values = values.reshape(with_rows(keys.len(), &self.spec.value_shape))?;
        let mut new = self.spec.no_rows()?;
        new.initialized = true;
        for (i, key) in keys.into_iter().enumerate() {
            let value = values.row(i)?;
            match &self.spec.kind {
                // An export may hold the keys that mark empty and deleted entries.
                Kind::Dense { empty, deleted }
                    if key == *empty || deleted.as_ref() == Some(&key) =>
                {
                    continue;
                }
                Kind::Fixed => self.check_not_another(&new, &key, &value)?,
                _ => {}
            }
            new.put(key, &value)?;
        }
        let mut rows = self.rows.write();
        if self.spec.kind == Kind::Fixed && rows.initialized {
            ensure!(
                rows.keys.len() == new.keys.len(),
                FailedPrecondition,
                "Table was already initialized with different data."
            );
            return Ok(());
        }
        let old = std::mem::replace(&mut *rows, new);
        drop(rows);
        drop(old);
        Ok(())
    }

    /// Refuses a second value for a key.
    fn check_not_another(&self, rows: &Rows, key: &Key, value: &Tensor) -> Result<()> {
        let Some(&at) = rows.index.get(key) else { return Ok(()) };
        let has = rows.values.row(at)?;
        if has == *value {
            return Ok(());
        }
        let key = self.spec.keys_tensor(std::slice::from_ref(key))?;
        bail!(
            FailedPrecondition,
            "HashTable has different value for same key. Key {} has {} and trying to add value {}",
            shown(&key),
            shown(&has),
            shown(value)
        )
    }

    /// All keys and their values.
    pub(crate) fn export(&self) -> Result<(Tensor, Tensor)> {
        let rows = self.rows.read();
        let keys = self.spec.keys_tensor(&rows.keys)?;
        Ok((keys, rows.values.rows(0, rows.keys.len())?.deep_copy()?))
    }
}

impl Rows {
    fn put(&mut self, key: Key, value: &Tensor) -> Result<()> {
        let each = value.elements();
        let at = match self.index.get(&key) {
            Some(&at) => at,
            None => {
                let at = self.keys.len();
                self.reserve(at + 1)?;
                self.count(self.bytes + key.bytes())?;
                self.keys.push(key.clone());
                self.index.insert(key, at);
                at
            }
        };
        copy_into(&mut self.values, at * each, value)
    }

    /// Makes room for rows, doubling so that many additions stay cheap.
    fn reserve(&mut self, rows: usize) -> Result<()> {
        let shape = self.values.shape();
        let have = shape[0];
        if rows <= have {
            return Ok(());
        }
        let room = with_rows((2 * have).max(rows).max(8), &shape[1..]);
        let mut more = Tensor::zeros(self.values.dtype(), room)?;
        copy_into(&mut more, 0, &self.values)?;
        self.values = more;
        Ok(())
    }

    /// Sets the bytes that keys take.
    fn count(&mut self, bytes: usize) -> Result<()> {
        let (before, after) = (self.bytes.div_ceil(PORTION), bytes.div_ceil(PORTION));
        if before != after {
            self.counted.resize(after * PORTION)?;
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Moves the last row into the place of the removed one.
    fn remove(&mut self, key: &Key) -> Result<()> {
        let Some(at) = self.index.remove(key) else { return Ok(()) };
        self.count(self.bytes.saturating_sub(key.bytes()))?;
        let last = self.keys.len() - 1;
        self.keys.swap_remove(at);
        if at != last {
            self.index.insert(self.keys[at].clone(), at);
            let moved = self.values.row(last)?.deep_copy()?;
            let each = moved.elements();
            copy_into(&mut self.values, at * each, &moved)?;
        }
        Ok(())
    }
}

/// The elements of a small tensor, for an error.
fn shown(t: &Tensor) -> String {
    if let Ok(strings) = t.strings() {
        let texts: Vec<_> = strings.iter().map(|s| String::from_utf8_lossy(s)).collect();
        return texts.join(" ");
    }
    match t.to_indices() {
        Ok(numbers) => numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" "),
        Err(_) => format!("{t:?}"),
    }
}
