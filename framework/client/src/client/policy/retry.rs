//! The decision whether a failed attempt is repeated: a pure function and a retry budget.
//!
//! A write is repeated only when the first attempt was certainly not executed, or when a second
//! execution does no harm. Otherwise the caller has to decide and gets `Ambiguous`.
//!
//! The budget bounds the load that retries add during an outage: a tenth of the calls, a retry in
//! ten seconds, and 20 saved up. Without the budget, ten retries of each call would multiply the
//! load of a server that just fails under load.

// DESIGN.md, 16: `retry::decide` is one pure function; caches have a retry budget of their own

use std::time::Duration;

use tokio::time::Instant;

use windlass_core::resource::Verb;

/// Retries of a call that names no number; client-go's value.
pub(crate) const MAX_RETRIES: u32 = 10;
/// Longest `Retry-After` that is obeyed.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Bound of the first random wait; doubles with each retry.
const BACKOFF_BASE: Duration = Duration::from_millis(200);
/// Largest bound of a random wait.
const BACKOFF_CAP: Duration = Duration::from_secs(10);

/// Result of a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptOutcome {
    /// The request reached no server that could work on the request: no connection, no TLS, or a
    /// refused stream.
    NotSent,
    /// The request was sent, and then the connection broke.
    Lost,
    /// The request was sent, and the time ran out.
    TimedOut,
    /// The server answered with an error.
    Answered {
        /// HTTP status code.
        code: u16,
        /// Time that the server asked to wait.
        retry_after: Option<Duration>,
    },
}

/// Input of the decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryInput {
    /// Kubernetes verb of the request.
    pub(crate) verb: Verb,
    /// Whether a second execution does no harm.
    pub(crate) repeatable: bool,
    /// Result of the last attempt.
    pub(crate) outcome: AttemptOutcome,
    /// Attempts so far.
    pub(crate) attempt: u32,
    /// Whether credentials can be refreshed and were not refreshed in this call.
    pub(crate) refreshable: bool,
    /// Whether the body can be sent again; false after a part was read from a reader.
    pub(crate) resendable: bool,
    /// Maximum number of retries.
    pub(crate) max_retries: u32,
    /// Time left for the whole call.
    pub(crate) remaining: Duration,
}

/// Next step after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    /// Refresh credentials, then try again at once.
    Refresh,
    /// Wait at least `at_least`, and a random time below `jitter` if that is longer; then try
    /// again.
    Wait {
        /// Wait that the server asked for; zero without such a wish.
        at_least: Duration,
        /// Bound of the random wait.
        jitter: Duration,
    },
    /// Report the failure.
    Fail(NoRetryReason),
}

/// Reason why a call is not repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRetryReason {
    /// Another attempt would not help, or could do harm.
    Final,
    /// The maximum number of retries was made.
    Attempts,
    /// The body came from a reader, which can be read only once.
    BodyGone,
    /// The server asks for a longer wait than is allowed.
    WaitTooLong(Duration),
}

/// Returns whether this outcome leaves the execution of a write unknown.
pub(crate) fn is_uncertain(outcome: AttemptOutcome) -> bool {
    match outcome {
        AttemptOutcome::NotSent => false,
        AttemptOutcome::Lost | AttemptOutcome::TimedOut => true,
        AttemptOutcome::Answered { code: 500 | 502 | 504, .. } => true,
        // With `Retry-After` the server has rejected the request before the execution.
        AttemptOutcome::Answered { code: 503, retry_after } => retry_after.is_none(),
        AttemptOutcome::Answered { .. } => false,
    }
}

/// Decides on the next step, by outcome and verb.
pub(crate) fn decide(facts: RetryInput) -> RetryDecision {
    let mut asked = None;
    let again = match facts.outcome {
        AttemptOutcome::Answered { code: 401, .. } => {
            return match (facts.refreshable, facts.resendable) {
                (true, true) => RetryDecision::Refresh,
                (true, false) => RetryDecision::Fail(NoRetryReason::BodyGone),
                (false, _) => RetryDecision::Fail(NoRetryReason::Final),
            };
        }
        AttemptOutcome::NotSent => true,
        // Rejected before execution, regardless of the verb.
        AttemptOutcome::Answered { code: 429, retry_after } => {
            asked = retry_after;
            true
        }
        AttemptOutcome::Answered { code: 503, retry_after: Some(wait) } => {
            asked = Some(wait);
            true
        }
        // "Try again later" from a server that may have tried.
        AttemptOutcome::Answered { code: 500, retry_after: Some(wait) } => {
            asked = Some(wait);
            !facts.verb.writes() || facts.repeatable
        }
        // The request may have been executed, but would most likely fail in the same way again.
        AttemptOutcome::Answered { code: 500, retry_after: None } => false,
        outcome if is_uncertain(outcome) => {
            if let AttemptOutcome::Answered { retry_after, .. } = outcome {
                asked = retry_after;
            }
            !facts.verb.writes() || facts.repeatable
        }
        _ => false,
    };
    if !again {
        return RetryDecision::Fail(NoRetryReason::Final);
    }
    if !facts.resendable {
        return RetryDecision::Fail(NoRetryReason::BodyGone);
    }
    // The first attempt is no retry, hence `>`.
    if facts.attempt > facts.max_retries {
        return RetryDecision::Fail(NoRetryReason::Attempts);
    }
    let at_least = asked.unwrap_or_default();
    // An early failure is more useful than a wait that ends in a timeout.
    if at_least > MAX_RETRY_AFTER || (asked.is_some() && at_least >= facts.remaining) {
        return RetryDecision::Fail(NoRetryReason::WaitTooLong(at_least));
    }
    RetryDecision::Wait { at_least, jitter: bound(facts.attempt) }
}

/// Returns the bound of the random wait after `attempt` attempts; the bound never decreases.
fn bound(attempt: u32) -> Duration {
    BACKOFF_BASE.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(BACKOFF_CAP)
}

/// Budget that limits retries to a tenth of all requests, so that a server in trouble is not
/// overloaded (G-R4: retries are at most a tenth of the traffic).
///
/// Each call earns a tenth of a retry, and so does each second that passes, up to
/// [`RetryBudget::CAP`].
#[derive(Debug)]
pub(crate) struct RetryBudget {
    /// Retries that are saved up.
    tokens: f64,
    /// Instant up to which the passed time was counted.
    filled: Instant,
}

impl RetryBudget {
    /// Most retries that can be saved up; a new client starts with them.
    const CAP: f64 = 20.0;
    /// Retries that a call earns.
    const PER_CALL: f64 = 0.1;
    /// Retries that a second earns.
    const PER_SECOND: f64 = 0.1;

    /// A full budget: a new client may retry at once.
    pub(crate) fn new(now: Instant) -> Self {
        Self { tokens: Self::CAP, filled: now }
    }

    /// Records a call, which earns a part of a retry.
    pub(crate) fn deposit(&mut self, now: Instant) {
        self.fill(now);
        self.tokens = (self.tokens + Self::PER_CALL).min(Self::CAP);
    }

    /// Takes a retry; returns false when none is left.
    pub(crate) fn withdraw(&mut self, now: Instant) -> bool {
        self.fill(now);
        let enough = self.tokens >= 1.0;
        if enough {
            self.tokens -= 1.0;
        }
        enough
    }

    /// Adds the retries that the passed time has earned.
    fn fill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = passed.mul_add(Self::PER_SECOND, self.tokens).min(Self::CAP);
        self.filled = now;
    }
}

/// Budgets of a client. Caches retry for ever, and a kind that fails does so all the time: with a
/// separate budget they use up no retries of other calls. Each budget stays below a tenth of the
/// related requests, so both together stay below a tenth of all.
#[derive(Debug)]
pub(crate) struct Budgets {
    /// Budget of calls with a waiting caller.
    calls: RetryBudget,
    /// Budget of background requests, such as those of caches.
    background: RetryBudget,
}

impl Budgets {
    pub(crate) fn new(now: Instant) -> Self {
        Self { calls: RetryBudget::new(now), background: RetryBudget::new(now) }
    }

    /// Returns the budget of background requests or of other calls.
    pub(crate) fn of(&mut self, background: bool) -> &mut RetryBudget {
        if background { &mut self.background } else { &mut self.calls }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Verb; 9] = [
        Verb::Get,
        Verb::List,
        Verb::Watch,
        Verb::Create,
        Verb::Update,
        Verb::Patch,
        Verb::Apply,
        Verb::Delete,
        Verb::DeleteCollection,
    ];

    fn facts(verb: Verb, repeatable: bool, outcome: AttemptOutcome) -> RetryInput {
        RetryInput {
            verb,
            repeatable,
            outcome,
            attempt: 1,
            refreshable: false,
            resendable: true,
            max_retries: MAX_RETRIES,
            remaining: Duration::from_secs(30),
        }
    }

    fn again(verb: Verb, repeatable: bool, outcome: AttemptOutcome) -> bool {
        matches!(decide(facts(verb, repeatable, outcome)), RetryDecision::Wait { .. })
    }

    fn code(code: u16, retry_after: Option<u64>) -> AttemptOutcome {
        AttemptOutcome::Answered { code, retry_after: retry_after.map(Duration::from_secs) }
    }

    #[test]
    fn g_r3_what_was_certainly_not_executed_is_tried_again_with_every_verb() {
        for verb in ALL {
            for outcome in
                [AttemptOutcome::NotSent, code(429, None), code(429, Some(1)), code(503, Some(1))]
            {
                assert!(again(verb, false, outcome), "{verb:?} {outcome:?}");
            }
        }
    }

    /// The whole table of doubtful outcomes.
    #[test]
    fn g_r3_a_doubtful_outcome_is_tried_again_only_where_twice_does_no_harm() {
        let uncertain = [
            AttemptOutcome::Lost,
            AttemptOutcome::TimedOut,
            code(502, None),
            code(503, None),
            code(504, None),
            code(504, Some(1)),
        ];
        for outcome in uncertain {
            assert!(is_uncertain(outcome), "{outcome:?}");
            for verb in [Verb::Get, Verb::List, Verb::Watch] {
                assert!(again(verb, true, outcome), "{verb:?} {outcome:?}");
            }
            for verb in [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete] {
                assert!(!again(verb, false, outcome), "{verb:?} {outcome:?}");
            }
            for verb in [Verb::Apply, Verb::Update, Verb::Patch, Verb::Delete] {
                assert!(again(verb, true, outcome), "{verb:?} {outcome:?}");
            }
        }
    }

    #[test]
    fn g_r3_an_answer_that_will_not_change_is_final() {
        for verb in ALL {
            for status in [400, 403, 404, 405, 409, 410, 413, 415, 422, 500, 501] {
                assert!(!again(verb, true, code(status, None)), "{verb:?} {status}");
            }
        }
    }

    #[test]
    fn g_r3_a_500_that_asks_to_wait_is_tried_again_for_reads_only() {
        assert!(again(Verb::Get, true, code(500, Some(1))));
        assert!(!again(Verb::Create, false, code(500, Some(1))));
        assert!(is_uncertain(code(500, Some(1))) && is_uncertain(code(500, None)));
    }

    #[test]
    fn a_500_that_asks_to_wait_is_tried_again_where_twice_does_no_harm() {
        assert!(again(Verb::Apply, true, code(500, Some(1))), "a write that may be repeated");
        assert!(again(Verb::List, false, code(500, Some(1))), "a read, whatever is said of it");
    }

    #[test]
    fn g_r3_a_401_refreshes_credentials_once() {
        let mut facts = facts(Verb::Create, false, code(401, None));
        assert_eq!(decide(facts), RetryDecision::Fail(NoRetryReason::Final));
        facts.refreshable = true;
        assert_eq!(decide(facts), RetryDecision::Refresh);
    }

    #[test]
    fn g_r5_a_wait_beyond_a_minute_or_beyond_the_deadline_fails_at_once() {
        let day = Duration::from_secs(86_400);
        let mut facts = facts(Verb::Get, true, code(429, Some(86_400)));
        facts.remaining = day * 2;
        assert_eq!(decide(facts), RetryDecision::Fail(NoRetryReason::WaitTooLong(day)));
        facts.outcome = code(429, Some(40));
        assert!(matches!(decide(facts), RetryDecision::Wait { .. }));
        facts.remaining = Duration::from_secs(30);
        assert_eq!(
            decide(facts),
            RetryDecision::Fail(NoRetryReason::WaitTooLong(Duration::from_secs(40)))
        );
    }

    #[test]
    fn a_wait_of_just_a_minute_is_taken_and_no_answer_waits_past_the_deadline() {
        let mut facts = facts(Verb::Get, true, code(429, Some(60)));
        facts.remaining = Duration::from_secs(61);
        let at_least = MAX_RETRY_AFTER;
        assert!(
            matches!(decide(facts), RetryDecision::Wait { at_least: wait, .. } if wait == at_least)
        );
        facts.remaining = Duration::from_secs(60);
        assert_eq!(decide(facts), RetryDecision::Fail(NoRetryReason::WaitTooLong(at_least)));
        // Without a wait that the server asked for, no wait is too long: the next attempt fails at
        // the deadline.
        (facts.outcome, facts.remaining) = (AttemptOutcome::NotSent, Duration::ZERO);
        assert!(matches!(decide(facts), RetryDecision::Wait { .. }));
    }

    #[test]
    fn mechanism_12_the_tenth_retry_is_the_last_unless_the_request_says_otherwise() {
        let mut facts = facts(Verb::Get, true, AttemptOutcome::Lost);
        facts.attempt = 10;
        assert!(matches!(decide(facts), RetryDecision::Wait { .. }));
        facts.attempt = 11;
        assert_eq!(decide(facts), RetryDecision::Fail(NoRetryReason::Attempts));
        (facts.attempt, facts.max_retries) = (1, 0);
        assert_eq!(decide(facts), RetryDecision::Fail(NoRetryReason::Attempts));
    }

    #[test]
    fn mechanism_4_a_body_that_was_given_away_is_not_sent_again() {
        for outcome in
            [AttemptOutcome::NotSent, AttemptOutcome::Lost, code(429, Some(1)), code(503, None)]
        {
            let mut facts = facts(Verb::Apply, true, outcome);
            facts.resendable = false;
            assert_eq!(decide(facts), RetryDecision::Fail(NoRetryReason::BodyGone), "{outcome:?}");
        }
        let mut facts = facts(Verb::Apply, true, code(401, None));
        (facts.resendable, facts.refreshable) = (false, true);
        assert_eq!(decide(facts), RetryDecision::Fail(NoRetryReason::BodyGone));
    }

    #[test]
    fn the_bound_of_the_wait_doubles_and_stops_at_ten_seconds() {
        let bounds: Vec<_> = (1..=9).map(|attempt| bound(attempt).as_millis()).collect();
        assert_eq!(bounds, [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn g_r4_retries_stay_below_a_tenth_of_the_calls_once_savings_are_spent() {
        let mut budget = RetryBudget::new(Instant::now());
        let now = Instant::now();
        while budget.withdraw(now) {}
        let mut retries = 0;
        for _ in 0..1000 {
            budget.deposit(now);
            retries += u32::from(budget.withdraw(now));
        }
        assert!((99..=100).contains(&retries), "{retries}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_client_earns_retries_back() {
        let mut budget = RetryBudget::new(Instant::now());
        while budget.withdraw(Instant::now()) {}
        tokio::time::advance(Duration::from_secs(11)).await;
        assert!(budget.withdraw(Instant::now()));
        assert!(!budget.withdraw(Instant::now()));
    }
}
