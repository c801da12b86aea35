//! Whether a script of sed or awk only reads its input and writes to standard output. What isn't understood counts as
//! writing.

/// Whether a sed script has no command that writes a file or starts a program (`w`, `W`, `e`, and those flags of `s`).
pub fn sed_only_reads(script: &str) -> bool {
    sed_commands(script)
        .is_some_and(|commands| commands.iter().all(|one| !"wWeFrR".contains(one.letter) && one.harmless_flags))
}

/// Whether each line of the output of a sed script depends only on one line of its input, so that the order of the
/// lines doesn't matter.
pub fn sed_is_per_line(script: &str) -> bool {
    sed_commands(script).is_some_and(|commands| {
        commands.iter().all(|one| "sypd".contains(one.letter) && one.harmless_flags && !one.by_number)
    })
}

/// A command of a sed script.
struct SedCommand {
    letter: char,
    /// Whether it has an address that isn't one regular expression.
    by_number: bool,
    harmless_flags: bool,
}

/// The commands of a sed script; `None` if it isn't understood.
fn sed_commands(script: &str) -> Option<Vec<SedCommand>> {
    let mut commands = Vec::new();
    let mut rest = script.chars().peekable();
    loop {
        while rest.next_if(|c| c.is_whitespace() || *c == ';').is_some() {}
        if rest.peek().is_none() {
            return Some(commands);
        }
        if rest.next_if_eq(&'#').is_some() {
            while rest.next_if(|c| *c != '\n').is_some() {}
            continue;
        }
        let mut by_number = false;
        let mut addresses = 0;
        loop {
            match *rest.peek()? {
                '0'..='9' | '$' | '~' | '+' => {
                    by_number = true;
                    rest.next();
                }
                '/' => {
                    rest.next();
                    delimited(&mut rest, '/', true)?;
                    while rest.next_if(|c| matches!(c, 'I' | 'M')).is_some() {}
                    addresses += 1;
                }
                '\\' => {
                    rest.next();
                    let delimiter = rest.next()?;
                    delimited(&mut rest, delimiter, true)?;
                    addresses += 1;
                }
                ',' | ' ' | '!' => {
                    rest.next();
                }
                _ => break,
            }
        }
        let letter = rest.next()?;
        let mut harmless_flags = true;
        match letter {
            's' | 'y' => {
                let delimiter = rest.next()?;
                delimited(&mut rest, delimiter, letter == 's')?;
                delimited(&mut rest, delimiter, false)?;
                while let Some(flag) = rest.next_if(|c| !matches!(c, ';' | '\n' | '}' | ' ' | '#')) {
                    harmless_flags &= flag.is_ascii_digit() || "gpiIM".contains(flag);
                }
            }
            'a' | 'i' | 'c' | 'r' | 'R' | 'w' | 'W' => while rest.next_if(|c| *c != '\n').is_some() {},
            // In GNU sed, a label ends at a semicolon or a blank, and commands follow it.
            'b' | 't' | 'T' | ':' => {
                while rest.next_if(|c| *c == ' ').is_some() {}
                while rest.next_if(|c| *c != ';' && !c.is_whitespace()).is_some() {}
            }
            '{' | '}' | '=' | 'd' | 'D' | 'e' | 'F' | 'g' | 'G' | 'h' | 'H' | 'l' | 'n' | 'N' | 'p' | 'P' | 'q'
            | 'Q' | 'x' | 'z' => {
                if matches!(letter, 'l' | 'q' | 'Q') {
                    while rest.next_if(|c| c.is_ascii_digit() || *c == ' ').is_some() {}
                }
            }
            _ => return None,
        }
        commands.push(SedCommand { letter, by_number: by_number || addresses > 1, harmless_flags });
    }
}

/// Skips to behind the next delimiter that isn't escaped and, in a pattern, isn't in brackets.
fn delimited(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, delimiter: char, is_pattern: bool) -> Option<()> {
    let mut bracket = false;
    loop {
        match rest.next()? {
            '\\' if !bracket => {
                rest.next()?;
            }
            '[' if is_pattern && !bracket => {
                bracket = true;
                rest.next_if_eq(&'^');
                rest.next_if_eq(&']');
            }
            ']' => bracket = false,
            c if c == delimiter && !bracket => return Some(()),
            '\n' => return None,
            _ => {}
        }
    }
}

/// Whether an awk program has no redirection of output, no pipe and no `system`, and reads only files that it names: gawk
/// connects to a name such as /inet/tcp/0/host/80.
pub fn awk_only_reads(program: &str) -> bool {
    let Some(tokens) = awk_tokens(program) else { return false };
    let mut printing = false;
    let mut depth = 0i32;
    for (at, token) in tokens.iter().enumerate() {
        // A statement goes on in the next line after these.
        let last = || tokens[..at].iter().rfind(|token| *token != "\n").map_or("", String::as_str);
        let goes_on = || depth > 0 || [",", "&&", "||", "?", ":"].contains(&last());
        match token.as_str() {
            "system" | "|" | "|&" | ">>" | "@" => return false,
            ">" if printing && depth == 0 => return false,
            "print" | "printf" => (printing, depth) = (true, 0),
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            "\n" if goes_on() => {}
            ";" | "\n" | "{" | "}" => printing = false,
            "getline" if !reads_named_file(&tokens[at + 1..], program) => return false,
            // The files to read may be compared, not changed.
            "ARGV" if !tokens[..at].ends_with(&["=".to_owned(), "=".to_owned()]) => return false,
            _ => {}
        }
    }
    true
}

/// Whether what follows `getline` reads the input, or a file whose name is a string.
fn reads_named_file(rest: &[String], program: &str) -> bool {
    // The variable before the file.
    let sign = rest.iter().position(|token| !is_of_variable(token));
    match sign.map(|sign| &rest[sign..]) {
        Some([sign, name, next @ ..]) if sign == "<" => {
            let goes_on = |next: &String| {
                next.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '"' | '-' | '+' | '!'))
            };
            let is_alone = !next.first().is_some_and(goes_on);
            name == "\"" && is_alone && !program.contains("/inet") && !program.contains('\\')
        }
        Some([sign, ..]) => sign != "<",
        _ => true,
    }
}

/// Whether a token may be part of a variable, such as `a[$1]`.
fn is_of_variable(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '[' | ']'))
}

/// Whether an awk program uses only what all versions of awk do alike, on bytes as on characters: it selects lines, and
/// prints fields and text, without arithmetic. Versions differ in how they print large numbers, and in which text is a
/// number.
pub fn awk_is_plain(program: &str) -> bool {
    // Not `in`: the order of an array's elements differs.
    const PLAIN: [&str; 10] = ["print", "NR", "NF", "BEGIN", "END", "if", "else", "next", "OFS", "FS"];
    let Some(tokens) = awk_tokens(program) else { return false };
    let mut tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    drop_first_of_each(&mut tokens);
    let is_number = |token: &str| token.len() <= 6 && token.bytes().all(|byte| byte.is_ascii_digit());
    let is_count = |at: Option<usize>| at.is_some_and(|at| ["NR", "NF"].contains(&tokens[at]));
    let is_plain = |(at, token): (usize, &&str)| {
        let next = tokens.get(at + 1).copied().unwrap_or_default();
        match *token {
            "$" | "\"" | "{" | "}" | "(" | ")" | "," | ";" | "\n" | "!" | "~" | "&&" | "||" => true,
            // Only the numbers of lines and fields are compared as numbers.
            "<" | ">" | "=" => {
                let first = tokens[..at].iter().rposition(|one| !["<", ">", "=", "!"].contains(one));
                let second =
                    tokens[at..].iter().find(|one| !["<", ">", "="].contains(one)).copied().unwrap_or_default();
                let is_equality = tokens[at] == "=";
                is_count(first) && is_number(second) || is_equality && !is_number(second)
            }
            word if PLAIN.contains(&word) || is_number(word) => true,
            // A variable, not a function.
            word => word.bytes().all(|byte| byte.is_ascii_lowercase()) && next != "(" && !AWK_FUNCTIONS.contains(&word),
        }
    };
    // A point matches a byte or a character, and not all versions know intervals or empty alternatives.
    let has_pattern = program.contains(['/', '~']);
    let is_special = |two: &[u8]| {
        two[0] == b'.'
            || two[0] == b'{' && two[1].is_ascii_digit()
            || [b"|/", b"/|", b"(|", b"|)"].iter().any(|one| *one == two)
    };
    program.is_ascii()
        && awk_only_reads(program)
        && !(has_pattern && program.as_bytes().windows(2).any(is_special))
        && !program.contains("[:")
        && !program.contains('\\')
        && tokens.iter().enumerate().all(is_plain)
}

/// Functions that awk calls without parentheses, and words that aren't names.
const AWK_FUNCTIONS: [&str; 10] =
    ["length", "getline", "delete", "in", "do", "while", "for", "func", "function", "switch"];

/// Removes `!name[$0]++`, which selects the first of equal lines.
fn drop_first_of_each(tokens: &mut Vec<&str>) {
    let is_first = |part: &[&str]| {
        matches!(part, ["!", name, "[", "$", number, "]", "+", "+"]
            if name.bytes().all(|byte| byte.is_ascii_lowercase()) && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    while let Some(at) = tokens.windows(8).position(is_first) {
        tokens.splice(at..at + 8, ["NR"]);
    }
}

/// Words of awk after which a slash begins a regular expression.
const BEFORE_PATTERN: [&str; 10] =
    ["print", "printf", "return", "in", "case", "else", "do", "exit", "delete", "default"];

/// Words of awk after which versions of awk differ in what a slash begins, as they do after `++`.
const BEFORE_EITHER: [&str; 2] = ["length", "getline"];

/// Whether a slash behind a closing parenthesis may begin a regular expression that hides the rest of the program.
fn may_be_pattern(tokens: &[String], rest: &std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let line: String = rest.clone().take_while(|c| *c != '\n').collect();
    let has_end = |(at, _): (usize, char)| line[at..].contains('/');
    tokens.last().is_some_and(|last| last == ")")
        && line.char_indices().find(|(_, c)| matches!(c, '"' | '#')).is_some_and(has_end)
}

/// Names, operators and marks of an awk program, without its strings and regular expressions; `None` if it isn't
/// understood.
fn awk_tokens(program: &str) -> Option<Vec<String>> {
    let mut tokens: Vec<String> = Vec::new();
    let mut rest = program.chars().peekable();
    while let Some(c) = rest.next() {
        // A slash after a value divides; elsewhere it begins a regular expression.
        let after_value = tokens.last().is_some_and(|last| {
            last.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.'))
                && !BEFORE_PATTERN.contains(&last.as_str())
                || matches!(last.as_str(), ")" | "]" | "\"")
        });
        let is_open = tokens.last().is_some_and(|last| BEFORE_EITHER.contains(&last.as_str()))
            || ["+", "-"].iter().any(|sign| tokens.ends_with(&[(*sign).to_owned(), (*sign).to_owned()]));
        match c {
            '"' => {
                loop {
                    match rest.next()? {
                        '\\' => {
                            rest.next()?;
                        }
                        '"' => break,
                        _ => {}
                    }
                }
                tokens.push("\"".to_owned());
            }
            '/' if is_open => return None,
            '/' if !after_value => {
                delimited(&mut rest, '/', true)?;
                tokens.push("\"".to_owned());
            }
            // After `if (…)`, it begins a regular expression, in which quotes and marks of comments have no meaning.
            '/' if may_be_pattern(&tokens, &rest) => return None,
            '#' => while rest.next_if(|c| *c != '\n').is_some() {},
            c if c.is_alphanumeric() || c == '_' => {
                let mut word = String::from(c);
                // A number ends where a name begins, as in `1system("x")`.
                let is_number = c.is_ascii_digit();
                let goes_on = |c: &char| {
                    if is_number { c.is_ascii_digit() || *c == '.' } else { c.is_alphanumeric() || *c == '_' }
                };
                while let Some(more) = rest.next_if(goes_on) {
                    word.push(more);
                }
                tokens.push(word);
            }
            '|' | '>' | '&' => {
                let mut operator = String::from(c);
                while let Some(more) = rest.next_if(|c| matches!(c, '|' | '>' | '&' | '=')) {
                    operator.push(more);
                }
                tokens.push(operator);
            }
            '\\' if rest.peek() == Some(&'\n') => {
                rest.next();
            }
            ' ' | '\t' | '\r' => {}
            other => tokens.push(other.to_string()),
        }
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn awk_redirections_are_told_from_comparisons() {
        for program in [
            "{ print ($1 > 2) }",
            "$1 > 2 { print }",
            "{ if ($1 > 2) print $2 }",
            "/a|b/ && !/c>d/",
            "{ x = $1 / 2; print x / 3 }",
            "{ print \"a > b | c\" }",
            "END { print NR }",
            "BEGIN { while ((getline line < \"f\") > 0) n++ }",
            "{ a[$1] || b }",
            "{ getline; print }",
            "BEGIN { while ((getline line[n] < \"f\") > 0) n++ }",
            "FILENAME == ARGV[1] { n++ }",
            "{ print 1,\n 2 }\n$1 > 2",
            "/inet/ { print $2 }",
        ] {
            assert!(awk_only_reads(program), "{program}");
        }
        for program in [
            "{ print > \"f\" }",
            "{ print $1, $2 > $3 }",
            "{ printf \"%s\", $1 >> \"f\" }",
            "{ print | \"sh\" }",
            "{ system($0) }",
            "{ print n++ / 2, $1 | \"sort\"; y = 3 / 1 }",
            "{ \"date\" | getline }",
            "@load \"x\"",
            "{ print \"a }",
            // What looks like a division begins a pattern, and the other way round.
            "{ if (0) x; else /\"/; system(\"x #\") }",
            "{ if (1) /\"/; system(\"x #/\") }",
            "BEGIN { a = 1./2; system(\"x\"); b = 3/4 }",
            "{ do /\"/; while (system(\"x #\")) }",
            "BEGIN { a = 3 length /\"/ x; system(\"x #\") }",
            "{ y = 1 $ / \"/ ; system(\"x #/\") }",
            "{ y = 1 getline / \"/ ; system(\"x #/\") }",
            "{ print $1system(\"x\") }",
            "{ print x.5system(\"x\") }",
            "{ y = 1 > n++ / \"/; system(\"x #/\") }",
            // The statement goes on in the next line.
            "{ print 1,\n 2 > \"f\" }",
            "{ print 1, # two\n\n 2 > \"f\" }",
            "{ print 1 ||\n 2 > \"f\" }",
            "{ print 1 ? 2 :\n 3 > \"f\" }",
            // gawk may connect.
            "BEGIN { getline < \"/inet/tcp/0/host/80\" }",
            "BEGIN { getline < \"/in\" \"et/tcp/0/host/80\" }",
            "BEGIN { getline < \"\\057inet/tcp/0/host/80\" }",
            "{ while ((getline line < $1) > 0) n++ }",
            "BEGIN { ARGV[1] = \"/in\" \"et/tcp/0/host/80\" }",
        ] {
            assert!(!awk_only_reads(program), "{program}");
        }
    }

    #[test]
    fn programs_that_versions_of_awk_do_alike() {
        for program in [
            "{ print $1, $NF }",
            "NR > 1 && NF == 3",
            "$3 == \"GET\" { print $2 }",
            "/GET/ { print; next }",
            "!seen[$0]++",
            "BEGIN { FS = \":\"; OFS = \",\" } $1 != \"x\" { print $2, $1 }",
            "$1 != last { print } { last = $1 }",
        ] {
            assert!(awk_is_plain(program), "{program}");
        }
        for program in [
            "{ print $1 - 1 }",
            "{ print $1 / 2 }",
            "{ print 5000000000 }",
            "$1 > 5",
            "$1 == 5",
            "{ print and($1, 2) }",
            "{ print match($0, re, a) }",
            "/a|/",
            "/\\s/",
            "{ s += $1 } END { print s }",
            "{ print length }",
            "{ print toupper($1) }",
            "{ print RT }",
            "{ print > \"f\" }",
            "{ for (x in a) print x }",
            "func f(x) { return x }",
            "/a.b/",
            "{ n++ } END { print n }",
        ] {
            assert!(!awk_is_plain(program), "{program}");
        }
    }

    #[test]
    fn sed_scripts_that_write_are_found() {
        for script in [
            "s/a/b/g",
            "/x/d",
            "1,5p",
            "$!N;P;D",
            "s|/a|/b|;y/abc/xyz/",
            "/[/]/d",
            ":a;N;$!ba;s/\\n/,/g",
            "1!G;h;$!d",
            "2q",
            ":a;s/x/y/;ta;b end;p;:end",
        ] {
            assert!(sed_only_reads(script), "{script}");
        }
        for script in [
            ":a;w out",
            "b;e",
            "ta;s/x/y/e",
            "T x;:x;w out",
            ":a w out",
            "s/.*/x[/e;s/b/]/",
            "w out",
            "s/a/b/w out",
            "s/a/b/ge",
            "e date",
            "/x/w f",
            "r f",
            "1e",
        ] {
            assert!(!sed_only_reads(script), "{script}");
        }
        assert!(
            sed_is_per_line("s/a/b/;/x/d")
                && !sed_is_per_line("1d")
                && !sed_is_per_line("N;s/\\n//")
                && !sed_is_per_line("/a/,/b/d")
        );
    }
}
