//! Bots with prices: examples of costs, for runs without a model.

use arena_llm::{Prices, Usage};
use arena_model::Step;
use arena_players::{Answer, Answering, BotPlayer, Heard, Measured, Player, SeatEnd, StepResult, message_for};

/// The estimated number of bytes in a token.
const BYTES_A_TOKEN: usize = 4;

/// A bot whose tokens are estimated from the texts that it reads and writes. Each text counts once.
pub(crate) struct PricedPlayer {
    bot: BotPlayer,
    prices: Prices,
    /// The number of messages that the bot has received.
    heard: usize,
    read_bytes: usize,
    written_bytes: usize,
}

impl PricedPlayer {
    pub(crate) fn new(bot: BotPlayer, prices: Prices) -> PricedPlayer {
        PricedPlayer { bot, prices, heard: 0, read_bytes: 0, written_bytes: 0 }
    }
}

impl Player for PricedPlayer {
    fn answer<'a>(&'a mut self, heard: Heard<'a>) -> Answering<'a> {
        let Heard { session, seat, .. } = heard;
        let new =
            session.messages()[self.heard..].iter().filter(|message| session.seat_of(&message.from) != Some(seat));
        self.read_bytes += new.map(|message| message_for(session, message, seat).content.len()).sum::<usize>();
        self.heard = session.messages().len();
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
