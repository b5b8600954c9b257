//! Folds: the form of the macros over lists and maps.

use super::super::error::EvalError;
use super::super::list::List;
use super::super::map::Map;
use super::super::plan::Fold;
use super::super::value::Value;
use super::select::is_composed;
use super::{EvalResult, Evaluation, FoldVariable};

impl<'a> Evaluation<'_, 'a> {
    /// Value of a fold.
    pub(super) fn fold(&mut self, fold: &'a Fold) -> EvalResult<'a> {
        let range = self.eval(&fold.range)?;
        self.bind(fold.accumulator, FoldVariable::Late(&fold.init));
        match (&range, fold.second) {
            (Value::List(list), _) => self.fold_list(fold, list)?,
            (Value::Map(map), _) => self.fold_map(fold, map)?,
            (Value::Opaque(opaque), _) if is_composed(opaque) => {
                self.fold_variables(fold, &range)?;
            }
            (other, Some(_)) => {
                let message =
                    format!("unsupported comprehension range type: {}", other.go_type_name());
                return Err(EvalError::new(message));
            }
            (other, None) => {
                let message = format!("got '{}', expected iterable type", other.go_type_name());
                return Err(EvalError::new(message));
            }
        }
        let result = self.eval(&fold.result);
        self.bind(fold.accumulator, FoldVariable::Unset);
        result
    }

    fn fold_list(&mut self, fold: &'a Fold, list: &List<'a>) -> Result<(), EvalError> {
        for (index, item) in list.iter().enumerate() {
            if let Ok(Value::Bytes(bytes)) = &item {
                self.work.copy(bytes.len())?;
            }
            match fold.second {
                Some(second) => {
                    self.bind(fold.variable, FoldVariable::Bound(Ok(Value::Int(index as i64))));
                    self.bind(second, FoldVariable::Bound(item));
                }
                None => self.bind(fold.variable, FoldVariable::Bound(item)),
            }
            if !self.iteration(fold)? {
                break;
            }
        }
        Ok(())
    }

    fn fold_map(&mut self, fold: &'a Fold, map: &Map<'a>) -> Result<(), EvalError> {
        // The keys are listed even if the first key decides.
        self.work.take(map.len() as u64)?;
        for (index, key) in map.keys().into_iter().enumerate() {
            if let Some(second) = fold.second {
                let value = map.value_at(index, &key);
                self.bind(second, FoldVariable::Bound(value));
            }
            self.bind(fold.variable, FoldVariable::Bound(Ok(key)));
            if !self.iteration(fold)? {
                break;
            }
        }
        Ok(())
    }

    /// A fold over the composed variables, `dyn(variables).all(v, ...)`: over their values, where a
    /// map has the keys. kube-apiserver takes the values in no order, this engine in the order of
    /// the definitions.
    fn fold_variables(&mut self, fold: &'a Fold, all: &Value<'a>) -> Result<(), EvalError> {
        let names = self.composed.as_ref().map_or_else(Vec::new, |composed| composed.names());
        for name in names {
            let value = self.part(all, &Value::text(name))?;
            if let Some(second) = fold.second {
                // The server looks for the variable that is named by the value.
                let named = match &value {
                    Ok(name @ Value::String(_)) => self.part(all, name)?,
                    _ => Err(EvalError::no_such_overload()),
                };
                self.bind(second, FoldVariable::Bound(named));
            }
            self.bind(fold.variable, FoldVariable::Bound(value));
            if !self.iteration(fold)? {
                break;
            }
        }
        Ok(())
    }

    /// An iteration; returns whether to go on. The budget is checked even if neither condition nor
    /// step costs anything.
    fn iteration(&mut self, fold: &'a Fold) -> Result<bool, EvalError> {
        self.charge(0)?;
        if let Ok(Value::Bool(false)) = self.operand(&fold.condition)? {
            return Ok(false);
        }
        let value = self.operand(&fold.step)?;
        self.bind(fold.accumulator, FoldVariable::Bound(value));
        Ok(true)
    }
}
