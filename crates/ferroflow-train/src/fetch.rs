//! Fetches and feeds of a step as Rust values.

use crate::output::{Operation, Output};
use crate::value::IntoTensor;
use crate::variable::Variable;
use ferroflow_core::{Element, Result, Tensor, err};
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// The tensors a step fetches and the nodes it runs.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Each name once.
    pub(crate) fetches: Vec<String>,
    /// Positions in `fetches`, in the order in which the caller asked for them.
    pub(crate) order: Vec<usize>,
    pub(crate) targets: Vec<String>,
}

impl Wanted {
    fn fetch(&mut self, name: String) {
        let known = self.fetches.iter().position(|f| *f == name);
        self.order.push(known.unwrap_or(self.fetches.len()));
        if known.is_none() {
            self.fetches.push(name);
        }
    }
}

/// A value that a step can fetch.
///
/// ```
/// # use ferroflow_train::{Output, Session};
/// # fn run(s: &Session, x: Output) -> ferroflow_core::Result<()> {
/// let one = s.run(&x)?; // a tensor
/// let number = s.run(x.scalar::<f32>())?;
/// let (pair, list) = s.run(((&x, x.scalar::<f32>()), vec![x.clone()]))?;
/// # Ok(())
/// # }
/// ```
pub trait Fetch {
    /// The fetched value.
    type Value;

    /// Adds the tensors and nodes it needs.
    fn ask(&self, wanted: &mut Wanted);

    /// Takes the values of its fetches, in order.
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<Self::Value>;
}

fn next(values: &mut dyn Iterator<Item = Tensor>) -> Result<Tensor> {
    values.next().ok_or_else(|| err!(Internal, "a step returned too few tensors"))
}

impl Fetch for Output {
    type Value = Tensor;
    fn ask(&self, wanted: &mut Wanted) {
        wanted.fetch(self.name());
    }
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<Tensor> {
        next(values)
    }
}

impl Fetch for Variable {
    type Value = Tensor;
    fn ask(&self, wanted: &mut Wanted) {
        (**self).ask(wanted);
    }
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<Tensor> {
        next(values)
    }
}

impl Fetch for Operation {
    type Value = ();
    fn ask(&self, wanted: &mut Wanted) {
        wanted.targets.push(self.name());
    }
    fn answer(&self, _: &mut dyn Iterator<Item = Tensor>) -> Result<()> {
        Ok(())
    }
}

impl Fetch for () {
    type Value = ();
    fn ask(&self, _: &mut Wanted) {}
    fn answer(&self, _: &mut dyn Iterator<Item = Tensor>) -> Result<()> {
        Ok(())
    }
}

impl<F: Fetch + ?Sized> Fetch for &F {
    type Value = F::Value;
    fn ask(&self, wanted: &mut Wanted) {
        (**self).ask(wanted);
    }
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<F::Value> {
        (**self).answer(values)
    }
}

impl<F: Fetch> Fetch for [F] {
    type Value = Vec<F::Value>;
    fn ask(&self, wanted: &mut Wanted) {
        self.iter().for_each(|f| f.ask(wanted));
    }
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<Self::Value> {
        self.iter().map(|f| f.answer(values)).collect()
    }
}

impl<F: Fetch> Fetch for Vec<F> {
    type Value = Vec<F::Value>;
    fn ask(&self, wanted: &mut Wanted) {
        self.as_slice().ask(wanted);
    }
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<Self::Value> {
        self.as_slice().answer(values)
    }
}

impl<F: Fetch, const N: usize> Fetch for [F; N] {
    type Value = Vec<F::Value>;
    fn ask(&self, wanted: &mut Wanted) {
        self.as_slice().ask(wanted);
    }
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<Self::Value> {
        self.as_slice().answer(values)
    }
}

impl<F: Fetch> Fetch for Option<F> {
    type Value = Option<F::Value>;
    fn ask(&self, wanted: &mut Wanted) {
        self.iter().for_each(|f| f.ask(wanted));
    }
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<Self::Value> {
        self.as_ref().map(|f| f.answer(values)).transpose()
    }
}

impl<K: Ord + Clone, F: Fetch> Fetch for BTreeMap<K, F> {
    type Value = BTreeMap<K, F::Value>;
    fn ask(&self, wanted: &mut Wanted) {
        self.values().for_each(|f| f.ask(wanted));
    }
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<Self::Value> {
        self.iter().map(|(key, f)| Ok((key.clone(), f.answer(values)?))).collect()
    }
}

macro_rules! tuples {
    ($($($f:ident)+;)*) => {$(
        impl<$($f: Fetch),+> Fetch for ($($f,)+) {
            type Value = ($($f::Value,)+);
            #[allow(non_snake_case)]
            fn ask(&self, wanted: &mut Wanted) {
                let ($($f,)+) = self;
                $($f.ask(wanted);)+
            }
            #[allow(non_snake_case)]
            fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<Self::Value> {
                let ($($f,)+) = self;
                Ok(($($f.answer(values)?,)+))
            }
        }
    )*};
}
tuples! { A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H; }

/// Declares a struct that can be fetched, and the struct of the fetched values, field by field.
///
/// ```
/// # fn main() -> ferroflow_core::Result<()> {
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{Output, Scalar, fetch_struct};
/// fetch_struct! {
///     /// What training reports.
///     pub struct Report => Reported {
///         loss: Scalar<f32>,
///         weights: Output,
///     }
/// }
/// let loss = g.constant(0.5);
/// let report = Report { loss: loss.scalar(), weights: g.constant([1.0, 2.0]) };
/// // let Reported { loss, weights } = session.run(&report)?;
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! fetch_struct {
    ($(#[$meta:meta])* $vis:vis struct $name:ident => $value:ident {
        $($field:ident: $fetch:ty),* $(,)?
    }) => {
        $(#[$meta])*
        $vis struct $name {
            $(pub $field: $fetch,)*
        }

        /// The fetched values.
        $vis struct $value {
            $(pub $field: <$fetch as $crate::Fetch>::Value,)*
        }

        impl $crate::Fetch for $name {
            type Value = $value;
            fn ask(&self, wanted: &mut $crate::Wanted) {
                $($crate::Fetch::ask(&self.$field, wanted);)*
            }
            fn answer(
                &self,
                values: &mut dyn Iterator<Item = $crate::Tensor>,
            ) -> $crate::Result<Self::Value> {
                Ok($value { $($field: $crate::Fetch::answer(&self.$field, values)?,)* })
            }
        }
    };
}

/// A scalar that is fetched as a Rust number; see [`Output::scalar`].
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::Scalar;
/// let loss = g.constant(0.5);
/// let fetched: Scalar<f32> = loss.scalar();
/// // let loss: f32 = session.run(&fetched)?;
/// ```
pub struct Scalar<T>(Output, PhantomData<T>);

impl Output {
    /// Fetches a scalar as a number: `session.run(loss.scalar::<f32>())`.
    pub fn scalar<T: Element>(&self) -> Scalar<T> {
        Scalar(self.clone(), PhantomData)
    }
}

impl<T: Element> Fetch for Scalar<T> {
    type Value = T;
    fn ask(&self, wanted: &mut Wanted) {
        self.0.ask(wanted);
    }
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<T> {
        next(values)?.scalar_value()
    }
}

/// Feeds: pairs of a tensor of the graph and its value.
pub trait Feeds {
    /// Adds names and values to `feeds`.
    fn collect_into(self, feeds: &mut Vec<(String, Tensor)>) -> Result<()>;
}

impl Feeds for () {
    fn collect_into(self, _: &mut Vec<(String, Tensor)>) -> Result<()> {
        Ok(())
    }
}

impl<V: IntoTensor> Feeds for (&Output, V) {
    fn collect_into(self, feeds: &mut Vec<(String, Tensor)>) -> Result<()> {
        let (name, dtype) = (self.0.name(), self.0.dtype());
        let value = crate::value::number_as(self.1.into_tensor()?, dtype)?;
        feeds.push((name, value));
        Ok(())
    }
}

impl<F: Feeds, const N: usize> Feeds for [F; N] {
    fn collect_into(self, feeds: &mut Vec<(String, Tensor)>) -> Result<()> {
        self.into_iter().try_for_each(|f| f.collect_into(feeds))
    }
}

impl<F: Feeds> Feeds for Vec<F> {
    fn collect_into(self, feeds: &mut Vec<(String, Tensor)>) -> Result<()> {
        self.into_iter().try_for_each(|f| f.collect_into(feeds))
    }
}

/// Feeds by name.
impl Feeds for &[(String, Tensor)] {
    fn collect_into(self, feeds: &mut Vec<(String, Tensor)>) -> Result<()> {
        feeds.extend_from_slice(self);
        Ok(())
    }
}

impl Feeds for (String, Tensor) {
    fn collect_into(self, feeds: &mut Vec<(String, Tensor)>) -> Result<()> {
        feeds.push(self);
        Ok(())
    }
}
