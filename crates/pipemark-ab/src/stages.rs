//! Splits a shell pipeline at each `|`, so that pipemark can create the pipes between the stages. This module parses as
//! much of the shell's grammar as it takes to find each `|` reliably, and refuses the rest.

/// The maximum number of stages of a pipeline. Each stage takes a process and two descriptors.
pub const MAX_STAGES: usize = 64;

/// The stages of `pipeline`, each a command for `sh -c`.
///
/// # Errors
/// A message, when it is not a single pipeline (a list, a comment, a here-document), or its quotes or brackets do not
/// match.
pub fn stages(pipeline: &str) -> Result<Vec<String>, String> {
    let mut stages = vec![String::new()];
    // Open quotes and brackets, the innermost last. A `|` within them does not separate stages.
    let mut open: Vec<char> = Vec::new();
    let mut letters = pipeline.chars().peekable();
    let mut before = ' ';
    let wrap = |what: &str| {
        format!("{what} cannot be split into stages; put it in ( ) to make it one stage, or omit --capacity")
    };
    while let Some(letter) = letters.next() {
        let stage = stages.last_mut().expect("never empty");
        let here = open.last().copied();
        let next = letters.peek().copied();
        let starts_word = before.is_whitespace() || matches!(before, '|' | '(');
        stage.push(letter);
        match (here, letter) {
            (Some('\''), '\'') => {
                open.pop();
            }
            (Some('\''), _) => {}
            (_, '\\') => stage.extend(letters.next()),
            (Some('"'), '"') | (Some('`'), '`') => {
                open.pop();
            }
            (_, '`') => open.push('`'),
            (_, '$') if next == Some('(') => {
                stage.extend(letters.next());
                open.push(')');
            }
            (_, '$') if next == Some('{') => {
                stage.extend(letters.next());
                open.push('}');
            }
            (Some('"'), _) => {}
            (_, '\'' | '"') => open.push(letter),
            (_, '(') => open.push(')'),
            (Some(')'), ')') | (Some('}'), '}') => {
                open.pop();
            }
            // Text within brackets is left to the shell.
            (Some(_), _) => {}
            (None, ')') => return Err("there is a ) without its (".to_owned()),
            (None, '{' | '}') if starts_word && next.is_none_or(char::is_whitespace) => {
                return Err(wrap("a group in { }"));
            }
            (None, '#') if starts_word => return Err(wrap("a comment")),
            (None, '<') if next == Some('<') => return Err(wrap("a here-document")),
            // The redirections >|, >& and <&.
            (None, '|' | '&') if matches!(before, '>' | '<') => {}
            (None, '&') if next == Some('>') => return Err(wrap("a redirection of both outputs")),
            (None, '|') if next == Some('|') => return Err(wrap("a list with ||")),
            (None, '|') if next == Some('&') => return Err(wrap("a pipe with |&")),
            (None, '&' | ';' | '\n') => return Err(wrap("a list of commands")),
            (None, '|') => {
                stage.pop();
                stages.push(String::new());
            }
            (None, _) => {}
        }
        before = letter;
    }
    if let Some(missing) = open.last() {
        return Err(format!("a {missing} is missing at the end"));
    }
    for stage in &mut stages {
        // The end isn't trimmed, because a backslash may escape a blank there.
        *stage = stage.trim_start().to_owned();
        let word = stage.split_whitespace().next();
        match word {
            None => return Err("a stage is empty: there is a | with no command on one side".to_owned()),
            Some("if" | "while" | "until" | "for" | "case" | "!") => {
                return Err(wrap(&format!("a command that begins with '{}'", word.unwrap_or_default())));
            }
            Some(_) => {}
        }
    }
    match stages.len() {
        count if count > MAX_STAGES => Err(format!("{count} stages are too many; at most {MAX_STAGES} can be started")),
        _ => Ok(stages),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &str) -> Vec<String> {
        stages(text).unwrap().iter().map(|stage| stage.trim().to_owned()).collect()
    }

    #[test]
    fn bars_of_the_pipeline_separate_stages() {
        assert_eq!(split("seq 9"), ["seq 9"]);
        assert_eq!(split("seq 9|sort -r | wc -l"), ["seq 9", "sort -r", "wc -l"]);
    }

    #[test]
    fn bars_in_quotes_and_substitutions_do_not_separate_stages() {
        for (text, expected) in [
            ("grep 'a|b' x | wc", ["grep 'a|b' x", "wc"]),
            (r#"grep "a|\"|b" x | wc"#, [r#"grep "a|\"|b" x"#, "wc"]),
            (r"grep a\|b x | wc", [r"grep a\|b x", "wc"]),
            ("echo $(seq 3 | wc; true) | wc", ["echo $(seq 3 | wc; true)", "wc"]),
            (r#"echo "$(seq 3 | grep ')' )" | wc"#, [r#"echo "$(seq 3 | grep ')' )""#, "wc"]),
            ("echo `seq 3 | wc` | wc", ["echo `seq 3 | wc`", "wc"]),
            ("(seq 3; seq 4 | wc) | wc", ["(seq 3; seq 4 | wc)", "wc"]),
            ("echo ${x:-a|b} | wc", ["echo ${x:-a|b}", "wc"]),
            ("seq 3 2>&1 | wc", ["seq 3 2>&1", "wc"]),
            ("seq 3 >|x | wc", ["seq 3 >|x", "wc"]),
            ("echo a#b | wc", ["echo a#b", "wc"]),
            ("awk '{print $1}' x | wc", ["awk '{print $1}' x", "wc"]),
            ("find . -name x -exec cat {} + | wc", ["find . -name x -exec cat {} +", "wc"]),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
    }

    #[test]
    fn an_incomplete_pipeline_is_refused() {
        for (text, word) in [
            ("", "empty"),
            ("seq 3 |", "empty"),
            ("| wc", "empty"),
            ("a; b | c", "list of commands"),
            ("a && b", "list of commands"),
            ("a &", "list of commands"),
            ("a || b", "||"),
            ("a |& b", "|&"),
            ("a\nb", "list of commands"),
            ("{ a; } | b", "{ }"),
            ("a # | b", "comment"),
            ("cat <<x | wc", "here-document"),
            ("while read x", "while"),
            ("a 'b", "' is missing"),
            ("a \"b", "\" is missing"),
            ("(a", ") is missing"),
            ("a )", "without"),
            ("a &> x | b", "both outputs"),
        ] {
            let error = stages(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!(stages(&["a"; 65].join("|")).unwrap_err().contains("65 stages"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_or_loses_a_letter(text in "[a-c |'\"$(){}`\\\\;&<>#\\n]{0,24}") {
            if let Ok(stages) = stages(&text) {
                let letters = |text: &str| text.chars().filter(|letter| !" \n".contains(*letter)).collect::<String>();
                prop_assert_eq!(letters(&stages.join("|")), letters(&text));
            }
        }
    }
}
