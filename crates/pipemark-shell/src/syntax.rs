//! The parts of a command line. Each has its range of bytes in the text.

use std::ops::Range;

use crate::dialect::Dialect;
use crate::error::ShellError;

/// A range of bytes of the text.
pub type Span = Range<usize>;

/// A command line, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub(crate) text: Vec<u8>,
    pub(crate) dialect: Dialect,
    pub(crate) list: CommandList,
    pub(crate) tokens: Vec<Token>,
}

/// Pipelines in sequence: of the whole text, of a loop's body, of a substitution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandList {
    pub pipelines: Vec<Pipeline>,
}

/// What joins a pipeline to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connector {
    /// Nothing follows.
    End,
    /// `;` or a line end.
    Sequence,
    /// `&`
    Background,
    /// `&&`
    And,
    /// `||`
    Or,
}

/// Stages joined by pipes; one stage if there is no pipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    pub span: Span,
    /// Whether `!` inverts its exit code.
    pub negated: bool,
    /// Whether bash's keyword `time` measures it.
    pub timed: bool,
    pub stages: Vec<ShellStage>,
    /// The operators between the stages, one fewer than stages.
    pub bars: Vec<Bar>,
    pub connector: Connector,
}

/// The operator between two stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    pub span: Span,
    /// Whether standard error goes into the pipe too, as with `|&`.
    pub with_errors: bool,
}

/// A stage of a pipeline, with its redirections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellStage {
    pub span: Span,
    pub command: StageCommand,
    pub redirections: Vec<Redirection>,
}

/// A stage without its redirections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageCommand {
    /// A program or builtin with its arguments.
    Simple(SimpleCommand),
    /// A loop, a condition, a group, a subshell or a function.
    Compound(Compound),
}

/// A program with its arguments. It may have no words, as in `>file` or `a=b`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The stage's range, redirections included.
    pub span: Span,
    /// Assignments before the program, such as `LC_ALL=C`. The value of such a word includes the name.
    pub assignments: Vec<Word>,
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// Whether the command stands in backquotes, so that its ranges are not those of the text, and it can't be edited.
    pub in_backquotes: bool,
}

/// A compound command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compound {
    pub kind: CompoundKind,
    /// Its lists of commands, in order.
    pub lists: Vec<CommandList>,
    /// Its own words, such as those after `in`, or the name of a function.
    pub words: Vec<Word>,
}

/// The kind of a compound command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompoundKind {
    Subshell,
    Group,
    If,
    While,
    Until,
    For,
    Case,
    /// The definition of a function.
    Function,
    /// bash's `[[ ]]`
    Test,
    /// bash's `(( ))`
    Arithmetic,
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    pub span: Span,
    /// The descriptor before the operator; `None` if it is the operator's default.
    pub descriptor: Option<u32>,
    pub kind: RedirectionKind,
    /// What follows the operator: a file, a descriptor, or a here-document's delimiter.
    pub target: Word,
    /// A here-document's lines.
    pub body: Option<Span>,
}

/// A redirection's operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectionKind {
    /// `<`
    Read,
    /// `>`
    Write,
    /// `>>`
    Append,
    /// `>|`
    Overwrite,
    /// `<>`
    ReadWrite,
    /// `<&`
    DuplicateInput,
    /// `>&` with a descriptor
    DuplicateOutput,
    /// `<<` and `<<-`
    HereDocument,
    /// `<<<`
    HereString,
    /// `&>`, and `>&` with a file
    BothOutputs,
    /// `&>>`
    AppendBothOutputs,
}

impl Redirection {
    /// The descriptor that is redirected. [`RedirectionKind::BothOutputs`] redirects 1 and 2.
    pub fn redirected(&self) -> u32 {
        let default = match self.kind {
            RedirectionKind::Read
            | RedirectionKind::ReadWrite
            | RedirectionKind::DuplicateInput
            | RedirectionKind::HereDocument
            | RedirectionKind::HereString => 0,
            _ => 1,
        };
        self.descriptor.unwrap_or(default)
    }
}

/// A word, in one piece for the shell's grammar. The shell may expand it to several words or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub span: Span,
    /// The word without quotes; `None` unless it is the same whenever it is run: no expansion, no pattern.
    pub value: Option<Vec<u8>>,
    pub parts: Vec<WordPart>,
}

/// A part of a word, in one kind of quotes or one expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordPart {
    pub span: Span,
    pub kind: WordPartKind,
}

/// The kind of a word's part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordPartKind {
    /// Bytes that stand for themselves.
    Plain,
    /// A byte that the shell may match with files or expand: `*`, `?`, `[`, `~`, `{`, `}`.
    Pattern,
    /// A backslash and the byte that it quotes.
    Escape,
    /// A backslash and a line end, which the shell removes.
    Continuation,
    /// `'…'`
    Single,
    /// `"…"`
    Double(Vec<WordPart>),
    /// `$'…'` of bash
    AnsiC,
    /// `$"…"` of bash
    Locale(Vec<WordPart>),
    /// `$name`
    Parameter,
    /// `${…}`, with the lists of commands of substitutions in it
    Braced(Vec<CommandList>),
    /// `$((…))`, with the lists of commands of substitutions in it
    Arithmetic(Vec<CommandList>),
    /// `$(…)`
    Command(CommandList),
    /// Backquotes. The list's ranges are not those of the text.
    Backquotes(CommandList),
    /// `<(…)` and `>(…)` of bash
    Process(CommandList),
}

impl WordPartKind {
    /// The commands in this part.
    fn lists(&self) -> Vec<&CommandList> {
        match self {
            WordPartKind::Double(parts) | WordPartKind::Locale(parts) => {
                parts.iter().flat_map(|part| part.kind.lists()).collect()
            }
            WordPartKind::Braced(lists) | WordPartKind::Arithmetic(lists) => lists.iter().collect(),
            WordPartKind::Command(list) | WordPartKind::Backquotes(list) | WordPartKind::Process(list) => vec![list],
            _ => Vec::new(),
        }
    }
}

impl Word {
    /// The value as text, if it is known and UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self.value.as_deref()?).ok()
    }

    /// The commands in the word's substitutions.
    pub fn lists(&self) -> Vec<&CommandList> {
        self.parts.iter().flat_map(|part| part.kind.lists()).collect()
    }
}

impl ShellStage {
    /// The stage, if it is a simple command.
    pub fn simple(&self) -> Option<&SimpleCommand> {
        match &self.command {
            StageCommand::Simple(simple) => Some(simple),
            StageCommand::Compound(_) => None,
        }
    }

    fn words(&self) -> impl Iterator<Item = &Word> {
        let own: Box<dyn Iterator<Item = &Word>> = match &self.command {
            StageCommand::Simple(simple) => Box::new(simple.assignments.iter().chain(&simple.words)),
            StageCommand::Compound(compound) => Box::new(compound.words.iter()),
        };
        own.chain(self.redirections.iter().map(|redirection| &redirection.target))
    }

    /// The lists of commands directly in this stage: of a compound command, and of substitutions in its words.
    pub fn lists(&self) -> Vec<&CommandList> {
        let own = match &self.command {
            StageCommand::Simple(_) => &[][..],
            StageCommand::Compound(compound) => &compound.lists[..],
        };
        own.iter().chain(self.words().flat_map(Word::lists)).collect()
    }
}

impl CommandList {
    /// Calls `visit` for each stage at any depth, with its pipeline and its place there.
    pub fn visit<'s>(&'s self, visit: &mut dyn FnMut(&'s Pipeline, usize)) {
        for pipeline in &self.pipelines {
            for (at, stage) in pipeline.stages.iter().enumerate() {
                visit(pipeline, at);
                stage.lists().into_iter().for_each(|list| list.visit(visit));
            }
        }
    }
}

/// A token of the text, as evidence that an edit changed nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    /// How many substitutions the token stands in.
    pub depth: usize,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    Operator,
    Reserved,
    Assignment,
    Word,
    Body,
    Comment,
}

impl Script {
    /// The text, byte for byte.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The bytes of a range.
    pub fn bytes(&self, span: &Span) -> &[u8] {
        &self.text[span.clone()]
    }

    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// All commands of the text.
    pub fn list(&self) -> &CommandList {
        &self.list
    }

    /// The pipeline, if the text is one pipeline and nothing else but comments.
    pub fn pipeline(&self) -> Option<&Pipeline> {
        match &self.list.pipelines[..] {
            [one] if one.connector != Connector::Background => Some(one),
            _ => None,
        }
    }

    /// The stages at any depth, with their pipelines and places there: those of loops, subshells and substitutions too.
    pub fn stages(&self) -> Vec<(&Pipeline, usize)> {
        let mut found = Vec::new();
        self.list.visit(&mut |pipeline, at| found.push((pipeline, at)));
        found
    }

    /// The simple commands at any depth, in the order of the text.
    pub fn commands(&self) -> Vec<&SimpleCommand> {
        self.stages().into_iter().filter_map(|(pipeline, at)| pipeline.stages[at].simple()).collect()
    }

    /// Whether a command of this name may be something else than the program: a function that the text defines, or
    /// what an alias, or another text that it executes, defines. A stage among others can't define anything for them.
    pub fn may_redefine(&self, name: &[u8]) -> bool {
        const DEFINING: [&[u8]; 7] = [b"alias", b".", b"source", b"eval", b"hash", b"enable", b"trap"];
        const PREFIXES: [&[u8]; 3] = [b"command", b"builtin", b"-p"];
        self.stages().into_iter().any(|(pipeline, at)| match &pipeline.stages[at].command {
            StageCommand::Compound(Compound { kind: CompoundKind::Function, words, .. }) => {
                words.iter().any(|word| word.value.as_deref().is_none_or(|own| own == name))
            }
            StageCommand::Compound(_) => false,
            StageCommand::Simple(simple) => {
                let mut words = simple.words.iter().map(|word| word.value.as_deref());
                match words.find(|word| word.is_none_or(|word| !PREFIXES.contains(&word))) {
                    Some(Some(program)) => DEFINING.contains(&program),
                    Some(None) => pipeline.stages.len() == 1,
                    None => false,
                }
            }
        })
    }

    /// The text of each stage, as a command of its own, if the text is one pipeline of such stages.
    ///
    /// # Errors
    /// When it isn't one pipeline, or a part of it belongs to more than one stage.
    pub fn separate_stages(&self) -> Result<Vec<&[u8]>, ShellError> {
        let lines = self.tokens.iter().map(|token| token.kind);
        for kind in lines {
            match kind {
                TokenKind::Body => return Err(ShellError::Edit("a here-document")),
                TokenKind::Comment => return Err(ShellError::Edit("a comment")),
                _ => {}
            }
        }
        let pipeline = self.pipeline().ok_or(ShellError::Edit("a list of commands"))?;
        if pipeline.negated || pipeline.timed {
            return Err(ShellError::Edit("a pipeline after '!' or 'time'"));
        }
        if pipeline.bars.iter().any(|bar| bar.with_errors) {
            return Err(ShellError::Edit("a pipe with |&"));
        }
        Ok(pipeline.stages.iter().map(|stage| self.bytes(&stage.span)).collect())
    }

    /// Whether it has a comment or a here-document, which belong to lines instead of stages.
    pub fn belongs_to_lines(&self) -> bool {
        self.tokens.iter().any(|token| matches!(token.kind, TokenKind::Body | TokenKind::Comment))
    }
}
