//! Scripts from their folders to what players are told, in the sandbox that an arena runs them in.

mod game;
mod hostile;
mod loading;
mod reference;
mod table;
