//! The caps of a run, or of one seat. A call may reserve its highest possible price before it is sent; then the cost
//! can't exceed a cap, however many calls are open. Without reservations, the caps are checked after each answer.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::{Prices, Usage};

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    pub calls: u64,
    pub usage: Usage,
    /// The cost in US dollars of the calls with known prices.
    pub usd: f64,
}

impl Spent {
    /// Returns the cost of one call.
    pub fn of_call(usage: Usage, prices: Option<&Prices>) -> Spent {
        Spent { calls: 1, usage, usd: prices.map_or(0.0, |prices| prices.cost(&usage)) }
    }
}

/// The caps of all calls together. `None` means no cap.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Caps {
    /// The maximum cost in US dollars.
    pub usd: Option<f64>,
    /// The maximum number of tokens, input and output together.
    pub tokens: Option<u64>,
    /// The maximum number of calls.
    pub calls: Option<u64>,
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
        self.tokens = self.tokens.saturating_add(other.tokens);
    }

    fn subtract(&mut self, other: Amount) {
        self.usd -= other.usd;
        self.tokens = self.tokens.saturating_sub(other.tokens);
    }
}

/// The highest possible numbers of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// US dollars; 0 without prices.
    pub usd: f64,
}

impl Bound {
    /// Returns the bound of a request with this body and limit of output tokens.
    pub fn of(body: &[u8], output: u64, prices: Option<&Prices>) -> Bound {
        // A token has at least one byte, so the length of the request is a safe bound for every tokenizer.
        let input = body.len() as u64;
        Bound { input, output, usd: prices.map_or(0.0, |prices| prices.most(input, output)) }
    }

    /// Returns the amount to reserve.
    pub fn amount(&self) -> Amount {
        Amount { usd: self.usd, tokens: self.input.saturating_add(self.output) }
    }

    /// Returns the cost of a request without an answer that may be paid.
    pub fn spent(&self) -> Spent {
        let Bound { input, output, usd } = *self;
        Spent { calls: 0, usage: Usage { input, output, is_estimated: true, ..Usage::default() }, usd }
    }

    /// Returns the tokens that an endpoint counts for the request, or this bound if they exceed it. Such numbers can't
    /// be true, and one of them would use up a whole cap.
    pub fn believe(&self, usage: Usage, prices: Option<&Prices>) -> Usage {
        let usd = prices.map_or(0.0, |prices| prices.cost(&usage));
        // Sums of prices are rounded.
        if usage.tokens() <= self.amount().tokens && usd <= self.usd * (1.0 + 1e-9) {
            return usage;
        }
        Usage { reasoning: usage.reasoning.min(self.output), ..self.spent().usage }
    }
}

/// The reason why a call can't be sent any more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Exceeded {
    /// A cap of the run, by its name in [`Caps`].
    Run(&'static str),
    /// The cap of the model, in US dollars.
    Model(f64),
}

/// The caps, and the amounts that are spent and reserved.
#[derive(Debug)]
pub struct Budget {
    caps: Caps,
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
}

impl Budget {
    /// Creates the caps of one seat.
    pub fn of_seat(caps: Caps) -> Arc<Budget> {
        Budget::new(caps, Spent::default(), std::iter::empty())
    }

    /// Creates the caps of a run that has spent `before` in earlier invocations. `models` are the cap of each model and
    /// its cost in earlier invocations, in US dollars.
    pub fn new(caps: Caps, before: Spent, models: impl Iterator<Item = (Option<f64>, f64)>) -> Arc<Budget> {
        let amount = Amount { usd: before.usd, tokens: before.usage.tokens() };
        let account = |spent| Account { spent, ..Account::default() };
        let models =
            models.map(|(cap, usd)| ModelAccount { cap, account: account(Amount { usd, tokens: 0 }) }).collect();
        let state = State { run: account(amount), spent_calls: before, models };
        Arc::new(Budget { caps, state: Mutex::new(state), freed: Notify::new() })
    }

    /// Returns the calls, tokens and cost of all invocations.
    pub fn spent(&self) -> Spent {
        self.state.lock().spent_calls
    }

    /// Returns the name of a cap that the calls so far have reached.
    pub fn reached(&self) -> Option<&'static str> {
        let Spent { calls, usage, usd } = self.spent();
        let Caps { usd: most_usd, tokens: most_tokens, calls: most_calls } = self.caps;
        let is_reached = [
            ("calls", most_calls.is_some_and(|most| calls >= most)),
            ("tokens", most_tokens.is_some_and(|most| usage.tokens() >= most)),
            ("usd", most_usd.is_some_and(|most| usd >= most)),
        ];
        is_reached.into_iter().find(|(_, is_reached)| *is_reached).map(|(name, _)| name)
    }

    /// Returns true if an amount fits with all open reservations.
    pub fn fits(&self, amount: Amount) -> bool {
        let state = self.state.lock();
        self.exceeded_by(&state, amount).is_none()
    }

    /// Returns the name of a cap of the run that an amount would exceed.
    fn exceeded_by(&self, State { run, spent_calls, .. }: &State, amount: Amount) -> Option<&'static str> {
        let Caps { usd, tokens, calls } = self.caps;
        let is_exceeded = [
            ("usd", usd.is_some_and(|cap| run.usd_with(amount) > cap)),
            ("tokens", tokens.is_some_and(|cap| run.tokens_with(amount) > cap)),
            ("calls", calls.is_some_and(|cap| spent_calls.calls + run.open >= cap)),
        ];
        is_exceeded.into_iter().find(|(_, is_exceeded)| *is_exceeded).map(|(name, _)| name)
    }

    /// Reserves an amount, unless it would exceed a cap now.
    pub fn reserve_now(self: &Arc<Self>, model: usize, amount: Amount) -> Option<Reservation> {
        let is_reserved = matches!(self.try_reserve(model, amount), Attempt::Reserved);
        is_reserved.then(|| Reservation { budget: Arc::clone(self), model, amount })
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
                    return Ok(Reservation { budget: Arc::clone(self), model, amount });
                }
                Attempt::Exceeded(exceeded) => return Err(exceeded),
                Attempt::MustWait => freed.await,
            }
        }
    }

    fn try_reserve(&self, model: usize, amount: Amount) -> Attempt {
        let mut state = self.state.lock();
        if let Some(cap) = self.exceeded_by(&state, amount) {
            return match state.run.open {
                0 => Attempt::Exceeded(Exceeded::Run(cap)),
                _ => Attempt::MustWait,
            };
        }
        let State { run, models, .. } = &mut *state;
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

    pub fn is_capped(&self, model: usize) -> bool {
        let has_cap = |model: &ModelAccount| model.cap.is_some();
        let Caps { usd, tokens, calls } = self.caps;
        usd.is_some() || tokens.is_some() || calls.is_some() || self.state.lock().models.get(model).is_some_and(has_cap)
    }

    /// Adds the price of a call without a reservation.
    pub fn pay(&self, paid: Spent) {
        self.pay_for(None, paid);
    }

    fn pay_for(&self, model: Option<usize>, paid: Spent) {
        let mut state = self.state.lock();
        let State { run, models, spent_calls } = &mut *state;
        spent_calls.calls += paid.calls;
        spent_calls.usage += paid.usage;
        spent_calls.usd += paid.usd;
        let model = model.and_then(|model| models.get_mut(model));
        for account in std::iter::once(run).chain(model.map(|model| &mut model.account)) {
            account.spent.add(Amount { usd: paid.usd, tokens: paid.usage.tokens() });
        }
    }

    fn release(&self, model: usize, reserved: Amount) {
        let mut state = self.state.lock();
        let State { run, models, .. } = &mut *state;
        for account in std::iter::once(run).chain(models.get_mut(model).map(|model| &mut model.account)) {
            account.release(reserved);
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
    /// Adds the price of a failed attempt. Returns true if the reserved price of the next attempt still fits.
    pub fn pay(&self, paid: Spent) -> bool {
        self.budget.pay_for(Some(self.model), paid);
        let state = self.budget.state.lock();
        let (none, run, caps) = (Amount::default(), &state.run, self.budget.caps);
        let fits = |cap: Option<f64>, account: &Account| cap.is_none_or(|cap| account.usd_with(none) <= cap);
        fits(caps.usd, run)
            && caps.tokens.is_none_or(|cap| run.tokens_with(none) <= cap)
            && state.models.get(self.model).is_none_or(|model| fits(model.cap, &model.account))
    }

    /// Replaces the reserved price by the real one.
    pub fn settle(self, paid: Spent) {
        self.budget.pay_for(Some(self.model), paid);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.release(self.model, self.amount);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;

    fn caps(usd: Option<f64>, tokens: Option<u64>) -> Caps {
        Caps { usd, tokens, calls: None }
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

    #[tokio::test]
    async fn failed_attempts_are_paid_and_may_end_the_retries() {
        let budget = Budget::new(caps(Some(1.0), Some(1000)), Spent::default(), [(Some(0.8), 0.0)].into_iter());
        assert!(budget.is_capped(0));
        let reservation = budget.reserve(0, amount(0.5, 10)).await.expect("it fits");
        assert!(reservation.pay(paid(0.2, 10)));
        assert!(!reservation.pay(paid(0.2, 10)), "0.4 + 0.5 exceeds the model's cap");
        assert_eq!(budget.spent().usd, 0.4);
        drop(reservation);
        assert!(!budget.reserve(0, amount(0.3, 10)).await.expect("it fits").pay(paid(0.1, u64::MAX)));
        assert!(!Budget::new(caps(None, None), Spent::default(), [(None, 0.0)].into_iter()).is_capped(0));
    }

    #[test]
    fn the_cap_that_is_reached_is_named() {
        let (spent, prices) = (
            Usage { input: 100_000, output: 10_000, ..Usage::default() },
            Prices { input: 3.0, cached: None, output: 15.0 },
        );
        let caps = |calls, tokens, usd| Caps { calls, tokens, usd };
        for (caps, after_one, after_two) in [
            (caps(Some(3), Some(300_000), Some(0.9)), None, Some("usd")),
            (caps(Some(2), None, None), None, Some("calls")),
            (caps(None, Some(220_000), None), None, Some("tokens")),
            (caps(None, Some(220_001), Some(0.91)), None, None),
            (caps(Some(1), Some(1), Some(0.0)), Some("calls"), Some("calls")),
        ] {
            let budget = Budget::of_seat(caps);
            let reached = [(); 2].map(|()| {
                budget.pay(Spent::of_call(spent, Some(&prices)));
                budget.reached()
            });
            assert_eq!(reached, [after_one, after_two], "{caps:?}");
        }
    }

    #[test]
    fn a_reservation_never_waits_if_it_need_not() {
        let budget = Budget::of_seat(Caps { usd: Some(1.0), calls: Some(2), ..Caps::default() });
        let open = budget.reserve_now(0, amount(0.6, 0)).unwrap();
        assert!(budget.reserve_now(0, amount(0.6, 0)).is_none() && budget.fits(amount(0.4, 0)));
        open.settle(paid(0.1, 0));
        let open = budget.reserve_now(0, amount(0.6, 0)).unwrap();
        assert!(!budget.fits(amount(0.0, 0)), "the second of two calls is open");
        drop(open);
        assert!(budget.fits(amount(0.9, 0)) && !budget.fits(amount(1.0, 0)));
    }

    #[test]
    fn impossible_numbers_count_as_the_bound() {
        let prices = Prices { input: 1.0, cached: None, output: 10.0 };
        let bound = Bound::of(&[0; 100], 50, Some(&prices));
        assert_eq!(bound.amount().tokens, 150);
        for (input, output, is_believed) in
            [(100, 50, true), (0, 60, true), (101, 50, false), (10, 100, false), (u64::MAX, u64::MAX, false)]
        {
            let usage = Usage { input, output, ..Usage::default() };
            let believed = bound.believe(usage, Some(&prices));
            assert_eq!(believed == usage, is_believed, "{usage:?}");
            assert_eq!(believed.is_estimated, !is_believed);
            assert!(prices.cost(&believed) <= bound.usd, "{believed:?}");
        }
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
