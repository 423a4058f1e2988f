//! A language model on seats of house bots, within a budget.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arena_llm::{Amount, Budget, Caps, Reservation, Spent};
use arena_players::http::HttpSeat;
use arena_server::HouseSettings;

use crate::command_line::base_url;
use crate::exit::Failure;
use crate::play::args::ModelArgs;
use crate::play::play_model;

/// The part of the budget that one game may use.
const SHARE: f64 = 0.1;

/// Maximum number of requests per game.
const TURNS: u64 = 50;

/// The time to retry a failing endpoint, in seconds. It is short, because a person waits.
const PATIENCE_S: u64 = 30;

pub struct HouseModel {
    name: String,
    args: ModelArgs,
    /// The maximum cost of a game.
    share: Amount,
    budget: Arc<Budget>,
    /// True while the budget allows another game.
    has_budget: Arc<AtomicBool>,
}

/// The share of the budget for one game. Its unused rest returns to the budget.
pub struct ModelGame {
    model: Arc<HouseModel>,
    reservation: Option<Reservation>,
}

impl HouseModel {
    /// Creates the model of the settings; `None` if they have none.
    ///
    /// # Errors
    /// If a setting is invalid, or a cost or price is missing.
    pub fn of(settings: &HouseSettings) -> Result<Option<HouseModel>, Failure> {
        let Some(model) = &settings.model else { return Ok(None) };
        let invalid = |why: &str| Failure::usage(format_args!("invalid [house] settings: {why}"));
        let named = model.rsplit_once('@').filter(|(name, _)| !name.is_empty());
        let (name, url) = named.ok_or_else(|| invalid("model must be NAME@URL"))?;
        let url = base_url(url).map_err(|why| invalid(&format!("the URL of model: {why}")))?;
        let number = |key: &str, value: Option<f64>| {
            let value = value.filter(|value| value.is_finite() && *value >= 0.0);
            value.ok_or_else(|| invalid(&format!("model needs {key}, a number of 0 or more")))
        };
        let budget = number("model_cost", settings.model_cost)?;
        let args = ModelArgs {
            model: Some(name.to_owned()),
            api_base: Some(url),
            max_turns: Some(TURNS),
            max_cost: Some(budget * SHARE),
            price_in: Some(number("model_price_in", settings.model_price_in)?),
            price_out: Some(number("model_price_out", settings.model_price_out)?),
            patience: Some(PATIENCE_S),
            // Transcripts contain secrets of seats, and many visitors would fill the disk.
            transcript: Some(PathBuf::from("/dev/null")),
            ..ModelArgs::default()
        };
        Ok(Some(HouseModel {
            name: name.to_owned(),
            args,
            share: Amount { usd: budget * SHARE, tokens: 0 },
            budget: Budget::of_seat(Caps { usd: Some(budget), ..Caps::default() }),
            has_budget: Arc::new(AtomicBool::new(budget > 0.0)),
        }))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the flag that is true while the budget allows another game.
    pub fn has_budget(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.has_budget)
    }

    /// Reserves the maximum cost of a game, if the rest of the budget allows it.
    pub fn reserve(self: &Arc<Self>) -> Option<ModelGame> {
        let reservation = self.budget.reserve_now(0, self.share).filter(|_| self.share.usd > 0.0);
        self.note_budget();
        Some(ModelGame { model: Arc::clone(self), reservation: Some(reservation?) })
    }

    fn note_budget(&self) {
        self.has_budget.store(self.budget.fits(self.share), Ordering::Relaxed);
    }
}

impl ModelGame {
    pub fn model(&self) -> &HouseModel {
        &self.model
    }

    /// Plays a taken seat, and prints a failure.
    pub fn play(self, seat: &HttpSeat) {
        let (cost, played) = play_model(&seat.arena, &seat.you, &self.model.args);
        self.settle(cost);
        if let Err(failure) = played {
            failure.print();
        }
    }

    fn settle(mut self, usd: f64) {
        if let Some(reservation) = self.reservation.take() {
            reservation.settle(Spent { usd, ..Spent::default() });
        }
    }
}

impl Drop for ModelGame {
    fn drop(&mut self) {
        self.reservation = None;
        self.model.note_budget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(model: &str, model_cost: Option<f64>) -> HouseSettings {
        let (model, price) = (Some(model.to_owned()), Some(1.0));
        HouseSettings { model, model_cost, model_price_in: price, model_price_out: price, ..HouseSettings::default() }
    }

    #[test]
    fn a_model_needs_a_url_prices_and_a_budget() {
        assert!(HouseModel::of(&HouseSettings::default()).is_ok_and(|model| model.is_none()));
        let with_budget = ["thinker", "@http://m", "a@m"].map(|model| (model, Some(1.0)));
        for (model, cost) in with_budget.into_iter().chain([("a@http://m", None)]) {
            let failure = HouseModel::of(&settings(model, cost)).err().unwrap();
            assert!(failure.sentence().starts_with("invalid [house] settings: "), "{model}");
        }
    }

    #[test]
    fn concurrent_games_stay_within_the_budget() {
        let model = Arc::new(HouseModel::of(&settings("a@b@http://m", Some(1.0))).ok().flatten().unwrap());
        assert_eq!(model.name(), "a@b");
        let has_budget = model.has_budget();
        let mut games: Vec<ModelGame> = (0..20).filter_map(|_| model.reserve()).collect();
        assert!((9..=10).contains(&games.len()) && !has_budget.load(Ordering::Relaxed), "{}", games.len());
        // A game that cost nothing makes room for another one.
        games.pop();
        assert!(has_budget.load(Ordering::Relaxed));
        let game = model.reserve().unwrap();
        assert!(model.reserve().is_none());
        // A request may exceed the maximum of its game. The next games pay for it.
        game.settle(0.25);
        assert!(model.reserve().is_none());
    }
}
