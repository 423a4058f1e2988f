//! A person at the terminal, or a program that reads and writes lines through a pipe.

use std::io::{BufRead, IsTerminal};
use std::sync::mpsc::Sender;
use std::thread;

use arena_games::board::Stage;
use arena_games::board::row::{Ink, Row};
use arena_players::GameMessage;
use arena_players::http::{HttpSeat, Inbox, InboxEvent, InboxMessage, Next, Refusal};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::error::ReadlineError;
use rustyline::{DefaultEditor, ExternalPrinter};
use serde_json::{Map, Value, json};

use super::PlayEnd;
use super::game::{out_sentence, outcome_sentence};
use super::typed::Typed;
use crate::exit::Failure;
use crate::output::{Style, guarded, print, print_line, printable, utc};
use crate::terminal::frame::{AgentEntry, frame, text_of};
use crate::terminal::{self, can_draw};

const PROMPT: &str = "> ";

/// The help text about chat and commands. The output shows the challenge's methods before this text.
const HELP: &str = concat!(
    "  TEXT               send TEXT to all players\n",
    "  @2 TEXT            send TEXT to Player 2 only; the same as /to 2 TEXT\n",
    "  //TEXT             send /TEXT, which begins with a slash\n",
    "  /help              print this list\n",
    "  /quit              leave; the seat stays yours and the session continues without you",
);

/// Lets a person, or a program on a pipe, play the seat.
pub fn play(seat: &mut HttpSeat, inbox: &mut Inbox, style: Style) -> Result<PlayEnd, Failure> {
    let mut output = PersonOutput::open(inbox.sender(), style)?;
    output.print_text(&greeting(seat))?;
    let mut game = GameSetup::default();
    loop {
        match inbox.next(None)? {
            Next::Message(message) => {
                seat.meet(&message.from)?;
                output.print_message(seat, &message, &mut game)?;
            }
            Next::Typed(Some(line)) => {
                if perform(seat, &line, &mut output)? == PlayEnd::Left {
                    break;
                }
            }
            Next::Typed(None) => output.print_remark("no more input; waiting for the end of the session")?,
            Next::Leave => break,
            Next::Over => return Ok(PlayEnd::ToTheEnd),
            Next::Nothing => {}
        }
    }
    output.print_remark(&format!(
        "you left; the seat stays yours and the session continues without you. To return: arena play --from {}",
        seat.you
    ))?;
    Ok(PlayEnd::Left)
}

pub(super) fn perform(seat: &mut HttpSeat, line: &str, output: &mut PersonOutput) -> Result<PlayEnd, Failure> {
    let refused = match Typed::read(line, seat.metadata.methods.iter().map(|method| method.name.as_str())) {
        Typed::Nothing => None,
        Typed::Act(method, content) => seat.act(&method, &content)?,
        Typed::Say(None, text) => seat.say(&text, None)?,
        Typed::Say(Some(name), text) => {
            // A new player may have joined.
            if seat.find_player(&name).is_none() {
                seat.meet(&name)?;
            }
            match seat.find_player(&name) {
                Some(player) => seat.say(&text, Some(player))?,
                None => Some(Refusal { code: None, error: format!("there is no player {name}") }),
            }
        }
        Typed::Help => {
            output.print_text(&help(seat))?;
            None
        }
        Typed::Quit => return Ok(PlayEnd::Left),
        Typed::Wrong(error) => Some(Refusal { code: None, error }),
    };
    if let Some(refusal) = refused {
        output.print_refusal(&refusal)?;
    }
    Ok(PlayEnd::ToTheEnd)
}

pub(super) fn greeting(seat: &HttpSeat) -> String {
    format!(
        "{}: {}\n\n{}\n\n{}\n\nYou are {} of {} players.",
        seat.challenge,
        seat.metadata.name,
        seat.metadata.prompt.trim(),
        help(seat),
        seat.name_of(&seat.you),
        seat.metadata.players
    )
}

fn help(seat: &HttpSeat) -> String {
    let mut text = String::new();
    for method in &seat.metadata.methods {
        let name = format!("/{} …", method.name);
        text += &format!("  {name:<19}{}\n", method.description.trim().replace('\n', " "));
    }
    text + HELP
}

/// The constants of a Colosseum game, and the side of this seat.
#[derive(Default)]
pub(super) struct GameSetup {
    config: Map<String, Value>,
    side: Option<String>,
}

impl GameSetup {
    /// Formats a message of the game's operator for people.
    fn describe(&mut self, seat: &HttpSeat, said: GameMessage) -> String {
        match said {
            GameMessage::Start { config, side, .. } => {
                let side_text = side.as_ref().map(|side| format!("the game begins; you play {side}"));
                (self.config, self.side) = (config, side);
                side_text.unwrap_or_else(|| "the game begins".to_owned())
            }
            GameMessage::State(state) => {
                let until = state.deadline.map(|ms| format!(", until {}", utc(ms))).unwrap_or_default();
                let turn = if state.asks(&seat.you) { format!(", your move{until}") } else { String::new() };
                self.draw(seat, state.world_state, &turn)
            }
            GameMessage::Public { public_state, .. } => self.draw(seat, public_state, ""),
            GameMessage::Rejected { epoch, rejected } => {
                let list: Vec<String> = rejected.into_iter().map(|part| part.reason).collect();
                format!("epoch {epoch}: rejected: {}", list.join("; "))
            }
            GameMessage::Disqualified { disqualified, reason, detail } => {
                printable(&out_sentence(&seat.name_of(&disqualified), &reason, &detail)).into_owned()
            }
            GameMessage::Result { result } => printable(&outcome_sentence(&result, |id| seat.name_of(id))).into_owned(),
        }
    }

    fn draw(&self, seat: &HttpSeat, state: Map<String, Value>, turn: &str) -> String {
        let ids = state.get("agent_ids").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let ids: Vec<String> = ids.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect();
        let entries: Vec<AgentEntry> =
            ids.iter().map(|id| AgentEntry { name: seat.name_of(id), ..AgentEntry::default() }).collect();
        let stage = Stage {
            game: seat.challenge.replace('-', "_"),
            config: self.config.clone(),
            sides: ids.iter().map(|id| self.side_of(seat, id)).collect(),
            ids,
        };
        let mut title = Row::default();
        let epoch = state.get("epoch").unwrap_or(&Value::Null);
        title.text(Ink::Strong, &format!("epoch {epoch}")).text(Ink::Plain, turn);
        let size = terminal::size();
        let rows = frame(&stage, title, &[state.into()], &entries, size);
        text_of(&rows, size.columns).trim_end().to_owned()
    }

    /// The operator announces only the side of this seat; in chess, the opponent's side follows from it.
    fn side_of(&self, seat: &HttpSeat, id: &str) -> Option<&'static str> {
        let is_white = self.side.as_deref().map(|side| side == "WHITE")?;
        Some(if is_white == (id == seat.you) { "WHITE" } else { "BLACK" })
    }
}

/// The output to a person.
pub(super) enum PersonOutput {
    /// Text in a terminal, above the line that the person is typing.
    Terminal { printer: Box<dyn ExternalPrinter + Send>, _restored: Restored },
    /// Plain lines of text, for input or output without a terminal.
    Plain,
    /// Lines of JSON, for a program.
    Json,
}

impl PersonOutput {
    /// Starts a thread that reads input, and chooses the output: a terminal, plain lines or JSON.
    pub(super) fn open(typed: Sender<InboxEvent>, style: Style) -> Result<PersonOutput, Failure> {
        let no_thread = |error| Failure::cannot("start a thread for input", error);
        let is_terminal = style == Style::Pretty && std::io::stdin().is_terminal() && can_draw();
        if !is_terminal {
            let read = move || {
                // A line that isn't UTF-8 counts as the end of the input.
                for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                    if typed.send(InboxEvent::Typed(Some(line))).is_err() {
                        return;
                    }
                }
                // The inbox is dropped when the session has ended.
                let _ = typed.send(InboxEvent::Typed(None));
            };
            // The thread ends with the input, or with the program.
            thread::Builder::new().name("input".to_owned()).spawn(read).map_err(no_thread)?;
            return Ok(if style == Style::Json { PersonOutput::Json } else { PersonOutput::Plain });
        }
        let no_terminal = |error| Failure::cannot("use the terminal", error);
        let restored = Restored::keep()?;
        let mut editor = DefaultEditor::new().map_err(no_terminal)?;
        let printer = Box::new(editor.create_external_printer().map_err(no_terminal)?);
        let read = move || {
            loop {
                let news = match editor.readline(PROMPT) {
                    Ok(line) => {
                        // The history is a convenience, so a failure to store a line in it is ignored.
                        let _ = editor.add_history_entry(&line);
                        InboxEvent::Typed(Some(line))
                    }
                    Err(ReadlineError::Interrupted) => InboxEvent::Leave,
                    Err(_) => InboxEvent::Typed(None),
                };
                let is_last = !matches!(news, InboxEvent::Typed(Some(_)));
                if typed.send(news).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().name("input".to_owned()).spawn(read).map_err(no_thread)?;
        Ok(PersonOutput::Terminal { printer, _restored: restored })
    }

    pub(super) fn print_message(
        &mut self,
        seat: &HttpSeat,
        message: &InboxMessage,
        game: &mut GameSetup,
    ) -> Result<(), Failure> {
        if let PersonOutput::Json = self {
            return print_line(&json!(message));
        }
        let said = message.game_message();
        if let Some(GameMessage::Public { asked, .. }) = &said
            && asked.contains(&seat.you)
        {
            // The public state isn't shown, since the player's own view includes it.
            return Ok(());
        }
        let to = match &message.to {
            Some(to) if *to != message.from && to != "operator" => format!(" to {}", seat.name_of(to)),
            _ => String::new(),
        };
        let from = seat.name_of(&message.from);
        let text = match said {
            Some(said) => game.describe(seat, said),
            // The details of the operator's last message aren't shown, since a table of the scores follows.
            None if message.is_the_last() => "Game ended.".to_owned(),
            None => printable(&message.content).into_owned(),
        };
        // Continuation lines are indented, so that no message can imitate the beginning of another one.
        let indented = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("\n    {line}") };
        let text = match text.trim_end() {
            "" => String::new(),
            text if text.contains('\n') => text.lines().map(indented).collect(),
            text => format!(" {text}"),
        };
        self.print_text(&format!("{}{}:{text}", printable(&from), printable(&to)))
    }

    pub(super) fn print_refusal(&mut self, refusal: &Refusal) -> Result<(), Failure> {
        match self {
            PersonOutput::Json => print_line(&json!({"refused": refusal})),
            _ => self.print_text(&format!("refused: {}", printable(&refusal.to_string()))),
        }
    }

    /// Prints a remark that isn't part of the session.
    pub(super) fn print_remark(&mut self, text: &str) -> Result<(), Failure> {
        match self {
            PersonOutput::Json => crate::output::note(text),
            _ => self.print_text(&format!("({text})"))?,
        }
        Ok(())
    }

    pub(super) fn print_text(&mut self, text: &str) -> Result<(), Failure> {
        let text = &*guarded(text);
        match self {
            PersonOutput::Terminal { printer, .. } => {
                printer.print(format!("{text}\n")).map_err(|error| Failure::cannot("write to the terminal", error))
            }
            PersonOutput::Plain => print(text),
            // Programs receive only messages, no remarks.
            PersonOutput::Json => Ok(()),
        }
    }
}

/// Restores the terminal, also while a line is being edited.
pub(super) struct Restored(Termios);

impl Restored {
    fn keep() -> Result<Restored, Failure> {
        let settings = tcgetattr(rustix::stdio::stdin());
        settings.map(Restored).map_err(|error| Failure::cannot("read the terminal's settings", error))
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        // A failure is ignored: a closed terminal needn't be restored.
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, &self.0);
        // Ends the line that was being edited.
        let _ = print("");
    }
}
