//! Relations between types that need no inference: sameness, assignability, generality.

use std::sync::Arc;

use super::Type;

/// Name of the type of optional values.
const OPTIONAL: &str = "optional_type";

impl Type {
    /// `list(element)`
    pub fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    /// `map(key, value)`
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new(key), Arc::new(value))
    }

    /// `optional_type(content)`
    pub fn optional(content: Type) -> Type {
        Type::Opaque(OPTIONAL.into(), Arc::new([content]))
    }

    /// A type of a library without parameters: `net.IP`.
    pub fn opaque(name: impl Into<Arc<str>>) -> Type {
        Type::Opaque(name.into(), Arc::new([]))
    }

    /// The content of an optional type; `None` for any other type.
    pub fn optional_content(&self) -> Option<&Type> {
        match self {
            Type::Opaque(name, parameters) if **name == *OPTIONAL => parameters.first(),
            _ => None,
        }
    }

    /// The type parameters: element of a list, key and value of a map, content of an optional.
    pub fn parameters(&self) -> impl Iterator<Item = &Type> {
        let (first, second, more): (Option<&Type>, Option<&Type>, &[Type]) = match self {
            Type::List(element) => (Some(element), None, &[]),
            Type::Map(key, value) => (Some(key), Some(value), &[]),
            Type::Type(Some(content)) => (Some(content), None, &[]),
            Type::Opaque(_, parameters) => (None, None, parameters),
            _ => (None, None, &[]),
        };
        first.into_iter().chain(second).chain(more)
    }

    /// The primitive inside a wrapper, or the type itself.
    pub fn unwrapped(&self) -> &Type {
        match self {
            Type::Wrapper(wrapped) => wrapped,
            other => other,
        }
    }

    /// Whether the two are the same type. A wrapper is the same as the type it wraps.
    pub fn is_same(&self, other: &Type) -> bool {
        self.agrees(other, |left, right| left == right)
    }

    /// Whether the two are the same type, regardless of the names of type parameters.
    pub fn is_equivalent(&self, other: &Type) -> bool {
        self.agrees(other, |_, _| true)
    }

    /// Whether a value of type `from` can be where this type is declared, without inference.
    pub fn is_assignable_from(&self, from: &Type) -> bool {
        match self {
            Type::Wrapper(wrapped) => {
                matches!(from, Type::Null) || wrapped.is_assignable_from(from)
            }
            Type::Dyn | Type::Any | Type::Param(_) => true,
            _ => {
                self.has_kind_of(from.unwrapped())
                    && pairwise(self, from.unwrapped(), Type::is_assignable_from)
            }
        }
    }

    /// The more general of two types that agree: the one with `dyn` where the other is specific.
    pub fn most_general<'t>(&'t self, other: &'t Type) -> &'t Type {
        if self.is_equal_or_less_specific(other) { self } else { other }
    }

    fn is_equal_or_less_specific(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Dyn | Type::Any | Type::Param(_), _) => true,
            (_, Type::Dyn | Type::Any | Type::Param(_)) => false,
            (Type::Type(_), Type::Type(_)) => true,
            _ => self.has_kind_of(other) && pairwise(self, other, Type::is_equal_or_less_specific),
        }
    }

    fn agrees(&self, other: &Type, params: fn(&str, &str) -> bool) -> bool {
        match (self.unwrapped(), other.unwrapped()) {
            (Type::Param(left), Type::Param(right)) => params(left, right),
            (left, right) => {
                let mut left_parameters = left.parameters();
                let mut right_parameters = right.parameters();
                left.has_kind_of(right)
                    && left_parameters
                        .by_ref()
                        .zip(right_parameters.by_ref())
                        .all(|(l, r)| l.agrees(r, params))
                    && left.parameters().count() == right.parameters().count()
            }
        }
    }

    /// Whether the two are of one kind and name, without a look at parameters.
    fn has_kind_of(&self, other: &Type) -> bool {
        let (left, right) = (self.unwrapped(), other.unwrapped());
        std::mem::discriminant(left) == std::mem::discriminant(right) && left.name() == right.name()
    }
}

/// Whether a relation holds between the parameters of two types, of which they have the same
/// number.
fn pairwise(left: &Type, right: &Type, relation: fn(&Type, &Type) -> bool) -> bool {
    left.parameters().count() == right.parameters().count()
        && left.parameters().zip(right.parameters()).all(|(l, r)| relation(l, r))
}

#[cfg(test)]
mod tests {
    use super::Type;

    #[test]
    fn a_wrapper_takes_null_and_its_primitive() {
        let wrapper = Type::Wrapper(Type::Int.into());
        assert!(wrapper.is_assignable_from(&Type::Null));
        assert!(wrapper.is_assignable_from(&Type::Int));
        assert!(Type::Int.is_assignable_from(&wrapper));
        assert!(!wrapper.is_assignable_from(&Type::String));
        assert!(wrapper.is_same(&Type::Int));
    }

    #[test]
    fn the_more_general_type_has_dyn() {
        let (general, special) = (Type::list(Type::Dyn), Type::list(Type::Int));
        assert_eq!(special.most_general(&general), &general);
        assert_eq!(general.most_general(&special), &general);
    }

    #[test]
    fn parameters_are_equivalent_but_not_the_same() {
        let (left, right) = (Type::Param("A".into()), Type::Param("B".into()));
        assert!(left.is_equivalent(&right));
        assert!(!left.is_same(&right));
    }
}
