//! Edits of a command line. Each replaces a range of bytes; then the new text is parsed, and all its other tokens must
//! be those of the old text, at the places where they belong.

use crate::dialect::Dialect;
use crate::error::ShellError;
use crate::syntax::{
    Pipeline, RedirectionKind, Script, ShellStage, SimpleCommand, Span, StageCommand, Token, TokenKind,
};
use crate::wrappers::program_after_wrappers;

/// A range that is replaced.
#[derive(Debug, Clone)]
struct TextEdit {
    span: Span,
    text: Vec<u8>,
    /// The tokens in `text`, counted from its beginning.
    tokens: Vec<Token>,
}

/// Edits of one command line, applied together.
///
/// Words that are inserted are shell text, quoted where they need it.
#[derive(Debug, Clone)]
pub struct Edits<'s> {
    script: &'s Script,
    changes: Vec<TextEdit>,
}

/// The tokens of `text` as they are after `before`.
fn tokens_of(text: &str, before: &str, dialect: Dialect) -> Result<Vec<Token>, ShellError> {
    let parsed = Script::parse(format!("{before}{text}"), dialect)?;
    let own = parsed.tokens.into_iter().filter(|token| token.span.start >= before.len());
    let shifted = |span: Span| span.start - before.len()..span.end - before.len();
    Ok(own.map(|token| Token { span: shifted(token.span), ..token }).collect())
}

const ANOTHER: ShellError = ShellError::Edit("the command can't be changed there");

impl<'s> Edits<'s> {
    pub fn new(script: &'s Script) -> Edits<'s> {
        Edits { script, changes: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The text that is edited.
    pub fn script(&self) -> &'s Script {
        self.script
    }

    /// The dialect of the command line.
    pub fn dialect(&self) -> Dialect {
        self.script.dialect
    }

    fn change(&mut self, span: Span, text: impl Into<Vec<u8>>, tokens: Vec<Token>) {
        self.changes.push(TextEdit { span, text: text.into(), tokens });
    }

    fn can_edit(command: &SimpleCommand) -> Result<(), ShellError> {
        if command.in_backquotes { Err(ShellError::Edit("a command in backquotes can't be changed")) } else { Ok(()) }
    }

    /// Inserts words at a place: after blanks and before a blank, or the other way round.
    fn insert_words(&mut self, at: usize, words: &[&str], blank_before: bool) -> Result<(), ShellError> {
        let joined = words.join(" ");
        let mut tokens = tokens_of(&joined, "x ", self.script.dialect)?;
        let text = if blank_before { format!(" {joined}") } else { format!("{joined} ") };
        tokens.iter_mut().for_each(|token| shift(&mut token.span, usize::from(blank_before)));
        self.change(at..at, text, tokens);
        Ok(())
    }

    /// Inserts words after the program, which is the command's word with this index.
    ///
    /// # Errors
    /// When the command stands in backquotes, or the words aren't words.
    pub fn insert_options(
        &mut self,
        command: &SimpleCommand,
        program: usize,
        words: &[&str],
    ) -> Result<(), ShellError> {
        Self::can_edit(command)?;
        let end = command.words.get(program).ok_or(ANOTHER)?.span.end;
        self.insert_words(end, words, true)
    }

    /// Adds words after the last one.
    ///
    /// # Errors
    /// As [`insert_options`](Self::insert_options); and when `--` ends the options before them.
    pub fn append_arguments(&mut self, command: &SimpleCommand, words: &[&str]) -> Result<(), ShellError> {
        Self::can_edit(command)?;
        if command.words.iter().any(|word| word.value.as_deref() == Some(b"--")) {
            return Err(ShellError::Edit("options can't be added after --"));
        }
        let end = command.words.last().ok_or(ANOTHER)?.span.end;
        self.insert_words(end, words, true)
    }

    /// Inserts words before the word with this index: a wrapper before a program.
    ///
    /// # Errors
    /// As [`insert_options`](Self::insert_options).
    pub fn insert_before(&mut self, command: &SimpleCommand, index: usize, words: &[&str]) -> Result<(), ShellError> {
        Self::can_edit(command)?;
        let start = command.words.get(index).ok_or(ANOTHER)?.span.start;
        self.insert_words(start, words, false)
    }

    /// Replaces the words with these indices. No redirection may stand between them.
    ///
    /// # Errors
    /// When one does, or as [`insert_options`](Self::insert_options).
    pub fn replace_words(
        &mut self,
        command: &SimpleCommand,
        range: std::ops::Range<usize>,
        words: &[&str],
    ) -> Result<(), ShellError> {
        Self::can_edit(command)?;
        let (Some(first), Some(last)) =
            (command.words.get(range.start), range.end.checked_sub(1).and_then(|last| command.words.get(last)))
        else {
            return Err(ANOTHER);
        };
        let span = first.span.start..last.span.end;
        if range.is_empty() || self.operators_in(&span) {
            return Err(ANOTHER);
        }
        let joined = words.join(" ");
        let tokens = tokens_of(&joined, "x ", self.script.dialect)?;
        self.change(span, joined, tokens);
        Ok(())
    }

    /// Replaces the program.
    ///
    /// # Errors
    /// As [`insert_options`](Self::insert_options).
    pub fn replace_program(&mut self, command: &SimpleCommand, program: usize, name: &str) -> Result<(), ShellError> {
        self.replace_words(command, program..program + 1, &[name])
    }

    /// Removes words, and the blanks beside them.
    ///
    /// # Errors
    /// When no word is left, or as [`insert_options`](Self::insert_options).
    pub fn remove_words(&mut self, command: &SimpleCommand, range: std::ops::Range<usize>) -> Result<(), ShellError> {
        Self::can_edit(command)?;
        if range.is_empty() || range.end > command.words.len() || range.len() >= command.words.len() {
            return Err(ANOTHER);
        }
        let span = match range.start.checked_sub(1) {
            Some(before) => command.words[before].span.end..command.words[range.end - 1].span.end,
            None => command.words[0].span.start..command.words[range.end].span.start,
        };
        if self.operators_in(&span) {
            return Err(ANOTHER);
        }
        self.change(span, "", Vec::new());
        Ok(())
    }

    /// Whether an operator or redirection stands in a range, outside of words.
    fn operators_in(&self, span: &Span) -> bool {
        let depth = self.depth(span.start);
        let inside = self.script.tokens.iter().filter(|token| token.depth == depth);
        inside.filter(|token| token.span.start >= span.start && token.span.end <= span.end).any(|token| {
            matches!(token.kind, TokenKind::Operator | TokenKind::Comment | TokenKind::Body | TokenKind::Reserved)
        })
    }

    /// Sets a variable in the command's environment.
    ///
    /// # Errors
    /// When a wrapper may not pass it on, or as [`insert_options`](Self::insert_options).
    pub fn set_environment(&mut self, command: &SimpleCommand, name: &str, value: &str) -> Result<(), ShellError> {
        Self::can_edit(command)?;
        let (program, wrappers) = program_after_wrappers(&command.words).ok_or(ANOTHER)?;
        let outer = || command.words[..program].iter().filter_map(|word| word.value.as_deref());
        let assigned = |word: &[u8]| word.starts_with(format!("{name}=").as_bytes());
        // bash knows its keyword time only without assignments before it.
        if wrappers.iter().any(|wrapper| ["sudo", "doas", "time", "exec"].contains(&wrapper.name.as_str()))
            || wrappers.iter().any(|wrapper| wrapper.name == "env")
                && outer().any(|word| word.starts_with(b"-") || assigned(word))
        {
            return Err(ShellError::Edit("the program may not get this environment"));
        }
        let text = format!("{name}={value}");
        let tokens = tokens_of(&text, "", self.script.dialect)?;
        let same = |text: &[u8]| text.split(|&byte| byte == b'=').next() == Some(name.as_bytes());
        let mut old = command.assignments.iter().filter(|word| same(self.script.bytes(&word.span)));
        match (old.next(), old.next()) {
            (Some(word), None) => self.change(word.span.clone(), text, tokens),
            (Some(_), Some(_)) => return Err(ANOTHER),
            (None, _) => {
                let first = command.assignments.first().or(command.words.first()).ok_or(ANOTHER)?;
                let start = first.span.start;
                self.change(start..start, format!("{text} "), tokens);
            }
        }
        Ok(())
    }

    /// Inserts a stage between two: after the pipe with this index.
    ///
    /// # Errors
    /// When `stage` isn't a stage.
    pub fn insert_stage(&mut self, pipeline: &Pipeline, bar: usize, stage: &str) -> Result<(), ShellError> {
        let at = pipeline.bars.get(bar).ok_or(ANOTHER)?.span.end;
        let mut tokens = tokens_of(stage, "", self.script.dialect)?;
        tokens.iter_mut().for_each(|token| shift(&mut token.span, 1));
        tokens.push(Token { kind: TokenKind::Operator, depth: 0, span: stage.len() + 2..stage.len() + 3 });
        self.change(at..at, format!(" {stage} |"), tokens);
        Ok(())
    }

    /// Inserts a stage before the first one, which reads no file.
    ///
    /// # Errors
    /// When the stage's input is redirected, or `!` or `time` stands before it.
    pub fn insert_first_stage(&mut self, pipeline: &Pipeline, stage: &str) -> Result<(), ShellError> {
        let first = pipeline.stages.first().ok_or(ANOTHER)?;
        if redirects(first, 0) {
            return Err(ShellError::Edit("its input is redirected"));
        }
        let at = first.span.start;
        let mut tokens = tokens_of(stage, "", self.script.dialect)?;
        tokens.push(Token { kind: TokenKind::Operator, depth: 0, span: stage.len() + 1..stage.len() + 2 });
        self.change(at..at, format!("{stage} | "), tokens);
        Ok(())
    }

    /// Leaves out a stage.
    ///
    /// # Errors
    /// When it is the only one, or has a here-document.
    pub fn drop_stage(&mut self, pipeline: &Pipeline, stage: usize) -> Result<(), ShellError> {
        let own = pipeline.stages.get(stage).ok_or(ANOTHER)?;
        if pipeline.stages.len() < 2 || has_here_document(own) {
            return Err(ANOTHER);
        }
        let span = match pipeline.stages.get(stage + 1) {
            Some(next) => own.span.start..next.span.start,
            None => pipeline.stages[stage - 1].span.end..own.span.end,
        };
        if pipeline.bars[stage.saturating_sub(1)].with_errors || self.has_line_tokens(&span) {
            return Err(ANOTHER);
        }
        self.change(span, "", Vec::new());
        Ok(())
    }

    /// Exchanges a stage with the next one.
    ///
    /// # Errors
    /// When one has a here-document, or the pipes beside them carry standard error.
    pub fn swap_with_next(&mut self, pipeline: &Pipeline, stage: usize) -> Result<(), ShellError> {
        let (Some(one), Some(other)) = (pipeline.stages.get(stage), pipeline.stages.get(stage + 1)) else {
            return Err(ANOTHER);
        };
        if has_here_document(one) || has_here_document(other) || pipeline.bars.iter().any(|bar| bar.with_errors) {
            return Err(ANOTHER);
        }
        let moved = |from: &ShellStage| (self.script.bytes(&from.span).to_vec(), self.moved_tokens(&from.span));
        let (first, second) = (moved(other), moved(one));
        self.change(one.span.clone(), first.0, first.1);
        self.change(other.span.clone(), second.0, second.1);
        Ok(())
    }

    /// Gives the second stage the file that `cat FILE |` before it reads.
    ///
    /// # Errors
    /// When the first stage isn't that, or the second one isn't a simple command without such a redirection.
    pub fn read_file_instead_of_cat(&mut self, pipeline: &Pipeline) -> Result<(), ShellError> {
        let [cat, next, ..] = &pipeline.stages[..] else { return Err(ANOTHER) };
        let (StageCommand::Simple(cat_command), StageCommand::Simple(next_command)) = (&cat.command, &next.command)
        else {
            return Err(ANOTHER);
        };
        let [name, file] = &cat_command.words[..] else { return Err(ANOTHER) };
        let is_file = file.value.as_deref().is_some_and(|file| !file.starts_with(b"-") && !file.is_empty());
        if name.as_str() != Some("cat")
            || !is_file
            || !cat.redirections.is_empty()
            || !cat_command.assignments.is_empty()
            || next_command.words.is_empty()
            || redirects(next, 0)
            || pipeline.bars[0].with_errors
        {
            return Err(ANOTHER);
        }
        let span = cat.span.start..next.span.start;
        if self.has_line_tokens(&span) {
            return Err(ANOTHER);
        }
        let mut tokens = self.moved_tokens(&file.span);
        tokens.iter_mut().for_each(|token| shift(&mut token.span, 2));
        tokens.insert(0, Token { kind: TokenKind::Operator, depth: 0, span: 0..1 });
        let text = [b"< ", self.script.bytes(&file.span), b" "].concat();
        self.change(span, text, tokens);
        Ok(())
    }

    fn has_line_tokens(&self, span: &Span) -> bool {
        let inside =
            self.script.tokens.iter().filter(|token| token.span.start >= span.start && token.span.end <= span.end);
        inside.into_iter().any(|token| matches!(token.kind, TokenKind::Comment | TokenKind::Body))
    }

    /// The tokens of a range, counted from its beginning, as they are when the range moves.
    fn moved_tokens(&self, span: &Span) -> Vec<Token> {
        let depth = self.depth(span.start);
        let inside =
            |token: &&Token| token.span.start >= span.start && token.span.end <= span.end && token.depth >= depth;
        let moved = |token: &Token| Token {
            kind: token.kind,
            depth: token.depth - depth,
            span: token.span.start - span.start..token.span.end - span.start,
        };
        self.script.tokens.iter().filter(inside).map(moved).collect()
    }

    /// How many substitutions a place is in.
    fn depth(&self, at: usize) -> usize {
        let contains = |token: &&Token| {
            matches!(token.kind, TokenKind::Word | TokenKind::Assignment)
                && token.span.start < at
                && at < token.span.end
        };
        self.script.tokens.iter().filter(contains).count()
    }

    /// The command line with these edits.
    ///
    /// # Errors
    /// When edits overlap, or anything else would change.
    pub fn apply(mut self) -> Result<Script, ShellError> {
        self.changes.sort_by_cached_key(|change| (change.span.start, change.span.end));
        let changes = &self.changes;
        if changes.windows(2).any(|two| two[0].span.end > two[1].span.start) {
            return Err(ShellError::Edit("two edits overlap"));
        }
        let old = &self.script.text;
        let (mut text, mut from) = (Vec::new(), 0);
        let mut expected: Vec<Token> = Vec::new();
        for change in changes {
            text.extend(&old[from..change.span.start]);
            let depth = self.depth(change.span.start);
            expected.extend(change.tokens.iter().map(|token| Token {
                kind: token.kind,
                depth: token.depth + depth,
                span: token.span.start + text.len()..token.span.end + text.len(),
            }));
            text.extend(&change.text);
            from = change.span.end;
        }
        text.extend(&old[from..]);
        let moved = |at: usize, is_end: bool| {
            let before = changes
                .iter()
                .filter(|change| change.span.end <= at && !(is_end && change.span.is_empty() && change.span.end == at));
            let (added, removed) = before
                .fold((0, 0), |(added, removed), change| (added + change.text.len(), removed + change.span.len()));
            at + added - removed
        };
        let is_replaced = |token: &Token| {
            changes.iter().any(|change| {
                !change.span.is_empty() && change.span.start <= token.span.start && token.span.end <= change.span.end
            })
        };
        for token in self.script.tokens.iter().filter(|token| !is_replaced(token)) {
            let span = moved(token.span.start, false)..moved(token.span.end, true);
            expected.push(Token { span, ..token.clone() });
        }
        expected.sort_by_cached_key(|token| (token.span.start, token.depth));
        let script = Script::parse(text, self.script.dialect)?;
        if script.tokens == expected {
            Ok(script)
        } else {
            Err(ShellError::Edit("the edit would change something else too"))
        }
    }
}

fn shift(span: &mut Span, by: usize) {
    *span = span.start + by..span.end + by;
}

fn has_here_document(stage: &ShellStage) -> bool {
    stage.redirections.iter().any(|redirection| redirection.kind == RedirectionKind::HereDocument)
}

/// Whether a stage redirects this descriptor.
fn redirects(stage: &ShellStage, descriptor: u32) -> bool {
    stage.redirections.iter().any(|redirection| redirection.redirected() == descriptor)
}
