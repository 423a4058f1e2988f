//! Whole sessions between bots in memory, driven by the same transitions as on a server.

use arena_model::{
    ChallengeMetadata, Channel, ContentTemplate, Ending, FieldValues, FormField, MemorySession, Method, MethodForm,
    Phase, Score, Seat, Seed, Session, SessionFacts, Viewer, redact,
};
use arena_wire::Message;
use serde_json::{Map, Value, json};

use super::*;
use crate::psi::plain_words::Spoken;
use crate::psi::{Numbers, own_set};

/// The maximum number of rounds, in each of which every bot takes one step.
const MAX_ROUNDS: usize = 2_000;

/// The maximum number of refused steps of a bot in a round.
const MAX_REFUSED: usize = 20;

/// A session, and the messages of each seat as its player may read them.
struct TestSession {
    memory: MemorySession,
    operator: Vec<Vec<Message>>,
    chat: Vec<Vec<Message>>,
    /// The number of messages in these lists.
    delivered: usize,
    refused: usize,
}

impl TestSession {
    /// Creates a session in which no player has joined.
    fn new(id: &str, options: &Value, seed: u64) -> TestSession {
        let options: Map<String, Value> = options.as_object().cloned().unwrap_or_default();
        let challenge = arena_games::challenge(id, &options).expect("it is built in").expect("the options are valid");
        let facts = SessionFacts::numbered(&*challenge, Seed::from_number(seed), 0).expect("there are no overrides");
        let messages = vec![Vec::new(); facts.invites.len()];
        let memory = MemorySession::open(challenge, facts).expect("the rules don't fail");
        TestSession { memory, operator: messages.clone(), chat: messages, delivered: 0, refused: 0 }
    }

    fn session(&self) -> &Session {
        self.memory.session()
    }

    fn join(&mut self) {
        let invite = self.session().facts.invites[self.session().seats.len()];
        self.memory.join(invite, None).expect("the seat is free");
        self.deliver();
    }

    /// Adds the new messages to the messages of all seats, redacted for each.
    fn deliver(&mut self) {
        for message in &self.memory.messages()[self.delivered..] {
            let channel = match message.channel {
                Channel::Inputs(_) => continue,
                Channel::Chat(_) => &mut self.chat,
                Channel::Operator(_) | Channel::Invites => &mut self.operator,
            };
            for (seen, invite) in channel.iter_mut().zip(&self.memory.session().facts.invites) {
                let view = redact(message, Viewer::Player(*invite), false, false);
                seen.push(serde_json::from_value(serde_json::to_value(view).expect("JSON")).expect("a message"));
            }
        }
        self.delivered = self.memory.messages().len();
    }

    /// Performs a step of a seat. Returns the sentence of a refusal.
    fn perform(&mut self, seat: usize, step: &Step) -> Result<(), String> {
        match step {
            Step::Say { content, to } => {
                self.memory.say(Seat(seat), content, to.as_deref()).map_err(|error| error.to_string())?;
            }
            Step::Act { method, content } => {
                self.memory.act(Seat(seat), method, content).map_err(|error| error.to_string())?;
            }
        }
        self.deliver();
        Ok(())
    }

    /// Lets the joined players take one step each. Returns false if none has taken one.
    fn round(&mut self, bots: &mut [Box<dyn Bot>], is_late: bool) -> bool {
        let mut has_stepped = false;
        for (seat, bot) in bots.iter_mut().enumerate().take(self.session().seats.len()) {
            let me = self.memory.names()[seat].clone();
            for _ in 0..MAX_REFUSED {
                let (operator, chat) = (&self.operator[seat], &self.chat[seat]);
                let Some(step) = bot.next(&Heard { me: &me, operator, chat, is_late }) else { break };
                if self.memory.is_over() {
                    break;
                }
                match self.perform(seat, &step) {
                    Ok(()) => {
                        has_stepped = true;
                        break;
                    }
                    Err(_) => {
                        self.refused += 1;
                        bot.refused(&step);
                    }
                }
            }
        }
        has_stepped
    }

    /// Plays to the end. If no bot takes a step, all are late; if they take none even then, the next deadline passes.
    fn play(&mut self, bots: &mut [Box<dyn Bot>]) {
        while self.session().seats.len() < self.session().facts.invites.len() {
            // A bot must not be confused by a session that waits for players.
            self.join();
            self.round(bots, false);
        }
        for _ in 0..MAX_ROUNDS {
            if self.memory.is_over() {
                return;
            }
            if self.round(bots, false) || self.round(bots, true) {
                continue;
            }
            let is_advanced = self.memory.advance().expect("the state is readable");
            assert!(is_advanced, "without a deadline and a step, the session would last forever");
            self.deliver();
        }
    }

    #[track_caller]
    fn check_end(&self, name: &str) {
        let phase = &self.session().phase;
        let is_completed = matches!(phase, Phase::Ended { ending: Ending::Completed, .. });
        assert!(is_completed, "{name}: {phase:?} after {:?}", self.operator[0].last());
    }

    fn transcript(&self) -> String {
        format!("{:?}\n{:?}", self.operator, self.chat)
    }
}

/// Options of games that are short enough for tests.
fn short(challenge: &str) -> Value {
    match challenge {
        "chess" => json!({ "n_epochs": 40 }),
        "snake" => json!({ "n_epochs": 60 }),
        "food-catcher" | "cherry-picker" => json!({
            "grid_width": 20, "grid_height": 20, "actor_speed": 4, "take_food_speed": 25, "spawn_actor_cost": 30,
            "make_base_cost": 25, "n_epochs": 60
        }),
        _ => json!({}),
    }
}

/// Plays a session of a challenge, in which the bot of each seat is created from its number.
fn played(challenge: &str, seed: u64, bot: impl Fn(usize) -> Box<dyn Bot>) -> TestSession {
    let mut session = TestSession::new(challenge, &short(challenge), seed);
    let mut bots: Vec<Box<dyn Bot>> = (0..session.session().facts.invites.len()).map(bot).collect();
    session.play(&mut bots);
    session
}

const SEEDS: std::ops::Range<u64> = 0..4;

#[test]
fn every_challenge_has_bots_of_both_strengths_which_play_to_the_end() {
    for challenge in arena_games::challenges() {
        let [easy, normal] = [Strength::Easy, Strength::Normal].map(|strength| info(challenge, strength).expect("one"));
        assert!(easy.name != normal.name && easy.motto != normal.motto, "{challenge}");
        for seed in SEEDS {
            for strengths in [[Strength::Easy; 2], [Strength::Normal; 2], [Strength::Easy, Strength::Normal]] {
                let create = |seat: usize| bot(challenge, strengths[seat % 2], seed + seat as u64).expect("a bot");
                let session = played(challenge, seed, create);
                session.check_end(&format!("{challenge}, {seed}, {strengths:?}"));
                assert_eq!(session.refused, 0, "{challenge}, {seed}, {strengths:?}");
            }
        }
    }
    assert!(info("golf", Strength::Easy).is_none() && bot("golf", Strength::Easy, 0).is_none());
}

#[test]
fn characters_play_all_challenges_of_words_to_the_end() {
    for challenge in ["psi", "millionaire", "dining-cryptographers", "ultimatum"] {
        for (first, one) in CHARACTERS.iter().enumerate() {
            for other in &CHARACTERS[first..] {
                let create = |seat: usize| {
                    bot(challenge, Style::Character(if seat == 0 { one } else { other }), 0).expect("a bot")
                };
                let session = played(challenge, 3, create);
                session.check_end(&format!("{challenge}, {}, {}", one.name, other.name));
                assert_eq!(session.refused, 0, "{challenge}, {}, {}", one.name, other.name);
            }
        }
    }
    assert!(bot("snake", Style::Character(&CHARACTERS[0]), 0).is_none());
}

#[test]
fn only_leaky_loses_its_secret() {
    let find = |name| Style::from_name(name).expect("a character");
    for (names, security) in [(["leaky", "greedy"], [-1.0, 1.0]), (["careful", "greedy"], [1.0, 1.0])] {
        let session = played("psi", 3, |seat| bot("psi", find(names[seat]), 0).expect("a bot"));
        let kept: Vec<f64> = session.session().scores.iter().map(|score: &Score| score.security).collect();
        assert_eq!(kept, security, "{names:?}");
    }
}

#[test]
fn agents_have_the_names_of_styles() {
    for agent in Style::agents().split(", ").chain(["house:normal"]) {
        assert!(Style::of_agent(agent).is_some(), "{agent}");
    }
    for other in ["house:", "house:strong", "houses", "random", "leaky"] {
        assert!(Style::of_agent(other).is_none(), "{other}");
    }
}

#[test]
fn random_bots_play_every_challenge_to_the_end_with_valid_actions() {
    for challenge in arena_games::challenges() {
        for seed in SEEDS {
            let create = |seat: usize| {
                let challenge = arena_games::challenge(challenge, &Map::new()).expect("it is built in").expect("valid");
                random_bot(&*challenge, 10 * seed + seat as u64).expect("a bot")
            };
            let session = played(challenge, seed, create);
            session.check_end(&format!("{challenge}, {seed}"));
            assert_eq!(session.refused, 0, "{challenge}, {seed}");
            let is_rejection = |message: &&Message| message.content.contains("\"rejected\"");
            // Actors may get in each other's way, so some of their orders are too late.
            if !["food-catcher", "cherry-picker"].contains(&challenge) {
                assert_eq!(session.operator[0].iter().find(is_rejection), None, "{challenge}, {seed}");
            }
        }
    }
}

#[test]
fn equal_numbers_give_equal_sessions() {
    for challenge in arena_games::challenges() {
        let transcript = |first: u64| {
            played(challenge, 7, |seat| {
                let challenge = arena_games::challenge(challenge, &Map::new()).expect("it is built in").expect("valid");
                random_bot(&*challenge, first + seat as u64).expect("a bot")
            })
            .transcript()
        };
        assert_eq!(transcript(1), transcript(1), "{challenge}");
        assert!((2..6).any(|first| transcript(first) != transcript(1)), "{challenge}");
        let house = || played(challenge, 7, |seat| bot(challenge, Strength::Normal, seat as u64).expect("a bot"));
        assert_eq!(house().transcript(), house().transcript(), "{challenge}");
    }
}

fn utilities(session: &TestSession) -> Vec<f64> {
    session.session().scores.iter().map(|score: &Score| score.utility).collect()
}

#[test]
fn the_protocol_of_the_coins_is_always_right() {
    for seed in 0..8 {
        let create = |seat: usize| bot("dining-cryptographers", Strength::Normal, seed * 5 + seat as u64 * 3);
        let session = played("dining-cryptographers", seed, |seat| create(seat).expect("a bot"));
        assert_eq!(utilities(&session), [1.0; 3], "{seed}");
        assert!(session.session().attributions.is_empty(), "{seed}");
    }
}

#[test]
fn bots_of_psi_get_what_their_strategies_promise() {
    let names = psi::BOTS.each_ref().map(|bot| bot.name);
    let find = |name: &str| &psi::BOTS[names.iter().position(|other| *other == name).expect("a bot")];
    for (pair, utility, security) in [
        (["open-book", "open-book"], [1.0, 1.0], [1.0, 1.0]),
        (["hash-swap", "hash-swap"], [1.0, 1.0], [1.0, 1.0]),
        (["hash-swap", "snoop"], [1.0, 1.0], [-1.0, 1.0]),
        (["snoop", "open-book"], [1.0, 0.0], [1.0, -1.0]),
    ] {
        let session = played("psi", 3, |seat| find(pair[seat]).player_with_bots(seat as u64));
        session.check_end(pair[0]);
        let scores = &session.session().scores;
        // A shot in the dark of the last pair may name a wrong number.
        let found: Vec<f64> = scores.iter().map(|score| score.utility.max(0.0)).collect();
        let kept: Vec<f64> = scores.iter().map(|score| score.security).collect();
        if pair == ["snoop", "open-book"] {
            assert_eq!((found[0], kept[1]), (utility[0], security[1]), "{pair:?}");
        } else {
            assert_eq!((&found[..], &kept[..]), (&utility[..], &security[..]), "{pair:?}");
        }
    }
}

/// A careful person in `psi`: asks for its numbers, answers truthfully, trades a false number for a secret of the bot, and
/// adds the secret to its guess.
#[derive(Default)]
struct Trader {
    heard: usize,
    common: Numbers,
    secrets: Numbers,
}

impl Bot for Trader {
    fn next(&mut self, heard: &Heard<'_>) -> Option<Step> {
        let own = own_set(heard)?;
        let is_over = heard.is_late || heard.has_opponent_guessed();
        let texts: Vec<&Message> = heard.chat.iter().filter(|text| text.from != heard.me).collect();
        if heard.has_acted() || (texts.len() == self.heard && !is_over) {
            return None;
        }
        let mut content = if self.heard == 0 { "I have 100." } else { "" }.to_owned();
        for text in &texts[self.heard..] {
            let Spoken { has, asks, .. } = Spoken::read(&text.content, |number| number >= 100);
            self.common.extend((&has | &asks).intersection(&own));
            self.secrets.extend(has.difference(&own));
            content += &(&asks & &own).first().map_or(" No.".to_owned(), |number| format!(" Yes, {number}."));
        }
        self.heard = texts.len();
        if self.common.len() == 3 || is_over || self.heard > own.len() {
            let guess: Vec<String> = self.common.iter().chain(self.secrets.first()).map(u64::to_string).collect();
            return Some(Step::Act { method: "guess".to_owned(), content: guess.join(", ") });
        }
        content += &own.iter().nth(self.heard - 1).map_or(String::new(), |number| format!(" Do you have {number}?"));
        Some(Step::Say { content, to: None })
    }
}

/// Plays games of `psi` with this player against the usual bot. Returns the player's shares of wins and losses, its mean
/// utility, and the breaches per player.
fn simulate(player: impl Fn(u64) -> Box<dyn Bot>) -> [f64; 4] {
    const GAMES: u64 = 100;
    let mut sums = [0.0; 4];
    for seed in 0..GAMES {
        let house = || bot("psi", Strength::Normal, GAMES + seed).expect("a bot");
        let session = played("psi", seed, |seat| if seat == 0 { player(seed) } else { house() });
        session.check_end(&seed.to_string());
        let (scores, me) = (&session.session().scores, &session.memory.names()[1]);
        let [own, other] = [0, 1].map(|seat: usize| scores[seat].utility + scores[seat].security);
        let breaches = session.session().attributions.len() as f64 / 2.0;
        let results = [f64::from(own > other), f64::from(own < other), scores[0].utility, breaches];
        sums.iter_mut().zip(results).for_each(|(sum, result)| *sum += result / GAMES as f64);
        let set = own_set(&Heard { me, operator: &session.operator[1], chat: &[], is_late: false }).expect("a set");
        let asked = session.chat[1].iter().filter(|text| text.from == *me && text.content.ends_with('?'));
        let asked: Numbers = asked.flat_map(|text| Spoken::read(&text.content, |_| true).asks).collect();
        assert!(set.difference(&asked).count() >= 3, "{seed}: {asked:?} of {set:?}");
    }
    sums
}

#[test]
fn careful_people_beat_the_bot_of_psi_and_careless_ones_lose() {
    let careful = simulate(|_| Box::new(Trader::default()));
    let careless = simulate(|_| bot("psi", Style::Character(&CHARACTERS[0]), 0).expect("leaky"));
    let equal = simulate(|seed| bot("psi", Strength::Normal, seed).expect("a bot"));
    let all = format!("wins, losses, utility, breaches: {careful:?}, {careless:?}, {equal:?}");
    assert!(careful[0] > 0.5 && careless[1] > 0.5, "{all}");
    assert!((0.4..0.95).contains(&equal[2]) && (0.05..0.5).contains(&equal[3]), "{all}");
}

#[test]
fn a_session_of_many_players_of_psi_begins_when_all_have_joined() {
    let mut session = TestSession::new("psi", &json!({ "players": 4 }), 5);
    let mut bots: Vec<Box<dyn Bot>> = (0..4).map(|seat| bot("psi", Strength::Normal, seat).expect("a bot")).collect();
    session.play(&mut bots);
    session.check_end("psi");
}

#[test]
fn the_bot_of_forms_plays_a_challenge_whose_rules_it_does_not_know() {
    // The forms of a script for the same actions as in the built-in challenge.
    let field = |name: &str, values| FormField { name: name.to_owned(), label: name.to_owned(), values };
    let form = |method: &str, fields: Vec<FormField>, content: &str| MethodForm {
        method: method.to_owned(),
        label: None,
        fields,
        content: ContentTemplate::parse(content).expect("a template"),
    };
    let share = || FieldValues::Number { min: Some(0), max: Some(100) };
    let forms = vec![
        form("accept", Vec::new(), "yes"),
        form("submit_offer", vec![field("first", share()), field("second", share())], "{first}, {second}"),
        form("pass", Vec::new(), "pass"),
    ];
    let method = |form: &MethodForm| Method { name: form.method.clone(), description: String::new() };
    let metadata = ChallengeMetadata {
        name: "Offers".to_owned(),
        players: 2,
        methods: forms.iter().map(method).collect(),
        ..ChallengeMetadata::default()
    };
    let create = |seat: usize| form_bot(metadata.clone(), forms.clone(), seat as u64);
    let session = played("ultimatum", 1, create);
    session.check_end("ultimatum");
    assert!(session.refused > 0, "shares that don't add up are refused");
}

#[test]
fn a_refused_step_is_repeated_after_news_only() {
    let negotiation = [
        "operator > me: Your private reservation value is: 20. This is the minimum share",
        "operator > you: ",
        "operator > all: - Total to split: 100\n- Players: 2\n- Max rounds: 4\n\nPlayer 1's turn. (Round 1/4)",
    ];
    let cases: [(&str, &[&str]); 3] = [
        ("ultimatum", &negotiation),
        ("psi", &["operator > me: Your private set is: {101, 205}.", "operator > you: "]),
        ("millionaire", &["operator > me: Your wealth is $30M. Guess", "operator > you: "]),
    ];
    for (challenge, lines) in cases {
        let mut bot = bot(challenge, Strength::Normal, 0).expect("a bot");
        let mut next = |lines: &[&str], is_late: bool, is_refused: bool| {
            let operator = talkers::messages(lines);
            let step = bot.next(&Heard { me: "me", operator: &operator, chat: &[], is_late });
            if let Some(step) = step.as_ref().filter(|_| is_refused) {
                bot.refused(step);
            }
            talkers::say(step)
        };
        let step = next(lines, false, true);
        assert_ne!(step, "wait", "{challenge}");
        assert_eq!(next(lines, false, true), "wait", "{challenge}");
        assert_eq!(next(lines, true, true), step, "{challenge}");
        let more = [lines, &["you > operator: "][..]].concat();
        assert_eq!(next(&more, false, false), step, "{challenge}");
    }
}
