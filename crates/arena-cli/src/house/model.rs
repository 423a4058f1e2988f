//! A language model on seats of house bots, within a budget.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arena_players::http::HttpSeat;
use arena_server::HouseSettings;
use parking_lot::Mutex;

use crate::args::{ModelArgs, base_url};
use crate::exit::{Exit, Failure};
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
    /// The maximum cost of a game, in US dollars.
    game_cost: f64,
    /// The rest of the budget without the games that are being played, in US dollars.
    budget: Mutex<f64>,
    /// True while the budget allows another game.
    has_budget: Arc<AtomicBool>,
}

impl HouseModel {
    /// Creates the model of the settings; `None` if they have none.
    ///
    /// # Errors
    /// If a setting is invalid, or a cost or price is missing.
    pub fn of(settings: &HouseSettings) -> Result<Option<HouseModel>, Failure> {
        let Some(model) = &settings.model else { return Ok(None) };
        let invalid = |why: &str| Failure::new(Exit::Usage, format_args!("invalid [house] settings: {why}"));
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
            game_cost: budget * SHARE,
            budget: Mutex::new(budget),
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

    /// Reserves the maximum cost of a game. Returns false if the rest of the budget is smaller.
    pub fn reserve(&self) -> bool {
        let mut budget = self.budget.lock();
        let is_enough = self.game_cost > 0.0 && *budget >= self.game_cost;
        if is_enough {
            *budget -= self.game_cost;
        }
        self.has_budget.store(*budget >= self.game_cost, Ordering::Relaxed);
        is_enough
    }

    /// Returns the unused part of a reserved game to the budget.
    pub fn release(&self, cost: f64) {
        let mut budget = self.budget.lock();
        *budget += self.game_cost - cost;
        self.has_budget.store(*budget >= self.game_cost, Ordering::Relaxed);
    }

    /// Plays a taken seat after a successful [`HouseModel::reserve`], and prints a failure.
    pub fn play(&self, seat: &HttpSeat) {
        let (cost, played) = play_model(&seat.arena, &seat.you, &self.args);
        self.release(cost);
        if let Err(failure) = played {
            failure.print();
        }
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
        let model = HouseModel::of(&settings("a@b@http://m", Some(1.0))).ok().flatten().unwrap();
        assert_eq!(model.name(), "a@b");
        let has_budget = model.has_budget();
        let reserved = (0..20).filter(|_| model.reserve()).count();
        assert!((9..=10).contains(&reserved) && !has_budget.load(Ordering::Relaxed), "{reserved}");
        // A game that cost nothing makes room for another one.
        model.release(0.0);
        assert!(has_budget.load(Ordering::Relaxed) && model.reserve() && !model.reserve());
        // A request may exceed the maximum of its game. The next games pay for it.
        model.release(0.25);
        assert!(!model.reserve());
    }
}
