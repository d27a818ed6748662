//! UnicodeScript: which script code points belong to.

use super::script_table::SCRIPTS;
use crate::prelude::*;

/// The number of a code point's script; -1 if it is no code point.
fn script(code: i32) -> i32 {
    match u32::try_from(code) {
        Ok(code) if code <= 0x10_ffff => {
            let after = SCRIPTS.partition_point(|&(first, _)| first <= code);
            after.checked_sub(1).map_or(-1, |at| i32::from(SCRIPTS[at].1))
        }
        _ => -1,
    }
}

fn unicode_script(ctx: &mut Ctx<'_>) -> Result<()> {
    let mut out = ctx.take_or_copy(0)?;
    out.as_mut_slice::<i32>()?.iter_mut().for_each(|x| *x = script(*x));
    ctx.set(0, out)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("UnicodeScript")
        .doc("The scripts of code points, numbered as in ICU.")
        .input("input: int32")
        .output("output: int32")
        .shape(shape::same_as_input)
        .cpu_fn(unicode_script);
}

#[cfg(test)]
mod tests {
    use super::script;
    use crate::testing::check;

    #[test]
    fn scripts_are_numbered_as_in_icu() {
        check("UnicodeScript").maps(
            [0x41i32, 0x1e9, 0x416, 0x5d0, 0x4e2d, 0x3042, 0x20, 0x301, 0x10_ffff, -1, 0x11_0000],
            [25, 25, 8, 19, 17, 20, 0, 1, 103, -1, -1],
        );
        assert_eq!(script(i32::MAX), -1);
    }
}
