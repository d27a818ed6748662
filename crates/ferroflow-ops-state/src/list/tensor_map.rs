//! Tensor maps: values of variant tensors that map tensors to tensors.

use super::set_typed;
use crate::prelude::*;
use ferroflow_core::{Variant, VariantObject};
use ferroflow_op_kit::pack::stack;

/// Keys and their values, in the order of insertion.
#[derive(Clone, Default)]
struct TensorMap {
    entries: Vec<(Tensor, Tensor)>,
    /// Positions by the contents of keys, so that large maps stay fast.
    index: std::collections::HashMap<Vec<u8>, usize>,
}

impl VariantObject for TensorMap {
    fn type_name(&self) -> &str {
        "tensorflow::TensorMap"
    }

    fn zeros_like(&self) -> Result<Variant> {
        let mut map = self.clone();
        for (_, value) in &mut map.entries {
            *value = Tensor::zeros(value.dtype(), value.shape().clone())?;
        }
        Ok(Variant::new(map))
    }

    fn plus(&self, other: &Variant) -> Result<Variant> {
        let Some(other) = other.get::<TensorMap>() else {
            bail!(InvalidArgument, "a tensor map and {other:?} cannot be added");
        };
        let mut sum = self.clone();
        for (key, value) in &other.entries {
            match sum.find(key)? {
                Some(at) => {
                    ferroflow_op_kit::tensor_arithmetic::add_assign(&mut sum.entries[at].1, value)?
                }
                None => sum.insert(key.clone(), value.clone())?,
            }
        }
        Ok(Variant::new(sum))
    }
}

/// Dtype, shape and elements of a key as bytes.
fn contents(key: &Tensor) -> Result<Vec<u8>> {
    let mut out = vec![key.dtype().number() as u8];
    out.extend(key.shape().iter().flat_map(|d| d.to_le_bytes()));
    match key.strings() {
        Ok(strings) => {
            for s in strings {
                out.extend(s.len().to_le_bytes());
                out.extend_from_slice(s);
            }
        }
        Err(_) => out.extend_from_slice(key.bytes()?),
    }
    Ok(out)
}

impl TensorMap {
    fn find(&self, key: &Tensor) -> Result<Option<usize>> {
        Ok(self.index.get(&contents(key)?).copied())
    }

    fn insert(&mut self, key: Tensor, value: Tensor) -> Result<()> {
        let contents = contents(&key)?;
        match self.index.get(&contents) {
            Some(&at) => self.entries[at].1 = value,
            None => {
                self.index.insert(contents, self.entries.len());
                self.entries.push((key, value));
            }
        }
        Ok(())
    }

    fn remove(&mut self, at: usize) -> Result<()> {
        let (key, _) = self.entries.swap_remove(at);
        self.index.remove(&contents(&key)?);
        if let Some((moved, _)) = self.entries.get(at) {
            self.index.insert(contents(moved)?, at);
        }
        Ok(())
    }
}

fn map<'a>(ctx: &'a Ctx<'_>) -> Result<&'a TensorMap> {
    let found = match ctx.input(0)?.variants()? {
        [one] => one.get::<TensorMap>(),
        _ => None,
    };
    found.ok_or_else(|| err!(InvalidArgument, "Input handle is not a map."))
}

/// The map in input 0, for changes.
fn take_map(ctx: &mut Ctx<'_>) -> Result<TensorMap> {
    let mut input = ctx.take(0)?;
    if input.elements() == 1
        && input.is_unique()
        && let Some(map) = input.variants_mut()?[0].get_mut::<TensorMap>()
    {
        return Ok(std::mem::take(map));
    }
    match input.variants()? {
        [one] => one.get::<TensorMap>().cloned(),
        _ => None,
    }
    .ok_or_else(|| err!(InvalidArgument, "Input handle is not a map."))
}

fn set_map(ctx: &mut Ctx<'_>, map: TensorMap) -> Result<()> {
    ctx.set(0, Tensor::variant(Variant::new(map)))
}

fn insert(ctx: &mut Ctx<'_>) -> Result<()> {
    let (key, value) = (ctx.take(1)?, ctx.take(2)?);
    let mut map = take_map(ctx)?;
    map.insert(key, value)?;
    set_map(ctx, map)
}

fn erase(ctx: &mut Ctx<'_>) -> Result<()> {
    let key = ctx.take(1)?;
    let mut map = take_map(ctx)?;
    let Some(at) = map.find(&key)? else {
        bail!(
            InvalidArgument,
            "Trying to erase non-existent item. Could not find key \"{key:?}\"."
        );
    };
    map.remove(at)?;
    set_map(ctx, map)
}

fn lookup(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("value_dtype")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (map, key) = (map(ctx)?, ctx.input(1)?);
        let Some(at) = map.find(key)? else {
            bail!(
                InvalidArgument,
                "Trying to lookup non-existent key. Could not find key \"{key:?}\"."
            );
        };
        let value = map.entries[at].1.clone();
        set_typed(ctx, value, dtype)
    }))
}

fn has_key(ctx: &mut Ctx<'_>) -> Result<()> {
    let has = map(ctx)?.find(ctx.input(1)?)?.is_some();
    ctx.set(0, Tensor::scalar(has))
}

fn size(ctx: &mut Ctx<'_>) -> Result<()> {
    let n = map(ctx)?.entries.len();
    ctx.set(0, Tensor::scalar(n as i32))
}

fn stack_keys(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("key_dtype")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let map = map(ctx)?;
        let Some((first, _)) = map.entries.first() else {
            bail!(InvalidArgument, "TensorMapStackKeys cannot be called on empty map.");
        };
        for (key, _) in &map.entries {
            ensure!(key.dtype() == dtype, InvalidArgument, "Key does not match requested dtype.");
            ensure!(
                key.shape() == first.shape(),
                InvalidArgument,
                "Keys must all have the same shape."
            );
        }
        let out = stack(dtype, first.shape(), map.entries.iter().map(|(key, _)| key))?;
        ctx.set(0, out)
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("EmptyTensorMap")
        .doc("A map without entries.")
        .output("handle: variant")
        .shape(shape::scalar)
        .cpu_fn(|ctx| set_map(ctx, TensorMap::default()));
    c.op("TensorMapInsert")
        .doc("A map with one entry more, or replaced.")
        .input("input_handle: variant")
        .input("key: key_dtype")
        .input("value: value_dtype")
        .output("output_handle: variant")
        .attr("key_dtype: type")
        .attr("value_dtype: type")
        .shape(shape::scalar)
        .cpu_fn(insert);
    c.op("TensorMapErase")
        .doc("A map without one of its entries.")
        .input("input_handle: variant")
        .input("key: key_dtype")
        .output("output_handle: variant")
        .attr("key_dtype: type")
        .attr("value_dtype: type")
        .shape(shape::scalar)
        .cpu_fn(erase);
    c.op("TensorMapLookup")
        .doc("The value of a key.")
        .input("input_handle: variant")
        .input("key: key_dtype")
        .output("value: value_dtype")
        .attr("key_dtype: type")
        .attr("value_dtype: type")
        .shape(shape::unknown)
        .cpu(lookup);
    c.op("TensorMapHasKey")
        .doc("Whether a map has a key.")
        .input("input_handle: variant")
        .input("key: key_dtype")
        .output("has_key: bool")
        .attr("key_dtype: type")
        .shape(shape::scalar)
        .cpu_fn(has_key);
    c.op("TensorMapSize")
        .doc("How many entries a map has.")
        .input("input_handle: variant")
        .output("size: int32")
        .shape(shape::scalar)
        .cpu_fn(size);
    c.op("TensorMapStackKeys")
        .doc("All keys, stacked.")
        .input("input_handle: variant")
        .output("keys: key_dtype")
        .attr("key_dtype: type")
        .shape(shape::unknown)
        .cpu(stack_keys);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Check, check};

    #[test]
    fn entries_come_and_go() {
        let int = |i: i32| Tensor::scalar(i);
        let insert = |m: Tensor, k: i32, v: f32| {
            let check = check("TensorMapInsert").input(m).input(int(k)).input(Tensor::scalar(v));
            check.run().unwrap().remove(0)
        };
        let empty = check("EmptyTensorMap").run().unwrap().remove(0);
        let map = insert(insert(insert(empty.clone(), 1, 2.0), 3, 4.0), 1, 5.0);
        let on = |op: &str, m: &Tensor| -> Check<'static> {
            check(&format!("TensorMap{op}")).input(m.clone())
        };
        on("Size", &map).gives(int(2));
        on("Size", &empty).gives(int(0));
        let lookup = |k: i32| on("Lookup", &map).input(int(k)).attr("value_dtype", DType::Float);
        lookup(1).gives(Tensor::scalar(5.0f32));
        lookup(7).fails(Code::InvalidArgument, "Trying to lookup non-existent key.");
        on("HasKey", &map).input(int(2)).gives(Tensor::scalar(false));
        let keys = |m: &Tensor| on("StackKeys", m).attr("key_dtype", DType::Int32);
        keys(&map).gives(Tensor::vector(&[1i32, 3]));
        keys(&empty).fails(Code::InvalidArgument, "cannot be called on empty map");
        let erase = |k: i32| on("Erase", &map).input(int(k)).attr("value_dtype", DType::Float);
        let less = erase(1).run().unwrap().remove(0);
        keys(&less).gives(Tensor::vector(&[3i32]));
        on("HasKey", &less).input(int(3)).gives(Tensor::scalar(true));
        erase(9).fails(Code::InvalidArgument, "Trying to erase non-existent item.");
    }
}
