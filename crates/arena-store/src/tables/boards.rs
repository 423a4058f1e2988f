//! The table `boards`, and the column `rated` of sessions.

use arena_model::{BoardId, BoardTerms, Session};

use crate::sql::table;

/// A row of `boards`: the columns type, options and terms.
pub(crate) type BoardRow = [String; 3];

table! {
    Boards "boards", row: (&'r BoardId, &'r BoardRow), 'r {
        Id "id" Text Once => row.0.as_str();
        Type "type" Text Once => row.1[0].as_str();
        Options "options" Text Once => row.1[1].as_str();
        Rated "rated" Text Once => row.1[2].as_str();
    }
}

/// Returns the id and the row of the board on which a session counts.
pub(crate) fn board_row(session: &Session) -> Option<(BoardId, BoardRow)> {
    let facts = &*session.facts;
    let row = [facts.challenge.clone(), facts.options.to_string(), rated_text(facts.rated.as_ref())];
    Some((facts.board()?, row))
}

/// Returns the value of the column `rated`: the board terms under which a session counts.
pub(crate) fn rated_text(rated: Option<&BoardTerms>) -> String {
    rated.map_or_else(String::new, |BoardTerms { rules, prompt }| match prompt {
        Some(prompt) => format!("{rules} {prompt}"),
        None => rules.clone(),
    })
}

/// A session that is older than the column `rated` counts by the rules of its time.
pub(crate) fn read_rated(rated: Option<&str>, script: Option<&str>) -> Result<Option<BoardTerms>, String> {
    match rated {
        None => Ok(Some(BoardTerms::of_before(script.as_ref()))),
        Some("") => Ok(None),
        Some(terms) => {
            let (rules, prompt) = terms.split_once(' ').map_or((terms, None), |(rules, prompt)| (rules, Some(prompt)));
            BoardTerms::read(rules, prompt).map(Some).map_err(|error| error.to_string())
        }
    }
}
