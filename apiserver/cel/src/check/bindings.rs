//! Type inference: bindings of type variables. A check of assignability may add bindings.

use std::collections::HashMap;
use std::sync::Arc;

use crate::types::Type;

/// Largest number of parts of a type that a step of inference visits or builds. The types of
/// expressions can grow exponentially with their length; those of any real expression are far
/// smaller.
const MAX_STEPS: u32 = 1_000;

/// The types that type variables stand for.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    bound: HashMap<Arc<str>, Type>,
    /// Previous values of the variables that the assignment under way has bound.
    undo: Vec<(Arc<str>, Option<Type>)>,
    variables: u32,
    steps_left: u32,
    is_exhausted: bool,
}

impl Bindings {
    /// Creates a type variable.
    pub(super) fn fresh(&mut self) -> Type {
        let variable = Type::Param(format!("_var{}", self.variables).into());
        self.variables += 1;
        variable
    }

    /// Whether a type was too large for inference; the check cannot succeed then.
    pub(super) fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// Whether each of `left` is assignable to its counterpart in `right`. Variables are bound if
    /// so, and remain as they were if not.
    pub(super) fn assign(&mut self, left: &[Type], right: &[Type]) -> bool {
        self.steps_left = MAX_STEPS;
        let is_assignable =
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| self.assignable(l, r));
        while let Some((name, previous)) = self.undo.pop() {
            match previous {
                _ if is_assignable => {}
                Some(previous) => drop(self.bound.insert(name, previous)),
                None => drop(self.bound.remove(&name)),
            }
        }
        is_assignable
    }

    /// The type with every bound variable replaced by its binding.
    pub(super) fn substitute(&mut self, ty: &Type) -> Type {
        self.steps_left = MAX_STEPS;
        self.replace(ty, false)
    }

    /// The type with every bound variable replaced, and `dyn` for those that are not bound.
    pub(super) fn resolve(&mut self, ty: &Type) -> Type {
        self.steps_left = MAX_STEPS;
        self.replace(ty, true)
    }

    /// The type itself, or the type of errors if the type is too large for inference.
    pub(super) fn bounded(&mut self, ty: Type) -> Type {
        self.steps_left = MAX_STEPS;
        if self.fits(&ty) { ty } else { Type::Error }
    }

    fn fits(&mut self, ty: &Type) -> bool {
        self.take_step() && ty.parameters().all(|parameter| self.fits(parameter))
    }

    /// Takes a step of the inference; false once no steps are left.
    fn take_step(&mut self) -> bool {
        self.steps_left = self.steps_left.saturating_sub(1);
        self.is_exhausted |= self.steps_left == 0;
        self.steps_left > 0
    }

    fn replace(&mut self, ty: &Type, free_is_dyn: bool) -> Type {
        if !self.take_step() {
            return Type::Error;
        }
        match ty {
            Type::Param(name) => match self.bound.get(name).cloned() {
                Some(bound) => self.replace(&bound, free_is_dyn),
                None if free_is_dyn => Type::Dyn,
                None => ty.clone(),
            },
            other => map_parameters(other, &mut |parameter| self.replace(parameter, free_is_dyn)),
        }
    }

    fn assignable(&mut self, left: &Type, right: &Type) -> bool {
        // Out of steps: `true` ends the comparison without an error of its own. The checker
        // reports the expression as too large when `is_exhausted` is set.
        if !self.take_step() {
            return true;
        }
        if let Type::Param(name) = right {
            match self.bind(left, right, name) {
                Binding::Valid => return true,
                Binding::Conflict => return false,
                Binding::Circular => {}
            }
        }
        if let Type::Param(name) = left {
            return matches!(self.bind(right, left, name), Binding::Valid);
        }
        match (left, right) {
            (Type::Dyn | Type::Any | Type::Error, _) | (_, Type::Dyn | Type::Any | Type::Error) => {
                true
            }
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::Type(_), other) => matches!(other, Type::Type(_)),
            (Type::Opaque(..) | Type::List(_) | Type::Map(..), _) => {
                let same_kind = std::mem::discriminant(left) == std::mem::discriminant(right);
                same_kind
                    && left.name() == right.name()
                    && left.parameters().count() == right.parameters().count()
                    && left.parameters().zip(right.parameters()).all(|(l, r)| self.assignable(l, r))
            }
            _ => right.is_assignable_from(left),
        }
    }

    /// Binds `variable`, whose name is `name`, to `ty`, or checks `ty` against the existing
    /// binding.
    fn bind(&mut self, ty: &Type, variable: &Type, name: &Arc<str>) -> Binding {
        if matches!(ty, Type::Param(other) if other == name) {
            return Binding::Valid;
        }
        let Some(bound) = self.bound.get(name).cloned() else {
            if self.occurs(variable, ty) {
                return Binding::Circular;
            }
            self.set(name, ty.clone());
            return Binding::Valid;
        };
        if ty.is_same(&bound) {
            return Binding::Valid;
        }
        if !self.assignable(ty, &bound) {
            return Binding::Conflict;
        }
        let general = ty.most_general(&bound);
        if !self.occurs(variable, general) {
            self.set(name, general.clone());
        }
        Binding::Valid
    }

    fn set(&mut self, name: &Arc<str>, ty: Type) {
        let previous = self.bound.insert(name.clone(), ty);
        self.undo.push((name.clone(), previous));
    }

    /// Whether the variable is part of `ty`, directly or through other variables.
    fn occurs(&mut self, variable: &Type, ty: &Type) -> bool {
        if !self.take_step() || variable.is_same(ty) {
            return true;
        }
        match ty {
            Type::Param(name) => {
                self.bound.get(name).cloned().is_some_and(|bound| self.occurs(variable, &bound))
            }
            other => other.parameters().any(|parameter| self.occurs(variable, parameter)),
        }
    }
}

/// Outcome of the attempt to bind a variable.
enum Binding {
    /// The variable agrees with the type.
    Valid,
    /// The variable stands for a type that does not agree.
    Conflict,
    /// The variable occurs within the type.
    Circular,
}

/// Whether null is a value of the type.
fn is_nullable(ty: &Type) -> bool {
    matches!(ty, Type::Opaque(..) | Type::Object(_) | Type::Duration | Type::Timestamp)
        || ty.is_assignable_from(&Type::Null)
}

/// The type with each parameter replaced.
pub(super) fn map_parameters(ty: &Type, replace: &mut dyn FnMut(&Type) -> Type) -> Type {
    match ty {
        Type::List(element) => Type::list(replace(element)),
        Type::Map(key, value) => {
            let key = replace(key);
            Type::map(key, replace(value))
        }
        Type::Opaque(name, parameters) if !parameters.is_empty() => {
            Type::Opaque(name.clone(), parameters.iter().map(replace).collect())
        }
        Type::Type(Some(content)) => Type::Type(Some(Arc::new(replace(content)))),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Bindings, MAX_STEPS};
    use crate::types::Type;

    #[test]
    fn a_variable_takes_the_type_it_is_assigned() {
        let mut bindings = Bindings::default();
        let variable = bindings.fresh();
        assert!(bindings.assign(&[Type::list(Type::Int)], &[Type::list(variable.clone())]));
        assert_eq!(bindings.substitute(&variable), Type::Int);
        assert!(!bindings.assign(&[Type::String], std::slice::from_ref(&variable)));
        assert!(bindings.assign(&[Type::Dyn], std::slice::from_ref(&variable)));
        assert_eq!(bindings.substitute(&variable), Type::Dyn);
    }

    #[test]
    fn a_failed_assignment_binds_nothing() {
        let mut bindings = Bindings::default();
        let variable = bindings.fresh();
        let right = [variable.clone(), Type::Int];
        assert!(!bindings.assign(&[Type::String, Type::String], &right));
        assert_eq!(bindings.substitute(&variable), variable);
    }

    #[test]
    fn a_variable_cannot_contain_itself() {
        let mut bindings = Bindings::default();
        let variable = bindings.fresh();
        assert!(!bindings.assign(&[Type::list(variable.clone())], std::slice::from_ref(&variable)));
    }

    #[test]
    fn a_type_that_grows_exponentially_stops_inference() {
        let mut bindings = Bindings::default();
        let mut ty = Type::Int;
        for _ in 0..40 {
            ty = Type::map(ty.clone(), ty);
        }
        assert_eq!(bindings.substitute(&Type::Int), Type::Int);
        assert!(!bindings.is_exhausted());
        bindings.substitute(&ty);
        assert!(bindings.is_exhausted());
        assert!(bindings.steps_left < MAX_STEPS);
    }
}
