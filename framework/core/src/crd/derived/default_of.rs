//! The default of a type, for `#[serde(default)]`: of a type without one, serde's own derive says
//! so, and a second error would say the same.

use std::marker::PhantomData;

/// A type whose default is asked for.
#[derive(Debug)]
pub struct DefaultOf<T>(PhantomData<T>);

impl<T> DefaultOf<T> {
    /// The only value.
    pub const NEW: Self = Self(PhantomData);
}

impl<T: Default> DefaultOf<T> {
    /// Returns the default.
    pub fn value(&self) -> T {
        T::default()
    }
}

/// A type without a default.
pub trait NoDefault<T> {
    /// Returns nothing: a type whose `Deserialize` is written by hand does not compile either.
    fn value(&self) -> T {
        const {
            assert!(
                size_of::<T>() > usize::MAX / 2,
                "`#[serde(default)]` is for a type that implements `Default`"
            );
        }
        unreachable!("a constant of this function cannot be computed")
    }
}

impl<T> NoDefault<T> for DefaultOf<T> {}
