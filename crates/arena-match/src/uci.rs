//! The Universal Chess Interface: the lines between chess engines and their users. Pure.
//!
//! Source: S. Meyer-Kahlen, *UCI protocol* (April 2006). Unknown lines and tokens are skipped, as it demands.

use std::fmt::Write;

use serde::Serialize;

/// The maximum number of moves of a variation that is kept.
const MAX_PV: usize = 32;

/// The maximum length of a name or a move that is kept, in bytes.
const MAX_TEXT: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineLine {
    /// `id name`: the engine's name.
    Name(String),
    Option(EngineOption),
    /// `uciok`: the end of the options.
    UciOk,
    /// `readyok`: the answer to `isready`.
    ReadyOk,
    /// `bestmove`: the move that the engine plays, as the engine wrote it.
    BestMove(String),
    /// `info`: facts about the search.
    Info(Box<SearchInfo>),
    /// A line without use here.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOption {
    /// The name. Engines ignore its case.
    pub name: String,
    pub values: OptionValues,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValues {
    /// `true` or `false`.
    Check,
    /// An integer in this range.
    Spin(i64, i64),
    /// One of these texts.
    Combo(Vec<String>),
    /// No value.
    Button,
    /// Any text.
    Text,
}

/// Facts about a search, from one or several `info` lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SearchInfo {
    /// The depth in plies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
    /// The selective depth in plies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seldepth: Option<u64>,
    /// The score in centipawns, for the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cp: Option<i64>,
    /// The number of moves to the mate; negative if the engine is mated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mate: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nps: Option<u64>,
    /// The time of the search in milliseconds, as the engine measured it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<u64>,
    /// The principal variation, at most 32 moves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pv: Vec<String>,
    /// The number of the line among several, from 1.
    #[serde(skip)]
    multipv: Option<u64>,
    /// True if the score is only a bound.
    #[serde(skip)]
    is_bound: bool,
}

impl EngineLine {
    pub fn parse(line: &str) -> EngineLine {
        let (word, rest) = split_word(line);
        match word {
            "uciok" => EngineLine::UciOk,
            "readyok" => EngineLine::ReadyOk,
            "bestmove" => EngineLine::BestMove(shorten(split_word(rest).0)),
            "info" => EngineLine::Info(Box::new(SearchInfo::parse(rest))),
            "id" => match split_word(rest) {
                ("name", name) if !name.is_empty() => EngineLine::Name(shorten(name)),
                _ => EngineLine::Other,
            },
            "option" => EngineOption::parse(rest).map_or(EngineLine::Other, EngineLine::Option),
            _ => EngineLine::Other,
        }
    }
}

impl EngineOption {
    fn parse(text: &str) -> Option<EngineOption> {
        let (mut name, mut kind) = (String::new(), String::new());
        let (mut min, mut max, mut variants) = (i64::MIN, i64::MAX, Vec::new());
        let mut words = text.split_ascii_whitespace().peekable();
        while let Some(key) = words.next() {
            let mut value: Vec<&str> = Vec::new();
            // A name or a default may contain blanks and ends at the next key.
            while let Some(word) =
                words.next_if(|word| !matches!(*word, "name" | "type" | "default" | "min" | "max" | "var"))
            {
                value.push(word);
            }
            let value = value.join(" ");
            match key {
                "name" => name = shorten(&value),
                "type" => kind = value,
                "min" => min = value.parse().unwrap_or(min),
                "max" => max = value.parse().unwrap_or(max),
                "var" => variants.push(shorten(&value)),
                _ => {}
            }
        }
        let values = match kind.as_str() {
            "check" => OptionValues::Check,
            "spin" => OptionValues::Spin(min, max),
            "combo" => OptionValues::Combo(variants),
            "button" => OptionValues::Button,
            _ => OptionValues::Text,
        };
        (!name.is_empty()).then_some(EngineOption { name, values })
    }

    /// Checks a value; `None` is the press of a button.
    ///
    /// # Errors
    /// The accepted values, in words that follow the option's name.
    pub fn check(&self, value: Option<&str>) -> Result<(), String> {
        let is_valid = match (&self.values, value) {
            (OptionValues::Button, value) => value.is_none(),
            (_, None) => false,
            (OptionValues::Check, Some(value)) => matches!(value, "true" | "false"),
            (OptionValues::Spin(min, max), Some(value)) => {
                value.parse::<i64>().is_ok_and(|value| (*min..=*max).contains(&value))
            }
            (OptionValues::Combo(known), Some(value)) => known.iter().any(|known| known.eq_ignore_ascii_case(value)),
            (OptionValues::Text, Some(_)) => true,
        };
        if is_valid {
            return Ok(());
        }
        let given = value.map_or_else(|| "no value".to_owned(), |value| format!("`{value}`"));
        Err(match &self.values {
            OptionValues::Button => format!("takes no value, not {given}"),
            OptionValues::Check => format!("is true or false, not {given}"),
            OptionValues::Spin(min, max) => format!("is an integer from {min} to {max}, not {given}"),
            OptionValues::Combo(known) => format!("is one of {}, not {given}", known.join(", ")),
            OptionValues::Text => "needs a value".to_owned(),
        })
    }
}

impl SearchInfo {
    fn parse(text: &str) -> SearchInfo {
        let mut info = SearchInfo::default();
        let mut words = text.split_ascii_whitespace().peekable();
        while let Some(key) = words.next() {
            let mut number =
                || words.next_if(|word| word.parse::<i64>().is_ok()).and_then(|word| word.parse::<i64>().ok());
            let count = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
            match key {
                "depth" => info.depth = count(number()),
                "seldepth" => info.seldepth = count(number()),
                "nodes" => info.nodes = count(number()),
                "nps" => info.nps = count(number()),
                "time" => info.time = count(number()),
                "multipv" => info.multipv = count(number()),
                "cp" => info.cp = number(),
                "mate" => info.mate = number(),
                "lowerbound" | "upperbound" => info.is_bound = true,
                "pv" => {
                    while let Some(word) = words.next_if(|word| is_move(word)) {
                        if info.pv.len() < MAX_PV {
                            info.pv.push(word.to_owned());
                        }
                    }
                }
                // The rest of the line is free text.
                "string" | "refutation" | "currline" => break,
                _ => {}
            }
        }
        info
    }

    /// Takes over the facts of a later line. Scores that are only bounds, and other variations than the best one, are
    /// left out.
    pub fn update(&mut self, later: SearchInfo) {
        if later.multipv.is_some_and(|number| number > 1) {
            return;
        }
        if !later.is_bound && (later.cp.is_some() || later.mate.is_some()) {
            (self.cp, self.mate) = (later.cp, later.mate);
            (self.depth, self.seldepth) = (later.depth.or(self.depth), later.seldepth);
            if !later.pv.is_empty() {
                self.pv = later.pv;
            }
        }
        self.depth = self.depth.or(later.depth);
        self.nodes = later.nodes.or(self.nodes);
        self.nps = later.nps.or(self.nps);
        self.time = later.time.or(self.time);
    }

    pub fn is_empty(&self) -> bool {
        *self == SearchInfo::default()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GoLimits {
    /// The clocks of White and Black, in milliseconds.
    pub clocks_ms: Option<[u64; 2]>,
    /// The increments of White and Black for each move, in milliseconds.
    pub increments_ms: [u64; 2],
    /// The number of moves to the next time control.
    pub moves_to_go: Option<u32>,
    /// The exact time for the move, in milliseconds.
    pub move_ms: Option<u64>,
    /// The depth in plies.
    pub depth: Option<u32>,
    pub nodes: Option<u64>,
}

impl GoLimits {
    pub fn line(&self) -> String {
        let mut line = "go".to_owned();
        let mut add = |key: &str, value: u64| {
            let _ = write!(line, " {key} {value}");
        };
        if let Some([white, black]) = self.clocks_ms {
            add("wtime", white);
            add("btime", black);
            if self.increments_ms != [0, 0] {
                add("winc", self.increments_ms[0]);
                add("binc", self.increments_ms[1]);
            }
            if let Some(moves) = self.moves_to_go {
                add("movestogo", moves.into());
            }
        }
        if let Some(ms) = self.move_ms {
            add("movetime", ms);
        }
        if let Some(depth) = self.depth {
            add("depth", depth.into());
        }
        if let Some(nodes) = self.nodes {
            add("nodes", nodes);
        }
        if line == "go" {
            line += " infinite";
        }
        line + "\n"
    }
}

/// Returns the line `position` with an initial position and the moves since. `None` is the standard position.
pub fn position_line(fen: Option<&str>, moves: &[String]) -> String {
    let mut line = match fen {
        None => "position startpos".to_owned(),
        Some(fen) => format!("position fen {fen}"),
    };
    for (number, uci) in moves.iter().enumerate() {
        line += if number == 0 { " moves " } else { " " };
        line += uci;
    }
    line + "\n"
}

/// Returns true for a move in UCI notation, such as `e7e8q`.
fn is_move(word: &str) -> bool {
    let is_square = |at: usize| {
        let part = word.as_bytes().get(at..at + 2);
        part.is_some_and(|part| matches!(part, [b'a'..=b'h', b'1'..=b'8']))
    };
    is_square(0) && is_square(2) && matches!(word.as_bytes().get(4..), Some([] | [b'q' | b'r' | b'b' | b'n']))
}

/// Returns the first word and the rest, without surrounding blanks.
fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_ascii();
    match text.split_once([' ', '\t']) {
        Some((word, rest)) => (word, rest.trim_ascii()),
        None => (text, ""),
    }
}

/// Returns a text of at most [`MAX_TEXT`] bytes without control characters.
fn shorten(text: &str) -> String {
    let mut short = String::new();
    for char in text.chars().filter(|char| !char.is_control()) {
        if short.len() + char.len_utf8() > MAX_TEXT {
            break;
        }
        short.push(char);
    }
    short
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Expect) {
        expected.assert_eq(&match EngineLine::parse(line) {
            EngineLine::Info(info) => format!("Info({})", serde_json::to_string(&info).unwrap()),
            line => format!("{line:?}"),
        });
    }

    #[test]
    fn lines_of_engines() {
        check("id name Stockfish 16", expect![[r#"Name("Stockfish 16")"#]]);
        check("id author the developers", expect!["Other"]);
        check("  uciok  ", expect!["UciOk"]);
        check("readyok", expect!["ReadyOk"]);
        check("bestmove e7e8q ponder a2a3", expect![[r#"BestMove("e7e8q")"#]]);
        check("bestmove\t(none)", expect![[r#"BestMove("(none)")"#]]);
        check("bestmove", expect![[r#"BestMove("")"#]]);
        check("Stockfish 16 by the developers", expect!["Other"]);
        check("", expect!["Other"]);
        check(
            "option name UCI_Elo type spin default 1320 min 1320 max 3190",
            expect![[r#"Option(EngineOption { name: "UCI_Elo", values: Spin(1320, 3190) })"#]],
        );
        check(
            "option name Debug Log File type string default <empty>",
            expect![[r#"Option(EngineOption { name: "Debug Log File", values: Text })"#]],
        );
        check(
            "option name Style type combo default Normal var Solid and slow var Normal",
            expect![[r#"Option(EngineOption { name: "Style", values: Combo(["Solid and slow", "Normal"]) })"#]],
        );
        check("option type check", expect!["Other"]);
    }

    #[test]
    fn facts_about_a_search() {
        check(
            "info depth 12 seldepth 20 multipv 1 score cp -31 nodes 9000 nps 1000000 hashfull 3 tbhits 0 time 9 pv e7e5 g1f3",
            expect![[
                r#"Info({"depth":12,"seldepth":20,"cp":-31,"nodes":9000,"nps":1000000,"time":9,"pv":["e7e5","g1f3"]})"#
            ]],
        );
        check("info score mate -3 depth x nodes -5 pv", expect![[r#"Info({"mate":-3})"#]]);
        check("info string depth 5", expect!["Info({})"]);
        check("info depth 99999999999999999999 time 5", expect![[r#"Info({"time":5})"#]]);
        let pv = "a1a2 ".repeat(1000);
        let EngineLine::Info(info) = EngineLine::parse(&format!("info pv {pv}")) else { panic!() };
        assert_eq!(info.pv.len(), MAX_PV);
    }

    #[test]
    fn the_last_exact_score_of_the_best_variation_counts() {
        let mut known = SearchInfo::default();
        for line in [
            "info depth 1 score cp 10 nodes 20 pv e2e4",
            "info depth 2 seldepth 3 multipv 1 score cp 20 nodes 50 pv d2d4 d7d5",
            "info depth 2 multipv 2 score cp -5 nodes 60 pv a2a3",
            "info depth 3 score cp 90 lowerbound nodes 80 pv a2a4",
            "info currmove h2h3 currmovenumber 5",
            "info nodes 100 nps 5000 time 20",
            "info string score cp 5",
        ] {
            let EngineLine::Info(info) = EngineLine::parse(line) else { panic!("{line}") };
            known.update(*info);
        }
        expect![[r#"{"depth":2,"seldepth":3,"cp":20,"nodes":100,"nps":5000,"time":20,"pv":["d2d4","d7d5"]}"#]]
            .assert_eq(&serde_json::to_string(&known).unwrap());
    }

    #[test]
    fn values_of_options() {
        let check = |line: &str, value: Option<&str>| {
            let EngineLine::Option(option) = EngineLine::parse(line) else { panic!("{line}") };
            option.check(value).err().unwrap_or_default()
        };
        assert_eq!(check("option name Hash type spin default 16 min 1 max 64", Some("64")), "");
        expect!["is an integer from 1 to 64, not `65`"]
            .assert_eq(&check("option name Hash type spin default 16 min 1 max 64", Some("65")));
        expect!["is an integer from 1 to 64, not no value"]
            .assert_eq(&check("option name Hash type spin min 1 max 64", None));
        expect!["is true or false, not `yes`"].assert_eq(&check("option name Ponder type check", Some("yes")));
        expect!["is one of A, B, not `C`"].assert_eq(&check("option name S type combo var A var B", Some("C")));
        assert_eq!(check("option name S type combo var A var B", Some("b")), "");
        assert_eq!(check("option name Clear Hash type button", None), "");
        expect!["takes no value, not `1`"].assert_eq(&check("option name Clear Hash type button", Some("1")));
        assert_eq!(check("option name Book type string", Some("a b")), "");
    }

    #[test]
    fn lines_to_engines() {
        let mut limits = GoLimits { depth: Some(5), ..GoLimits::default() };
        expect!["go depth 5\n"].assert_eq(&limits.line());
        limits = GoLimits { clocks_ms: Some([1000, 900]), moves_to_go: Some(40), ..GoLimits::default() };
        expect!["go wtime 1000 btime 900 movestogo 40\n"].assert_eq(&limits.line());
        limits =
            GoLimits { clocks_ms: Some([1000, 900]), increments_ms: [100, 0], nodes: Some(7), ..GoLimits::default() };
        expect!["go wtime 1000 btime 900 winc 100 binc 0 nodes 7\n"].assert_eq(&limits.line());
        expect!["go infinite\n"].assert_eq(&GoLimits::default().line());
        expect!["position startpos\n"].assert_eq(&position_line(None, &[]));
        let moves = ["e2e4".to_owned(), "e7e5".to_owned()];
        expect!["position startpos moves e2e4 e7e5\n"].assert_eq(&position_line(None, &moves));
        expect!["position fen 8/8/8/8/8/8/8/K1k5 w - - 0 1 moves e2e4\n"]
            .assert_eq(&position_line(Some("8/8/8/8/8/8/8/K1k5 w - - 0 1"), &moves[..1]));
    }
}
