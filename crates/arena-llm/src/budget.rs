//! The caps of a run, or of one seat. Each call reserves its highest possible price before it is sent, so that the cost
//! can't exceed a cap, however many calls are open.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::Usage;

/// The tokens and the cost of several calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// The number of calls.
    pub calls: u64,
    /// The tokens.
    pub usage: Usage,
    /// The cost in US dollars of the calls with known prices.
    pub usd: f64,
}

/// The caps of all calls together. `None` means no cap.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Caps {
    /// The maximum cost in US dollars.
    pub usd: Option<f64>,
    /// The maximum number of tokens, input and output together.
    pub tokens: Option<u64>,
}

/// An amount that calls cost or may cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Amount {
    /// US dollars; 0 without prices.
    pub usd: f64,
    /// Input and output tokens together.
    pub tokens: u64,
}

impl Amount {
    fn add(&mut self, other: Amount) {
        self.usd += other.usd;
        self.tokens += other.tokens;
    }

    fn subtract(&mut self, other: Amount) {
        self.usd -= other.usd;
        self.tokens = self.tokens.saturating_sub(other.tokens);
    }
}

/// The reason why a call can't be sent any more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Exceeded {
    /// A cap of the run, by its key in the run file.
    Run(&'static str),
    /// The cap of the model, in US dollars.
    Model(f64),
}

/// The caps, and the amounts that are spent and reserved.
#[derive(Debug)]
pub struct Budget {
    usd: Option<f64>,
    tokens: Option<u64>,
    state: Mutex<State>,
    /// Wakes the calls that wait for room.
    freed: Notify,
}

#[derive(Debug)]
struct State {
    run: Account,
    spent_calls: Spent,
    models: Vec<ModelAccount>,
}

#[derive(Debug)]
struct ModelAccount {
    cap: Option<f64>,
    account: Account,
}

/// The spent and the reserved amount.
#[derive(Debug, Default)]
struct Account {
    spent: Amount,
    reserved: Amount,
    /// The number of open reservations.
    open: u64,
}

impl Account {
    fn reserve(&mut self, amount: Amount) {
        self.reserved.add(amount);
        self.open += 1;
    }

    fn release(&mut self, amount: Amount) {
        self.open = self.open.saturating_sub(1);
        // Rounding errors would add up over millions of reservations.
        match self.open {
            0 => self.reserved = Amount::default(),
            _ => self.reserved.subtract(amount),
        }
    }

    fn usd_with(&self, amount: Amount) -> f64 {
        self.spent.usd + self.reserved.usd + amount.usd
    }

    fn tokens_with(&self, amount: Amount) -> u64 {
        self.spent.tokens.saturating_add(self.reserved.tokens).saturating_add(amount.tokens)
    }
}

/// The maximal price of a call that is being sent. Dropped without [`Reservation::settle`], it costs nothing.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    model: usize,
    amount: Amount,
    paid: Option<Spent>,
}

impl Budget {
    /// Creates the caps of a run that has spent `before` in earlier invocations. `models` are the cap of each model and
    /// its cost in earlier invocations, in US dollars.
    pub fn new(caps: Caps, before: Spent, models: impl Iterator<Item = (Option<f64>, f64)>) -> Arc<Budget> {
        let amount = Amount { usd: before.usd, tokens: before.usage.input + before.usage.output };
        let account = |spent| Account { spent, ..Account::default() };
        let models =
            models.map(|(cap, usd)| ModelAccount { cap, account: account(Amount { usd, tokens: 0 }) }).collect();
        let state = State { run: account(amount), spent_calls: before, models };
        Arc::new(Budget { usd: caps.usd, tokens: caps.tokens, state: Mutex::new(state), freed: Notify::new() })
    }

    /// Returns the calls, tokens and cost of all invocations.
    pub fn spent(&self) -> Spent {
        self.state.lock().spent_calls
    }

    /// Reserves the highest possible price of a call. Waits if the price fits only after open calls have cost less than
    /// they reserved.
    ///
    /// # Errors
    /// [`Exceeded`] if the price doesn't fit and no call is open.
    pub async fn reserve(self: &Arc<Self>, model: usize, amount: Amount) -> Result<Reservation, Exceeded> {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            // The call must not miss a release between the check and the wait.
            freed.as_mut().enable();
            match self.try_reserve(model, amount) {
                Attempt::Reserved => {
                    return Ok(Reservation { budget: Arc::clone(self), model, amount, paid: None });
                }
                Attempt::Exceeded(exceeded) => return Err(exceeded),
                Attempt::MustWait => freed.await,
            }
        }
    }

    fn try_reserve(&self, model: usize, amount: Amount) -> Attempt {
        let mut state = self.state.lock();
        let State { run, models, .. } = &mut *state;
        let is_over_usd = self.usd.is_some_and(|cap| run.usd_with(amount) > cap);
        let is_over_tokens = self.tokens.is_some_and(|cap| run.tokens_with(amount) > cap);
        if is_over_usd || is_over_tokens {
            return match run.open {
                0 => Attempt::Exceeded(Exceeded::Run(if is_over_usd { "usd" } else { "tokens" })),
                _ => Attempt::MustWait,
            };
        }
        if let Some(ModelAccount { cap, account }) = models.get_mut(model) {
            if let Some(cap) = cap.filter(|cap| account.usd_with(amount) > *cap) {
                return match account.open {
                    0 => Attempt::Exceeded(Exceeded::Model(cap)),
                    _ => Attempt::MustWait,
                };
            }
            account.reserve(amount);
        }
        run.reserve(amount);
        Attempt::Reserved
    }

    fn release(&self, model: usize, reserved: Amount, paid: Option<Spent>) {
        let mut state = self.state.lock();
        let State { run, models, spent_calls } = &mut *state;
        let spent = paid.map(|paid| {
            spent_calls.calls += paid.calls;
            spent_calls.usage += paid.usage;
            spent_calls.usd += paid.usd;
            Amount { usd: paid.usd, tokens: paid.usage.input + paid.usage.output }
        });
        for account in std::iter::once(run).chain(models.get_mut(model).map(|model| &mut model.account)) {
            account.release(reserved);
            account.spent.add(spent.unwrap_or_default());
        }
        drop(state);
        self.freed.notify_waiters();
    }
}

enum Attempt {
    Reserved,
    Exceeded(Exceeded),
    MustWait,
}

impl Reservation {
    /// Replaces the reserved price by the real one.
    pub fn settle(mut self, paid: Spent) {
        self.paid = Some(paid);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.release(self.model, self.amount, self.paid);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;

    fn caps(usd: Option<f64>, tokens: Option<u64>) -> Caps {
        Caps { usd, tokens }
    }

    fn paid(usd: f64, tokens: u64) -> Spent {
        Spent { calls: 1, usage: Usage { input: tokens, ..Usage::default() }, usd }
    }

    fn amount(usd: f64, tokens: u64) -> Amount {
        Amount { usd, tokens }
    }

    #[tokio::test]
    async fn a_price_that_does_not_fit_ends_the_run_only_if_no_call_is_open() {
        let budget = Budget::new(caps(Some(1.0), None), paid(0.5, 0), [(None, 0.0)].into_iter());
        let open = budget.reserve(0, amount(0.4, 0)).await.expect("it fits");
        let waiting = tokio::spawn({
            let budget = Arc::clone(&budget);
            async move { budget.reserve(0, amount(0.3, 0)).await.map(drop) }
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!waiting.is_finished(), "0.5 + 0.4 + 0.3 is over the cap, but the open call may cost less");
        open.settle(paid(0.1, 0));
        assert_eq!(waiting.await.expect("no panic"), Ok(()));
        assert_eq!(budget.reserve(0, amount(0.5, 0)).await.map(drop), Err(Exceeded::Run("usd")));
        assert_eq!(budget.spent().usd, 0.6);
    }

    #[tokio::test]
    async fn each_cap_has_its_name() {
        let data = [
            (caps(Some(1.0), None), None, amount(1.5, 0), Err(Exceeded::Run("usd"))),
            (caps(None, Some(100)), None, amount(0.0, 101), Err(Exceeded::Run("tokens"))),
            (caps(Some(9.0), Some(100)), Some(2.0), amount(2.5, 1), Err(Exceeded::Model(2.0))),
            (caps(Some(9.0), Some(100)), Some(3.0), amount(2.5, 100), Ok(())),
            (caps(None, None), None, amount(1e9, u64::MAX), Ok(())),
        ];
        for (caps, model, amount, expected) in data {
            let budget = Budget::new(caps, Spent::default(), [(model, 0.0)].into_iter());
            assert_eq!(budget.reserve(0, amount).await.map(drop), expected, "{amount:?}");
        }
    }

    #[tokio::test]
    async fn a_fault_costs_nothing_and_earlier_costs_of_a_model_count() {
        let budget = Budget::new(caps(None, None), Spent::default(), [(Some(1.0), 0.9)].into_iter());
        assert_eq!(budget.reserve(0, amount(0.2, 0)).await.map(drop), Err(Exceeded::Model(1.0)));
        for _ in 0..3 {
            drop(budget.reserve(0, amount(0.1, 0)).await.expect("the last one was given back"));
        }
        assert_eq!(budget.spent(), Spent::default());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn the_cap_holds_under_concurrency() {
        let budget = Budget::new(caps(Some(1.0), None), Spent::default(), [(None, 0.0)].into_iter());
        let sent = Arc::new(AtomicU64::new(0));
        let tasks = (0..64u64).map(|number| {
            let (budget, sent) = (Arc::clone(&budget), Arc::clone(&sent));
            tokio::spawn(async move {
                while let Ok(reservation) = budget.reserve(0, amount(0.02, 0)).await {
                    tokio::time::sleep(Duration::from_micros(number * 7 % 300)).await;
                    // Every third call costs as much as it reserved.
                    let usd = if number % 3 == 0 { 0.02 } else { 0.005 };
                    reservation.settle(paid(usd, 1));
                    sent.fetch_add(1, Ordering::Relaxed);
                    assert!(budget.spent().usd <= 1.0 + 1e-9, "{:?}", budget.spent());
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.expect("the cap holds");
        }
        let Spent { calls, usd, .. } = budget.spent();
        assert_eq!(calls, sent.load(Ordering::Relaxed));
        assert!(usd > 0.97, "calls were sent until the next one didn't fit: {usd}");
    }
}
