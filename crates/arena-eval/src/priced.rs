//! Bots with prices: examples of costs, for runs without a model.

use arena_house::Step;
use arena_llm::{Prices, Usage};

use crate::Measured;
use crate::player::{Answer, Answering, Heard, HousePlayer, Player, SeatEnd, StepResult};

/// The estimated number of bytes in a token.
const BYTES_A_TOKEN: usize = 4;

/// A bot whose tokens are estimated from the texts that it reads and writes. Each text counts once.
pub(crate) struct PricedPlayer {
    bot: HousePlayer,
    prices: Prices,
    /// The number of messages of the table that the bot has received.
    heard: usize,
    read_bytes: usize,
    written_bytes: usize,
}

impl PricedPlayer {
    pub(crate) fn new(bot: HousePlayer, prices: Prices) -> PricedPlayer {
        PricedPlayer { bot, prices, heard: 0, read_bytes: 0, written_bytes: 0 }
    }
}

impl Player for PricedPlayer {
    fn answer<'a>(&'a mut self, heard: Heard<'a>) -> Answering<'a> {
        let Heard { table, seat, .. } = heard;
        let new =
            table.messages()[self.heard..].iter().filter(|posted| table.seat_of(&posted.message.from) != Some(seat));
        self.read_bytes += new.map(|posted| table.message_for(posted, seat).content.len()).sum::<usize>();
        self.heard = table.messages().len();
        Box::pin(async move {
            let answer = self.bot.answer(heard).await?;
            if let Answer::Steps { steps, .. } = &answer {
                self.written_bytes += steps.iter().map(text_len).sum::<usize>();
            }
            Ok(answer)
        })
    }

    fn learn(&mut self, steps: &[Step], results: &[StepResult]) -> Option<SeatEnd> {
        self.bot.learn(steps, results)
    }

    fn is_free(&self) -> bool {
        self.bot.is_free()
    }

    fn measured(&self) -> Measured {
        let [input, output] = [self.read_bytes, self.written_bytes].map(|bytes| bytes.div_ceil(BYTES_A_TOKEN) as u64);
        let usage = Usage { input, output, is_estimated: true, ..Usage::default() };
        Measured { usage, usd: Some(self.prices.cost(&usage)), ..Measured::default() }
    }
}

fn text_len(step: &Step) -> usize {
    match step {
        Step::Say { content, .. } => content.len(),
        Step::Act { method, content } => method.len() + content.len(),
    }
}
