//! The first checkpoint format: one sorted table with the tensors, and metadata under the empty
//! key.

use super::boxes::copy_box;
use super::slice::Slice;
use super::table::{read_table, write_table};
use super::{NewFile, exists};
use crate::io::file::files_matching;
use crate::prelude::*;
use ferroflow_core::CancelToken;
use ferroflow_op_kit::file::read_file;
use ferroflow_op_kit::protobuf::{Message, fields, put_varint, read_shape, shape_message};
use ferroflow_op_kit::tensor_proto::{decode, field_of};
use std::collections::BTreeMap;

/// Known properties of a tensor.
#[derive(Clone)]
struct Meta {
    dtype: DType,
    shape: Shape,
    slices: Vec<Slice>,
}

/// A file of the first format being written.
pub(crate) struct FirstWriter {
    name: String,
    metas: BTreeMap<String, Meta>,
    table: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl FirstWriter {
    pub fn create(name: &str) -> FirstWriter {
        FirstWriter { name: name.into(), metas: BTreeMap::new(), table: BTreeMap::new() }
    }

    /// Adds a slice of a tensor that is `shape` large as a whole.
    pub fn add(&mut self, name: &str, shape: &Shape, slice: Slice, t: &Tensor) -> Result<()> {
        let new = || Meta { dtype: t.dtype(), shape: shape.clone(), slices: Vec::new() };
        let meta = self.metas.entry(name.to_string()).or_insert_with(new);
        ensure!(
            meta.shape == *shape && meta.dtype == t.dtype(),
            Internal,
            "Mismatching shapes: existing tensor = {}, trying to add name = {name}, shape = {shape}",
            meta.shape
        );
        ensure!(
            !meta.slices.contains(&slice),
            Internal,
            "Overlapping slices of tensor {name}: {slice}"
        );
        meta.slices.push(slice.clone());
        let mut data = Message::new();
        data.bytes(1, name.as_bytes()).message(2, &slice.message()).message(3, &values_of(t)?);
        let mut record = Message::new();
        record.message(2, &data);
        self.table.insert(slice.key(name), record.into_bytes());
        Ok(())
    }

    pub fn finish(mut self) -> Result<()> {
        let mut list = Message::new();
        for (name, meta) in &self.metas {
            let mut m = Message::new();
            m.bytes(1, name.as_bytes())
                .message(2, &shape_message(&meta.shape))
                .varint(3, meta.dtype.number() as u64);
            for slice in &meta.slices {
                m.message(4, &slice.message());
            }
            list.message(1, &m);
        }
        let mut version = Message::new();
        version.varint(1, 1);
        list.message(2, &version);
        let mut record = Message::new();
        record.message(1, &list);
        self.table.insert(Vec::new(), record.into_bytes());
        let mut file = NewFile::create(&self.name)?;
        file.write(&write_table(&self.table))?;
        file.finish()
    }
}

/// The elements of a tensor in the field of their type.
fn values_of(t: &Tensor) -> Result<Message> {
    let mut m = Message::new();
    if let Ok(strings) = t.strings() {
        strings.iter().for_each(|s| {
            m.bytes(8, s);
        });
        return Ok(m);
    }
    let Some(field) = field_of(t.dtype()) else {
        bail!(Unimplemented, "tensors of {} cannot be saved", t.dtype());
    };
    let (bytes, size) = (t.bytes()?, t.dtype().size().unwrap_or(1));
    match field {
        5 | 6 | 9 | 12 => m.bytes_if(field, bytes),
        _ => {
            let mut packed = Vec::new();
            for x in bytes.chunks(size) {
                let mut wide = [0; 8];
                wide[..size].copy_from_slice(x);
                let x = u64::from_le_bytes(wide);
                // Negative numbers are written as 64 bits wide.
                let unused = 64 - 8 * size as u32;
                let is_signed = matches!(
                    t.dtype(),
                    DType::Int8
                        | DType::Int16
                        | DType::Int32
                        | DType::QInt8
                        | DType::QInt16
                        | DType::QInt32
                );
                let x = if is_signed { ((x << unused) as i64 >> unused) as u64 } else { x };
                put_varint(&mut packed, x);
            }
            m.bytes_if(field, &packed)
        }
    };
    Ok(m)
}

/// Files of the first format open for reading.
pub(crate) struct FirstReader {
    pattern: String,
    metas: BTreeMap<String, Meta>,
    tables: Vec<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl FirstReader {
    /// All files that match a pattern.
    pub fn open(pattern: &str, cancel: &CancelToken) -> Result<FirstReader> {
        let mut files = files_matching(pattern.as_bytes(), cancel)?;
        files.retain(|f| exists(&String::from_utf8_lossy(f)));
        ensure!(
            !files.is_empty(),
            NotFound,
            "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for \
             {pattern}"
        );
        let mut reader =
            FirstReader { pattern: pattern.into(), metas: BTreeMap::new(), tables: Vec::new() };
        for file in files {
            let name = String::from_utf8_lossy(&file).into_owned();
            let table = read_table(&read_file(&name)?)
                .within(|| format!("Unable to open table file {name}"))?;
            let metas = table.get(&Vec::new()).and_then(|b| metas_of(b));
            let Some(metas) = metas else {
                bail!(DataLoss, "the list of tensors in {name} is malformed");
            };
            for (name, meta) in metas {
                let known = reader
                    .metas
                    .entry(name)
                    .or_insert_with(|| Meta { slices: Vec::new(), ..meta.clone() });
                known.slices.extend(meta.slices);
            }
            reader.tables.push(table);
        }
        Ok(reader)
    }

    /// Dtype and shape of a tensor.
    pub fn find(&self, name: &str) -> Result<(DType, &Shape)> {
        let meta = self.meta(name)?;
        Ok((meta.dtype, &meta.shape))
    }

    fn meta(&self, name: &str) -> Result<&Meta> {
        self.metas.get(name).ok_or_else(|| {
            err!(NotFound, "Tensor name \"{name}\" not found in checkpoint files {}", self.pattern)
        })
    }

    /// A part of a tensor, put together from the slices there are.
    pub fn read(&self, name: &str, wanted: &Slice) -> Result<Tensor> {
        let meta = self.meta(name)?;
        let (at, shape) = wanted.within(&meta.shape)?;
        let mut out = Tensor::alloc(meta.dtype, shape.clone())?;
        let mut covered = 0;
        for slice in &meta.slices {
            let (start, len) = slice.within(&meta.shape)?;
            let low: Vec<usize> = (0..at.len()).map(|d| std::cmp::max(at[d], start[d])).collect();
            let high = (0..at.len()).map(|d| std::cmp::min(at[d] + shape[d], start[d] + len[d]));
            let common: Option<Shape> =
                low.iter().zip(high).map(|(&l, h)| h.checked_sub(l)).collect();
            let Some(common) = common.filter(|c| c.elements() > 0) else { continue };
            let key = slice.key(name);
            let record = self.tables.iter().find_map(|t| t.get(&key));
            let Some(part) = record.and_then(|r| values_in(r, meta.dtype, &len)) else {
                bail!(DataLoss, "slice {slice} of {name} is missing or malformed");
            };
            let offset = |from: &[usize]| -> Vec<usize> {
                low.iter().zip(from).map(|(l, f)| l - f).collect()
            };
            copy_box(&part, &offset(&start), &mut out, &offset(&at), &common)?;
            covered += common.elements();
        }
        ensure!(
            covered >= shape.elements(),
            NotFound,
            "Checkpoint files {} do not hold all of slice {wanted} of tensor \"{name}\"",
            self.pattern
        );
        Ok(out)
    }
}

fn metas_of(record: &[u8]) -> Option<Vec<(String, Meta)>> {
    let mut metas = Vec::new();
    let record = fields(record)?;
    let list = record.iter().find(|f| f.0 == 1)?.1.as_bytes()?;
    for (_, value) in fields(list)?.into_iter().filter(|f| f.0 == 1) {
        let (mut name, mut shape, mut dtype, mut slices) = (None, Shape::scalar(), 0, Vec::new());
        for (field, value) in fields(value.as_bytes()?)? {
            match field {
                1 => name = String::from_utf8(value.as_bytes()?.to_vec()).ok(),
                2 => shape = Shape::from_dims(&read_shape(value.as_bytes()?)?).ok()?,
                3 => dtype = value.as_varint()?,
                4 => slices.push(Slice::from_message(value.as_bytes()?)?),
                _ => {}
            }
        }
        let dtype = DType::from_number(i32::try_from(dtype).ok()?).ok()?;
        metas.push((name?, Meta { dtype, shape, slices }));
    }
    Some(metas)
}

fn values_in(record: &[u8], dtype: DType, shape: &Shape) -> Option<Tensor> {
    let record = fields(record)?;
    let data = fields(record.iter().find(|f| f.0 == 2)?.1.as_bytes()?)?;
    let values = data.iter().find(|f| f.0 == 3)?.1.as_bytes()?;
    // The record leaves out dtype and shape, which the list of tensors has.
    let mut whole = Message::new();
    whole.varint(1, dtype.number() as u64).message(2, &shape_message(shape));
    decode(&[whole.as_bytes(), values].concat())
}
