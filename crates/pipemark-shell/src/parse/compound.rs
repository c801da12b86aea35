//! Compound commands: groups, loops, conditions, functions, tests.

use super::{Parsed, Parser, Until, is_blank, is_delimiter, is_name};
use crate::error::ShellError;
use crate::syntax::{CommandList, Compound, CompoundKind, ShellStage, StageCommand, TokenKind, Word};

impl Parser<'_> {
    /// The compound command that begins with this word.
    pub fn compound(&mut self, word: &'static str) -> Parsed<ShellStage> {
        let begin = self.at;
        let (kind, lists, words) = match word {
            "(" if self.starts("((") => {
                if !self.is_bash() {
                    return Err(ShellError::Construct("(("));
                }
                let span = self.at..self.at + 2;
                self.at += 2;
                self.token(TokenKind::Operator, span);
                let lists = self.arithmetic_to_end()?;
                (CompoundKind::Arithmetic, lists, Vec::new())
            }
            "(" => {
                self.operator(1)?;
                let list = self.body(Until::Bracket)?;
                self.operator(1)?;
                (CompoundKind::Subshell, vec![list], Vec::new())
            }
            "{" => {
                self.take_reserved("{")?;
                let list = self.body(Until::Reserved(&["}"]))?;
                self.take_reserved("}")?;
                (CompoundKind::Group, vec![list], Vec::new())
            }
            "if" => (CompoundKind::If, self.condition()?, Vec::new()),
            "while" | "until" => {
                self.take_reserved(word)?;
                let test = self.body(Until::Reserved(&["do"]))?;
                let kind = if word == "while" { CompoundKind::While } else { CompoundKind::Until };
                (kind, vec![test, self.loop_body()?], Vec::new())
            }
            "for" => self.for_loop()?,
            "case" => self.case()?,
            "[[" if self.is_bash() => (CompoundKind::Test, Vec::new(), self.test()?),
            "function" if self.is_bash() => return self.function_keyword(begin),
            "[[" | "function" => return Err(ShellError::Construct(word)),
            "select" | "coproc" => return Err(ShellError::Construct(word)),
            _ => return Err(self.unexpected()),
        };
        let command = StageCommand::Compound(Compound { kind, lists, words });
        self.with_redirections(begin, command)
    }

    fn with_redirections(&mut self, begin: usize, command: StageCommand) -> Parsed<ShellStage> {
        let (mut end, mut redirections) = (self.at, Vec::new());
        loop {
            self.skip_blanks()?;
            match self.redirection()? {
                Some(redirection) => {
                    end = redirection.span.end;
                    redirections.push(redirection);
                }
                None => break,
            }
        }
        match self.peek() {
            Some(b')' | b';' | b'&' | b'|' | b'\n') | None => {
                Ok(ShellStage { span: begin..end, command, redirections })
            }
            Some(_) => Err(self.unexpected()),
        }
    }

    /// A list of at least one command.
    fn body(&mut self, until: Until<'_>) -> Parsed<CommandList> {
        let list = self.nested(|parser| parser.list(until))?;
        if list.pipelines.is_empty() { Err(self.unexpected()) } else { Ok(list) }
    }

    /// A loop's `do … done`.
    fn loop_body(&mut self) -> Parsed<CommandList> {
        self.take_reserved("do")?;
        let list = self.body(Until::Reserved(&["done"]))?;
        self.take_reserved("done")?;
        Ok(list)
    }

    fn condition(&mut self) -> Parsed<Vec<CommandList>> {
        let mut lists = Vec::new();
        self.take_reserved("if")?;
        loop {
            lists.push(self.body(Until::Reserved(&["then"]))?);
            self.take_reserved("then")?;
            lists.push(self.body(Until::Reserved(&["elif", "else", "fi"]))?);
            match self.reserved() {
                Some("elif") => self.take_reserved("elif")?,
                Some("else") => {
                    self.take_reserved("else")?;
                    lists.push(self.body(Until::Reserved(&["fi"]))?);
                    break;
                }
                _ => break,
            }
        }
        self.take_reserved("fi")?;
        Ok(lists)
    }

    fn for_loop(&mut self) -> Parsed<(CompoundKind, Vec<CommandList>, Vec<Word>)> {
        self.take_reserved("for")?;
        self.skip_blanks()?;
        if self.starts("((") {
            return Err(ShellError::Construct("for (("));
        }
        let name = self.word()?;
        if !is_name(&self.text[name.span.clone()]) {
            return Err(ShellError::Unexpected("what follows 'for'".to_owned()));
        }
        self.token(TokenKind::Word, name.span.clone());
        self.skip_blanks()?;
        let mut words = Vec::new();
        if self.peek() == Some(b'\n') {
            self.skip_lines()?;
        }
        if self.reserved() == Some("in") {
            self.take_reserved("in")?;
            loop {
                self.skip_blanks()?;
                match self.peek() {
                    Some(b';' | b'\n') => break,
                    Some(byte) if is_delimiter(byte) && !(self.is_bash() && self.starts_process()) => {
                        return Err(self.unexpected());
                    }
                    Some(_) => {}
                    None => return Err(ShellError::Unclosed("do")),
                }
                let word = self.word()?;
                self.token(TokenKind::Word, word.span.clone());
                words.push(word);
            }
        }
        if self.peek() == Some(b';') && !self.starts(";;") {
            self.operator(1)?;
        }
        self.skip_lines()?;
        Ok((CompoundKind::For, vec![self.loop_body()?], words))
    }

    fn case(&mut self) -> Parsed<(CompoundKind, Vec<CommandList>, Vec<Word>)> {
        let (mut lists, mut words) = (Vec::new(), Vec::new());
        self.take_reserved("case")?;
        self.skip_blanks()?;
        words.push(self.case_word()?);
        self.skip_lines()?;
        self.take_reserved("in")?;
        self.skip_lines()?;
        while self.reserved() != Some("esac") {
            if self.peek() == Some(b'(') {
                self.operator(1)?;
                self.skip_blanks()?;
            }
            loop {
                words.push(self.case_word()?);
                self.skip_blanks()?;
                match self.peek() {
                    Some(b'|') if !self.starts("||") => {
                        self.operator(1)?;
                        self.skip_blanks()?;
                    }
                    Some(b')') => break,
                    _ => return Err(self.unexpected()),
                }
            }
            self.operator(1)?;
            lists.push(self.nested(|parser| parser.list(Until::CaseItem))?);
            if self.starts(";;") {
                if self.starts(";;&") {
                    return Err(ShellError::Construct(";;&"));
                }
                self.operator(2)?;
                self.skip_lines()?;
            }
        }
        self.take_reserved("esac")?;
        Ok((CompoundKind::Case, lists, words))
    }

    fn case_word(&mut self) -> Parsed<Word> {
        if self.peek().is_none_or(is_delimiter) {
            return Err(self.unexpected());
        }
        let word = self.word()?;
        self.token(TokenKind::Word, word.span.clone());
        Ok(word)
    }

    /// A function, after its name.
    pub fn function(&mut self, begin: usize, name: &Word) -> Parsed<ShellStage> {
        if !is_name(&self.text[name.span.clone()]) {
            return Err(self.unexpected());
        }
        self.operator(1)?;
        self.skip_blanks()?;
        if self.peek() != Some(b')') {
            return Err(self.unexpected());
        }
        self.operator(1)?;
        self.function_body(begin, name.clone())
    }

    fn function_keyword(&mut self, begin: usize) -> Parsed<ShellStage> {
        self.take_reserved("function")?;
        self.skip_blanks()?;
        let name = self.word()?;
        if !is_name(&self.text[name.span.clone()]) {
            return Err(ShellError::Construct("this name of a function"));
        }
        self.token(TokenKind::Word, name.span.clone());
        self.skip_blanks()?;
        if self.peek() == Some(b'(') {
            self.operator(1)?;
            self.skip_blanks()?;
            if self.peek() != Some(b')') {
                return Err(self.unexpected());
            }
            self.operator(1)?;
        }
        self.function_body(begin, name)
    }

    fn function_body(&mut self, begin: usize, name: Word) -> Parsed<ShellStage> {
        self.skip_lines()?;
        let body = match self.reserved() {
            Some(word @ ("{" | "if" | "while" | "until" | "for" | "case")) => word,
            None if self.peek() == Some(b'(') => "(",
            _ => return Err(self.unexpected()),
        };
        let ShellStage { span, command, redirections } = self.nested(|parser| parser.compound(body))?;
        let lists = match command {
            StageCommand::Compound(compound) => compound.lists,
            StageCommand::Simple(_) => Vec::new(),
        };
        let command = StageCommand::Compound(Compound { kind: CompoundKind::Function, lists, words: vec![name] });
        Ok(ShellStage { span: begin..span.end, command, redirections })
    }

    /// bash's `[[ … ]]`. Operators that mean something else elsewhere aren't in the grammar.
    fn test(&mut self) -> Parsed<Vec<Word>> {
        let mut words = Vec::new();
        self.take_reserved("[[")?;
        loop {
            self.skip_blanks()?;
            if self.reserved() == Some("]]") {
                self.take_reserved("]]")?;
                return if words.is_empty() { Err(self.unexpected()) } else { Ok(words) };
            }
            match self.peek() {
                _ if self.starts("&&") || self.starts("||") => {
                    self.operator(2)?;
                }
                Some(byte) if !is_delimiter(byte) => {
                    let word = self.word()?;
                    let is_regex = self.text[word.span.clone()] == *b"=~";
                    self.token(TokenKind::Word, word.span.clone());
                    words.push(word);
                    // Regular expressions have brackets and bars that aren't operators.
                    if is_regex || self.peek().is_some_and(|byte| !is_blank(byte)) {
                        return Err(ShellError::Construct("this expression in [[ ]]"));
                    }
                }
                None => return Err(ShellError::Unclosed("]]")),
                Some(_) => return Err(ShellError::Construct("this expression in [[ ]]")),
            }
        }
    }
}
