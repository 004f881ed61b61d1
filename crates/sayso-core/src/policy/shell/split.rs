//! The strict splitter. It knows simple commands, joined by `&&`, `||`, `;`, `|` and line breaks, of plain and quoted
//! words, and refuses everything else. A shell that reads a command differently than this would have to do so within
//! that small part, where they all agree.

use crate::json::visible_multiline;
use crate::limits::{POLICY_TEXT_BYTES_MAX, SHELL_SEGMENTS_MAX};

/// One command of a compound command: its words, quotes taken away. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The words in order.
    pub words: Vec<String>,
}

/// Why a command cannot be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Opaque {
    /// Nothing to run, or nothing between two separators.
    #[error("there is nothing to run in it, or between two of its parts")]
    Empty,
    /// More bytes or parts than are looked at.
    #[error("it is too long to be judged")]
    TooLong,
    /// A control character, or one that is not seen.
    #[error("it has control characters or invisible ones")]
    ControlCharacter,
    /// `$`, or a backtick: its text is not what runs.
    #[error("it has a substitution")]
    Substitution,
    /// `<` or `>`, here-documents included.
    #[error("it has a redirection")]
    Redirection,
    /// A `*`, `?`, `[`, `{` or `~` outside quotes, which the shell replaces by other words.
    #[error("it has a pattern that the shell expands")]
    Expansion,
    /// A quote without its other one.
    #[error("its quotes do not match")]
    Quotes,
    /// A backslash outside single quotes.
    #[error("it has a backslash escape")]
    Escape,
    /// Groups, loops, conditions, functions, comments, background jobs, and whatever else is no simple command.
    #[error("it is more than simple commands")]
    Grammar,
}

/// Words with which a shell begins something that is no simple command.
const KEYWORDS: [&str; 25] = [
    "!",
    "[[",
    "]]",
    "case",
    "coproc",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "esac",
    "fi",
    "for",
    "foreach",
    "function",
    "if",
    "in",
    "nocorrect",
    "noglob",
    "repeat",
    "select",
    "then",
    "time",
    "until",
    "while",
];

/// Cuts a command into the commands that a shell would run, or says why it cannot be done.
pub fn split(command: &str) -> Result<Vec<Segment>, Opaque> {
    if command.len() > POLICY_TEXT_BYTES_MAX {
        return Err(Opaque::TooLong);
    }
    let is_hidden = matches!(visible_multiline(command), std::borrow::Cow::Owned(_));
    if is_hidden || command.contains(|next: char| next.is_whitespace() && !matches!(next, ' ' | '\t' | '\n')) {
        return Err(Opaque::ControlCharacter);
    }
    let mut reader = Reader { rest: command, segments: Vec::new(), words: Vec::new(), word: None, plain: true };
    reader.read()?;
    Ok(reader.segments)
}

struct Reader<'a> {
    rest: &'a str,
    segments: Vec<Segment>,
    words: Vec<String>,
    word: Option<String>,
    /// Whether nothing of the current word was quoted.
    plain: bool,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), Opaque> {
        let mut needs_more = false;
        while let Some(next) = self.take() {
            match next {
                ' ' | '\t' => self.end_word()?,
                '\n' | ';' | '&' | '|' => {
                    needs_more = self.separator(next, needs_more)?;
                    continue;
                }
                '\'' | '"' => self.quoted(next)?,
                other => self.unquoted(other)?,
            }
            needs_more &= next == ' ' || next == '\t';
        }
        self.end_word()?;
        if needs_more || (self.words.is_empty() && self.segments.is_empty()) {
            return Err(Opaque::Empty);
        }
        self.end_segment(false)
    }

    fn take(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    /// Ends a command. The answer is whether another must follow.
    fn separator(&mut self, first: char, needs_more: bool) -> Result<bool, Opaque> {
        self.end_word()?;
        let is_double = matches!(first, '&' | '|') && self.rest.starts_with(first);
        if is_double {
            self.take();
        }
        match first {
            // An empty line, or a line broken after an operator.
            '\n' if self.words.is_empty() => return Ok(needs_more),
            '&' if !is_double => return Err(Opaque::Grammar),
            // `|&` also redirects.
            '|' if self.rest.starts_with('&') => return Err(Opaque::Redirection),
            _ => {}
        }
        self.end_segment(true)?;
        Ok(matches!(first, '&' | '|'))
    }

    fn end_segment(&mut self, is_cut: bool) -> Result<(), Opaque> {
        if self.words.is_empty() {
            return if is_cut { Err(Opaque::Empty) } else { Ok(()) };
        }
        if self.segments.len() == SHELL_SEGMENTS_MAX {
            return Err(Opaque::TooLong);
        }
        self.segments.push(Segment { words: std::mem::take(&mut self.words) });
        Ok(())
    }

    fn end_word(&mut self) -> Result<(), Opaque> {
        let Some(word) = self.word.take() else {
            return Ok(());
        };
        let is_first = self.words.is_empty();
        if is_first && ((self.plain && KEYWORDS.contains(&word.as_str())) || word.is_empty()) {
            return Err(Opaque::Grammar);
        }
        self.words.push(word);
        self.plain = true;
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), Opaque> {
        self.plain = false;
        self.word.get_or_insert_default();
        while let Some(next) = self.take() {
            match next {
                end if end == quote => return Ok(()),
                '\n' | '\t' => return Err(Opaque::ControlCharacter),
                '$' | '`' if quote == '"' => return Err(Opaque::Substitution),
                '\\' if quote == '"' => return Err(Opaque::Escape),
                '!' if quote == '"' => return Err(Opaque::Substitution),
                other => self.word.get_or_insert_default().push(other),
            }
        }
        Err(Opaque::Quotes)
    }

    fn unquoted(&mut self, next: char) -> Result<(), Opaque> {
        let before = self.word.as_ref().map(|word| word.chars().next_back());
        match next {
            '$' | '`' | '!' => return Err(Opaque::Substitution),
            '<' | '>' => return Err(Opaque::Redirection),
            '\\' => return Err(Opaque::Escape),
            '*' | '?' | '[' | ']' | '{' | '}' => return Err(Opaque::Expansion),
            // `HEAD~1` is a word; `~`, `a=~` and `a:~` are home folders.
            '~' if !before.flatten().is_some_and(char::is_alphanumeric) => return Err(Opaque::Expansion),
            // A comment, and what one shell replaces by a program's path.
            '#' | '=' if before.is_none() => return Err(Opaque::Grammar),
            '#' | '=' | '~' | '^' | '%' | '@' | '+' | ',' | ':' | '.' | '/' | '-' | '_' => {}
            letter if letter.is_alphanumeric() => {}
            _ => return Err(Opaque::Grammar),
        }
        self.word.get_or_insert_default().push(next);
        Ok(())
    }
}

/// The pieces of a command that cannot be split, cut wherever a shell could begin another command, quotes and backslashes
/// taken away. Only for looking for what is forbidden.
pub(super) fn loose(command: &str) -> Vec<Vec<String>> {
    let command: String = command.chars().take(POLICY_TEXT_BYTES_MAX).collect();
    let is_cut = |next: char| ";|&\n\r()<>{}$`!".contains(next);
    let words = |piece: &str| -> Vec<String> {
        let words = piece.split_whitespace().map(|word| word.replace(['\'', '"', '\\'], ""));
        words.skip_while(|word| KEYWORDS.contains(&word.as_str())).collect()
    };
    command.split(is_cut).map(words).filter(|words| !words.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(command: &str) -> Result<Vec<Vec<String>>, Opaque> {
        split(command).map(|segments| segments.into_iter().map(|segment| segment.words).collect())
    }

    #[test]
    fn commands_are_cut_at_every_separator() {
        for (command, expected) in [
            ("npm test", "npm,test"),
            ("  npm\ttest  ", "npm,test"),
            ("cd sub&&npm test", "cd,sub|npm,test"),
            ("a;b||c|d\ne", "a|b|c|d|e"),
            ("a;", "a"),
            ("a\n\nb\n", "a|b"),
            ("a &&\n b", "a|b"),
            ("git commit -m 'x; rm -rf /'", "git,commit,-m,x; rm -rf /"),
            (r#"echo "a"'b'c "" "#, "echo,abc,"),
            ("git show HEAD~1 v1^ #1x", ""),
            ("git show HEAD~1 v1^ x#1", "git,show,HEAD~1,v1^,x#1"),
            ("X=1 ls", "X=1,ls"),
            (r"echo '\$(x)'", r"echo,\$(x)"),
        ] {
            let joined =
                words(command).map(|all| all.iter().map(|words| words.join(",")).collect::<Vec<_>>().join("|"));
            assert_eq!(joined.unwrap_or_default(), expected, "{command:?}");
        }
    }

    #[test]
    fn what_is_more_than_simple_commands_is_refused() {
        for (command, why) in [
            ("", Opaque::Empty),
            ("  \n", Opaque::Empty),
            ("&& a", Opaque::Empty),
            ("a &&", Opaque::Empty),
            ("a && && b", Opaque::Empty),
            ("a;;b", Opaque::Empty),
            ("a | | b", Opaque::Empty),
            ("a $(b)", Opaque::Substitution),
            ("a \"$b\"", Opaque::Substitution),
            ("a `b`", Opaque::Substitution),
            ("a !!", Opaque::Substitution),
            ("a > b", Opaque::Redirection),
            ("a 2>&1", Opaque::Redirection),
            ("a <<EOF\nb\nEOF", Opaque::Redirection),
            ("a <(b)", Opaque::Redirection),
            ("a |& b", Opaque::Redirection),
            ("a & b", Opaque::Grammar),
            ("a &", Opaque::Grammar),
            ("(a)", Opaque::Grammar),
            ("a() b", Opaque::Grammar),
            ("{ a; }", Opaque::Expansion),
            ("if a; then b; fi", Opaque::Grammar),
            ("for", Opaque::Grammar),
            ("time a", Opaque::Grammar),
            ("a # b", Opaque::Grammar),
            ("=a", Opaque::Grammar),
            ("'' a", Opaque::Grammar),
            ("ls *.rs", Opaque::Expansion),
            ("ls ~", Opaque::Expansion),
            ("X=~ ls", Opaque::Expansion),
            ("a 'b", Opaque::Quotes),
            ("a \"b'", Opaque::Quotes),
            ("a\\ b", Opaque::Escape),
            ("a 'b\nc'", Opaque::ControlCharacter),
            ("a\rb", Opaque::ControlCharacter),
            ("a\u{200b}b", Opaque::ControlCharacter),
            ("a\u{a0}b", Opaque::ControlCharacter),
            ("a\u{202e}b", Opaque::ControlCharacter),
        ] {
            assert_eq!(words(command), Err(why), "{command:?}");
        }
        assert!(words("'if' a").is_ok(), "a quoted keyword is a program");
        assert_eq!(words(&"a;".repeat(SHELL_SEGMENTS_MAX + 1)), Err(Opaque::TooLong));
        assert_eq!(words(&"a".repeat(POLICY_TEXT_BYTES_MAX + 1)), Err(Opaque::TooLong));
    }

    proptest! {
        #[test]
        fn splitting_is_total_and_leaves_no_operator_in_a_plain_word(
            command in r#"([a-c ;&|'"\n\t$(){}<>~#=!*?\\-]|\PC){0,40}"#,
        ) {
            let _ = loose(&command);
            if let Ok(segments) = split(&command) {
                prop_assert!(!segments.is_empty());
                let is_quoted = command.contains(['\'', '"']);
                for segment in segments {
                    prop_assert!(!segment.words.is_empty());
                    for word in segment.words {
                        let has_operator = word.contains(|next| " ;&|\n$`<>(){}".contains(next));
                        prop_assert!(is_quoted || !has_operator, "{}", word);
                    }
                }
            }
        }

        #[test]
        fn quoting_keeps_a_word_whole(words in prop::collection::vec("[ -&(-~]{1,8}", 1..5)) {
            let command = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
            let segments = split(&command).unwrap();
            prop_assert_eq!(segments.len(), 1);
            prop_assert_eq!(&segments[0].words, &words);
        }
    }
}
