//! A challenge in which only time passes: one player joins, a bell rings each second, and the third ring ends the
//! game. A tap only counts as activity.

use arena_model::{ChallengeMetadata, Method, Operator, OptionsError, Rejection, Rules, Seat, Seed, Setting, Table};
use serde::{Deserialize, Serialize};

#[derive(Default, Serialize, Deserialize)]
pub struct NoOptions {}

#[derive(Serialize, Deserialize)]
pub struct Bell {
    rung: u32,
}

impl Rules for Bell {
    const ID: &'static str = "bell";
    const DESCRIPTION: &'static str = "Rings.";
    const SEATS: std::ops::RangeInclusive<usize> = 1..=10;
    const OVERRIDABLE: &'static [Setting] = &[];
    type Options = NoOptions;

    fn check(_: &NoOptions) -> Result<(), OptionsError> {
        Ok(())
    }

    fn metadata(_: &NoOptions) -> ChallengeMetadata {
        let text = "A bell rings.".to_owned();
        ChallengeMetadata {
            name: text.clone(),
            description: text.clone(),
            players: 1,
            prompt: text.clone(),
            methods: vec![Method { name: "tap".to_owned(), description: text.clone() }],
            ..ChallengeMetadata::default()
        }
    }

    fn deal(_: &NoOptions, _seed: &Seed) -> Bell {
        Bell { rung: 0 }
    }
}

impl Operator for Bell {
    fn join(&mut self, table: &mut Table<'_>, _seat: Seat) -> Result<(), Rejection> {
        table.broadcast("listen");
        table.set_deadline_in(1000);
        Ok(())
    }

    fn message(&mut self, _: &mut Table<'_>, _: Seat, _: &str, _: &str) -> Result<(), Rejection> {
        Ok(())
    }

    fn deadline(&mut self, table: &mut Table<'_>) -> Result<(), Rejection> {
        self.rung += 1;
        if self.rung == 3 {
            table.end();
        } else {
            table.broadcast(format!("ring {}", self.rung));
            table.set_deadline_in(1000);
        }
        Ok(())
    }

    fn serialize(&self) -> String {
        serde_json::to_string(self).expect("a number is JSON")
    }
}
