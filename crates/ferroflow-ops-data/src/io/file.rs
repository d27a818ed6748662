//! ReadFile, WriteFile, MatchingFiles, ImmutableConst.

use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::{CancelToken, Reservation, files};
use ferroflow_op_kit::file::{file_error, local, read_file};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// The file name in scalar input 0.
fn file_name(ctx: &Ctx<'_>) -> Result<String> {
    let t = ctx.input(0)?;
    ensure!(
        t.rank() == 0,
        InvalidArgument,
        "Input filename tensor must be scalar, but had shape: {}",
        t.shape()
    );
    Ok(String::from_utf8_lossy(t.scalar_string()?).into_owned())
}

fn read(ctx: &mut Ctx<'_>) -> Result<()> {
    let contents = read_file(&file_name(ctx)?)?;
    ctx.set(0, Tensor::string(contents))
}

fn write(ctx: &mut Ctx<'_>) -> Result<()> {
    let name = file_name(ctx)?;
    let contents = ctx.input(1)?;
    ensure!(
        contents.rank() == 0,
        InvalidArgument,
        "Contents tensor must be scalar, but had shape: {}",
        contents.shape()
    );
    let path = local(name.as_bytes());
    if let Some(dir) = path.parent()
        && !dir.as_os_str().is_empty()
    {
        files::create_dir_all(dir).map_err(|e| file_error(&dir.to_string_lossy(), &e))?;
    }
    let bytes = contents.scalar_string()?;
    let written = files::create(path).and_then(|mut f| f.write_all(bytes));
    written.map_err(|e| file_error(&name, &e))
}

fn matching(ctx: &mut Ctx<'_>) -> Result<()> {
    let patterns = ctx.input(0)?;
    ensure!(
        patterns.rank() <= 1,
        InvalidArgument,
        "Input patterns tensor must be scalar or vector, but had shape: {}",
        patterns.shape()
    );
    let mut found: Vec<Bytes> = Vec::new();
    for pattern in patterns.strings()? {
        found.extend(files_matching(pattern, &ctx.step().cancel)?);
    }
    found.sort();
    ctx.set(0, Tensor::from_strings([found.len()], found)?)
}

/// The files whose names match a pattern of `*`, `?`, `[a-z]`, `\x`; none of these matches a `/`.
/// A deep pattern can take long and match more files than fit the memory limit.
pub(crate) fn files_matching(pattern: &[u8], cancel: &CancelToken) -> Result<Vec<Bytes>> {
    let pattern = pattern.strip_prefix(b"file://").unwrap_or(pattern);
    let is_plain = |part: &[u8]| !part.iter().any(|b| b"*?[\\".contains(b));
    if is_plain(pattern) {
        let exists = files::exists(local(pattern));
        return Ok(exists.then(|| Bytes::copy_from_slice(pattern)).into_iter().collect());
    }
    let parts: Vec<&[u8]> = pattern.split(|&b| b == b'/').collect();
    // Names so far; each part is matched against the directories they are.
    let mut names: Vec<Vec<u8>> = vec![Vec::new()];
    let mut _names_counted;
    for (i, part) in parts.iter().enumerate() {
        let slash = if i + 1 < parts.len() { "/" } else { "" };
        let (mut next, mut counted) = (Vec::new(), Reservation::default());
        for name in names {
            cancel.check()?;
            if is_plain(part) {
                let whole = [&name[..], part, slash.as_bytes()].concat();
                let path = if whole.is_empty() { Path::new(".") } else { local(&whole) };
                if files::exists(path) {
                    next.push(whole);
                }
                continue;
            }
            let dir = if name.is_empty() { Path::new(".") } else { local(&name) };
            let Ok(entries) = files::read_dir(dir) else { continue };
            for entry in entries {
                cancel.check()?;
                let is_dir = slash.is_empty() || files::is_dir(&dir.join(&entry));
                let entry = entry.into_vec();
                if is_dir && matches_pattern(part, &entry) {
                    let whole = [&name[..], &entry, slash.as_bytes()].concat();
                    counted.grow(whole.len() + size_of::<Vec<u8>>())?;
                    next.push(whole);
                }
            }
        }
        names = next;
        _names_counted = counted;
    }
    Ok(names.into_iter().map(Bytes::from).collect())
}

/// Whether a name matches a shell pattern, by backtracking to the last `*` only.
fn matches_pattern(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        if n == name.len() && pattern[p..].iter().all(|&b| b == b'*') {
            return true;
        }
        if p < pattern.len() && pattern[p] == b'*' {
            star = Some((p, n));
            p += 1;
            continue;
        }
        if n < name.len()
            && let Some(used) = match_one(&pattern[p..], name[n])
        {
            (p, n) = (p + used, n + 1);
            continue;
        }
        match star {
            Some((at, from)) if from < name.len() => {
                star = Some((at, from + 1));
                (p, n) = (at + 1, from + 1);
            }
            _ => return false,
        }
    }
}

/// How much of the pattern matches one byte, if it does.
fn match_one(pattern: &[u8], byte: u8) -> Option<usize> {
    match *pattern.first()? {
        b'?' => Some(1),
        b'\\' if pattern.len() > 1 => (pattern[1] == byte).then_some(2),
        b'[' => match pattern.iter().skip(2).position(|&b| b == b']') {
            None => (byte == b'[').then_some(1),
            Some(end) => {
                let set = &pattern[1..end + 2];
                let (negated, set) = match set {
                    [b'^' | b'!', rest @ ..] if !rest.is_empty() => (true, rest),
                    set => (false, set),
                };
                let mut i = 0;
                let mut is_in = false;
                while i < set.len() {
                    if i + 2 < set.len() && set[i + 1] == b'-' {
                        is_in |= (set[i]..=set[i + 2]).contains(&byte);
                        i += 3;
                    } else {
                        is_in |= set[i] == byte;
                        i += 1;
                    }
                }
                (is_in != negated).then_some(end + 3)
            }
        },
        b => (b == byte).then_some(1),
    }
}

/// A constant whose elements are the bytes of a file.
struct FileConstant {
    file: String,
    dtype: DType,
    shape: Shape,
}

impl Kernel for FileConstant {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let bytes = read_file(&self.file)?;
        let width = self.dtype.size().unwrap_or(0);
        let needed = self.shape.checked_elements()?.saturating_mul(width);
        ensure!(
            bytes.len() >= needed,
            InvalidArgument,
            "file '{}' has {} bytes, a {} of shape {} needs {needed}",
            self.file,
            bytes.len(),
            self.dtype,
            self.shape
        );
        let bytes = Bytes::from(bytes).slice(..needed);
        ctx.set(0, Tensor::from_bytes(self.dtype, self.shape.clone(), bytes)?)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("ImmutableConst")
        .doc("A constant that is read from a file.")
        .output("tensor: dtype")
        .attr("dtype: type")
        .attr("shape: shape")
        .attr("memory_region_name: string")
        .does_io()
        .shape(shape::from_attr)
        .cpu(|init| {
            let dtype = init.dtype("dtype")?;
            if !dtype.is_plain() {
                return Err(unsupported(init, "dtype", dtype));
            }
            let Some(shape) = init.attrs.shape("shape")?.known() else {
                bail!(InvalidArgument, "the shape of a constant must be known");
            };
            let file = init.string("memory_region_name")?;
            Ok(KernelBox::new(FileConstant { file, dtype, shape }))
        });
    c.op("ReadFile")
        .doc("What is in a file.")
        .input("filename: string")
        .output("contents: string")
        .shape(shape::scalar)
        .does_io()
        .cpu_fn(read);
    c.op("WriteFile")
        .doc("Writes a file, and the directories it is in.")
        .input("filename: string")
        .input("contents: string")
        .stateful()
        .shape(shape::unknown)
        .does_io()
        .cpu_fn(write);
    c.op("MatchingFiles")
        .doc("The files whose names match one of these patterns, sorted.")
        .input("pattern: string")
        .output("filenames: string")
        .shape(shape::vector)
        .does_io()
        .cpu_fn(matching);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;

    #[test]
    fn a_missing_file_is_named() {
        check("ReadFile")
            .input(Tensor::string("/nonexistent/x"))
            .fails(Code::NotFound, "/nonexistent/x; No such file or directory");
        check("ReadFile")
            .input(Tensor::string("/"))
            .fails(Code::FailedPrecondition, "/; Is a directory");
    }

    #[test]
    fn constants_are_read_from_files() {
        let file = std::env::temp_dir().join(format!("ferroflow-constant-{}", std::process::id()));
        std::fs::write(&file, [1i32, -2, 3].map(i32::to_le_bytes).concat()).unwrap();
        let constant = |len: usize| {
            check("ImmutableConst")
                .attr("dtype", DType::Int32)
                .attr("shape", PartialShape::new([Some(len)]))
                .attr("memory_region_name", file.to_str().unwrap())
        };
        constant(2).gives(Tensor::vector(&[1i32, -2]));
        constant(4).fails(Code::InvalidArgument, "has 12 bytes");
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn patterns_match_names() {
        for (pattern, name, want) in [
            ("*", "", true),
            ("a*c", "abcbc", true),
            ("a*c", "abcb", false),
            ("a?c", "abc", true),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("**b*", "aab", true),
            ("", "a", false),
        ] {
            let got = matches_pattern(pattern.as_bytes(), name.as_bytes());
            assert_eq!(got, want, "{pattern} {name}");
        }
    }

    #[test]
    fn what_is_written_is_read_and_found() {
        let dir = std::env::temp_dir().join(format!("ferroflow-file-{}", std::process::id()));
        let name = |s: &str| Tensor::string(format!("{}/{s}", dir.display()));
        check("WriteFile").input(name("a/one.txt")).input(Tensor::string("1")).run().unwrap();
        check("WriteFile").input(name("b/two.txt")).input(Tensor::string("2")).run().unwrap();
        check("ReadFile").input(name("a/one.txt")).gives(Tensor::string("1"));
        let found = check("MatchingFiles").input(name("*/*.txt")).run().unwrap();
        assert_eq!(found[0].elements(), 2);
        assert_eq!(&found[0].strings().unwrap()[1], name("b/two.txt").scalar_string().unwrap());
        let cancel = CancelToken::new();
        cancel.cancel(err!(Cancelled, "enough"));
        let pattern = name("*/*.txt").scalar_string().unwrap().clone();
        assert_eq!(files_matching(&pattern, &cancel).unwrap_err().code(), Code::Cancelled);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
