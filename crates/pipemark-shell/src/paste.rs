//! The text to paste: as typed, but for characters that a terminal can't show or copy exactly, and those that an
//! interactive bash would expand.

use crate::dialect::Dialect;
use crate::error::ShellError;
use crate::quote::{ansi_c, is_shown_exactly};
use crate::syntax::{CommandList, Script, ShellStage, Span, StageCommand, TokenKind, Word, WordPart, WordPartKind};

/// The longest line that every terminal passes to a shell without line editing.
const MAX_LINE: usize = 4000;

const INVISIBLE: ShellError = ShellError::Unprintable("a control character, a tab or a byte that isn't UTF-8");
const HISTORY: ShellError = ShellError::Unprintable("a '!' that an interactive shell may expand");

impl Script {
    /// The text to paste into a shell. It is the text as typed, byte for byte, unless a character needs quotes: one that
    /// a terminal can't show or copies wrongly, or `!`, which an interactive bash expands.
    ///
    /// # Errors
    /// When it can't be shown exactly: for sh, where `$'…'` isn't known; and in here-documents and comments.
    pub fn to_paste(&self) -> Result<String, ShellError> {
        let mut paste = Paste { script: self, replacements: Vec::new(), opaque: Vec::new() };
        paste.list(&self.list)?;
        let text = paste.text()?;
        let text = String::from_utf8(text).map_err(|_| INVISIBLE)?;
        self.check(&text)?;
        Ok(text)
    }

    fn check(&self, text: &str) -> Result<(), ShellError> {
        if self.dialect == Dialect::Posix && text.lines().any(|line| line.len() > MAX_LINE) {
            return Err(ShellError::Unprintable("a line of this length"));
        }
        if !text.chars().all(|c| c == '\n' || is_shown_exactly(c)) {
            return Err(INVISIBLE);
        }
        if text.as_bytes() == self.text {
            return self.check_history(text.as_bytes());
        }
        let printed = Script::parse(text, self.dialect)?;
        if meaning(self) != meaning(&printed) {
            return Err(ShellError::Unprintable("a word of this command"));
        }
        printed.check_history(text.as_bytes())
    }

    /// Refuses `!` and `^` that bash expands when it reads a line from a terminal. Follows the quotes as the history
    /// library does, which doesn't know substitutions.
    fn check_history(&self, text: &[u8]) -> Result<(), ShellError> {
        if !text.contains(&b'!') && !text.contains(&b'^') {
            return Ok(());
        }
        if text.starts_with(b"^") || text.windows(2).any(|two| two == b"\n^") {
            return Err(HISTORY);
        }
        let is_line_bound = |kind: TokenKind| matches!(kind, TokenKind::Body | TokenKind::Comment);
        if text.contains(&b'!')
            && self.tokens.iter().any(|token| {
                let own = &text[token.span.clone()];
                is_line_bound(token.kind) && own.iter().any(|byte| b"!'\"\\`".contains(byte))
            })
        {
            return Err(HISTORY);
        }
        let (mut quote, mut at) = (None, 0);
        let mut last_bracket = None;
        // bash reads each line on its own.
        let mut line = 0..0;
        while at < text.len() {
            if at >= line.end {
                line =
                    at..text[at..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |length| at + length + 1);
                last_bracket = text[line.clone()].iter().rposition(|&byte| byte == b']').map(|last| line.start + last);
            }
            let (byte, next) = (text[at], text.get(at + 1).copied());
            match (quote, byte) {
                (Some(b'\''), b'\'') => quote = None,
                (Some(b'\''), b'\n') | (Some(b'"'), b'\n') => return Err(HISTORY),
                (Some(b'\''), _) => {}
                (_, b'\\') => at += 1,
                (None, b'\'' | b'"') => quote = Some(byte),
                (Some(b'"'), b'"') => quote = None,
                (_, b'!') if next.is_none_or(|next| b" \n=".contains(&next)) => {}
                // $! and ${!name}; [!a].
                (_, b'!') if at > line.start + 1 && text[..at].ends_with(b"$") || text[..at].ends_with(b"${") => {}
                (_, b'!') if text[..at].ends_with(b"[") && last_bracket.is_some_and(|last| last > at) => {}
                (_, b'!') => return Err(HISTORY),
                _ => {}
            }
            at += 1;
        }
        Ok(())
    }
}

struct Paste<'s> {
    script: &'s Script,
    /// What is printed instead of ranges, in the order of the text.
    replacements: Vec<(Span, Vec<u8>)>,
    /// Ranges whose blanks are data.
    opaque: Vec<Span>,
}

impl<'s> Paste<'s> {
    fn list(&mut self, list: &CommandList) -> Result<(), ShellError> {
        list.pipelines.iter().flat_map(|pipeline| &pipeline.stages).try_for_each(|stage| self.stage(stage))
    }

    fn stage(&mut self, stage: &ShellStage) -> Result<(), ShellError> {
        match &stage.command {
            StageCommand::Simple(simple) => {
                simple.assignments.iter().chain(&simple.words).try_for_each(|word| self.word(word))?;
            }
            StageCommand::Compound(compound) => {
                compound.words.iter().try_for_each(|word| self.word(word))?;
                compound.lists.iter().try_for_each(|list| self.list(list))?;
            }
        }
        for redirection in &stage.redirections {
            match &redirection.body {
                // The delimiter and the lines can't be quoted.
                Some(body) => self.opaque.extend([redirection.target.span.clone(), body.clone()]),
                None => self.word(&redirection.target)?,
            }
        }
        Ok(())
    }

    fn word(&mut self, word: &Word) -> Result<(), ShellError> {
        // In quotes, a user's name after ~ isn't one.
        if let [tilde, WordPart { span, kind: WordPartKind::Plain }, ..] = &word.parts[..]
            && self.script.bytes(&tilde.span) == b"~"
            && self.needs_quotes(self.script.bytes(span).split(|&byte| byte == b'/').next().unwrap_or_default())
        {
            return Err(ShellError::Unprintable("a user's name after ~"));
        }
        word.parts.iter().try_for_each(|part| self.part(part, false))
    }

    fn part(&mut self, part: &WordPart, in_double: bool) -> Result<(), ShellError> {
        let script: &'s Script = self.script;
        let text = script.bytes(&part.span);
        match &part.kind {
            WordPartKind::Command(list) | WordPartKind::Process(list) => self.list(list)?,
            WordPartKind::Double(parts) => parts.iter().try_for_each(|part| self.part(part, true))?,
            WordPartKind::Plain => self.plain(&part.span, in_double)?,
            WordPartKind::Escape => {
                // A backslash and a blank at the end of a line: the blank isn't copied.
                let value = &text[1..];
                let is_last = value == b" " && self.ends_line(part.span.end);
                if is_last || self.needs_quotes(value) {
                    self.replace(part.span.clone(), value)?;
                } else {
                    self.opaque.push(part.span.clone());
                }
            }
            WordPartKind::Single => {
                let value = &text[1..text.len() - 1];
                if self.needs_quotes(value) {
                    self.replace(part.span.clone(), value)?;
                } else {
                    self.opaque.push(part.span.clone());
                }
            }
            WordPartKind::AnsiC => {
                // Older versions of bash end the quotes at \' when they look for history.
                let is_risky = text.windows(2).any(|two| two == b"\\'") && self.script.text.contains(&b'!');
                if is_risky || self.needs_quotes(text) {
                    let value = crate::ansi_c_value(&text[2..text.len() - 1]).ok_or(INVISIBLE)?;
                    self.replace(part.span.clone(), &value)?;
                } else {
                    self.opaque.push(part.span.clone());
                }
            }
            WordPartKind::Pattern | WordPartKind::Continuation | WordPartKind::Parameter => {}
            WordPartKind::Locale(_)
            | WordPartKind::Braced(_)
            | WordPartKind::Arithmetic(_)
            | WordPartKind::Backquotes(_) => {
                self.opaque.push(part.span.clone());
            }
        }
        Ok(())
    }

    /// Whether only blanks follow on the line.
    fn ends_line(&self, at: usize) -> bool {
        let rest = &self.script.text[at..];
        rest.iter().find(|byte| **byte != b' ').is_none_or(|&byte| byte == b'\n')
    }

    /// Whether quoted bytes can't be shown as they are.
    fn needs_quotes(&self, bytes: &[u8]) -> bool {
        std::str::from_utf8(bytes)
            .map_or(true, |text| !text.chars().all(|c| is_shown_exactly(c) || self.keeps_line_end(c)))
    }

    /// Whether a line end in quotes is printed as it is: in sh, where it can't be written in another way.
    fn keeps_line_end(&self, c: char) -> bool {
        c == '\n' && self.script.dialect == Dialect::Posix
    }

    /// Replaces the characters of plain text that need quotes.
    fn plain(&mut self, span: &Span, in_double: bool) -> Result<(), ShellError> {
        let script = self.script;
        let mut at = span.start;
        for chunk in script.bytes(span).utf8_chunks() {
            for c in chunk.valid().chars() {
                let here = at..at + c.len_utf8();
                at = here.end;
                let (before, follows) = (script.text[..here.start].last(), script.text.get(at));
                // In [!a], and after a backslash, bash doesn't expand it.
                let is_expanded = c == '!'
                    && follows.is_some_and(|next| !b" \t\n=".contains(next))
                    && before.is_none_or(|before| !b"[\\".contains(before))
                    || c == '^' && before.is_none_or(|&before| before == b'\n');
                if is_expanded || !is_shown_exactly(c) && !self.keeps_line_end(c) {
                    self.replace_in(here, c.to_string().as_bytes(), in_double)?;
                } else if in_double {
                    self.opaque.push(here);
                }
            }
            let invalid = at..at + chunk.invalid().len();
            at = invalid.end;
            if !invalid.is_empty() {
                self.replace_in(invalid, chunk.invalid(), in_double)?;
            }
        }
        Ok(())
    }

    fn replace_in(&mut self, span: Span, bytes: &[u8], in_double: bool) -> Result<(), ShellError> {
        self.replace(span, bytes)?;
        if in_double && let Some((_, text)) = self.replacements.last_mut() {
            *text = [b"\"", &text[..], b"\""].concat();
        }
        Ok(())
    }

    fn replace(&mut self, span: Span, bytes: &[u8]) -> Result<(), ShellError> {
        let text = std::str::from_utf8(bytes).ok().filter(|text| text.chars().all(is_shown_exactly));
        let quoted = match text {
            Some(text) => format!("'{}'", text.replace('\'', r"'\''")),
            None if self.script.dialect == Dialect::Bash => ansi_c(bytes),
            None => return Err(INVISIBLE),
        };
        self.replacements.push((span, quoted.into_bytes()));
        Ok(())
    }

    /// The text with the replacements. Blanks between words become spaces.
    fn text(mut self) -> Result<Vec<u8>, ShellError> {
        self.replacements.sort_by_cached_key(|(span, _)| span.start);
        let old = &self.script.text;
        let mut is_data = vec![false; old.len()];
        let tokens = self.script.tokens.iter();
        let comments = tokens.filter(|token| matches!(token.kind, TokenKind::Comment | TokenKind::Body));
        for span in self.opaque.iter().cloned().chain(comments.map(|token| token.span.clone())) {
            is_data[span].fill(true);
        }
        let (mut text, mut at) = (Vec::new(), 0);
        let mut replacements = self.replacements.iter().peekable();
        while at < old.len() {
            if let Some((span, new)) = replacements.next_if(|(span, _)| span.start == at) {
                text.extend(new);
                at = span.end;
                continue;
            }
            match old[at] {
                b'\t' if is_data[at] => return Err(INVISIBLE),
                b'\t' => text.push(b' '),
                // Terminals don't copy blanks at the end of a line.
                b'\n' if at > 0 && is_data[at - 1] && matches!(old[at - 1], b' ' | b'\t') => {
                    return Err(ShellError::Unprintable("a blank at the end of a line"));
                }
                byte => text.push(byte),
            }
            at += 1;
        }
        Ok(text)
    }
}

/// What a text means: its operators, each with its depth, and its words.
fn meaning(script: &Script) -> Vec<u8> {
    let mut bytes = Vec::new();
    for token in script.tokens.iter().filter(|token| !matches!(token.kind, TokenKind::Word | TokenKind::Assignment)) {
        bytes.extend(format!("{:?} {}\0", token.kind, token.depth).into_bytes());
        bytes.extend([script.bytes(&token.span), b"\0"].concat());
    }
    list_words(script, &script.list, &mut bytes);
    bytes
}

/// The words of a list, each after a NUL.
fn list_words(script: &Script, list: &CommandList, bytes: &mut Vec<u8>) {
    for stage in list.pipelines.iter().flat_map(|pipeline| &pipeline.stages) {
        let mut word = |word: &Word| {
            bytes.extend(b"\0 ");
            parts(script, &word.parts, false, bytes);
        };
        match &stage.command {
            StageCommand::Simple(simple) => simple.assignments.iter().chain(&simple.words).for_each(&mut word),
            StageCommand::Compound(compound) => compound.words.iter().for_each(&mut word),
        }
        stage.redirections.iter().for_each(|redirection| word(&redirection.target));
        if let StageCommand::Compound(compound) = &stage.command {
            compound.lists.iter().for_each(|list| list_words(script, list, bytes));
        }
    }
}

/// The bytes of parts: those that are known, and what else there is after a NUL, with a quote if it isn't split into
/// words.
fn parts(script: &Script, all: &[WordPart], in_double: bool, bytes: &mut Vec<u8>) {
    let unknown = if in_double { &b"\0\""[..] } else { &b"\0"[..] };
    for WordPart { span, kind } in all {
        let text = script.bytes(span);
        match kind {
            WordPartKind::Plain => bytes.extend(text),
            WordPartKind::Escape => bytes.extend(&text[1..]),
            WordPartKind::Continuation => {}
            WordPartKind::Single => bytes.extend(&text[1..text.len() - 1]),
            WordPartKind::AnsiC => match crate::ansi_c_value(&text[2..text.len() - 1]) {
                Some(value) => bytes.extend(value),
                None => bytes.extend([unknown, text].concat()),
            },
            WordPartKind::Double(inner) => parts(script, inner, true, bytes),
            WordPartKind::Command(list) | WordPartKind::Process(list) => {
                bytes.extend([unknown, &text[..2]].concat());
                list_words(script, list, bytes);
                bytes.extend(b"\0)");
            }
            // Ranges in backquotes aren't those of the text, so all of it is compared.
            WordPartKind::Pattern
            | WordPartKind::Locale(_)
            | WordPartKind::Parameter
            | WordPartKind::Braced(_)
            | WordPartKind::Arithmetic(_)
            | WordPartKind::Backquotes(_) => bytes.extend([unknown, text].concat()),
        }
    }
}
