//! Words: quotes, expansions and substitutions.

use super::{Parsed, Parser, Until, is_delimiter};
use crate::error::ShellError;
use crate::syntax::{CommandList, Word, WordPart, WordPartKind};

/// Operators of `${name…}` that all shells have.
const COMMON_OPERATORS: [&str; 8] = [":-", ":=", ":?", ":+", "-", "=", "?", "+"];

impl Parser<'_> {
    /// The word that begins here.
    pub fn word(&mut self) -> Parsed<Word> {
        let begin = self.at;
        let mut parts: Vec<WordPart> = Vec::new();
        if self.is_bash() && self.starts_process() {
            parts.push(self.process()?);
        }
        while let Some(byte) = self.peek() {
            let start = self.at;
            let kind = match byte {
                b'(' if self.is_bash() && self.at > begin && b"@?*+!=".contains(&self.text[self.at - 1]) => {
                    return Err(ShellError::Construct("an extended pattern or an array"));
                }
                _ if is_delimiter(byte) => break,
                b'\\' => {
                    let next =
                        self.text.get(self.at + 1).ok_or(ShellError::Unclosed("a character after a backslash"))?;
                    let is_line_end = *next == b'\n';
                    // The whole character, if it is one of several bytes.
                    let character =
                        self.text[self.at + 1..].utf8_chunks().next().and_then(|one| one.valid().chars().next());
                    self.at += 1 + character.map_or(1, char::len_utf8);
                    if is_line_end { WordPartKind::Continuation } else { WordPartKind::Escape }
                }
                b'\'' => self.single()?,
                b'"' => {
                    self.at += 1;
                    WordPartKind::Double(self.double()?)
                }
                b'`' => self.backquotes(false)?,
                b'$' => self.dollar(false)?,
                b'*' | b'?' | b'[' | b'{' | b'}' => {
                    self.at += 1;
                    WordPartKind::Pattern
                }
                b'~' if self.at == begin || matches!(self.text[self.at - 1], b'=' | b':') => {
                    self.at += 1;
                    WordPartKind::Pattern
                }
                _ => {
                    self.at += 1;
                    WordPartKind::Plain
                }
            };
            self.add(&mut parts, start, kind);
        }
        if self.starts_process() && self.at > begin && self.is_bash() {
            return Err(ShellError::Construct("a process substitution in a word"));
        }
        self.literal_patterns(begin, &mut parts);
        let value = self.value(&parts);
        if !self.pending.is_empty() && self.text[begin..self.at].contains(&b'\n') {
            return Err(ShellError::Construct("a line end in quotes before a here-document"));
        }
        Ok(Word { span: begin..self.at, value, parts })
    }

    /// Adds a part; plain bytes join those before them.
    fn add(&self, parts: &mut Vec<WordPart>, start: usize, kind: WordPartKind) {
        match parts.last_mut() {
            Some(last) if kind == WordPartKind::Plain && last.kind == WordPartKind::Plain => last.span.end = self.at,
            _ => parts.push(WordPart { span: start..self.at, kind }),
        }
    }

    /// Braces and brackets that no shell expands: `{}`, `{a}`, and the program `[` with its `]`.
    fn literal_patterns(&self, begin: usize, parts: &mut Vec<WordPart>) {
        let text = &self.text[begin..self.at];
        let has_braces = text.contains(&b',') || text.windows(2).any(|two| two == b"..");
        let is_lone = text == b"[";
        let mut joined: Vec<WordPart> = Vec::new();
        for mut part in std::mem::take(parts) {
            let byte = self.text[part.span.start];
            let is_literal = matches!(byte, b'{' | b'}') && !has_braces || is_lone;
            if part.kind == WordPartKind::Pattern && is_literal {
                part.kind = WordPartKind::Plain;
            }
            match joined.last_mut() {
                Some(last) if part.kind == WordPartKind::Plain && last.kind == WordPartKind::Plain => {
                    last.span.end = part.span.end;
                }
                _ => joined.push(part),
            }
        }
        *parts = joined;
    }

    /// The bytes of parts without expansions.
    fn value(&self, parts: &[WordPart]) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        for WordPart { span, kind } in parts {
            let text = &self.text[span.clone()];
            match kind {
                WordPartKind::Plain => value.extend(text),
                WordPartKind::Escape => value.extend(&text[1..]),
                WordPartKind::Continuation => {}
                WordPartKind::Single => value.extend(&text[1..text.len() - 1]),
                WordPartKind::Double(parts) => value.extend(self.value(parts)?),
                WordPartKind::AnsiC => value.extend(ansi_c_value(&text[2..text.len() - 1])?),
                _ => return None,
            }
        }
        Some(value)
    }

    fn single(&mut self) -> Parsed<WordPartKind> {
        let rest = &self.text[self.at + 1..];
        let length = rest.iter().position(|&byte| byte == b'\'').ok_or(ShellError::Unclosed("a closing '"))?;
        self.at += length + 2;
        Ok(WordPartKind::Single)
    }

    /// The parts up to the closing `"`, which is consumed.
    fn double(&mut self) -> Parsed<Vec<WordPart>> {
        let mut parts = Vec::new();
        loop {
            let start = self.at;
            let kind = match self.peek().ok_or(ShellError::Unclosed("a closing \""))? {
                b'"' => {
                    self.at += 1;
                    return Ok(parts);
                }
                b'\\' => {
                    let next = self.text.get(self.at + 1).ok_or(ShellError::Unclosed("a closing \""))?;
                    match next {
                        b'\n' => {
                            self.at += 2;
                            WordPartKind::Continuation
                        }
                        b'$' | b'`' | b'"' | b'\\' => {
                            self.at += 2;
                            WordPartKind::Escape
                        }
                        _ => {
                            self.at += 1;
                            WordPartKind::Plain
                        }
                    }
                }
                b'`' => self.backquotes(true)?,
                b'$' => self.dollar(true)?,
                _ => {
                    self.at += 1;
                    WordPartKind::Plain
                }
            };
            self.add(&mut parts, start, kind);
        }
    }

    /// What begins with `$`.
    fn dollar(&mut self, in_double: bool) -> Parsed<WordPartKind> {
        let next = self.text.get(self.at + 1).copied();
        match next {
            Some(b'(') if self.starts("$((") => {
                self.at += 3;
                Ok(WordPartKind::Arithmetic(self.nested(Parser::arithmetic_to_end)?))
            }
            Some(b'(') => {
                self.at += 1;
                Ok(WordPartKind::Command(self.in_brackets()?))
            }
            Some(b'{') => {
                self.at += 2;
                Ok(WordPartKind::Braced(self.braced(in_double)?))
            }
            Some(b'[') => Err(ShellError::Construct("$[")),
            Some(b'\\') if self.starts("$\\\n") => Err(ShellError::Construct("a line that is continued after $")),
            Some(b'\'') if !in_double => {
                if !self.is_bash() {
                    return Err(ShellError::Construct("$'…' in sh"));
                }
                self.at += 2;
                loop {
                    match self.peek().ok_or(ShellError::Unclosed("a closing '"))? {
                        b'\'' => break,
                        b'\\' => self.at += 2,
                        _ => self.at += 1,
                    }
                }
                self.at += 1;
                Ok(WordPartKind::AnsiC)
            }
            Some(b'"') if !in_double => {
                if !self.is_bash() {
                    return Err(ShellError::Construct("$\"…\" in sh"));
                }
                self.at += 2;
                Ok(WordPartKind::Locale(self.double()?))
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let name = &self.text[self.at + 1..];
                let length = name.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || byte == b'_').count();
                self.at += 1 + length;
                if self.starts("\\\n") {
                    return Err(ShellError::Construct("a line that is continued in a name"));
                }
                Ok(WordPartKind::Parameter)
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?-$!".contains(&byte) => {
                self.at += 2;
                Ok(WordPartKind::Parameter)
            }
            _ => {
                self.at += 1;
                Ok(WordPartKind::Plain)
            }
        }
    }

    /// The list in the brackets that begin here.
    fn in_brackets(&mut self) -> Parsed<CommandList> {
        self.at += 1;
        self.depth += 1;
        let list = self.nested(|parser| parser.list(Until::Bracket))?;
        self.depth -= 1;
        self.at += 1;
        Ok(list)
    }

    fn process(&mut self) -> Parsed<WordPart> {
        let begin = self.at;
        self.at += 1;
        let list = self.in_brackets()?;
        Ok(WordPart { span: begin..self.at, kind: WordPartKind::Process(list) })
    }

    /// Arithmetic up to its `))`, which is consumed. Where a shell could take it for commands, it is refused.
    pub fn arithmetic_to_end(&mut self) -> Parsed<Vec<CommandList>> {
        let (mut open, mut lists, mut last) = (0, Vec::new(), b'(');
        loop {
            let byte = self.peek().ok_or(ShellError::Unclosed("))"))?;
            match byte {
                b'(' => open += 1,
                b')' if open > 0 => open -= 1,
                b')' if self.starts("))") => {
                    if last == b'(' {
                        return Err(ShellError::Construct("empty arithmetic"));
                    }
                    self.at += 2;
                    return Ok(lists);
                }
                b'$' => {
                    match self.dollar(true)? {
                        WordPartKind::Command(list) => lists.push(list),
                        WordPartKind::Braced(more) | WordPartKind::Arithmetic(more) => lists.extend(more),
                        WordPartKind::Parameter => {}
                        _ => return Err(ShellError::Construct("this arithmetic")),
                    }
                    last = b'$';
                    continue;
                }
                // Two words in a row, as in (echo a), are commands.
                _ if (byte.is_ascii_alphanumeric() || byte == b'_')
                    && super::is_blank(last)
                    && self.text[..self.at]
                        .trim_ascii_end()
                        .last()
                        .is_some_and(|&before| before.is_ascii_alphanumeric() || before == b'_') =>
                {
                    return Err(ShellError::Construct("this arithmetic"));
                }
                _ if byte.is_ascii_alphanumeric() || b" _+-*/%<>=!&|^~?:,\t".contains(&byte) => {}
                _ => return Err(ShellError::Construct("this arithmetic")),
            }
            last = byte;
            self.at += 1;
        }
    }

    /// `${…}` after its `{`, up to its `}`, which is consumed.
    fn braced(&mut self, in_double: bool) -> Parsed<Vec<CommandList>> {
        let rest = &self.text[self.at..];
        let is_length = rest.first() == Some(&b'#') && rest.get(1).is_some_and(|&byte| byte != b'}');
        let is_indirect = self.is_bash() && rest.first() == Some(&b'!');
        let from = usize::from(is_length || is_indirect);
        let name = rest[from..].iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || byte == b'_').count();
        let name = match rest.get(from) {
            Some(byte) if name == 0 && b"@*#?-$!".contains(byte) => 1,
            _ if name == 0 => return Err(ShellError::Construct("this ${…}")),
            Some(byte) if byte.is_ascii_digit() && !rest[from..from + name].iter().all(u8::is_ascii_digit) => {
                return Err(ShellError::Construct("this ${…}"));
            }
            _ => name,
        };
        self.at += from + name;
        if self.peek() == Some(b'[') && self.is_bash() {
            let inside = &self.text[self.at + 1..];
            let length =
                inside.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || b"_@*".contains(&byte)).count();
            if length == 0 || inside.get(length) != Some(&b']') {
                return Err(ShellError::Construct("this element of an array"));
            }
            self.at += length + 2;
        }
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Vec::new());
        }
        if is_length {
            return Err(ShellError::Construct("this ${#…}"));
        }
        let is_trim = matches!(self.peek(), Some(b'#' | b'%'));
        if let Some(operator) = COMMON_OPERATORS.iter().find(|operator| self.starts(operator)) {
            self.at += operator.len();
        } else if is_trim || self.is_bash() && self.peek().is_some_and(|byte| b":/^,@".contains(&byte)) {
            self.at += 1;
        } else {
            return Err(ShellError::Construct("this ${…}"));
        }
        self.nested(|parser| parser.braced_word(in_double))
    }

    /// The word after the operator of `${…}`, up to the `}`.
    fn braced_word(&mut self, in_double: bool) -> Parsed<Vec<CommandList>> {
        let mut lists = Vec::new();
        loop {
            match self.peek().ok_or(ShellError::Unclosed("}"))? {
                b'}' => {
                    self.at += 1;
                    return Ok(lists);
                }
                b'\\' => {
                    if self.starts("\\\n") || self.at + 1 == self.text.len() {
                        return Err(ShellError::Construct("a line that is continued in ${…}"));
                    }
                    self.at += 2;
                }
                b'$' => lists.extend(lists_of(self.dollar(in_double)?)),
                b'`' => lists.extend(lists_of(self.backquotes(in_double)?)),
                // In quotes, shells disagree about quotes within.
                b'"' if in_double => {
                    let begin = self.at;
                    self.at += 1;
                    let parts = self.double()?;
                    let inside = &self.text[begin + 1..self.at - 1];
                    if inside.iter().any(|byte| b"{}'\\`".contains(byte)) {
                        return Err(ShellError::Construct("quotes in \"${…}\""));
                    }
                    lists.extend(lists_of(WordPartKind::Double(parts)));
                }
                b'"' => {
                    self.at += 1;
                    let parts = self.double()?;
                    lists.extend(lists_of(WordPartKind::Double(parts)));
                }
                b'\'' if in_double => return Err(ShellError::Construct("a ' in \"${…}\"")),
                b'\'' => {
                    self.single()?;
                }
                b'{' => return Err(ShellError::Construct("a { in ${…}")),
                b'<' | b'>' if self.starts_process() => {
                    return Err(ShellError::Construct("a process substitution in ${…}"));
                }
                _ => self.at += 1,
            }
        }
    }

    /// A substitution in backquotes.
    fn backquotes(&mut self, in_double: bool) -> Parsed<WordPartKind> {
        self.at += 1;
        let mut inside = Vec::new();
        loop {
            match self.peek().ok_or(ShellError::Unclosed("a closing `"))? {
                b'`' => break,
                b'\\' => {
                    let next = *self.text.get(self.at + 1).ok_or(ShellError::Unclosed("a closing `"))?;
                    match next {
                        b'$' | b'`' | b'\\' => inside.push(next),
                        b'"' if in_double => return Err(ShellError::Construct("an escaped \" in backquotes")),
                        b'\n' => return Err(ShellError::Construct("a line that is continued in backquotes")),
                        _ => inside.extend([b'\\', next]),
                    }
                    self.at += 2;
                }
                byte => {
                    inside.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        let mut inner = Parser::new(&inside, self.dialect)?;
        (inner.nesting, inner.depth, inner.in_backquotes) = (self.nesting, self.depth + 1, true);
        let list = inner.nested(|parser| parser.list(Until::End))?;
        Ok(WordPartKind::Backquotes(list))
    }
}

fn lists_of(kind: WordPartKind) -> Vec<CommandList> {
    match kind {
        WordPartKind::Braced(lists) | WordPartKind::Arithmetic(lists) => lists,
        WordPartKind::Command(list) | WordPartKind::Backquotes(list) | WordPartKind::Process(list) => vec![list],
        WordPartKind::Double(parts) | WordPartKind::Locale(parts) => {
            parts.into_iter().flat_map(|part| lists_of(part.kind)).collect()
        }
        _ => Vec::new(),
    }
}

/// The bytes that the text between `$'` and `'` stands for; `None` where it depends on the locale or is cut at a NUL.
pub fn ansi_c_value(text: &[u8]) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            value.push(byte);
            continue;
        }
        let (&letter, after) = rest.split_first()?;
        rest = after;
        let mut number = |digits: &[u8], base: u32| {
            let text = std::str::from_utf8(digits).ok()?;
            let byte = (u32::from_str_radix(text, base).ok()? & 0xff) as u8;
            value.push(byte);
            (byte != 0).then_some(())
        };
        match letter {
            b'0'..=b'7' => {
                let more = rest.iter().take(2).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                number(&[&[letter], &rest[..more]].concat(), 8)?;
                rest = &rest[more..];
            }
            b'x' => {
                let digits = rest.iter().take(2).take_while(|byte| byte.is_ascii_hexdigit()).count();
                if digits == 0 {
                    return None;
                }
                number(&rest[..digits], 16)?;
                rest = &rest[digits..];
            }
            b'a' => value.push(7),
            b'b' => value.push(8),
            b'e' | b'E' => value.push(27),
            b'f' => value.push(12),
            b'n' => value.push(b'\n'),
            b'r' => value.push(b'\r'),
            b't' => value.push(b'\t'),
            b'v' => value.push(11),
            b'\\' | b'\'' | b'"' | b'?' => value.push(letter),
            // \u depends on the locale, and \c differs between versions.
            b'u' | b'U' | b'c' => return None,
            _ => value.extend([b'\\', letter]),
        }
    }
    Some(value)
}
