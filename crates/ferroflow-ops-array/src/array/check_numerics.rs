//! CheckNumerics and DebugNanCount: search for NaN and infinities.

use crate::prelude::*;

/// Which kinds of non-finite values occur.
#[derive(Default)]
struct Found {
    minus: bool,
    plus: bool,
    nan: bool,
}

fn look<T: Float>(values: &[T]) -> Option<Found> {
    // `x - x` is zero for finite values only; this loop has no branches.
    if values.iter().fold(true, |ok, &x| ok & (x.sub(x) == <T as Num>::ZERO)) {
        return None;
    }
    let mut found = Found::default();
    for x in values.iter().map(|x| x.to_f64()) {
        found.nan |= x.is_nan();
        found.plus |= x == f64::INFINITY;
        found.minus |= x == f64::NEG_INFINITY;
    }
    Some(found)
}

/// The name of the problem in version 1 of the op.
fn plain(found: &Found) -> String {
    match (found.minus || found.plus, found.nan) {
        (true, true) => "Inf and NaN",
        (true, false) => "Inf",
        (false, _) => "NaN",
    }
    .into()
}

/// The name of the problem in version 2 of the op.
fn signed(found: &Found) -> String {
    let all = [(found.minus, "-Inf"), (found.plus, "+Inf"), (found.nan, "NaN")];
    let there: Vec<&str> = all.iter().filter(|(yes, _)| *yes).map(|(_, name)| *name).collect();
    match there[..] {
        [a, b] => format!("{a} and {b}"),
        [a, b, c] => format!("{a}, {b}, and {c}"),
        _ => there.concat(),
    }
}

fn check_numerics<T: Float>(message: String, name: fn(&Found) -> String) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let x = ctx.take(0)?;
        if let Some(found) = look(x.as_slice::<T>()?) {
            bail!(InvalidArgument, "{message} : Tensor had {} values", name(&found));
        }
        ctx.set(0, x)
    }
}

fn nan_count<T: Float>(ctx: &mut Ctx<'_>) -> Result<()> {
    let n = ctx.input(0)?.as_slice::<T>()?.iter().filter(|x| x.is_nan()).count();
    ctx.set(0, Tensor::vector(&[n as i64]))
}

pub(crate) fn register(c: &mut Catalog) {
    let versions: [(_, _, fn(&Found) -> String); 2] = [
        ("CheckNumerics", "Its input, if it holds neither NaN nor infinities.", plain),
        (
            "CheckNumericsV2",
            "Its input, if it holds neither NaN nor infinities; says which infinities it found.",
            signed,
        ),
    ];
    for (op, doc, name) in versions {
        c.op(op)
            .doc(doc)
            .input("tensor: T")
            .output("output: T")
            .attr("T: {bfloat16, half, float, double}")
            .attr("message: string")
            .stateful()
            .shape(shape::same_as_input)
            .cpu(move |init| {
                let message = init.string("message")?;
                per_dtype!(FLOAT, T => check_numerics::<T>(message.clone(), name))(init)
            });
        c.gradient(op, move |g, dy| {
            let text = format!(
                "Not a number (NaN) or infinity (Inf) values detected in gradient. {}",
                g.attrs().string("message")?
            );
            let attrs = Attrs::new().with("message", text.as_str());
            Ok(vec![g.call_with(op, &[dy[0]], attrs)])
        });
    }
    c.op("DebugNanCount")
        .doc("How many elements are NaN; the debug URLs are not served.")
        .input("input: T")
        .output("output: int64")
        .attr("T: type")
        .attr("device_name: string = ''")
        .attr("tensor_name: string = ''")
        .attr("debug_urls: list(string) = []")
        .attr("gated_grpc: bool = false")
        .allows_uninitialized_input()
        .shape(|_| Ok(vec![PartialShape::new([Some(1)])]))
        .cpu(|init| match init.dtype("T")?.is_integer() {
            true => Ok(KernelBox::new(|ctx: &mut Ctx<'_>| ctx.set(0, Tensor::vector(&[0i64])))),
            false => per_dtype!(FLOAT, T => nan_count::<T>)(init),
        });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn finite_values_pass() {
        check("CheckNumerics").attr("message", "m").maps([1.0f32, -2.0], [1.0, -2.0]);
        let x = Tensor::vector(&[f16::MAX]);
        check("CheckNumericsV2").attr("message", "m").input(x.clone()).gives(x);
    }

    #[test]
    fn the_error_says_what_was_found() {
        const INF: f32 = f32::INFINITY;
        for (values, v1, v2) in [
            ([1.0, f32::NAN, 0.0], "NaN", "NaN"),
            ([1.0, INF, 0.0], "Inf", "+Inf"),
            ([-INF, f32::NAN, 0.0], "Inf and NaN", "-Inf and NaN"),
            ([-INF, f32::NAN, INF], "Inf and NaN", "-Inf, +Inf, and NaN"),
        ] {
            let x = Tensor::vector(&values);
            let text = |found: &str| format!("hello : Tensor had {found} values");
            check("CheckNumerics")
                .attr("message", "hello")
                .input(x.clone())
                .fails(Code::InvalidArgument, &text(v1));
            check("CheckNumericsV2")
                .attr("message", "hello")
                .input(x)
                .fails(Code::InvalidArgument, &text(v2));
        }
    }

    #[test]
    fn nans_are_counted() {
        check("DebugNanCount")
            .input(Tensor::vector(&[1.0, f64::NAN, f64::NAN]))
            .gives(Tensor::vector(&[2i64]));
        check("DebugNanCount").input(Tensor::scalar(1i32)).gives(Tensor::vector(&[0i64]));
    }
}
