//! Rows of gradients: formulas over the terms of one node.

/// Gradients of ops `y = f(x)`: `"Op": |g, dy, x, y| formula;`.
#[macro_export]
#[doc(hidden)]
macro_rules! unary_gradients {
    ($c:ident; $($op:literal: |$g:tt, $dy:tt, $x:tt, $y:tt| $formula:expr;)*) => {$(
        $c.gradient($op, |g, dy| {
            let ($g, $dy, $x, $y) = (g, dy[0], g.input(0), g.output(0));
            Ok(vec![$formula])
        });
    )*};
}

/// Gradients of ops `z = f(x, y)` that broadcast, as a pair, before it is undone:
/// `"Op": |g, dz, x, y| (for_x, for_y);`.
#[macro_export]
#[doc(hidden)]
macro_rules! binary_gradients {
    ($c:ident; $($op:literal: |$g:tt, $dz:tt, $x:tt, $y:tt| $formula:expr;)*) => {$(
        $c.gradient($op, |g, dy| {
            let ($g, $dz, $x, $y) = (g, dy[0], g.input(0), g.input(1));
            let (dx, dy) = $formula;
            Ok(g.unbroadcast(dx, dy))
        });
    )*};
}
