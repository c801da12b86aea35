//! Generates commands of POSIX sh and bash from all constructs, nested. `show` is the only program.

use pipemark_shell::Dialect;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A generated command.
pub struct Generated {
    pub text: Vec<u8>,
    /// Chooses the command that is edited.
    pub choice: usize,
}

pub struct Generator {
    dialect: Dialect,
    random: Xoshiro256PlusPlus,
    ids: usize,
}

impl Generator {
    pub fn new(dialect: Dialect, seed: u64) -> Generator {
        Generator { dialect, random: Xoshiro256PlusPlus::seed_from_u64(seed), ids: 0 }
    }

    fn number(&mut self, below: usize) -> usize {
        (self.random.next_u64() % below as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.number(from.len())]
    }

    fn is_bash(&self) -> bool {
        self.dialect == Dialect::Bash
    }

    pub fn command(&mut self) -> Generated {
        self.ids = 0;
        // Shells start a process for each command, which takes most of the time.
        let depth = [0, 0, 0, 0, 0, 1, 1, 1, 1, 2][self.number(10)];
        let mut text = self.list(depth);
        match self.number(12) {
            0 => text.push_str(" # it's | a comment; show"),
            1 => text = format!("{text} | show {} <<E\na  $W 'b'\nE\n", self.id()),
            2 => text = format!("show {} <<-'E' | {text}\na $W `b`\nE\n", self.id()),
            3 => text = format!("f() {{ {text}\n}}\nf | show {}", self.id()),
            4 => text = format!("show {} <<E <<'F X'; {text}\nE\nE\n# $V\nF X\n", self.id()),
            5 => text = format!("# show\n\n{text} &&\n# it's\n show {} #\n", self.id()),
            _ => {}
        }
        let mut text = text.into_bytes();
        // A byte that isn't UTF-8, in place of a letter in a word.
        if self.number(4) == 0
            && let Some(at) = text.windows(2).position(|two| two == b"bQ")
        {
            text[at + 1] = 0xe9;
        }
        Generated { text, choice: self.random.next_u64() as usize >> 1 }
    }

    fn list(&mut self, depth: usize) -> String {
        let first = self.pipeline(depth);
        match self.number(8) {
            0 => format!("{first}; {}", self.pipeline(depth)),
            1 => format!("{first} && {}", self.pipeline(depth)),
            2 => format!("{first} || {}", self.pipeline(depth)),
            3 if depth < 2 => format!("{first}\n{}", self.pipeline(depth)),
            _ => first,
        }
    }

    fn pipeline(&mut self, depth: usize) -> String {
        let mut text = match self.number(14) {
            0 => "! ".to_owned(),
            1 if self.is_bash() => "time ".to_owned(),
            _ => String::new(),
        };
        for stage in 0..=self.number(3) {
            if stage > 0 {
                let both = self.is_bash() && self.number(8) == 0;
                text.push_str(if both {
                    " |& "
                } else {
                    self.pick(&[" | ", "|", "  |  ", " | \\\n ", " |\n", "\t|\t"])
                });
            }
            let stage = if depth > 0 && self.number(4) == 0 { self.compound(depth - 1) } else { self.simple(depth) };
            text.push_str(&stage);
        }
        text
    }

    fn compound(&mut self, depth: usize) -> String {
        let list = self.list(depth);
        let other = self.simple(0);
        let word = self.word(0);
        let text = match self.number(if self.is_bash() { 11 } else { 8 }) {
            0 => format!("({list})"),
            1 => format!("{{ {list}; }}"),
            2 => format!("if {other}; then {list}; else {}; fi", self.simple(0)),
            3 => format!("for x in 1 {word}; do {list}; done"),
            4 => format!("while read -r x; do {list} </dev/null; done"),
            5 => format!("{{ n=; until [ -n \"$n\" ]; do n=1; {other}; {list}; done; }}"),
            6 => format!("case {word} in a|'b c') {other};; (*) {list};; esac"),
            7 => format!("{{ g{0}() {{ {list}\n}}; g{0}; }}", self.id()),
            8 => format!("{{ [[ -n {word} && -f in ]] && {list}; }}"),
            9 => format!("{{ ((1 < 2)); {list}; }}"),
            _ => format!("{{ function k{0} {{ {list}; }}; k{0}; }}", self.id()),
        };
        match self.number(4) {
            0 => format!("{text} 2>&1"),
            1 => format!("{text} 2>/dev/null"),
            _ => text,
        }
    }

    fn simple(&mut self, depth: usize) -> String {
        // Words may contain commands, which have ids too.
        let id = self.id();
        let mut text = String::new();
        if self.number(5) == 0 {
            text.push_str(&format!("A={} ", self.word(depth)));
        }
        if self.number(12) == 0 {
            text.push_str(self.pick(&[
                "nohup ",
                "timeout 9 ",
                "env B=2 'C= 3' ",
                "nice -n 5 ",
                "timeout -s INT 1 nohup ",
            ]));
        }
        let program = self.pick(&["show", "show", "show", "'show'", "sh\"ow\"", "\\show"]);
        text.push_str(&format!("{program} {id}"));
        for _ in 0..self.number(4) {
            let blank = self.pick(&[" ", "  ", "\t", " \\\n"]);
            let item = if self.number(7) == 0 { self.redirection() } else { self.word(depth) };
            text.push_str(&format!("{blank}{item}"));
        }
        text
    }

    /// A word that only one command gets.
    fn id(&mut self) -> String {
        self.ids += 1;
        format!("s{}", self.ids)
    }

    /// Processes in `<( )` run at the same time as others with the same input, so they read none.
    fn process(&mut self) -> String {
        format!("<(show {} </dev/null)", self.id())
    }

    fn redirection(&mut self) -> String {
        let common = ["2>&1", "2>/dev/null", "<in", "< 'in'", "3>&1", "3>&-", "<&0", "2>>log2", "3>|junk", "0<in"];
        let bash = ["2>&1", "<<<'h  s'", "<<<$W", "&>>junk2", "10>junk3"];
        match self.number(12) {
            0 if self.is_bash() => format!("< {}", self.process()),
            1..=5 if self.is_bash() => self.pick(&bash).to_owned(),
            _ => self.pick(&common).to_owned(),
        }
    }

    fn word(&mut self, depth: usize) -> String {
        (0..=self.number(2)).map(|_| self.part(depth)).collect()
    }

    fn part(&mut self, depth: usize) -> String {
        /// What needs quotes that sh doesn't have, or what history expansion changes.
        const RARE: [&str; 9] =
            ["'\t'", "\"a\tb\"", "'x\ny'", "\"\u{202e}\u{200b}\"", "\"c!d\"", "a!b", "'x!y'", "[!x]y", "bQ"];
        const COMMON: [&str; 41] = [
            "show",
            "'show s1|show'",
            "a",
            "b",
            "it\\'s",
            "'a  b'",
            "'a|b;c&d'",
            "\"a  b\"",
            "\"$W\"",
            "$V",
            "${V:-x}",
            "${V:-'a b'}",
            "${V:-\"$W\"}",
            "\"${V:-x y}\"",
            "${W#w}",
            "\"${W%% *}\"",
            "${#W}",
            "$((1 + 2))",
            "$((2*(3+4)))",
            "\"$((1<2))\"",
            "'*'",
            "*.nosuch",
            "in*",
            "\\ x",
            "x\\|y",
            "a#b",
            "'#'",
            "{}",
            "{a}",
            "a,b",
            "=",
            "a=b",
            "~nosuch",
            "-x",
            "--",
            "é",
            "'日本  x'",
            "\\é",
            "$#",
            "\"$@\"",
            "$?",
        ];
        const BASH: [&str; 17] = [
            "{a,b}",
            "x{1..3}y",
            "{a,'b c'}",
            "$'a\\tb'",
            "$'it\\'s'",
            "$'\\x41\\101'",
            "$\"a b\"",
            "${W//w/x}",
            "${W^^}",
            "${W:1:2}",
            "${V:=}",
            "$'\\e[1m'",
            "a{b,c!d}e",
            "${!N}",
            "\"${W@Q}\"",
            "$'x!y'",
            "{x,\t}",
        ];
        match self.number(10) {
            0 if depth > 0 && self.number(2) == 0 => format!("$({})", self.list(depth - 1)),
            1 if depth > 0 && self.number(2) == 0 => format!("\"$({})\"", self.list(depth - 1)),
            2 if depth > 0 => format!("`{}`", self.backquoted()),
            3 if depth > 0 && self.is_bash() => format!("${{V:-$({})}}", self.pipeline(depth - 1)),
            4 if self.is_bash() && self.number(18) == 0 => self.process(),
            4 if self.is_bash() => self.pick(&BASH).to_owned(),
            5 if self.number(if self.is_bash() { 3 } else { 12 }) == 0 => self.pick(&RARE).to_owned(),
            _ => self.pick(&COMMON).to_owned(),
        }
    }

    fn backquoted(&mut self) -> String {
        let inner = format!("\\`show {}\\`", self.id());
        let word = self.pick(&["x", "'a  b'", "$W", "\"$W\"", &inner, "${V:-z}"]).to_owned();
        format!("show {} {word} | show {}", self.id(), self.id())
    }
}
