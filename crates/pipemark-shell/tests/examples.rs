//! Commands with every construct: which are parsed, what they are edited to, what is printed.

use pipemark_shell::{Dialect, Edits, RunningStage, Script, ShellError, find_stages, from_arguments};

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// The text with an option for the command that runs `grep p`.
fn edited(text: &str, dialect: Dialect) -> Result<String, ShellError> {
    let script = Script::parse(text, dialect)?;
    let argv = words("grep p");
    let found =
        find_stages(&script, &[RunningStage { name: "grep", words: &argv, reads_pipe: false, writes_pipe: false }]);
    let command = found[0].ok_or(ShellError::Edit("not found"))?;
    let mut edits = Edits::new(&script);
    edits.insert_options(command.simple, command.program, &["-E"])?;
    edits.apply()?.to_paste()
}

#[test]
fn only_the_named_command_changes() {
    for text in [
        "cat a | grep p | sort",
        "cat grep - | grep p | sort",
        "for f in a b; do echo grep; done | grep p",
        "LC_ALL=C timeout -s KILL 9 nice -n 5 grep p <f 2>&1 | wc -l",
        "cat 'a  b' \"c $x\" ${V:-x} $(date +%s) `id -u` $((1 + 2)) | grep ${X:-p}",
        "(cat a; cat b) | grep p >|out",
        "{ cat a; cat b; } | grep 'p' # grep p",
        "while read -r l; do echo \"$l\"; done <in | grep p || echo none",
        "if [ ! -f x ]; then grep p; fi | cat",
        "case $x in a|b) grep p;; *) cat;; esac | wc",
        "f() { grep p; }\ncat a | f",
        "cat <<E | grep p | wc\na  b\nE\n",
        "x=$(cat a | grep p)",
        "echo \"$(cat a | grep p)\" | cat",
        "! cat a | \\\n grep p",
        "cat a |\n grep p",
        "cd /tmp && cat a | grep p; echo $? &",
    ] {
        for dialect in [Dialect::Posix, Dialect::Bash] {
            let at =
                text.rfind("| grep p").or(text.rfind("grep ${X")).or(text.rfind("grep 'p'")).or(text.find("grep p"));
            let result = edited(text, dialect).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(result.replacen("grep -E ", "grep ", 1), text);
            assert_eq!(result.matches("-E").count(), 1, "{result}");
            assert!(at.is_some());
        }
    }
    for text in [
        "cat <(cat a | grep p) $'x' $\"y\" {a,b} |& cat &> out",
        "[[ -n $x && -f a ]] && cat <<<a | grep p",
        "time -p cat a | grep p",
        "((x > 1)) || grep p >& out",
        "function f { grep p; }; f",
        "echo ${x//a/b} ${#x} ${!y} ${z[@]} | grep p",
    ] {
        let result = edited(text, Dialect::Bash).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(result.replacen("grep -E ", "grep ", 1), text);
    }
}

#[test]
fn what_shells_disagree_about_is_refused() {
    for text in [
        "cat $'x'",
        "cat $\"x\"",
        "cat <(a)",
        "a |& b",
        "a &> b",
        "cat <<<x",
        "[[ -f a ]]",
        "((1))",
        "a 10>b",
        "a >& b",
        "echo ${x//a/b}",
        "select x in a; do b; done",
    ] {
        assert!(Script::parse(text, Dialect::Posix).is_err(), "{text}");
    }
    for text in [
        "",
        " ",
        "# x",
        "a |",
        "| a",
        "a ||",
        "&& a",
        "a ;; b",
        "( )",
        "(a",
        "a)",
        "{ a",
        "{ a; } b",
        "a 'b",
        "a \"b",
        "a `b",
        "a $(b",
        "a ${b",
        "a \\",
        "if a; then b",
        "for x in a; b; done",
        "while a; do done",
        "case x in a) b",
        "fi",
        "a() b",
        "a <<E",
        "a <<E\nb",
        "a > | b",
        "a > > b",
        "a < ",
        "echo $((echo a) | cat)",
        "a=(b c)",
        "echo @(a|b)",
        "! ! a",
        "a $[1]",
        "coproc a",
        "a |\\\n| b",
        "a & & b",
        "a ; ; b",
        "x[1]=2",
        "echo a<(b)",
        "{a}>b",
        "i\\\nf x",
        "a\0b",
    ] {
        assert!(Script::parse(text, Dialect::Bash).is_err(), "{text:?}");
        assert!(Script::parse(text, Dialect::Posix).is_err(), "{text:?}");
    }
    assert!(Script::parse("a | ".repeat(40_000) + "a", Dialect::Bash).is_err());
    assert!(Script::parse("(".repeat(4000), Dialect::Posix).is_err());
    for open in ["$(", "$((", "\"$((", "${x:-", "\"${x:-", "$(($((1)) + ", "<(", "{ ", "if ", "case x in x) "] {
        for dialect in [Dialect::Posix, Dialect::Bash] {
            assert!(Script::parse(open.repeat(120_000 / open.len()), dialect).is_err(), "{open}");
        }
    }
    for shell in ["zsh", "/usr/bin/fish", "ksh", "mksh", "csh", "nu"] {
        assert!(Dialect::of_shell(shell).is_err(), "{shell}");
    }
    assert_eq!(Dialect::of_shell("/bin/sh"), Ok(Dialect::Posix));
    assert_eq!(Dialect::of_shell("-bash"), Ok(Dialect::Bash));
}

#[test]
fn a_stage_that_could_be_several_commands_is_not_found() {
    for text in
        ["grep p & grep p", "x | grep $A | grep $B", "echo `grep p`", "eval 'grep p'", "$G p", "grep q", "foo grep p"]
    {
        assert!(edited(text, Dialect::Bash).is_err(), "{text}");
    }
    let script = Script::parse("sort -k 2 | uniq | sort -k 2 | zcat a.gz", Dialect::Bash).unwrap();
    let [sort, zcat] = [words("sort -k 2"), words("gzip -cd a.gz")];
    let stage = |name, words| RunningStage { name, words, reads_pipe: false, writes_pipe: false };
    let found = find_stages(&script, &[stage("sort", &sort[..]), stage("sort", &sort), stage("zcat", &zcat)]);
    let places: Vec<Option<usize>> = found.iter().map(|one| one.map(|command| command.place)).collect();
    assert_eq!(places, [Some(0), Some(2), Some(3)]);
    assert!(find_stages(&script, &[stage("sort", &sort)])[0].is_none());
}

/// The only command with the arguments of a stage isn't the stage if it has no pipe where the stage has one.
#[test]
fn a_command_elsewhere_is_not_the_stage() {
    let argv = words("sort -k1");
    let is_found = |text: &str, reads_pipe, writes_pipe| {
        let script = Script::parse(text, Dialect::Bash).unwrap();
        find_stages(&script, &[RunningStage { name: "sort", words: &argv, reads_pipe, writes_pipe }])[0].is_some()
    };
    for text in [
        "false && sort -k1; cat big | bash -c 'sort -k1; true' | tail -n1",
        "true || sort -k1; cat big | sh -c 'sort -k1' | cat",
        "if false; then sort -k1; fi; cat big | xargs -n1 sort -k1 | cat",
        "cat big | bash -c 'sort -k1; true' | cat; sort -k1 </dev/null",
        "sort -k1 | cat; x | sh -c 'sort -k1' | cat",
        "cat | sort -k1; x | sh -c 'sort -k1' | cat",
    ] {
        assert!(!is_found(text, true, true), "{text}");
    }
    assert!(is_found("cat | sort -k1; true", true, false) && !is_found("cat | sort -k1; true", true, true));
    for text in
        ["a | sort -k1 | b", "a | (x; sort -k1) | b", "a | while read -r x; do sort -k1; done | b", "echo $(sort -k1)"]
    {
        assert!(is_found(text, true, true), "{text}");
    }
}

#[test]
fn a_name_may_be_defined_by_the_text() {
    let may_be = |text: &str| Script::parse(text, Dialect::Bash).unwrap().may_redefine(b"gzip");
    for text in [
        "gzip() { /usr/bin/gzip \"$@\" | wc -c; }; cat x | gzip -1 | cat",
        "function gzip { pigz; }; cat x | gzip",
        "{ gzip() (pigz); }; cat x | gzip",
        "alias gzip=pigz; cat x | gzip",
        ". ./lib.sh; cat x | gzip",
        "eval \"$X\"; cat x | gzip",
        "builtin hash -p /x gzip; cat x | gzip",
        "command -p eval \"$X\"; cat x | gzip",
        "trap 'gzip() { :; }' DEBUG; cat x | gzip",
        "$X; cat x | gzip",
    ] {
        assert!(may_be(text), "{text}");
    }
    assert!(!may_be("zip() { :; }; cat alias | gzip | echo eval") && !may_be("$X a | gzip"));
}

#[test]
fn a_command_that_shares_an_end_is_not_alone() {
    let is_alone = |text: &str| {
        let script = Script::parse(text, Dialect::Bash).unwrap();
        let argv = words("sed -u 5q");
        let stage = RunningStage { name: "sed", words: &argv, reads_pipe: false, writes_pipe: false };
        find_stages(&script, &[stage])[0].unwrap().is_alone(&script)
    };
    for text in [
        "a | sed -u 5q | b",
        "a | sed -u 5q | b || echo no >&2",
        "sed -u 5q",
        "a | sed -u 5q && b",
        "{ a | sed -u 5q; b; } | c",
        "x; a | sed -u 5q",
    ] {
        assert!(is_alone(text), "{text}");
    }
    for text in [
        "a | (sed -u 5q | b; c)",
        "a | { sed -u 5q; c; }",
        "a | while sed -u 5q; do :; done",
        "sed -u 5q; cat",
        "(a | sed -u 5q & b | grep x; wait) | c",
        "b & a | sed -u 5q",
        "(a | sed -u 5q | b) & (c | d); wait",
        "a | sed -u 5q | { b & c; wait; }",
        "a | sed -u 5q 2>&1 | b",
        "{ a | sed -u 5q | b; } 2>&1 | c",
        "{ a | sed -u 5q <&3 | b; cat <&3; } 3<in",
        "a | sed -u 5q |& b",
        "tee >(sed -u 5q | b) | c",
    ] {
        assert!(!is_alone(text), "{text}");
    }
}

fn edit(text: &str, change: impl Fn(&mut Edits<'_>, &Script) -> Result<(), ShellError>) -> Result<String, ShellError> {
    let script = Script::parse(text, Dialect::Bash)?;
    let mut edits = Edits::new(&script);
    change(&mut edits, &script)?;
    edits.apply()?.to_paste()
}

#[test]
fn edits_change_the_range_and_nothing_else() {
    let ok =
        |text: &str, change: &dyn Fn(&mut Edits<'_>, &Script) -> Result<(), ShellError>| edit(text, change).unwrap();
    assert_eq!(
        ok("time A=1 sort  x|wc", &|edits, script| edits.set_environment(script.commands()[0], "LC_ALL", "C")),
        "time LC_ALL=C A=1 sort  x|wc"
    );
    assert_eq!(
        ok("LC_ALL=x sort", &|edits, script| edits.set_environment(script.commands()[0], "LC_ALL", "C")),
        "LC_ALL=C sort"
    );
    assert!(edit("sudo sort", |edits, script| edits.set_environment(script.commands()[0], "LC_ALL", "C")).is_err());
    assert!(
        edit("env LC_ALL=x sort", |edits, script| edits.set_environment(script.commands()[0], "LC_ALL", "C")).is_err()
    );
    assert_eq!(
        ok("timeout 9 awk x >f", &|edits, script| edits.insert_before(script.commands()[0], 2, &["stdbuf", "-oL"])),
        "timeout 9 stdbuf -oL awk x >f"
    );
    assert_eq!(
        ok("a b >f c", &|edits, script| edits.append_arguments(script.commands()[0], &["$(nproc)"])),
        "a b >f c $(nproc)"
    );
    assert!(edit("a -- b", |edits, script| edits.append_arguments(script.commands()[0], &["-x"])).is_err());
    assert_eq!(ok("a  b  c d", &|edits, script| edits.remove_words(script.commands()[0], 1..3)), "a d");
    assert_eq!(ok("a b c", &|edits, script| edits.remove_words(script.commands()[0], 0..1)), "b c");
    assert!(edit("a b >x c", |edits, script| edits.remove_words(script.commands()[0], 1..3)).is_err());
    assert_eq!(ok("'gzip' -9 x", &|edits, script| edits.replace_program(script.commands()[0], 0, "pigz")), "pigz -9 x");
    let pipe = |script: &Script| script.pipeline().unwrap().clone();
    assert_eq!(
        ok("a |& b|c", &|edits, script| edits.insert_stage(&pipe(script), 0, "relay 1 'x y'")),
        "a |& relay 1 'x y' | b|c"
    );
    assert_eq!(
        ok("psql  -q", &|edits, script| edits.insert_first_stage(&pipe(script), "(echo 'a;'; cat)")),
        "(echo 'a;'; cat) | psql  -q"
    );
    assert_eq!(ok("a | b  | c", &|edits, script| edits.drop_stage(&pipe(script), 1)), "a | c");
    assert_eq!(ok("a | b  | c", &|edits, script| edits.drop_stage(&pipe(script), 0)), "b  | c");
    assert_eq!(ok("a | b  | c", &|edits, script| edits.drop_stage(&pipe(script), 2)), "a | b");
    assert!(edit("a", |edits, script| edits.drop_stage(&pipe(script), 0)).is_err());
    assert_eq!(
        ok("a 2>x | b $(c | d) | e", &|edits, script| edits.swap_with_next(&pipe(script), 0)),
        "b $(c | d) | a 2>x | e"
    );
    assert_eq!(
        ok("cat 'a b' | wc -l | e", &|edits, script| edits.read_file_instead_of_cat(&pipe(script))),
        "< 'a b' wc -l | e"
    );
    for text in [
        "cat -n a | b",
        "cat a b | c",
        "cat a 2>x | b",
        "cat a | b <c",
        "cat a | (b)",
        "cat - | b",
        "cat a |& b",
        "cat $x | b",
    ] {
        assert!(edit(text, |edits, script| edits.read_file_instead_of_cat(&pipe(script))).is_err(), "{text}");
    }
}

#[test]
fn what_a_terminal_changes_is_quoted_or_refused() {
    let bash = |text: &str| Script::parse(text, Dialect::Bash).unwrap().to_paste();
    let sh = |text: &str| Script::parse(text, Dialect::Posix).unwrap().to_paste();
    for (text, expected) in [
        ("cut -d'\t' -f1", r"cut -d$'\t' -f1"),
        ("cut -d\"\t\" -f1", r#"cut -d""$'\t'"" -f1"#),
        ("cut\t-f1", "cut -f1"),
        ("a \"x\u{202e}$y\"", r#"a "x"$'\xe2\x80\xae'"$y""#),
        ("a 'x\ny'", r"a $'x\ny'"),
        ("a $(b '\t')", r"a $(b $'\t')"),
        ("a b!c \"d!e$f\"", r#"a b'!'c "d"'!'"e$f""#),
        ("a 'b!c' ! [ ! -f x ] \"hi! x\"", "a 'b!c' ! [ ! -f x ] \"hi! x\""),
        ("a [!b]* $! \\!x", "a [!b]* $! \\!x"),
        ("a `b 'c  d'` $'e\tf'", "a `b 'c  d'` $'e\\tf'"),
        ("^a^b | c", "'^'a^b | c"),
        ("echo a\\ ", "echo a' '"),
        ("a $'b\\'c' d!e", "a 'b'\\''c' d'!'e"),
        ("é \\é 日本", "é \\é 日本"),
        ("grep 'a  hit' -e b", "grep 'a  hit' -e b"),
    ] {
        assert_eq!(bash(text).as_deref(), Ok(expected), "{text:?}");
    }
    let bytes = Script::parse(&b"cat caf\xe9 'x\xff'"[..], Dialect::Bash).unwrap();
    assert_eq!(bytes.to_paste().unwrap(), r"cat caf$'\xe9' $'x\xff'");
    for text in [
        "a ${b:-\t}",
        "a # \t",
        "cat <<E\na\tb\nE\n",
        "cat <<E\na \nE\n",
        "a `b '\t'`",
        "a \"$(b 'c!d')\"",
        "a # don't !x\nb!c",
        "a [!b \\\n]",
        "a\n$!b",
        "a ~\u{200b}x",
    ] {
        assert!(bash(text).is_err(), "{text:?}");
    }
    for text in ["cut -d'\t' -f1", "a 'x\u{1b}'", "a 'x \ny'", "a \u{200b}"] {
        assert!(sh(text).is_err(), "{text:?}");
    }
    assert_eq!(sh("a 'x\ny'\tz").unwrap(), "a 'x\ny' z");
    assert!(sh(&format!("a {}", "x".repeat(5000))).is_err());
}

#[test]
fn processes_give_a_quoted_pipeline() {
    let text = |stages: &[&[&str]], dialect| from_arguments(stages, dialect).and_then(|script| script.to_paste());
    assert_eq!(text(&[&["cat", "a b"], &["tr;touch", "x"]], Dialect::Posix).unwrap(), "cat 'a b' | 'tr;touch' x");
    assert_eq!(text(&[&["if"], &["a=b", "c=d"]], Dialect::Bash).unwrap(), "'if' | 'a=b' c=d");
    assert_eq!(text(&[&["cut", "-d\t"]], Dialect::Bash).unwrap(), r"cut $'-d\t'");
    assert!(text(&[&["cut", "-d\t"]], Dialect::Posix).is_err());
    for words in
        [&["tr;touch PWNED;#"][..], &["-bash"], &["nginx: worker"], &["eval", "touch PWNED"], &[".", "x"], &[""], &[]]
    {
        assert!(text(&[words], Dialect::Bash).is_err(), "{words:?}");
    }
    // What a shell runs by itself, as it says.
    let own = std::process::Command::new("bash").args(["-c", "compgen -b"]).output().expect("bash is there");
    let own = String::from_utf8(own.stdout).unwrap();
    assert!(own.lines().count() > 50, "{own}");
    for name in own.lines().chain(["%1", "chdir"]) {
        assert!(text(&[&[name, "-v", "a[$(touch PWNED)]"]], Dialect::Bash).is_err(), "{name}");
        assert!(text(&[&[name, "x"]], Dialect::Posix).is_err(), "{name}");
    }
}
