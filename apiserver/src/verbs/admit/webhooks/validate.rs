//! Validating webhooks: all that concern a request are asked at once.

use super::{Operation, check_dry_run, concerns, matched, question, verdict, with_subject};
use crate::core::ServerCore;
use crate::hooks::AdmissionPhase;
use crate::status::ApiError;
use crate::verbs::VerbCall;

/// Lets the validating webhooks judge a request. Their warnings are added to the session.
pub(crate) fn validate(
    core: &ServerCore,
    call: &VerbCall,
    operation: Operation<'_>,
) -> Result<(), ApiError> {
    if !concerns(call) {
        return Ok(());
    }
    let hooks = core.hooks.hooks(&core.store, AdmissionPhase::Validating);
    if hooks.is_empty() {
        return Ok(());
    }
    let (mut called, mut questions, mut refused) = (Vec::new(), Vec::new(), None);
    with_subject(core, call, operation, |subject| {
        for hook in &hooks {
            let Some(kind) = matched(core, call, subject, operation, hook)? else { continue };
            match check_dry_run(call, hook) {
                Ok(()) => {
                    questions.push(question(core, call, subject, operation, hook, &kind)?);
                    called.push(hook);
                }
                // The others are called all the same, as upstream does.
                Err(error) => drop(refused.get_or_insert(error)),
            }
        }
        Ok(())
    })?;
    let answers = call.session.ask(questions, || core.rng.uid());
    let Some(answers) = answers else { return Err(ApiError::suspended()) };
    // Among several refusals the first counts, but all webhooks may warn.
    for (hook, answer) in called.iter().zip(&answers) {
        if let Err(error) = verdict(call, hook, answer, false) {
            refused.get_or_insert(error);
        }
    }
    refused.map_or(Ok(()), Err)
}
