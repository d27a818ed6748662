//! Functions that process many elements at a time. In single precision they are our own and free of
//! branches, so that loops are vectorised. In double precision they are the standard library's.

mod single;

/// Fast functions of a real number. They are within two units in the last place and agree with the
/// standard library's at zero, at infinity and for NaN.
pub trait Fast: Sized {
    fn fast_exp(self) -> Self;
    fn fast_exp_m1(self) -> Self;
    fn fast_ln(self) -> Self;
    fn fast_ln_1p(self) -> Self;
    fn fast_tanh(self) -> Self;
    fn fast_sigmoid(self) -> Self;
    fn fast_erf(self) -> Self;
}

macro_rules! fast {
    ($t:ty: $($name:ident, |$x:ident| $formula:expr;)*) => {
        impl Fast for $t {$(
            #[inline(always)]
            fn $name(self) -> Self {
                let $x = self;
                $formula
            }
        )*}
    };
}
fast! { f32:
    fast_exp, |x| single::exp(x);
    fast_exp_m1, |x| single::exp_m1(x);
    fast_ln, |x| single::ln(x);
    fast_ln_1p, |x| single::ln_1p(x);
    fast_tanh, |x| single::tanh(x);
    fast_sigmoid, |x| single::sigmoid(x);
    fast_erf, |x| single::erf(x);
}
fast! { f64:
    fast_exp, |x| x.exp();
    fast_exp_m1, |x| x.exp_m1();
    fast_ln, |x| x.ln();
    fast_ln_1p, |x| x.ln_1p();
    fast_tanh, |x| x.tanh();
    fast_sigmoid, |x| 1.0 / (1.0 + (-x).exp());
    fast_erf, |x| libm::erf(x);
}
