//! Parser of a person's input: actions, chat and commands. Pure.

/// The meaning of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// An empty line.
    Nothing,
    /// An action: a method of the challenge, and its content.
    Act(String, String),
    /// A chat message, to all or to the named player.
    Say(Option<String>, String),
    Help,
    Quit,
    /// An invalid line; contains the error message.
    Wrong(String),
}

impl Typed {
    /// Parses a line. `methods` are the names of the challenge's methods.
    pub fn read<'m>(line: &str, mut methods: impl Iterator<Item = &'m str>) -> Typed {
        let line = line.trim();
        if line.is_empty() {
            return Typed::Nothing;
        }
        if let Some(rest) = line.strip_prefix('@') {
            return say_to(rest);
        }
        let Some(rest) = line.strip_prefix('/') else { return Typed::Say(None, line.to_owned()) };
        // Two slashes begin a chat message whose text starts with a slash.
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
            _ => Typed::Wrong(format!("there is no /{name}; /help lists the commands")),
        }
    }
}

fn say_to(rest: &str) -> Typed {
    match rest.split_once(char::is_whitespace) {
        Some((player, text)) if !player.is_empty() && !text.trim().is_empty() => {
            Typed::Say(Some(player.to_owned()), text.trim().to_owned())
        }
        _ => Typed::Wrong("expected a player and a text, such as @2 hello".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;

    #[test]
    fn a_line_is_an_action_a_message_or_a_command() {
        let file = expect_file!["typed/a_line_is_an_action_a_message_or_a_command.txt"];
        let expected = file.data();
        let typed = expected.lines().map(|line| line[1..].split_once("\": ").expect("a line and its meaning").0);
        let lines: String =
            typed.map(|line| format!("{line:?}: {:?}\n", Typed::read(line, ["guess"].into_iter()))).collect();
        file.assert_eq(&lines);
    }
}
