//! Redirections and here-documents.

use super::{Parsed, Parser, is_delimiter};
use crate::error::ShellError;
use crate::syntax::{
    CommandList, Compound, Redirection, RedirectionKind, ShellStage, Span, StageCommand, TokenKind, WordPartKind,
};

/// A here-document whose lines come after the next line end.
pub struct Pending {
    redirection: Span,
    delimiter: Vec<u8>,
    quoted: bool,
    strips_tabs: bool,
}

/// The operators, longer ones first.
const OPERATORS: [(&str, RedirectionKind); 11] = [
    ("&>>", RedirectionKind::AppendBothOutputs),
    ("<<<", RedirectionKind::HereString),
    ("<<-", RedirectionKind::HereDocument),
    ("<<", RedirectionKind::HereDocument),
    ("<&", RedirectionKind::DuplicateInput),
    ("<>", RedirectionKind::ReadWrite),
    (">>", RedirectionKind::Append),
    (">&", RedirectionKind::DuplicateOutput),
    (">|", RedirectionKind::Overwrite),
    ("&>", RedirectionKind::BothOutputs),
    ("<", RedirectionKind::Read),
];

impl Parser<'_> {
    /// The redirection that stands here.
    pub fn redirection(&mut self) -> Parsed<Option<Redirection>> {
        let rest = &self.text[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_operator = |at: usize| matches!(rest.get(at), Some(b'<' | b'>'));
        let has_descriptor = digits > 0 && is_operator(digits);
        if rest.first() == Some(&b'{') {
            let name = rest[1..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
            if rest.get(name + 1) == Some(&b'}') && is_operator(name + 2) {
                return Err(ShellError::Construct("a descriptor in a variable"));
            }
        }
        // In a word, digits before the operator belong to the word.
        let is_process = |at: usize| is_operator(at) && rest.get(at + 1) == Some(&b'(');
        if has_descriptor && is_process(digits) {
            return Err(ShellError::Construct("a process substitution in a word"));
        }
        if is_process(0) {
            return Ok(None);
        }
        let descriptor = match digits {
            _ if !has_descriptor => None,
            // dash reads one digit only.
            2.. if !self.is_bash() => return Err(ShellError::Construct("a descriptor of two digits")),
            5.. => return Err(ShellError::Construct("a descriptor of this size")),
            _ => std::str::from_utf8(&rest[..digits]).ok().and_then(|text| text.parse().ok()),
        };
        let after = &rest[if has_descriptor { digits } else { 0 }..];
        let found = OPERATORS.iter().find(|(text, _)| after.starts_with(text.as_bytes()));
        let (text, mut kind) = match found {
            Some(found) => *found,
            None if after.starts_with(b">") => (">", RedirectionKind::Write),
            None => return Ok(None),
        };
        let needs_bash = matches!(
            kind,
            RedirectionKind::HereString | RedirectionKind::BothOutputs | RedirectionKind::AppendBothOutputs
        );
        if needs_bash && !self.is_bash() {
            return Err(ShellError::Construct(if kind == RedirectionKind::HereString { "<<<" } else { "&>" }));
        }
        let begin = self.at;
        if has_descriptor && begin > 0 && !is_delimiter(self.text[begin - 1]) {
            return Err(ShellError::Construct("digits before a redirection"));
        }
        self.operator(text.len() + if has_descriptor { digits } else { 0 })?;
        if matches!(kind, RedirectionKind::Read | RedirectionKind::Write)
            && matches!(self.peek(), Some(b'<' | b'>' | b'|' | b'&'))
        {
            return Err(self.unexpected());
        }
        self.skip_blanks()?;
        if self.peek().is_none_or(|byte| is_delimiter(byte) && !(self.is_bash() && self.starts_process())) {
            return Err(self.unexpected());
        }
        let target = self.word()?;
        self.token(TokenKind::Word, target.span.clone());
        if matches!(kind, RedirectionKind::DuplicateInput | RedirectionKind::DuplicateOutput) {
            let is_descriptor = target.value.as_deref().is_some_and(|value| {
                value == b"-" || !value.is_empty() && value.len() < 4 && value.iter().all(u8::is_ascii_digit)
            });
            match kind {
                _ if is_descriptor => {}
                RedirectionKind::DuplicateOutput
                    if self.is_bash() && descriptor.is_none() && target.value.is_some() =>
                {
                    kind = RedirectionKind::BothOutputs;
                }
                _ => return Err(ShellError::Construct("a copy of a descriptor whose number isn't known")),
            }
        }
        let span = begin..target.span.end;
        if kind == RedirectionKind::HereDocument {
            self.await_here_document(&span, &target, text == "<<-")?;
        }
        Ok(Some(Redirection { span, descriptor, kind, target, body: None }))
    }

    pub fn starts_process(&self) -> bool {
        self.starts("<(") || self.starts(">(")
    }

    fn await_here_document(&mut self, span: &Span, target: &crate::syntax::Word, strips_tabs: bool) -> Parsed<()> {
        if self.depth > 0 || self.in_backquotes {
            return Err(ShellError::Construct("a here-document in a substitution"));
        }
        let quoted = target.parts.iter().any(|part| !matches!(part.kind, WordPartKind::Plain));
        let known = |part: &crate::syntax::WordPart| matches!(part.kind, WordPartKind::Plain | WordPartKind::Single);
        let delimiter = target
            .value
            .clone()
            .filter(|value| !value.is_empty() && !value.contains(&b'\n') && target.parts.iter().all(known));
        let delimiter = delimiter.ok_or(ShellError::Construct("this end of a here-document"))?;
        self.pending.push(Pending { redirection: span.clone(), delimiter, quoted, strips_tabs });
        Ok(())
    }

    /// Reads the lines of the pending here-documents.
    pub fn here_documents(&mut self) -> Parsed<()> {
        for pending in std::mem::take(&mut self.pending) {
            let begin = self.at;
            loop {
                let rest = &self.text[self.at..];
                if rest.is_empty() {
                    return Err(ShellError::Unclosed("a here-document's end"));
                }
                let length = rest.iter().take_while(|&&byte| byte != b'\n').count();
                let line = &rest[..length];
                self.at = (self.at + length + 1).min(self.text.len());
                let tabs = if pending.strips_tabs { line.iter().take_while(|&&byte| byte == b'\t').count() } else { 0 };
                if line[tabs..] == pending.delimiter[..] {
                    break;
                }
                if !pending.quoted
                    && (line.ends_with(b"\\") || line.contains(&b'`') || line.windows(2).any(|two| two == b"$("))
                {
                    return Err(ShellError::Construct("a substitution in a here-document"));
                }
            }
            let span = begin..self.at;
            self.token(TokenKind::Body, span.clone());
            self.bodies.push((pending.redirection, span));
        }
        Ok(())
    }
}

/// Gives each here-document its lines.
pub fn attach(list: &mut CommandList, bodies: &[(Span, Span)]) {
    for stage in list.pipelines.iter_mut().flat_map(|pipeline| &mut pipeline.stages) {
        let ShellStage { command, redirections, .. } = stage;
        for redirection in redirections {
            let own = bodies.iter().find(|(operator, _)| *operator == redirection.span);
            redirection.body = own.map(|(_, body)| body.clone());
        }
        if let StageCommand::Compound(Compound { lists, .. }) = command {
            lists.iter_mut().for_each(|list| attach(list, bodies));
        }
    }
}
