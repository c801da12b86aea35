//! The parser: lists, pipelines and simple commands. Compound commands and words are in the modules below.

mod compound;
mod redirection;
mod word;

use crate::dialect::Dialect;
use crate::error::ShellError;
use crate::syntax::{
    Bar, CommandList, Connector, Pipeline, Script, ShellStage, SimpleCommand, Span, StageCommand, Token, TokenKind,
    Word,
};

pub use word::ansi_c_value;

/// The longest text that is parsed: more than a person types.
pub const MAX_BYTES: usize = 128 << 10;
/// The deepest nesting of lists and substitutions.
const MAX_DEPTH: usize = 40;

type Parsed<T> = Result<T, ShellError>;

/// Words that are reserved where a command begins.
const RESERVED: [&str; 16] =
    ["if", "then", "elif", "else", "fi", "for", "in", "do", "done", "while", "until", "case", "esac", "{", "}", "!"];
/// More of them in bash; and what they do isn't defined for sh.
const RESERVED_IN_BASH: [&str; 6] = ["[[", "]]", "function", "select", "time", "coproc"];

pub struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    dialect: Dialect,
    nesting: usize,
    /// How many substitutions the parser is in.
    depth: usize,
    in_backquotes: bool,
    tokens: Vec<Token>,
    /// Here-documents whose lines follow the next line end.
    pending: Vec<redirection::Pending>,
    /// The lines of here-documents that were read, by the range of their operator.
    bodies: Vec<(Span, Span)>,
}

/// What ends a list of commands.
#[derive(Clone, Copy)]
enum Until<'w> {
    End,
    Bracket,
    /// One of these reserved words.
    Reserved(&'w [&'static str]),
    /// `;;` or `esac`
    CaseItem,
}

impl Script {
    /// Parses a command line.
    ///
    /// # Errors
    /// When it is incomplete, wrong, or has a construct that this grammar doesn't have.
    pub fn parse(text: impl Into<Vec<u8>>, dialect: Dialect) -> Result<Script, ShellError> {
        let text = text.into();
        let mut parser = Parser::new(&text, dialect)?;
        let list = parser.list(Until::End)?;
        if !parser.pending.is_empty() {
            return Err(ShellError::Unclosed("a here-document's end"));
        }
        let mut tokens = std::mem::take(&mut parser.tokens);
        let bodies = std::mem::take(&mut parser.bodies);
        tokens.sort_by_cached_key(|token| (token.span.start, token.depth));
        let mut script = Script { text, dialect, list, tokens };
        if !bodies.is_empty() {
            redirection::attach(&mut script.list, &bodies);
        }
        if script.list.pipelines.is_empty() { Err(ShellError::Empty) } else { Ok(script) }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Whether an unquoted byte ends a word.
fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

pub fn is_name(text: &[u8]) -> bool {
    text.first().is_some_and(|&first| first.is_ascii_alphabetic() || first == b'_')
        && text.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl<'t> Parser<'t> {
    fn new(text: &'t [u8], dialect: Dialect) -> Parsed<Parser<'t>> {
        if text.len() > MAX_BYTES {
            return Err(ShellError::Construct("a command of this length"));
        }
        if text.contains(&0) {
            return Err(ShellError::Construct("a NUL byte"));
        }
        Ok(Parser {
            text,
            at: 0,
            dialect,
            nesting: 0,
            depth: 0,
            in_backquotes: false,
            tokens: Vec::new(),
            pending: Vec::new(),
            bodies: Vec::new(),
        })
    }

    fn is_bash(&self) -> bool {
        self.dialect == Dialect::Bash
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn starts(&self, text: &str) -> bool {
        self.text[self.at..].starts_with(text.as_bytes())
    }

    fn token(&mut self, kind: TokenKind, span: Span) {
        self.tokens.push(Token { kind, depth: self.depth, span });
    }

    /// Consumes an operator.
    fn operator(&mut self, length: usize) -> Parsed<Span> {
        let span = self.at..self.at + length;
        self.at = span.end;
        self.token(TokenKind::Operator, span.clone());
        // A shell joins the lines first, so `|\` and `|` on the next line is `||`.
        if self.starts("\\\n") {
            Err(ShellError::Construct("a line that is continued after an operator"))
        } else {
            Ok(span)
        }
    }

    fn unexpected(&self) -> ShellError {
        match self.peek() {
            None => ShellError::Unclosed("the end of the command"),
            Some(b'\n') => ShellError::Unexpected("a line end".to_owned()),
            Some(byte) if byte.is_ascii_graphic() => {
                let rest = &self.text[self.at..];
                let same = rest.iter().take(2).take_while(|&&next| next == byte).count();
                let length = if is_delimiter(byte) {
                    same
                } else {
                    rest.iter().take(20).take_while(|byte| byte.is_ascii_alphanumeric()).count().max(1)
                };
                ShellError::Unexpected(format!("'{}'", String::from_utf8_lossy(&rest[..length])))
            }
            Some(_) => ShellError::Unexpected("a character".to_owned()),
        }
    }

    /// Skips blanks, continued lines and comments, between words. Returns whether there was any.
    fn skip_blanks(&mut self) -> Parsed<bool> {
        let begin = self.at;
        loop {
            match self.peek() {
                Some(byte) if is_blank(byte) => self.at += 1,
                Some(b'\\') if self.starts("\\\n") => {
                    if !self.pending.is_empty() {
                        return Err(ShellError::Construct("a line that is continued before a here-document"));
                    }
                    self.at += 2;
                }
                Some(b'#') => {
                    if self.depth > 0 {
                        return Err(ShellError::Construct("a comment in a substitution"));
                    }
                    let length = self.text[self.at..].iter().take_while(|&&byte| byte != b'\n').count();
                    let span = self.at..self.at + length;
                    self.at = span.end;
                    self.token(TokenKind::Comment, span);
                }
                _ => return Ok(self.at > begin),
            }
        }
    }

    /// Consumes a line end and the here-documents after it.
    fn line_end(&mut self) -> Parsed<()> {
        let span = self.at..self.at + 1;
        self.at += 1;
        self.token(TokenKind::Operator, span);
        self.here_documents()
    }

    fn skip_lines(&mut self) -> Parsed<()> {
        loop {
            self.skip_blanks()?;
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.line_end()?;
        }
    }

    /// The reserved word that stands here.
    fn reserved(&self) -> Option<&'static str> {
        let rest = &self.text[self.at..];
        let length = rest.iter().take_while(|&&byte| !is_delimiter(byte)).count();
        let bash = RESERVED_IN_BASH.iter().filter(|word| **word != "time" || self.is_bash());
        let mut all = RESERVED.iter().chain(bash);
        all.find(|word| word.as_bytes() == &rest[..length]).copied()
    }

    /// Consumes a reserved word.
    fn take_reserved(&mut self, word: &'static str) -> Parsed<()> {
        if self.reserved() != Some(word) {
            return match self.peek() {
                None => Err(ShellError::Unclosed(word)),
                Some(_) => Err(self.unexpected()),
            };
        }
        let span = self.at..self.at + word.len();
        self.at = span.end;
        self.token(TokenKind::Reserved, span);
        Ok(())
    }

    fn nested<T>(&mut self, act: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == MAX_DEPTH {
            return Err(ShellError::Construct("a command nested this deeply"));
        }
        self.nesting += 1;
        let result = act(self);
        self.nesting -= 1;
        result
    }

    fn is_at(&self, until: Until<'_>) -> bool {
        match until {
            Until::End => self.at == self.text.len(),
            Until::Bracket => self.peek() == Some(b')'),
            Until::Reserved(words) => self.reserved().is_some_and(|word| words.contains(&word)),
            Until::CaseItem => self.starts(";;") || self.reserved() == Some("esac"),
        }
    }

    /// A list of commands, up to what ends it, which isn't consumed.
    fn list(&mut self, until: Until<'_>) -> Parsed<CommandList> {
        let mut list = CommandList::default();
        self.skip_lines()?;
        while !self.is_at(until) {
            let mut pipeline = self.pipeline()?;
            self.skip_blanks()?;
            pipeline.connector = match self.peek() {
                _ if self.starts("&&") => Connector::And,
                _ if self.starts("||") => Connector::Or,
                _ if self.is_at(until) && self.peek().is_none_or(is_delimiter) => Connector::End,
                Some(b';') if !self.starts(";;") => Connector::Sequence,
                Some(b'\n') => Connector::Sequence,
                Some(b'&') if !self.starts("&>") => Connector::Background,
                Some(b'&') => return Err(ShellError::Construct("&>")),
                _ => return Err(self.unexpected()),
            };
            match pipeline.connector {
                Connector::And | Connector::Or => {
                    self.operator(2)?;
                    self.skip_lines()?;
                    if self.is_at(until) {
                        return Err(self.unexpected());
                    }
                }
                Connector::Sequence if self.peek() == Some(b'\n') => self.skip_lines()?,
                Connector::Sequence | Connector::Background => {
                    self.operator(1)?;
                    self.skip_lines()?;
                }
                Connector::End => {}
            }
            let is_last = pipeline.connector == Connector::End;
            list.pipelines.push(pipeline);
            if is_last {
                break;
            }
        }
        match self.is_at(until) {
            true => Ok(list),
            false => Err(self.unexpected()),
        }
    }

    fn pipeline(&mut self) -> Parsed<Pipeline> {
        let begin = self.at;
        let timed = self.is_bash() && self.reserved() == Some("time");
        if timed {
            self.take_reserved("time")?;
            self.skip_blanks()?;
            let word = self.text[self.at..].iter().take_while(|&&byte| !is_delimiter(byte)).count();
            match &self.text[self.at..self.at + word] {
                b"-p" => {
                    let span = self.at..self.at + 2;
                    self.at += 2;
                    self.token(TokenKind::Reserved, span);
                    self.skip_blanks()?;
                }
                [b'-', ..] | [b'\\', ..] | [] => return Err(ShellError::Construct("time with options")),
                _ => {}
            }
        }
        let negated = self.reserved() == Some("!");
        if negated {
            self.take_reserved("!")?;
            if !self.skip_blanks()? || matches!(self.reserved(), Some("!" | "time")) {
                return Err(self.unexpected());
            }
        }
        let (mut stages, mut bars) = (vec![self.nested(Parser::stage)?], Vec::new());
        loop {
            self.skip_blanks()?;
            if self.peek() != Some(b'|') || self.starts("||") {
                break;
            }
            let with_errors = self.starts("|&");
            if with_errors && !self.is_bash() {
                return Err(ShellError::Construct("|&"));
            }
            let span = self.operator(if with_errors { 2 } else { 1 })?;
            bars.push(Bar { span, with_errors });
            self.skip_lines()?;
            if self.reserved() == Some("!") {
                return Err(self.unexpected());
            }
            stages.push(self.nested(Parser::stage)?);
        }
        let end = stages.last().map_or(self.at, |stage: &ShellStage| stage.span.end);
        Ok(Pipeline { span: begin..end, negated, timed, stages, bars, connector: Connector::End })
    }

    fn stage(&mut self) -> Parsed<ShellStage> {
        let begin = self.at;
        match self.reserved() {
            // After a pipe, bash runs the program `time`.
            Some("time") => return self.simple(begin),
            Some(word) => return self.compound(word),
            None if self.peek() == Some(b'(') => return self.compound("("),
            None => {}
        }
        self.simple(begin)
    }

    fn simple(&mut self, begin: usize) -> Parsed<ShellStage> {
        let (mut assignments, mut words, mut redirections) = (Vec::new(), Vec::<Word>::new(), Vec::new());
        let mut end = begin;
        loop {
            self.skip_blanks()?;
            if let Some(redirection) = self.redirection()? {
                end = redirection.span.end;
                redirections.push(redirection);
                continue;
            }
            match self.peek() {
                Some(b'(') if words.len() == 1 && assignments.is_empty() && redirections.is_empty() => {
                    return self.function(begin, &words[0]);
                }
                Some(b'(') => return Err(self.unexpected()),
                None => break,
                Some(byte) if is_delimiter(byte) && !(self.is_bash() && self.starts_process()) => break,
                Some(_) => {}
            }
            let may_assign = words.is_empty();
            // A reserved word after a redirection or an assignment is a program's name: hardly what was meant.
            if may_assign && end > begin && self.reserved().is_some() {
                return Err(self.unexpected());
            }
            let word = self.word()?;
            end = word.span.end;
            let text = &self.text[word.span.clone()];
            let name = text.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || byte == b'_').count();
            if name > 0 && is_name(&text[..name]) && text.get(name) == Some(&b'[') {
                return Err(ShellError::Construct("an element of an array"));
            }
            if may_assign && self.is_assignment(&word) {
                self.token(TokenKind::Assignment, word.span.clone());
                assignments.push(word);
            } else {
                if may_assign && self.has_continuation(&word) {
                    return Err(ShellError::Construct("a program's name on two lines"));
                }
                self.token(TokenKind::Word, word.span.clone());
                words.push(word);
            }
        }
        if end == begin {
            return Err(self.unexpected());
        }
        let simple = SimpleCommand { span: begin..end, assignments, words, in_backquotes: self.in_backquotes };
        Ok(ShellStage { span: begin..end, command: StageCommand::Simple(simple), redirections })
    }

    fn has_continuation(&self, word: &Word) -> bool {
        self.text[word.span.clone()].windows(2).any(|two| two == b"\\\n")
    }

    fn is_assignment(&self, word: &Word) -> bool {
        let text = &self.text[word.span.clone()];
        let Some(at) = text.iter().position(|&byte| byte == b'=') else { return false };
        let name = &text[..at];
        is_name(name) || self.is_bash() && name.strip_suffix(b"+").is_some_and(is_name)
    }
}
