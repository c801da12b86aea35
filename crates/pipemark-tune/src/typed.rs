//! A pipeline as typed: its stages, and the words of each stage that is a plain command.

use pipemark_shell::{Bar, Connector, Dialect, RedirectionKind, Script, ShellStage, Span, WordPartKind};

/// A pipeline as typed. Joining the texts of its stages with `|` restores it byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedPipeline {
    pub stages: Vec<TypedStage>,
    dialect: Dialect,
}

/// A stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedStage {
    /// The stage as typed, with the blanks around it.
    pub text: String,
    /// Its words; `None` unless it is a plain command.
    pub command: Option<TypedCommand>,
}

/// A plain command: variables, a program with arguments, and redirections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypedCommand {
    pub variables: Vec<(String, String)>,
    /// The program and its arguments.
    pub words: Vec<TypedWord>,
    pub redirections: Vec<TypedRedirection>,
}

/// A word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypedWord {
    /// The word without its quotes; as typed if it isn't known.
    pub value: String,
    /// The word as typed.
    pub text: String,
    /// Whether the shell expands a variable or a pattern in it, so that its value isn't known.
    pub expands: bool,
    /// Whether it may become several words, because an expansion stands outside quotes.
    pub splits: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedRedirection {
    pub kind: RedirectionKind,
    /// The descriptor that is redirected.
    pub descriptor: u32,
    pub target: TypedWord,
    /// The redirection as typed.
    pub text: String,
}

impl TypedPipeline {
    /// Splits a pipeline as typed.
    ///
    /// # Errors
    /// A message, if it isn't a single pipeline.
    pub fn parse(text: &str, dialect: Dialect) -> Result<TypedPipeline, String> {
        let script = Script::parse(text, dialect).map_err(|error| error.to_string())?;
        let found = script.pipeline().filter(|found| found.connector == Connector::End);
        let found = found.ok_or("this is a list of commands; tune one pipeline at a time, or put the list in ( )")?;
        if script.belongs_to_lines() {
            return Err("the pipeline has a comment or a here-document; omit it, or use a file".to_owned());
        }
        if found.negated || found.timed {
            return Err("omit the word before the pipeline ('!' or 'time')".to_owned());
        }
        if found.bars.iter().any(|bar| bar.with_errors) {
            return Err("write 2>&1 | instead of |&, or leave standard error out of the pipe".to_owned());
        }
        let bars = found.bars.iter().map(|bar: &Bar| bar.span.clone());
        let mut begin = 0;
        let ends: Vec<Span> = bars.chain(std::iter::once(text.len()..text.len())).collect();
        let stages = found.stages.iter().zip(&ends).map(|(stage, end)| {
            let text = text[begin..end.start].to_owned();
            begin = end.end;
            TypedStage { text, command: command(&script, stage) }
        });
        Ok(TypedPipeline { stages: stages.collect(), dialect })
    }

    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The pipeline as typed.
    pub fn text(&self) -> String {
        self.stages.iter().map(|stage| stage.text.as_str()).collect::<Vec<_>>().join("|").trim().to_owned()
    }

    /// The pipeline as a text to paste; `None` if a terminal can't show or copy it exactly.
    pub fn to_paste(&self) -> Option<String> {
        Script::parse(self.text(), self.dialect).ok()?.to_paste().ok()
    }

    /// The pipeline with the stages from `first` to `last` replaced by the commands in `new`; none removes them.
    pub fn replaced(&self, first: usize, last: usize, new: &[String]) -> TypedPipeline {
        let new = new.iter().map(|text| TypedStage::of(format!(" {} ", text.trim()), self.dialect));
        let stages = self.stages[..first].iter().cloned().chain(new).chain(self.stages[last + 1..].iter().cloned());
        TypedPipeline { stages: stages.collect(), dialect: self.dialect }
    }

    /// The name of each stage's program.
    pub fn names(&self) -> Vec<String> {
        self.stages.iter().map(TypedStage::name).collect()
    }
}

impl TypedStage {
    /// A stage of its own.
    pub fn of(text: String, dialect: Dialect) -> TypedStage {
        let script = Script::parse(text.as_str(), dialect).ok();
        let command = script.as_ref().and_then(|script| match &script.pipeline()?.stages[..] {
            [one] => command(script, one),
            _ => None,
        });
        TypedStage { command, text }
    }

    /// The name of the stage's program; for others than plain commands, their first word.
    pub fn name(&self) -> String {
        let word = self.command.as_ref().and_then(|command| command.words.first()).map(|word| word.value.clone());
        let word = word.unwrap_or_else(|| {
            self.text.trim_start_matches(['(', '{', ' ']).split_whitespace().next().unwrap_or_default().to_owned()
        });
        base(&word).to_owned()
    }
}

impl TypedCommand {
    /// The program's name without its directory.
    pub fn program(&self) -> &str {
        self.words.first().map_or("", |word| base(&word.value))
    }

    /// The arguments.
    pub fn arguments(&self) -> &[TypedWord] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Whether all words are known as typed.
    pub fn is_literal(&self) -> bool {
        self.words.iter().all(|word| !word.expands)
    }

    /// Whether its input and output are those of the pipeline.
    pub fn is_in_pipeline(&self) -> bool {
        self.redirections.iter().all(|one| one.descriptor == 2)
    }

    /// Whether its output is that of the pipeline.
    pub fn writes_to_pipeline(&self) -> bool {
        self.redirections.iter().all(|one| one.descriptor != 1)
    }
}

/// The last component of a path.
pub fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Reads a plain command; `None` for all others: lists, groups, loops, and commands that run commands to expand a word.
fn command(script: &Script, stage: &ShellStage) -> Option<TypedCommand> {
    let simple = stage.simple().filter(|_| stage.lists().is_empty())?;
    let text = |span: &Span| String::from_utf8_lossy(script.bytes(span)).into_owned();
    let word = |word: &pipemark_shell::Word| {
        let text = text(&word.span);
        let value = word.as_str().map(str::to_owned);
        let splits = value.is_none() && word.parts.iter().any(|part| may_split(&part.kind));
        TypedWord { expands: value.is_none(), splits, value: value.unwrap_or_else(|| text.clone()), text }
    };
    let words: Vec<TypedWord> = simple.words.iter().map(word).collect();
    let variables = simple.assignments.iter().map(|assignment| {
        let all = word(assignment).value;
        let (name, value) = all.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    });
    let redirections = stage.redirections.iter().map(|one| TypedRedirection {
        kind: one.kind,
        descriptor: one.redirected(),
        target: word(&one.target),
        text: text(&one.span),
    });
    let command =
        TypedCommand { variables: variables.collect::<Option<Vec<_>>>()?, redirections: redirections.collect(), words };
    command.words.first().is_some_and(|first| !first.expands).then_some(command)
}

/// Whether the shell may split what this part of a word expands to. The names that a pattern matches aren't split.
fn may_split(kind: &WordPartKind) -> bool {
    use WordPartKind::{AnsiC, Continuation, Double, Escape, Locale, Pattern, Plain, Single};
    !matches!(kind, Plain | Pattern | Escape | Continuation | Single | Double(_) | AnsiC | Locale(_))
}

/// Quotes a word of this program's own for sh and bash.
pub fn quote(word: &str) -> String {
    pipemark_shell::quote_argument(word.as_bytes(), Dialect::Posix).unwrap_or_else(|_| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_command_has_words_variables_and_redirections() {
        let stage =
            TypedStage::of(" LC_ALL=C grep -e 'a  b' \"c d\" <in 2>/dev/null $'\\t' ".to_owned(), Dialect::Bash);
        let command = stage.command.unwrap();
        assert_eq!(command.variables, [("LC_ALL".to_owned(), "C".to_owned())]);
        let values: Vec<&str> = command.words.iter().map(|word| word.value.as_str()).collect();
        assert_eq!(values, ["grep", "-e", "a  b", "c d", "\t"]);
        let redirections: Vec<_> =
            command.redirections.iter().map(|one| (one.descriptor, one.target.value.as_str())).collect();
        assert_eq!(redirections, [(0, "in"), (2, "/dev/null")]);
    }

    #[test]
    fn other_commands_have_no_words() {
        let of = |text: &str| TypedStage::of(text.to_owned(), Dialect::Bash).command;
        for text in [
            "while read x; do echo $x; done",
            "(a; b)",
            "cat <(x)",
            "a `b`",
            "a $(b)",
            "a \"$(b)\"",
            "if",
            "",
            "a=b",
            "$x y",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
        assert!(of("cat *.gz").unwrap().words[1].expands);
    }

    #[test]
    fn a_pipeline_is_restored_byte_for_byte() {
        let text = "zcat  a.gz|grep 'x | y' |  sort   -k 2";
        let pipeline = TypedPipeline::parse(text, Dialect::Posix).unwrap();
        let names = ["zcat", "grep", "sort"].map(str::to_owned).to_vec();
        assert_eq!((pipeline.text().as_str(), pipeline.names()), (text, names));
        assert_eq!(pipeline.replaced(1, 2, &["awk 1".to_owned()]).text(), "zcat  a.gz| awk 1");
        for text in ["a; b", "a && b", "a |& b", "! a | b", "a | b # c", "a |", "a &"] {
            assert!(TypedPipeline::parse(text, Dialect::Bash).is_err(), "{text}");
        }
    }
}
