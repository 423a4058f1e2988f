//! The types and rules of the arena: sessions, seats, operators, messages, scores and redaction.
//!
//! This crate is pure: no I/O, clock, ambient randomness or async. Time is passed in as a [`Timestamp`], randomness
//! as a [`Seed`]. Storage is in `arena-store`, concurrency in `arena-engine`, HTTP in `arena-server`.

mod agent;
mod board;
mod challenge;
mod form;
mod game;
mod game_operator;
pub mod hex;
mod id;
mod memory;
mod message;
mod operator;
mod operator_game;
mod record;
mod scene;
mod score;
mod scoring;
mod script;
mod seed;
mod session;
mod step;
mod telling;
mod text;
mod usage;
mod user;
mod view;

pub use agent::{Dialect, Limits, SandboxMode};
pub use board::{BoardId, BoardIdError, BoardTerms, BoardTermsError};
pub use challenge::{
    Author, Builtin, ChallengeInfo, ChallengeMetadata, ChallengeOption, ChallengeType, Method, OptionsError,
    RestoreError, Rules, Setting, SettingRange,
};
pub use form::{ContentTemplate, FieldValues, FormField, MethodForm};
pub use game::{
    Actions, Adjudication, AdjudicationDecision, Adjudicator, AgentId, AnyGame, Disqualified, DrawRule, EngineScore,
    Events, Forfeit, Game, GameType, IndexedAction, MAX_ACTIONS, Match, MatchOutcome, MatchResult, Moves, Owner,
    Rejected, ResignRule, SeatResult, Setup, StartLimits, TAINTED_SCORE, TimeControl, TimeControlError, TimeLimits,
    UpdateMode, VOID, Verdict, agent_ids, first_seat, ranks,
};
pub use game_operator::{GameOperator, GameOptions, Hosted, TURN_MS_SETTING, one_action};
pub use id::{IdError, InviteCode, Seat, SessionId, Timestamp, UserId};
pub use memory::{MemorySession, is_public_state, is_world_state};
pub use message::{Channel, ChatMessage, ContentHash, Draft, Party};
pub use operator::{Operator, Rejection, Table};
pub use operator_game::{ChallengeAction, ChallengeState, RefusedAction, SeenMessage};
pub use record::{Record, RecordError, SessionRecord, read_record};
pub use scene::{Knowledge, Scene, Secret, SecretPart};
pub use score::{Attribution, GameCategory, Score};
pub use scoring::{
    Board, BoardStanding, GLOBAL_AVERAGE, GameResult, Metric, MetricFormat, MetricKind, Order, PlayerStandings,
    Scoring, ScoringEntry, ScoringError, ScriptedStrategy, Strategy, StrategyEntry, StrategyRow, StrategyRows, Tally,
    mean_score, strategies,
};
pub use script::{Script, ScriptVersion};
pub use seed::{Seed, SeedRng};
pub use session::{
    ActError, After, ChatError, Ending, InactivityLimits, JoinError, Occupant, Phase, Session, SessionFacts,
    SessionPolicy, Status, Transition, UsageRefusal, act, announce, chat, fail_deadline, join, open, report_usage,
    wake,
};
pub use step::Step;
pub use telling::{EndedGame, Said};
pub use text::{printable, steers};
pub use usage::{MOST_MS, MOST_REPORTS, MOST_TOKENS, MOST_USD, SeatUsage, UsageError, UsageReport, UsageTotal};
pub use user::{ProfileChange, ProfileText, ProfileTextError, UserProfile};
pub use view::{
    GameEndedView, MessageView, SessionView, Viewer, game_ended, identities, redact, reveal_message, reveal_session,
    view,
};
