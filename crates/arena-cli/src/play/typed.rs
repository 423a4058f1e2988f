//! What a person types: actions, chat and commands, told apart. Pure.

/// What a line means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// Nothing.
    Nothing,
    /// An action: a method of the challenge, and its content.
    Act(String, String),
    /// Something to say, to all or to the player who is called so.
    Say(Option<String>, String),
    /// What can be typed is to be listed.
    Help,
    /// The seat is to be left.
    Quit,
    /// A mistake, in a sentence.
    Wrong(String),
}

impl Typed {
    /// Reads a line. `methods` are the challenge's.
    pub fn read<'m>(line: &str, mut methods: impl Iterator<Item = &'m str>) -> Typed {
        let line = line.trim();
        if line.is_empty() {
            return Typed::Nothing;
        }
        if let Some(rest) = line.strip_prefix('@') {
            return say_to(rest);
        }
        let Some(rest) = line.strip_prefix('/') else { return Typed::Say(None, line.to_owned()) };
        // For those who want to say something that begins with a slash.
        if rest.starts_with('/') {
            return Typed::Say(None, rest.to_owned());
        }
        let (name, content) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let content = content.trim();
        match name {
            _ if methods.any(|method| method == name) => Typed::Act(name.to_owned(), content.to_owned()),
            "help" => Typed::Help,
            "quit" => Typed::Quit,
            "to" => say_to(content),
            _ => Typed::Wrong(format!("there is no /{name}; /help lists what there is")),
        }
    }
}

fn say_to(rest: &str) -> Typed {
    match rest.split_once(char::is_whitespace) {
        Some((player, text)) if !player.is_empty() && !text.trim().is_empty() => {
            Typed::Say(Some(player.to_owned()), text.trim().to_owned())
        }
        _ => Typed::Wrong("say to whom, and what: @2 hello".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn actions_chat_and_commands_are_told_apart() {
        let told: String = [
            "",
            "  hello, all ",
            "/guess  1, 2, 3 ",
            "/guess",
            "/guesses 1",
            "@2 psst",
            "@inv_1  psst ",
            "/to 2 psst",
            "/to 2",
            "@ psst",
            "//guess is what I'd do",
            "/help",
            "/quit",
        ]
        .iter()
        .map(|line| format!("{line:?}: {:?}\n", Typed::read(line, ["guess"].into_iter())))
        .collect();
        expect![[r#"
            "": Nothing
            "  hello, all ": Say(None, "hello, all")
            "/guess  1, 2, 3 ": Act("guess", "1, 2, 3")
            "/guess": Act("guess", "")
            "/guesses 1": Wrong("there is no /guesses; /help lists what there is")
            "@2 psst": Say(Some("2"), "psst")
            "@inv_1  psst ": Say(Some("inv_1"), "psst")
            "/to 2 psst": Say(Some("2"), "psst")
            "/to 2": Wrong("say to whom, and what: @2 hello")
            "@ psst": Wrong("say to whom, and what: @2 hello")
            "//guess is what I'd do": Say(None, "/guess is what I'd do")
            "/help": Help
            "/quit": Quit
        "#]]
        .assert_eq(&told);
    }
}
