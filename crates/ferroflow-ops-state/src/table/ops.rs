//! The ops that create, query and change tables.

use super::store::{Kind, Spec, Table};
use crate::prelude::*;
use ferroflow_graph::{OpBuilder, PortType};
use ferroflow_op_kit::handle::{Anchor, Seen};
use ferroflow_op_kit::handle_form::ref_handle_shape;
use parking_lot::Mutex;

/// The kernel of an op that makes a table.
struct MakeTable {
    anchor: Anchor<Table>,
    /// The declaration of the table, without the parts that inputs give.
    spec: Spec,
    dense: bool,
    /// The complete declaration, after the first step has read the inputs.
    whole: Mutex<Option<Spec>>,
}

fn make(kind: Kind, dense: bool) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        let by_node =
            init.contains("use_node_name_sharing") && init.bool("use_node_name_sharing")?;
        let value_shape = match init.contains("value_shape") {
            true => init.shape("value_shape")?,
            false => PartialShape::scalar(),
        };
        let Some(value_shape) = value_shape.known() else {
            bail!(InvalidArgument, "value shape {value_shape} is not fully defined");
        };
        if dense {
            let buckets = init.int("initial_num_buckets")?;
            let load = init.float("max_load_factor")?;
            ensure!(
                load > 0.0 && load < 1.0,
                InvalidArgument,
                "max_load_factor must be between 0 and 1, got: {load}"
            );
            ensure!(
                buckets >= 4 && buckets & (buckets - 1) == 0,
                InvalidArgument,
                "Number of buckets must be at least 4 and a power of 2, got: {buckets}"
            );
        } else {
            ensure!(
                value_shape.rank() <= 1,
                InvalidArgument,
                "Default value must be a vector, got shape {value_shape}"
            );
        }
        let (key, value) = (init.dtype("key_dtype")?, init.dtype("value_dtype")?);
        for (name, dtype) in [("key_dtype", key), ("value_dtype", value)] {
            if !dtype.is_plain() && dtype != DType::String {
                return Err(unsupported(init, name, dtype));
            }
        }
        let key_shape = Shape::scalar();
        Ok(KernelBox::new(MakeTable {
            anchor: Anchor::new(init, by_node, "tensorflow::lookup::LookupInterface")?,
            spec: Spec { kind: kind.clone(), key, key_shape, value, value_shape },
            dense,
            whole: Mutex::new(None),
        }))
    }
}

impl MakeTable {
    fn spec(&self, ctx: &Ctx<'_>) -> Result<Spec> {
        if !self.dense {
            return Ok(self.spec.clone());
        }
        let mut whole = self.whole.lock();
        if let Some(spec) = &*whole {
            return Ok(spec.clone());
        }
        let empty = ctx.input(0)?;
        let mut spec = Spec { key_shape: empty.shape().clone(), ..self.spec.clone() };
        let mut keys = Vec::new();
        for i in 0..ctx.num_inputs() {
            let key = ctx.input(i)?;
            ensure!(
                key.shape() == empty.shape(),
                InvalidArgument,
                "Empty and deleted keys must have same shape, got shapes: {} and {}",
                empty.shape(),
                key.shape()
            );
            keys.extend(spec.keys(key)?.0);
        }
        let (deleted, empty) = (keys.get(1).cloned(), keys.swap_remove(0));
        ensure!(
            deleted.as_ref() != Some(&empty),
            InvalidArgument,
            "Empty and deleted keys cannot be equal"
        );
        spec.kind = Kind::Dense { empty, deleted };
        Ok(whole.insert(spec).clone())
    }
}

impl Kernel for MakeTable {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let spec = self.spec(ctx)?;
        let (key, value) = (spec.key, spec.value);
        let check = |found: &Table| {
            let has = &found.spec;
            ensure!(
                (has.key, has.value) == (key, value),
                InvalidArgument,
                "Conflicting key/value dtypes {key}->{value} with {}-{} for table {}",
                has.key,
                has.value,
                found.name
            );
            Ok(())
        };
        self.anchor.output(ctx, |name| Table::new(name, spec), check)
    }
}

/// The contents of an input or output of an op on a table.
#[derive(Clone, Copy)]
pub(crate) enum Column {
    Key,
    Value,
}

struct OnTable {
    seen: Seen<Table>,
    act: fn(&Table, &mut Ctx<'_>) -> Result<()>,
    inputs: &'static [Column],
    outputs: &'static [Column],
    /// The types the node has for them.
    types: (Vec<DType>, Vec<DType>),
}

/// The kernel of an op on a table. Input 0 is the table. The other inputs and the outputs hold keys
/// and values of the table's types.
pub(crate) fn on_table(
    inputs: &'static [Column],
    outputs: &'static [Column],
    act: fn(&Table, &mut Ctx<'_>) -> Result<()>,
) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        let types = |ports: &[PortType], n: usize| ports.iter().map(|p| p.dtype).take(n).collect();
        let types = (
            types(init.inputs.get(1..).unwrap_or_default(), inputs.len()),
            types(init.outputs, outputs.len()),
        );
        Ok(KernelBox::new(OnTable { seen: Seen::new(), act, inputs, outputs, types }))
    }
}

impl Kernel for OnTable {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let handle = ctx.take_value(0)?;
        let table = self.seen.find(&ctx.step().resources, &handle)?;
        let of = |columns: &[Column]| -> Vec<DType> {
            let dtype = |c: &Column| match c {
                Column::Key => table.spec.key,
                Column::Value => table.spec.value,
            };
            columns.iter().map(dtype).collect()
        };
        let wanted = (of(self.inputs), of(self.outputs));
        ensure!(
            self.types == wanted,
            InvalidArgument,
            "Signature mismatch, have: {} expected: {}",
            signature(&handle, &self.types),
            signature(&handle, &wanted)
        );
        (self.act)(&table, ctx)
    }
}

fn signature(handle: &Value, (inputs, outputs): &(Vec<DType>, Vec<DType>)) -> String {
    let handle = if matches!(handle, Value::Ref(_)) { "string_ref" } else { "resource" };
    let names = |types: &[DType]| types.iter().map(|d| d.name()).collect::<Vec<_>>();
    let mut all = vec![handle];
    all.extend(names(inputs));
    format!("{}->{}", all.join(", "), names(outputs).join(", "))
}

fn find(table: &Table, ctx: &mut Ctx<'_>) -> Result<()> {
    let found = table.find(ctx.input(1)?, ctx.input(2)?)?;
    ctx.set(0, found)
}

fn insert(table: &Table, ctx: &mut Ctx<'_>) -> Result<()> {
    table.insert(ctx.input(1)?, ctx.input(2)?)
}

fn import(table: &Table, ctx: &mut Ctx<'_>) -> Result<()> {
    table.replace(ctx.input(1)?, ctx.input(2)?)
}

fn remove(table: &Table, ctx: &mut Ctx<'_>) -> Result<()> {
    table.remove(ctx.input(1)?)
}

fn export(table: &Table, ctx: &mut Ctx<'_>) -> Result<()> {
    let (keys, values) = table.export()?;
    ctx.set(0, keys)?;
    ctx.set(1, values)
}

fn size(table: &Table, ctx: &mut Ctx<'_>) -> Result<()> {
    ctx.set(0, Tensor::scalar(table.len() as i64))
}

/// The kinds of tables.
const KINDS: [(&str, Kind, &str); 4] = [
    ("HashTable", Kind::Fixed, "A table that is filled once."),
    ("MutableHashTable", Kind::Mutable, "A table that may change."),
    ("MutableHashTableOfTensors", Kind::Mutable, "A table whose values are vectors."),
    ("MutableDenseHashTable", Kind::Mutable, "A table whose keys and values may be tensors."),
];

pub(crate) fn register(c: &mut Catalog) {
    use Column::{Key, Value};
    for (name, kind, doc) in &KINDS {
        let dense = *name == "MutableDenseHashTable";
        for (form, handle) in
            [("#", "Ref(string)"), ("#V2", "resource"), ("Anonymous#", "resource")]
        {
            let mut op = c.op(&form.replace('#', name)).doc(doc);
            op = if dense { op.input("empty_key: key_dtype") } else { op };
            op = if dense && form != "#" { op.input("deleted_key: key_dtype") } else { op };
            op = op.output(&format!("table_handle: {handle}"));
            if form != "Anonymous#" {
                op = op
                    .attr("container: string = ''")
                    .attr("shared_name: string = ''")
                    .attr("use_node_name_sharing: bool = false");
            }
            op = op.attr("key_dtype: type").attr("value_dtype: type");
            if dense || name.ends_with("OfTensors") {
                op = op.attr("value_shape: shape = {}");
            }
            if dense {
                op = op
                    .attr("initial_num_buckets: int = 131072")
                    .attr("max_load_factor: float = 0.800000011920929");
            }
            let handle_shape = if form == "#" { ref_handle_shape } else { shape::scalar };
            op.stateful().shape(handle_shape).cpu(make(kind.clone(), dense));
        }
    }
    for version in ["", "V2"] {
        on(c, "LookupTableFind", version, "The values of keys, a default for those not there.")
            .input("keys: Tin")
            .input("default_value: Tout")
            .output("values: Tout")
            .attr("Tin: type")
            .attr("Tout: type")
            .shape(shape::unknown)
            .cpu(on_table(&[Key, Value], &[Value], find));
        on(c, "LookupTableInsert", version, "Adds or replaces entries.")
            .input("keys: Tin")
            .input("values: Tout")
            .attr("Tin: type")
            .attr("Tout: type")
            .shape(shape::unknown)
            .cpu(on_table(&[Key, Value], &[], insert));
        on(c, "LookupTableImport", version, "Replaces all entries.")
            .input("keys: Tin")
            .input("values: Tout")
            .attr("Tin: type")
            .attr("Tout: type")
            .shape(shape::unknown)
            .cpu(on_table(&[Key, Value], &[], import));
        on(c, "LookupTableExport", version, "All keys and their values.")
            .output("keys: Tkeys")
            .output("values: Tvalues")
            .attr("Tkeys: type")
            .attr("Tvalues: type")
            .shape(shape::unknown)
            .cpu(on_table(&[], &[Key, Value], export));
        on(c, "LookupTableSize", version, "How many entries a table has.")
            .output("size: int64")
            .shape(shape::scalar)
            .cpu(on_table(&[], &[], size));
    }
    on(c, "LookupTableRemove", "V2", "Removes entries.")
        .input("keys: Tin")
        .attr("Tin: type")
        .shape(shape::unknown)
        .cpu(on_table(&[Key], &[], remove));
    c.no_gradient(&[
        "HashTable",
        "LookupTableFind",
        "LookupTableInsert",
        "LookupTableSize",
        "MutableDenseHashTable",
        "MutableHashTable",
        "MutableHashTableOfTensors",
        "HashTableV2",
        "LookupTableFindV2",
        "LookupTableInsertV2",
        "LookupTableSizeV2",
        "MutableDenseHashTableV2",
        "MutableHashTableOfTensorsV2",
        "MutableHashTableV2",
    ]);
}

/// The beginning of the declaration of an op on a table.
pub(crate) fn on<'c>(c: &'c mut Catalog, name: &str, version: &str, doc: &str) -> OpBuilder<'c> {
    let op = c.op(&format!("{name}{version}")).doc(doc);
    match version {
        "V2" => op.input("table_handle: resource").stateful(),
        _ => op.input("table_handle: Ref(string)"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    /// A table, and the ops of one version on it.
    pub(crate) struct Fixture {
        resources: Arc<Resources>,
        handle: Value,
        version: &'static str,
    }

    impl Fixture {
        pub(crate) fn new(
            op: &str,
            version: &'static str,
            key: DType,
            value: DType,
            set: impl Fn(Check<'static>) -> Check<'static>,
        ) -> Fixture {
            let resources = Arc::new(Resources::new());
            let made = set(check(&format!("{op}{version}")).resources(&resources))
                .attr("shared_name", "t")
                .attr("key_dtype", key)
                .attr("value_dtype", value)
                .run_values()
                .unwrap();
            Fixture { resources, handle: made[0].clone(), version }
        }

        pub(crate) fn on(&self, op: &str) -> Check<'static> {
            let check = check(&format!("{op}{}", self.version)).resources(&self.resources);
            match &self.handle {
                Value::Ref(v) => check.ref_input(v.clone()),
                Value::Tensor(t) => check.input(t.clone()),
                _ => unreachable!(),
            }
        }

        pub(crate) fn find(&self, keys: Tensor, default: Tensor) -> Check<'static> {
            self.on("LookupTableFind").input(keys).input(default)
        }

        pub(crate) fn insert(&self, keys: Tensor, values: Tensor) -> Check<'static> {
            self.on("LookupTableInsert").input(keys).input(values)
        }

        #[track_caller]
        pub(crate) fn has_size(&self, n: i64) {
            self.on("LookupTableSize").gives(Tensor::scalar(n));
        }
    }

    fn mutable(op: &str, set: impl Fn(Check<'static>) -> Check<'static>) -> Fixture {
        Fixture::new(op, "V2", DType::Int64, DType::Float, set)
    }

    #[track_caller]
    fn refused(check: Check<'static>, text: &str) {
        check.fails(Code::InvalidArgument, text);
    }

    #[test]
    fn entries_come_change_and_go() {
        for version in ["", "V2"] {
            let t = Fixture::new("MutableHashTable", version, DType::Int64, DType::Float, |c| c);
            t.insert(Tensor::vector(&[1i64, 2, 5]), Tensor::vector(&[0.1f32, 0.2, 0.5]))
                .run()
                .unwrap();
            t.insert(Tensor::vector(&[1i64]), Tensor::vector(&[0.7f32])).run().unwrap();
            t.find(Tensor::from_slice([2, 2], &[1i64, 2, 3, 3]).unwrap(), Tensor::scalar(-1.0f32))
                .gives(Tensor::from_slice([2, 2], &[0.7f32, 0.2, -1.0, -1.0]).unwrap());
            t.find(Tensor::vector(&[1i64, 3]), Tensor::vector(&[7.0f32, 8.0]))
                .gives(Tensor::vector(&[0.7f32, 8.0]));
            refused(
                t.find(Tensor::vector(&[1i64, 3, 4]), Tensor::vector(&[7.0f32, 8.0])),
                "Expected shape [] or [3] for default value, got [2]",
            );
            refused(
                t.insert(Tensor::vector(&[1i64, 2]), Tensor::vector(&[1.0f32])),
                "Expected shape [2] for value, got [1]",
            );
            t.has_size(3);
            if version == "V2" {
                let gone = t.on("LookupTableRemove").input(Tensor::vector(&[1i64, 9]));
                gone.run().unwrap();
                t.find(Tensor::vector(&[1i64, 2, 5]), Tensor::scalar(-1.0f32))
                    .gives(Tensor::vector(&[-1.0f32, 0.2, 0.5]));
                t.has_size(2);
            }
            t.on("LookupTableImport")
                .input(Tensor::vector(&[8i64]))
                .input(Tensor::vector(&[0.8f32]))
                .run()
                .unwrap();
            let got = t
                .on("LookupTableExport")
                .attr("Tkeys", DType::Int64)
                .attr("Tvalues", DType::Float)
                .run()
                .unwrap();
            assert_eq!(got, [Tensor::vector(&[8i64]), Tensor::vector(&[0.8f32])]);
        }
    }

    #[test]
    fn tables_of_many_entries_hold_them_all() {
        let t = Fixture::new("MutableHashTable", "V2", DType::String, DType::Int32, |c| c);
        let keys: Vec<bytes::Bytes> = (0..1000).map(|i| format!("key {i}").into()).collect();
        let keys = Tensor::from_strings([1000], keys).unwrap();
        let values = Tensor::vector(&(0..1000).collect::<Vec<i32>>());
        t.insert(keys.clone(), values.clone()).run().unwrap();
        t.on("LookupTableRemove").input(keys.rows(0, 500).unwrap()).run().unwrap();
        t.has_size(500);
        t.find(keys.rows(500, 500).unwrap(), Tensor::scalar(-1i32))
            .gives(values.rows(500, 500).unwrap());
    }

    #[test]
    fn types_are_checked() {
        let t = mutable("MutableHashTable", |c| c);
        refused(
            t.find(Tensor::scalar(1i32), Tensor::scalar(1.0f32)),
            "Signature mismatch, have: resource, int32, float->float expected: resource, int64, \
             float->float",
        );
        refused(
            t.on("LookupTableRemove").input(Tensor::scalar(1.0f32)),
            "Signature mismatch, have: resource, float-> expected: resource, int64->",
        );
        check("HashTableV2")
            .resources(&t.resources)
            .attr("shared_name", "t")
            .attr("key_dtype", DType::Int64)
            .attr("value_dtype", DType::String)
            .fails(
                Code::InvalidArgument,
                "Conflicting key/value dtypes int64->string with int64-float for table t",
            );
    }

    #[test]
    fn values_may_be_vectors() {
        let t = mutable("MutableHashTableOfTensors", |c| {
            c.attr("value_shape", PartialShape::from([2]))
        });
        let values = Tensor::from_slice([2, 2], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        t.insert(Tensor::vector(&[1i64, 2]), values).run().unwrap();
        t.find(Tensor::vector(&[2i64, 7]), Tensor::vector(&[9.0f32, 8.0]))
            .gives(Tensor::from_slice([2, 2], &[3.0f32, 4.0, 9.0, 8.0]).unwrap());
        refused(
            t.find(Tensor::vector(&[2i64, 7]), Tensor::scalar(1.0f32)),
            "Expected shape [2] or [2,2] for default value, got []",
        );
        let wide = Tensor::from_slice([1, 3], &[1.0f32; 3]).unwrap();
        refused(
            t.insert(Tensor::vector(&[1i64]), wide),
            "Expected shape [1,2] for value, got [1,3]",
        );
    }

    #[test]
    fn a_dense_table_has_keys_that_stand_for_nothing() {
        let dense = |e: i64, d: i64| {
            check("MutableDenseHashTableV2")
                .input(Tensor::scalar(e))
                .input(Tensor::scalar(d))
                .attr("value_dtype", DType::Float)
        };
        refused(dense(1, 1), "Empty and deleted keys cannot be equal");
        refused(
            dense(0, 1).attr("initial_num_buckets", 5),
            "Number of buckets must be at least 4 and a power of 2, got: 5",
        );
        refused(
            dense(0, 1).attr("max_load_factor", 1.5f32),
            "max_load_factor must be between 0 and 1, got: 1.5",
        );
        let t = mutable("MutableDenseHashTable", |c| {
            c.input(Tensor::scalar(0i64)).input(Tensor::scalar(-1i64))
        });
        let one = || Tensor::vector(&[1.0f32]);
        refused(
            t.insert(Tensor::vector(&[0i64]), one()),
            "Using the empty_key as a table key is not allowed",
        );
        refused(
            t.find(Tensor::vector(&[-1i64]), Tensor::scalar(1.0f32)),
            "Using the deleted_key as a table key is not allowed",
        );
        t.insert(Tensor::vector(&[5i64]), one()).run().unwrap();
        t.has_size(1);
        // Importing skips them.
        t.on("LookupTableImport")
            .input(Tensor::vector(&[0i64, 7, -1]))
            .input(Tensor::vector(&[0.0f32, 7.0, 0.0]))
            .run()
            .unwrap();
        t.has_size(1);
        let pair = |a: i64, b: i64| Tensor::vector(&[a, b]);
        let t = mutable("MutableDenseHashTable", |c| c.input(pair(0, 0)).input(pair(-1, -1)));
        let two = Tensor::from_slice([2, 2], &[1i64, 2, 3, 4]).unwrap();
        t.insert(two, Tensor::vector(&[1.0f32, 3.0])).run().unwrap();
        t.find(pair(3, 4), Tensor::scalar(-1.0f32)).gives(Tensor::scalar(3.0f32));
        refused(
            t.find(Tensor::vector(&[3i64]), Tensor::scalar(-1.0f32)),
            "Input key shape [1] must end with the table's key shape [2]",
        );
    }

    #[test]
    fn anonymous_tables_are_tables() {
        let made = check("AnonymousMutableHashTable")
            .attr("key_dtype", DType::String)
            .attr("value_dtype", DType::Int64)
            .run()
            .unwrap();
        assert_eq!(made[0].handles().unwrap()[0].container, "localhost");
    }
}
