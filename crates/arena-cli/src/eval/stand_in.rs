//! `arena eval stand-in`: a server on the loopback that stands in for language models.

use arena_eval::{StandIn, StandInSpec};
use serde_json::json;

use crate::args::StandInArgs;
use crate::exit::{Exit, Failure};
use crate::output::{Style, print};
use crate::serve::{runtime, stop_signal};

pub fn run(args: &StandInArgs, style: Style) -> Result<(), Failure> {
    let spec = StandInSpec { seed: args.seed, faults: args.faults, answer_ms: args.answer_ms };
    let stand_in = StandIn::start_at(&spec, args.port).map_err(|error| {
        Failure::new(
            Exit::CannotListen,
            format_args!("cannot listen on 127.0.0.1:{}: {error}; choose another port, or 0 for a free one", args.port),
        )
    })?;
    match style {
        Style::Json => print(&json!({"url": stand_in.base()}).to_string())?,
        Style::Pretty | Style::Compact => print(&format!("stand-in is at {}", stand_in.base()))?,
    }
    runtime()?.block_on(async {
        stop_signal()?.await;
        Ok(())
    })
}
