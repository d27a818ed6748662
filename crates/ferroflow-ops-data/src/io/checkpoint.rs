//! SaveV2, RestoreV2, MergeV2Checkpoints and the older Save and Restore ops.

use super::bundle::{
    BundleReader, BundleWriter, FirstReader, FirstWriter, Slice, merge, parse_spec,
};
use crate::prelude::*;
use ferroflow_op_kit::file::local;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The one string in input `i`.
fn single(ctx: &Ctx<'_>, i: usize, name: &str) -> Result<String> {
    let t = ctx.input(i)?;
    ensure!(
        t.elements() == 1,
        InvalidArgument,
        "Input {i} ({name}) should have a single element, got {} instead.",
        t.elements()
    );
    Ok(text(&t.strings()?[0]))
}

/// Names and slice specifications in inputs 1 and 2, one for each of `tensors`.
fn names_and_specs(ctx: &Ctx<'_>, tensors: usize) -> Result<(Vec<String>, Vec<String>)> {
    let (names, specs) = (ctx.input(1)?, ctx.input(2)?);
    for (t, what) in [(names, "tensor_names"), (specs, "shape_and_slices")] {
        ensure!(
            t.rank() == 1,
            InvalidArgument,
            "Input {what} should be a 1-D tensor, got {} instead.",
            t.shape()
        );
    }
    ensure!(
        names.elements() == specs.elements(),
        InvalidArgument,
        "tensor_names and shape_and_slices have different number of elements: {} vs. {}",
        names.elements(),
        specs.elements()
    );
    ensure!(
        names.elements() == tensors,
        InvalidArgument,
        "Got {} tensor names but {tensors} tensors.",
        names.elements()
    );
    let texts =
        |t: &Tensor| -> Result<Vec<String>> { Ok(t.strings()?.iter().map(|s| text(s)).collect()) };
    Ok((texts(names)?, texts(specs)?))
}

/// The shape and slice a tensor is saved as; `None` for a whole tensor.
fn saved_as(spec: &str, t: &Tensor) -> Result<Option<(Shape, Slice)>> {
    let parsed = parse_spec(spec)?;
    if let Some((shape, slice)) = &parsed {
        ensure!(
            slice.within(shape)?.1 == *t.shape(),
            InvalidArgument,
            "Slice in shape_and_slice specification does not match the shape of the tensor to  \
             save: {spec}, tensor: {}",
            t.shape()
        );
    }
    Ok(parsed)
}

fn save_v2(ctx: &mut Ctx<'_>) -> Result<()> {
    let prefix = single(ctx, 0, "prefix")?;
    let (names, specs) = names_and_specs(ctx, ctx.num_inputs() - 3)?;
    let mut bundle = BundleWriter::create(&prefix)?;
    for (i, (name, spec)) in names.iter().zip(&specs).enumerate() {
        let t = ctx.input(3 + i)?;
        match saved_as(spec, t)? {
            None => bundle.add(name, t)?,
            Some((shape, slice)) => bundle.add_slice(name, &shape, slice, t)?,
        }
    }
    bundle.finish()
}

fn restore_v2(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtypes = init.dtypes("dtypes")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let prefix = single(ctx, 0, "prefix")?;
        let (names, specs) = names_and_specs(ctx, dtypes.len())?;
        if !BundleReader::is_there(&prefix) {
            // A checkpoint of the first format may have this name.
            let first = FirstReader::open(&prefix, &ctx.step().cancel)?;
            for (i, (name, spec)) in names.iter().zip(&specs).enumerate() {
                let t = read_first(&first, name, spec, dtypes[i])?;
                ctx.set(i, t)?;
            }
            return Ok(());
        }
        let bundle = BundleReader::open(&prefix)?;
        for (i, (name, spec)) in names.iter().zip(&specs).enumerate() {
            let (dtype, shape) = bundle.find(name)?;
            ensure!(
                dtype == dtypes[i],
                InvalidArgument,
                "tensor_name = {name}; expected dtype {} does not equal original dtype {dtype}",
                dtypes[i]
            );
            let t = match parse_spec(spec)? {
                None => bundle.read(name)?,
                Some((wanted, slice)) => {
                    ensure!(
                        wanted == *shape,
                        InvalidArgument,
                        "tensor_name = {name}; shape in shape_and_slice spec {wanted} does not match \
                         the shape stored in checkpoint: {shape}"
                    );
                    bundle.read_slice(name, &slice)?
                }
            };
            ctx.set(i, t)?;
        }
        Ok(())
    }))
}

fn read_first(first: &FirstReader, name: &str, spec: &str, dtype: DType) -> Result<Tensor> {
    let (stored, shape) = first.find(name)?;
    ensure!(
        stored == dtype,
        InvalidArgument,
        "Expected to restore a tensor of type {dtype}, got a tensor of type {stored} instead: \
         tensor_name = {name}"
    );
    let slice = match parse_spec(spec)? {
        None => Slice::full(shape.rank()),
        Some((wanted, slice)) => {
            ensure!(
                wanted == *shape,
                InvalidArgument,
                "Shape in shape_and_slice spec does not match the shape in the save file: {wanted}, \
                 save file shape: {shape}"
            );
            slice
        }
    };
    first.read(name, &slice)
}

fn merge_v2(init: &KernelInit<'_>) -> Result<KernelBox> {
    let delete_old = init.bool("delete_old_dirs")?;
    let allow_missing = init.bool("allow_missing_files")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let prefixes = ctx.input(0)?;
        ensure!(
            prefixes.rank() == 1,
            InvalidArgument,
            "Input checkpoint_prefixes should be an 1-D tensor, got {} instead.",
            prefixes.shape()
        );
        let prefixes: Vec<String> = prefixes.strings()?.iter().map(|s| text(s)).collect();
        let to = ctx.input(1)?;
        ensure!(
            to.rank() == 0,
            InvalidArgument,
            "Input destination_prefix should be a scalar tensor, got {} instead.",
            to.shape()
        );
        let to = text(to.scalar_string()?);
        merge(&prefixes, &to, allow_missing)?;
        if delete_old {
            let target = local(to.as_bytes()).parent();
            for prefix in &prefixes {
                let dir = local(prefix.as_bytes()).parent();
                // Fails, as it should, if the folder is not empty.
                if let Some(dir) = dir.filter(|&d| Some(d) != target) {
                    let _ = ferroflow_core::files::remove_dir(dir);
                }
            }
        }
        Ok(())
    }))
}

fn save_first(ctx: &mut Ctx<'_>, has_specs: bool) -> Result<()> {
    let file = single(ctx, 0, "filename")?;
    let first = if has_specs { 3 } else { 2 };
    let tensors = ctx.num_inputs() - first;
    let (names, specs) = match has_specs {
        true => names_and_specs(ctx, tensors)?,
        false => {
            let names = ctx.input(1)?;
            ensure!(
                names.rank() == 1 && names.elements() == tensors,
                InvalidArgument,
                "Expected {tensors} names for the tensors, got {}",
                names.elements()
            );
            let names = names.strings()?.iter().map(|s| text(s)).collect();
            (names, vec![String::new(); tensors])
        }
    };
    let mut writer = FirstWriter::create(&file);
    for (i, (name, spec)) in names.iter().zip(&specs).enumerate() {
        let t = ctx.input(first + i)?;
        let (shape, slice) =
            saved_as(spec, t)?.unwrap_or_else(|| (t.shape().clone(), Slice::full(t.rank())));
        writer.add(name, &shape, slice, t)?;
    }
    writer.finish()
}

fn restore_first(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (dtype, has_spec) = (init.dtype("dt")?, init.inputs.len() > 2);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (pattern, name) = (single(ctx, 0, "file_pattern")?, single(ctx, 1, "tensor_name")?);
        let spec = if has_spec { single(ctx, 2, "shape_and_slice")? } else { String::new() };
        // Bundles have tensors of these names too.
        let t = match BundleReader::is_there(&pattern) {
            false => {
                read_first(&FirstReader::open(&pattern, &ctx.step().cancel)?, &name, &spec, dtype)?
            }
            true => {
                let bundle = BundleReader::open(&pattern)?;
                match parse_spec(&spec)? {
                    None => bundle.read(&name)?,
                    Some((_, slice)) => bundle.read_slice(&name, &slice)?,
                }
            }
        };
        ensure!(
            t.dtype() == dtype,
            InvalidArgument,
            "tensor_name = {name}; expected dtype {dtype} does not equal original dtype {}",
            t.dtype()
        );
        ctx.set(0, t)
    }))
}

/// A scalar input of ShardedFilename and similar ops.
fn scalar<'a>(ctx: &'a Ctx<'_>, i: usize, name: &str) -> Result<&'a Tensor> {
    let t = ctx.input(i)?;
    ensure!(t.rank() == 0, InvalidArgument, "{name} must be a scalar, got shape {}", t.shape());
    Ok(t)
}

fn sharded_filename(ctx: &mut Ctx<'_>) -> Result<()> {
    let base = text(scalar(ctx, 0, "basename")?.scalar_string()?);
    let shard = scalar(ctx, 1, "shard")?.scalar_value::<i32>()?;
    let shards = scalar(ctx, 2, "num_shards")?.scalar_value::<i32>()?;
    ctx.set(0, Tensor::string(format!("{base}-{shard:05}-of-{shards:05}")))
}

fn sharded_filespec(ctx: &mut Ctx<'_>) -> Result<()> {
    let base = text(scalar(ctx, 0, "basename")?.scalar_string()?);
    let shards = scalar(ctx, 1, "num_shards")?.scalar_value::<i32>()?;
    ctx.set(0, Tensor::string(format!("{base}-?????-of-{shards:05}")))
}

/// The shapes in the specifications, if these are constants.
fn restored_shapes(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let specs = c.constant(2).and_then(|t| t.strings().ok());
    let shape = |i: usize| -> Option<PartialShape> {
        let (shape, slice) = parse_spec(&text(specs?.get(i)?)).ok()??;
        Some(PartialShape::from(slice.within(&shape).ok()?.1))
    };
    Ok((0..c.outputs).map(|i| shape(i).unwrap_or_default()).collect())
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("SaveV2")
        .doc("Saves tensors, or slices of them, to a checkpoint.")
        .input("prefix: string")
        .input("tensor_names: string")
        .input("shape_and_slices: string")
        .input("tensors: dtypes")
        .attr("dtypes: list(type) >= 1")
        .stateful()
        .shape(shape::unknown)
        .does_io()
        .cpu_fn(save_v2);
    c.op("RestoreV2")
        .doc("Tensors, or slices of them, from a checkpoint.")
        .input("prefix: string")
        .input("tensor_names: string")
        .input("shape_and_slices: string")
        .output("tensors: dtypes")
        .attr("dtypes: list(type) >= 1")
        .stateful()
        .shape(restored_shapes)
        .does_io()
        .cpu(restore_v2);
    c.op("MergeV2Checkpoints")
        .doc("Makes one checkpoint of those that several tasks wrote.")
        .input("checkpoint_prefixes: string")
        .input("destination_prefix: string")
        .attr("delete_old_dirs: bool = true")
        .attr("allow_missing_files: bool = false")
        .stateful()
        .shape(shape::unknown)
        .does_io()
        .cpu(merge_v2);
    c.op("ShardedFilename")
        .doc("The name of one of several files.")
        .input("basename: string")
        .input("shard: int32")
        .input("num_shards: int32")
        .output("filename: string")
        .shape(shape::scalar)
        .cpu_fn(sharded_filename);
    c.op("ShardedFilespec")
        .doc("A pattern that the names of several files match.")
        .input("basename: string")
        .input("num_shards: int32")
        .output("filename: string")
        .shape(shape::scalar)
        .cpu_fn(sharded_filespec);
    c.op("Save")
        .doc("Saves tensors to a file of the first checkpoint format.")
        .input("filename: string")
        .input("tensor_names: string")
        .input("data: T")
        .attr("T: list(type) >= 1")
        .stateful()
        .shape(shape::unknown)
        .does_io()
        .cpu_fn(|ctx| save_first(ctx, false));
    c.op("SaveSlices")
        .doc("Saves slices of tensors to a file of the first checkpoint format.")
        .input("filename: string")
        .input("tensor_names: string")
        .input("shapes_and_slices: string")
        .input("data: T")
        .attr("T: list(type) >= 1")
        .stateful()
        .shape(shape::unknown)
        .does_io()
        .cpu_fn(|ctx| save_first(ctx, true));
    c.op("Restore")
        .doc("A tensor from files of the first checkpoint format.")
        .input("file_pattern: string")
        .input("tensor_name: string")
        .output("tensor: dt")
        .attr("dt: type")
        .attr("preferred_shard: int = -1")
        .stateful()
        .shape(shape::unknown)
        .does_io()
        .cpu(restore_first);
    c.op("RestoreSlice")
        .doc("A slice of a tensor from files of the first checkpoint format.")
        .input("file_pattern: string")
        .input("tensor_name: string")
        .input("shape_and_slice: string")
        .output("tensor: dt")
        .attr("dt: type")
        .attr("preferred_shard: int = -1")
        .stateful()
        .shape(|c| Ok(vec![restored_shapes(c)?[0].clone()]))
        .does_io()
        .cpu(restore_first);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;
    use bytes::Bytes;
    use std::path::PathBuf;

    /// A directory that is removed after the test.
    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Dir {
            let path =
                std::env::temp_dir().join(format!("ferroflow-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            Dir(path)
        }

        fn path(&self, name: &str) -> String {
            format!("{}/{name}", self.0.display())
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn strings(values: &[&str]) -> Tensor {
        let values: Vec<Bytes> = values.iter().map(|s| Bytes::from(s.to_string())).collect();
        Tensor::from_strings([values.len()], values).unwrap()
    }

    fn save(prefix: &str, names: &[&str], specs: &[&str], tensors: &[Tensor]) -> Result<()> {
        let mut c = check("SaveV2")
            .input(Tensor::string(prefix.to_string()))
            .input(strings(names))
            .input(strings(specs));
        for t in tensors {
            c = c.input(t.clone());
        }
        c.run().map(|_| ())
    }

    fn restore(prefix: &str, name: &str, spec: &str, dtype: DType) -> Result<Tensor> {
        let c = check("RestoreV2")
            .attr("dtypes", vec![dtype])
            .input(Tensor::string(prefix.to_string()))
            .input(strings(&[name]))
            .input(strings(&[spec]));
        Ok(c.run()?.remove(0))
    }

    #[test]
    fn tensors_come_back() {
        let dir = Dir::new("save");
        let tensors = [
            Tensor::vector(&[1f32, 2.]),
            strings(&["x", "yy", ""]),
            Tensor::scalar(true),
            Tensor::zeros(DType::Int64, [0, 3]).unwrap(),
            Tensor::vector(&[Complex32::new(1.0, 2.0)]),
        ];
        let names = ["b", "a", "c/d", "e", "f"];
        save(&dir.path("m"), &names, &[""; 5], &tensors).unwrap();
        for (name, t) in names.iter().zip(&tensors) {
            assert_eq!(restore(&dir.path("m"), name, "", t.dtype()).unwrap(), *t);
        }
        let files: Vec<_> = std::fs::read_dir(&dir.0).unwrap().collect();
        assert_eq!(files.len(), 2, "no temporary file stays");
    }

    #[test]
    fn slices_make_a_whole_and_a_whole_has_slices() {
        let dir = Dir::new("slices");
        let half = |x: f32| Tensor::from_slice([2, 2], &[x, x + 1., x + 2., x + 3.]).unwrap();
        let specs = ["4 2 0,2:-", "4 2 2,2:-"];
        save(&dir.path("p"), &["v", "v"], &specs, &[half(1.), half(5.)]).unwrap();
        let whole: Vec<f32> = (1..=8).map(|x| x as f32).collect();
        let whole = Tensor::from_slice([4, 2], &whole).unwrap();
        let read = |spec: &str| restore(&dir.path("p"), "v", spec, DType::Float);
        assert_eq!(read("").unwrap(), whole);
        assert_eq!(read("4 2 2,2:-").unwrap(), half(5.));
        let column = Tensor::from_slice([2, 1], &[3f32, 5.]).unwrap();
        assert_eq!(read("4 2 1,2:0,1").unwrap(), column);
        save(&dir.path("w"), &["v"], &[""], &[whole]).unwrap();
        assert_eq!(restore(&dir.path("w"), "v", "4 2 1,2:0,1", DType::Float).unwrap(), column);
        save(&dir.path("q"), &["v"], &specs[..1], &[half(1.)]).unwrap();
        let e = restore(&dir.path("q"), "v", "", DType::Float).unwrap_err();
        assert!(e.message().contains("Does not have sufficient slices"));
    }

    #[test]
    fn bundles_merge() {
        let dir = Dir::new("merge");
        let half = |x: f32| Tensor::vector(&[x, x + 1.]);
        for (i, spec) in ["4 0,2", "4 2,2"].iter().enumerate() {
            let (name, x) = (format!("x{i}"), i as f32 * 2.);
            let tensors = [half(x), Tensor::scalar(i as i32)];
            save(&dir.path(&format!("t/part-{i}")), &["v", &name], &[spec, ""], &tensors).unwrap();
        }
        let merge = || {
            check("MergeV2Checkpoints")
                .input(strings(&[&dir.path("t/part-0"), &dir.path("t/part-1")]))
                .input(Tensor::string(dir.path("m")))
        };
        merge().run().unwrap();
        let read = |name: &str, dtype| restore(&dir.path("m"), name, "", dtype).unwrap();
        assert_eq!(read("v", DType::Float), Tensor::vector(&[0f32, 1., 2., 3.]));
        assert_eq!(read("x1", DType::Int32), Tensor::scalar(1i32));
        assert!(!dir.0.join("t").exists());
        merge().fails(Code::InvalidArgument, "allow_missing_files was set to false and");
        merge().attr("allow_missing_files", true).fails(
            Code::InvalidArgument,
            "At least one prefix checkpoint file must exist, but none existed.",
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        let dir = Dir::new("wrong");
        let (p, two) = (dir.path("m"), Tensor::vector(&[1f32, 2.]));
        let one = std::slice::from_ref(&two);
        save(&p, &["b"], &[""], one).unwrap();
        let cases = [
            (restore(&p, "zz", "", DType::Float), Code::NotFound, "Key zz not found in checkpoint"),
            (restore(&p, "", "", DType::Float), Code::NotFound, "not found in checkpoint"),
            (
                restore(&p, "b", "", DType::Int32),
                Code::InvalidArgument,
                "tensor_name = b; expected dtype int32 does not equal original dtype float",
            ),
            (
                restore(&p, "b", "3 1,1", DType::Float),
                Code::InvalidArgument,
                "shape in shape_and_slice spec [3] does not match the shape stored in checkpoint: [2]",
            ),
            (
                restore(&dir.path("no"), "b", "", DType::Float),
                Code::NotFound,
                "Failed to find any matching files for",
            ),
        ];
        for (result, code, text) in cases {
            let e = result.unwrap_err();
            assert_eq!(e.code(), code, "{e}");
            assert!(e.message().contains(text), "{e}");
        }
        let e = save(&p, &["b"], &["4 0,3"], one).unwrap_err();
        assert!(e.message().contains("does not match the shape of the tensor to  save: 4 0,3"));
        let e = save(&p, &["b", "b"], &["", ""], &[two.clone(), two.clone()]).unwrap_err();
        assert_eq!(e.message(), "Adding duplicate key: b");
        let e = save(&dir.path("no/dir/m"), &["b"], &[""], one).unwrap_err();
        assert_eq!(e.code(), Code::NotFound);
        // The files from before a failed save are still there.
        assert_eq!(restore(&p, "b", "", DType::Float).unwrap(), two);
    }

    #[test]
    fn damage_is_noticed() {
        let dir = Dir::new("damage");
        let p = dir.path("m");
        save(&p, &["b"], &[""], &[Tensor::vector(&[1f32, 2.])]).unwrap();
        let data = format!("{p}.data-00000-of-00001");
        let mut bytes = std::fs::read(&data).unwrap();
        bytes[0] ^= 1;
        std::fs::write(&data, &bytes).unwrap();
        let e = restore(&p, "b", "", DType::Float).unwrap_err();
        assert_eq!(e.code(), Code::DataLoss);
        assert!(e.message().contains("Checksum does not match"), "{e}");
        std::fs::write(&data, &bytes[..4]).unwrap();
        let e = restore(&p, "b", "", DType::Float).unwrap_err();
        assert_eq!((e.code(), e.message()), (Code::OutOfRange, "Read less bytes than requested"));
    }

    #[test]
    fn the_first_format_comes_back() {
        let dir = Dir::new("first");
        let file = Tensor::string(dir.path("v1"));
        let tensors = [
            Tensor::vector(&[1f32, 2.]),
            Tensor::vector(&[-3i32, 4]),
            strings(&["s"]),
            Tensor::scalar(true),
        ];
        let mut c = check("Save").input(file.clone()).input(strings(&["b", "a", "s", "t"]));
        for t in &tensors {
            c = c.input(t.clone());
        }
        c.run().unwrap();
        for (name, t) in ["b", "a", "s", "t"].iter().zip(&tensors) {
            check("Restore")
                .attr("dt", t.dtype())
                .input(file.clone())
                .input(Tensor::string(*name))
                .gives(t.clone());
        }
        check("RestoreSlice")
            .attr("dt", DType::Float)
            .input(file.clone())
            .input(Tensor::string("b"))
            .input(Tensor::string("2 1,1"))
            .gives(Tensor::vector(&[2f32]));
        check("Restore")
            .attr("dt", DType::Float)
            .input(file)
            .input(Tensor::string("zz"))
            .fails(Code::NotFound, "Tensor name \"zz\" not found in checkpoint files");
        assert_eq!(restore(&dir.path("v1"), "b", "", DType::Float).unwrap(), tensors[0]);
    }

    #[test]
    fn names_of_files() {
        check("ShardedFilename")
            .input(Tensor::string("/a/b"))
            .input(Tensor::scalar(3i32))
            .input(Tensor::scalar(10i32))
            .gives(Tensor::string("/a/b-00003-of-00010"));
        check("ShardedFilespec")
            .input(Tensor::string("/a/b"))
            .input(Tensor::scalar(10i32))
            .gives(Tensor::string("/a/b-?????-of-00010"));
    }
}
