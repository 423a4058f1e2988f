//! Checks of names that people choose: one form for each name, and no characters that nobody can see.

use unicode_normalization::{UnicodeNormalization as _, is_nfc};

use crate::error::{ApiError, ApiResult};

/// Checks that a name which a person has chosen has one form only, and no characters that nobody can see: another name
/// could look the same.
///
/// # Errors
/// 400 with the character, or with the right form.
pub(crate) fn check_visible(field: &str, name: &str) -> ApiResult<()> {
    let refuse = |why: String| Err(ApiError::bad_request("INVALID_FIELD", format!("{field} {why}")));
    find_invisible(name).map_or(Ok(()), refuse)
}

/// Returns the fault of a name that [`check_visible`] refuses, as the end of a sentence.
pub(crate) fn find_invisible(name: &str) -> Option<String> {
    if let Some(char) = name.chars().find(|char| is_ignorable(*char)) {
        return Some(format!("contains the invisible character U+{:04X}; leave it out", u32::from(char)));
    }
    let right = || name.nfc().collect::<String>();
    (!is_nfc(name)).then(|| format!("isn't in Unicode's normal form C; write it as {}", right()))
}

/// Letters that look like ASCII letters in most fonts, and those letters: Cyrillic, Greek, Armenian, and Latin. The
/// compatibility forms of letters, such as full-width letters, aren't listed.
const LATIN_LOOKING: [(&str, &str); 4] = [
    ("аАВсСԁеЕһНіІјЈКӏӀМоОрРԛѕЅТуѵѴԝԜхХ", "aABcCdeEhHiIjJKlIMoOpPqsSTyvVwWxX"),
    ("αΑΒΕΖΗιΙΚΜνΝοΟρΡΤυΥΧϲϹ", "aABEZHiIKMvNoOpPTuYXcC"),
    ("հոսՍօՕցԼ", "hnuUoOgL"),
    ("ɑɡıʟ", "agiL"),
];

/// Returns the Latin text that a name looks like, though it has other letters; `None` for other names. A name with
/// further letters of its own script doesn't look like a Latin name.
pub(crate) fn find_look_alike(name: &str) -> Option<String> {
    if name.is_ascii() {
        return None;
    }
    let latin = |char: char| {
        let mut pairs = LATIN_LOOKING.iter().flat_map(|(letters, plain)| letters.chars().zip(plain.chars()));
        pairs.find(|(letter, _)| *letter == char).map(|(_, plain)| plain)
    };
    let mut plain = String::new();
    for char in name.chars() {
        match latin(char) {
            Some(letter) => plain.push(letter),
            None if char.is_alphabetic() => plain.extend(char.nfkc()),
            None => plain.push(char),
        }
    }
    let is_latin = |char: char| !char.is_alphabetic() || char < '\u{250}';
    (plain != name && plain.chars().all(is_latin)).then_some(plain)
}

/// True for the characters with Unicode's property `Default_Ignorable_Code_Point`, which have no form of their own.
pub(crate) fn is_ignorable(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_letters_that_look_latin_are_found() {
        for (name, plain) in [
            ("\u{430}d\u{430}", Some("ada")),
            ("\u{410}d\u{430} M\u{fc}ller \u{1f40d}", Some("Ada M\u{fc}ller \u{1f40d}")),
            ("\u{ff41}d\u{1d41a}", Some("ada")),
            ("ada", None),
            ("Ev\u{e9} 2\u{bd}\u{2122}", None),
            ("\u{410}\u{434}\u{430}", None),
            ("\u{7530}", None),
        ] {
            assert_eq!(find_look_alike(name).as_deref(), plain, "{name}");
        }
        assert!(LATIN_LOOKING.iter().all(|(letters, plain)| letters.chars().count() == plain.len()));
        assert!(LATIN_LOOKING.iter().all(|(letters, _)| !letters.contains(|letter: char| letter.is_ascii())));
    }
}
