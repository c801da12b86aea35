use std::collections::BTreeSet;

use pipemark_profile::WorkKind;
use pipemark_shell::Dialect;

use super::*;
use crate::cause::{CauseName, all_causes};
use crate::pipe_figures::PipeFigures;
use crate::typed_remedies::{CommandAsTyped, all_typed_remedies};
use crate::verdict::tests::{line, stage};

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn every_cause() -> impl Iterator<Item = Cause> {
    let declared = crate::causes::DECLARED.iter().map(|declaration| Cause::Declared(&declaration.facts));
    all_causes().into_iter().chain(declared)
}

fn found(command: &str, cause: &str, change: impl Fn(&mut PipelineFigures)) -> Vec<Remedy> {
    let words = words(command);
    let one = StageFigures { name: base(&words[0]).to_owned(), words, ..stage(1, 99, 1, 0) };
    let next = StageFigures { words: vec!["s2".to_owned()], ..stage(2, 5, 95, 0) };
    let mut figures = line(vec![one.clone(), next]);
    change(&mut figures);
    let cause = every_cause().find(|one| one.words().starts_with(cause)).unwrap();
    of_stage(&figures.stages[0], cause, &figures)
}

fn ids_of(remedies: Vec<Remedy>) -> Vec<String> {
    remedies.into_iter().map(|remedy| remedy.id).collect()
}

fn ids(command: &str, cause: &str) -> Vec<String> {
    ids_of(found(command, cause, |_| {}))
}

#[test]
fn every_row_of_the_table_is_complete() {
    let ids = BTreeSet::from_iter(TABLE.iter().map(|row| row.id.as_str()));
    assert_eq!(ids.len(), TABLE.len(), "each id once");
    assert!(TABLE.len() >= 40);
    for row in TABLE.iter() {
        let all = [&row.text, &row.since, &row.checked];
        assert!(all.iter().all(|text| !text.is_empty()) && !row.cause.is_empty(), "{row:?}");
    }
}

#[test]
fn a_program_without_a_row_gets_the_advice_for_its_kind_of_work() {
    let of = |command: &str, kind: WorkKind, share: f64| {
        let work = pipemark_profile::WorkShare { kind, share, function: None };
        let profile = pipemark_profile::Profile { samples: 100, kinds: vec![work], ..Default::default() };
        ids_of(found(command, "computing", |figures| figures.stages[0].profile = Some(profile.clone())))
    };
    assert_eq!(of("./mine", WorkKind::LocaleComparison, 0.6), ["work-locale"]);
    assert_eq!(of("./mine", WorkKind::Spinning, 0.4), ["work-spinning"]);
    assert_eq!(of("./mine", WorkKind::LocaleComparison, 0.2), [""; 0], "too little of it");
    assert_eq!(of("tr a-z A-Z", WorkKind::Compression, 0.9), ["work-compression"]);
    assert!(!of("gzip -9", WorkKind::Compression, 0.9).contains(&"work-compression".to_owned()), "it has own rows");
}

#[test]
fn the_c_locale_is_advised_only_where_the_locale_costs_time() {
    let is_advised = |command: &str| {
        let found = found(command, "computing", |figures| figures.stages[0].collates = true);
        found.iter().any(|remedy| remedy.id.ends_with("lc-all-c"))
    };
    for command in ["sed s/[aeiou]/x/", "sed y/abc/xyz/", "grep -i get", "gawk {print(length)}", "gawk -F, /a/", "sort"]
    {
        assert!(is_advised(command), "{command}");
    }
    for command in ["tr a-z A-Z", "cut -d: -f1", "wc -w", "sed -n 5p", "grep -v get", "sed s/GET/get/", "gawk {n+=$2}"]
    {
        assert!(!is_advised(command), "{command}");
    }
    for command in ["sed :a;N;s/[\\n]/,/;ta", "sed /[a-z]/H;x;p"] {
        assert!(!is_advised(command), "{command}");
    }
}

#[test]
fn small_writes_get_the_advice_of_their_language() {
    let of = |command: &str, language: Option<&str>| {
        ids_of(found(command, "small writes", |figures| figures.stages[0].language = language.map(str::to_owned)))
    };
    assert_eq!(of("./rows 5", Some("nim")), ["nim-writeline"]);
    assert_eq!(of("./rows 5", Some("ocaml")), ["ocaml-print-string"]);
    assert_eq!(of("./rows 5", Some("rust")), ["bufwriter"]);
    assert_eq!(of("./rows 5", Some("go")), ["bufwriter"]);
    assert_eq!(of("./rows 5", Some("d")), ["d-no-flush"]);
    // Languages without a remedy of their own get general advice.
    assert_eq!(of("./rows 5", Some("ada")), ["buffer-output"]);
    assert_eq!(of("./rows 5", None), ["c-setvbuf"]);
    assert_eq!(of("age -r key", None), ["buffer-output"], "its users don't change its code");
    assert_eq!(of("/usr/lib/R/bin/exec/R --file=rows.R", None), ["r-write-lines"]);
    assert_eq!(of("/opt/node rows.js", Some("c++")), ["node-write"], "what is known about the program counts");
    assert_eq!(of("java -cp clojure.jar clojure.main rows.clj", None), ["clojure-flush-on-newline"]);
    assert_eq!(of("java Rows", None), ["java-buffer"]);
    // Java also reads its libraries in small pieces.
    assert_eq!(
        ids("java -cp clojure.jar clojure.main rows.clj", "small reads and writes")[0],
        "clojure-flush-on-newline"
    );
    assert_eq!(of("mono Rows.exe", None), ["dotnet-stream-writer"]);
    let languages = TABLE.iter().flat_map(|row| &row.language);
    let known = pipemark_proc::language::languages();
    assert!(languages.clone().all(|language| known.contains(&language.as_str())) && languages.count() > 4);
}

#[test]
fn variables_of_the_environment_count_as_options_and_reasons() {
    let of = |command: &str, cause: &str, variable: &str| {
        let set = |figures: &mut PipelineFigures| figures.stages[0].variables = vec![variable.to_owned()];
        found(command, cause, set)
    };
    let first = |command, cause, variable| of(command, cause, variable).into_iter().next().unwrap();
    assert_eq!(first("xz -9", "computing", "XZ_OPT=-v").command, "xz -T0 -9 | s2");
    assert_eq!(first("xz -9", "computing", "XZ_OPT=-T4").id, "compression-level", "it has threads");
    assert_eq!(first("xz -9", "computing", "XZ_DEFAULTS=-M 1GiB").command, "", "the limit takes threads away");
    let python = first("python3 rows.py", "small writes", "PYTHONUNBUFFERED=1");
    assert_eq!(python.command, "env -u PYTHONUNBUFFERED python3 rows.py | s2");
    assert!(python.text.starts_with("PYTHONUNBUFFERED=1 is set, so python"), "{}", python.text);
    let threads = first("./solve", "computing", "OMP_NUM_THREADS=1");
    assert!(threads.text.starts_with("OMP_NUM_THREADS=1 is set, which allows one thread"), "{}", threads.text);
    assert!(of("./solve", "computing", "OMP_NUM_THREADS=2").is_empty());
}

#[test]
fn lines_that_depend_on_each_other_are_not_split() {
    let is_split = |command: &str| ids(command, "computing").contains(&"lines-parallel-pipe".to_owned());
    assert!(is_split("sed s/a/b/g") && is_split("awk {print$1}") && is_split("perl -pe s/a/b/"));
    for command in ["sed :a;N;s/\\n/,/;ta", "sed $!d", "sed -n H;x;p", "awk {print(NR)}", "perl -ne print($.)"] {
        assert!(!is_split(command), "{command}");
    }
}

#[test]
fn transactions_are_advised_for_clients_that_load() {
    let fed = |command: &str| {
        let read = |figures: &mut PipelineFigures| (figures.pipes[0].from, figures.pipes[0].to) = (2, 1);
        found(command, "peer", read).iter().any(|remedy| remedy.id.ends_with("-transaction"))
    };
    assert!(fed("psql -q db") && fed("mysql -uuser db"));
    assert!(!fed("psql -c COPY(t)TO") && !ids("mysql -uuser db", "peer").contains(&"mariadb-transaction".to_owned()));
}

#[test]
fn a_small_memory_of_sort_is_named() {
    assert_eq!(ids("sort -S 256K", "computing"), ["sort-memory-larger"]);
    assert_eq!(ids("sort -S 2G", "computing"), Vec::<String>::new());
    assert_eq!(ids("sort -k2", "computing"), ["sort-parallel", "sort-memory"]);
}

#[test]
fn only_observed_programs_and_missing_options_are_advised() {
    assert_eq!(ids("/usr/bin/xz -9", "computing"), ["xz-threads", "compression-level"]);
    assert_eq!(ids("xz -d", "computing"), ["xz-threads-decompress"]);
    assert_eq!(ids("xz -T4", "computing"), ["compression-level"]);
    assert_eq!(ids("xz -T1", "computing"), ["xz-threads", "compression-level"]);
    assert_eq!(ids("python3.11 job.py", "output buffered (held)"), ["python-u"]);
    assert_eq!(ids("nobody", "computing"), Vec::<String>::new());
    assert_eq!(ids("nobody", "small writes"), ["buffer-output"]);
    assert_eq!(ids("grep x", "small writes"), ["buffer-output"], "no --line-buffered was seen");
}

#[test]
fn no_lower_level_is_advised_for_compressed_data() {
    let ids = |output: f64| {
        let rates = |figures: &mut PipelineFigures| {
            figures.stages[0].bytes_in_per_second = Some(33e6);
            figures.stages[0].bytes_out_per_second = Some(output);
        };
        ids_of(found("gzip", "computing", rates))
    };
    assert_eq!(ids(32.9e6), ["gzip-pigz"]);
    assert_eq!(ids(9e6), ["gzip-pigz", "gzip-compression-level"]);
    assert_eq!(ids_of(found("gzip", "incompressible input", |_| {})), ["compressed-already"]);
}

#[test]
fn a_faster_preset_is_advised_only_where_ffmpeg_encodes_with_presets() {
    let has = |command| ids(command, "computing").contains(&"ffmpeg-preset".to_owned());
    assert!(has("ffmpeg -i in.avi -c:v libx264 out.mkv") && has("ffmpeg -i pipe: out.mp4"));
    assert!(!has("ffmpeg -i in.mp4 -f rawvideo -") && !has("ffmpeg -i in.mp4 -c:v libx264 -preset veryfast out.mp4"));
}

#[test]
fn mawk_is_advised_only_without_extensions_of_gawk() {
    assert_eq!(ids("gawk { print $2, $1 }", "computing")[0], "awk-mawk");
    // Their numbers and the order of an array differ.
    for program in [
        "{ for (i in n) print i }",
        "{ s += $1 } END { print s }",
        "BEGIN { FPAT = \"[^,]*\" } { print $2 }",
        "{ print gensub(/a/, \"b\", 2) }",
    ] {
        assert!(!ids(&format!("gawk {program}"), "computing").contains(&"awk-mawk".to_owned()), "{program}");
    }
}

#[test]
fn a_wrapper_that_unbuffers_is_omitted() {
    let typed = |text: &'static str| move |figures: &mut PipelineFigures| figures.typed = Some(text.into());
    let unbuffered = found("cut -f2", "small writes", typed("cat a | LC_ALL=C stdbuf -o0 cut -f2 | sort"));
    assert_eq!(
        (unbuffered[0].id.as_str(), unbuffered[0].command.as_str()),
        ("stdbuf-left-out", "cat a | LC_ALL=C cut -f2 | sort")
    );
    let plain = found("cut -f2", "small writes", typed("cat a | cut -f2 | stdbuf -o0 sort"));
    assert_eq!(plain[0].id, "buffer-output");
}

#[test]
fn a_process_name_is_quoted_in_commands() {
    let command = |words: &[&str], shell: &'static str| {
        let remedies = found("grep hit", "output buffered (held)", |figures| {
            figures.stages[0].words = words.iter().map(|word| (*word).to_owned()).collect();
            figures.shell = shell.to_owned();
        });
        remedies[0].clone()
    };
    let evil = command(&["tr;touch${IFS}PWNED", "a  hit"], "/bin/bash");
    assert_eq!(evil.command, "'tr;touch${IFS}PWNED' --line-buffered 'a  hit' | s2");
    assert_eq!(command(&["/tmp/$(x)/grep", "a  hit"], "/bin/bash").command, "", "it may be anything");
    let evil = command(&["/usr/bin/grep", "a  hit", "it's"], "/bin/bash");
    assert_eq!(evil.command, r"/usr/bin/grep --line-buffered 'a  hit' 'it'\''s' | s2");
    assert!(evil.text.contains("rebuilt from the processes' arguments"), "{}", evil.text);
    assert_eq!(command(&["grep", "a\thit"], "bash").command, r"grep --line-buffered $'a\thit' | s2");
    for shell in ["sh", "zsh", "fish", "ksh"] {
        assert_eq!(command(&["grep", "a\thit"], shell).command, "", "{shell}");
    }
    assert_eq!(command(&["bash", "-c", "x"], "bash").command, "", "a subshell has its parent's arguments");
}

#[test]
fn commands_stay_as_typed_but_for_the_edit() {
    let command = |typed: &'static str, shell: &'static str, elsewhere: bool| {
        let remedies = found("grep hit", "output buffered (held)", |figures| {
            (figures.typed, figures.shell) = (Some(typed.into()), shell.to_owned());
            figures.typed_elsewhere = elsewhere;
        });
        remedies[0].command.clone()
    };
    for (typed, shell) in [
        ("cat ${X:-a} | grep hit | cut -d'  ' -f1 # grep", "sh"),
        ("cat grep - | grep hit | s2 && echo {a,b} &> out", "bash"),
        ("for x in 1; do echo grep; done | grep $X | s2", "sh"),
    ] {
        assert_eq!(command(typed, shell, false), typed.replacen("| grep ", "| grep --line-buffered ", 1));
    }
    assert_eq!(command("cat | grep hit &> out | s2", "sh", false), "", "sh and bash disagree");
    assert_eq!(command("cat | grep hit", "zsh", false), "");
    assert_eq!(command("grep hit | s2; touch PWNED", "bash", true), "grep --line-buffered hit | s2");
}

#[test]
fn no_command_where_another_reader_writer_or_meaning_is_possible() {
    let command = |words: &str, cause: &str, typed: &'static str| {
        let remedies = found(words, cause, |figures| {
            (figures.typed, figures.shell) = (Some(typed.into()), "bash".to_owned());
            // The stage reads the output of another.
            figures.stages.push(StageFigures { words: vec!["s0".to_owned()], ..stage(3, 5, 0, 95) });
            figures.pipes.push(PipeFigures { number: 2, from: 3, to: 1, ..figures.pipes[0].clone() });
        });
        remedies.first().map(|remedy| remedy.command.clone()).unwrap_or_default()
    };
    assert_eq!(command("sed -u 5q", "small", "s0 | sed -u 5q | s2"), "s0 | sed 5q | s2");
    for typed in ["s0 | (sed -u 5q | s2; cat)", "s0 | { sed -u 5q; cat; } | s2"] {
        assert_eq!(command("sed -u 5q", "small", typed), "", "{typed}");
    }
    let two = "s0 | (grep --line-buffered 1 & grep --line-buffered 2; wait) | s2";
    assert_eq!(command("grep --line-buffered 2", "small", two), "");
    let compress = |words, typed| command(words, "computing", typed);
    assert_eq!(compress("gzip -9c", "s0 | gzip -9c | s2"), "s0 | pigz -9c | s2");
    for (words, typed) in [
        ("gzip --bes", "s0 | gzip --bes | s2"),
        ("gzip -b 9", "s0 | gzip -b 9 | s2"),
        ("gzip -a", "s0 | gzip -a | s2"),
        ("gzip --suffix=x", "s0 | gzip --suffix=x | s2"),
        ("gzip --dec", "s0 | gzip --dec | s2"),
        ("gzip -1", "s0 | busybox gzip -1 | s2"),
        ("gzip -1", "gzip() { command gzip \"$@\" | wc -c; }; s0 | gzip -1 | s2"),
        ("gzip -1", "true || gzip -1; s0 | sh -c 'gzip -1' | s2"),
    ] {
        assert_eq!(compress(words, typed), "", "{typed}");
    }
    // Options, files and surroundings in which the row's program does something else.
    for (words, cause, typed) in [
        ("gzip -12c", "computing", "s0 | gzip -12c | s2"),
        ("gzip -c r.gz", "computing", "s0 | gzip -c r.gz | s2"),
        ("xz -M 900MiB -c", "computing", "s0 | xz -M 900MiB -c | s2"),
        ("xz --uncomp", "computing", "s0 | xz --uncomp | s2"),
        ("ssh h gzip -9", "computing", "s0 | ssh -X h gzip -9 | s2"),
        ("xargs -n1 mv -t d", "computing", "s0 | xargs -n1 mv -t d | s2"),
        ("xz -c -- -T1", "computing", "s0 | xz -c -- -T1 | s2"),
        ("gawk { s += $1 } END { print s }", "computing", "s0 | gawk '{ s += $1 } END { print s }' | s2"),
        ("socat -u - UDP:h:9", "small", "s0 | socat -u - UDP:h:9 | s2"),
        ("sed -u 5q", "small", "s0 | sed -u 5q <&3 | s2"),
        ("sed -u p a b", "small", "s0 | sed -u p a b 2>&1 | s2"),
        ("sed -u 5q", "small", "s0 |& sed -u 5q | s2"),
        ("grep --line-buffered 7", "small", "s0 | tee >(cat | grep --line-buffered 7 | s2) | s3"),
        ("sed -u s/1/2/", "small", "if false; then x | sed -u s/1/2/ | y; fi; s0 | $S -u s/1/2/ | s2"),
    ] {
        assert_eq!(command(words, cause, typed), "", "{typed}");
    }
    assert_eq!(
        command("xargs -n1 patch -p1", "starting", "s0 | xargs -n1 patch -p1 | s2"),
        "",
        "the first row for it has no command"
    );
    let xargs = |typed: &str| {
        let command = CommandAsTyped {
            text: typed,
            dialect: Dialect::Bash,
            is_fed: true,
            collates: false,
            cpus: 2,
            memory_limited: false,
            environment: b"",
        };
        all_typed_remedies(&command).into_iter().find(|one| one.id == "xargs-p").map(|one| one.command)
    };
    assert_eq!(xargs("xargs -n1 wc -p1 -i").as_deref(), Some("xargs -P $(nproc) -n1 wc -p1 -i"));
    assert_eq!((xargs("xargs -n 2 wc"), xargs("xargs -n1 cat")), (None, None), "lines may be mixed");
    assert_eq!(xargs("xargs -n1 patch -p1 -i"), None, "it writes");
    let limited = |memory_limited| {
        let change = |figures: &mut PipelineFigures| figures.limits.memory_limited = memory_limited;
        found("sort", "computing", change).iter().map(|remedy| !remedy.command.is_empty()).collect::<Vec<_>>()
    };
    assert_eq!((limited(false), limited(true)), (vec![true, true], vec![false, false]), "25 % of the machine's");
    let exported = found("sed -u 5q", "small", |figures| {
        (figures.typed, figures.shell) = (Some("sed -u 5q | s2".into()), "bash".to_owned());
        figures.functions = vec!["sed".to_owned()];
    });
    assert_eq!((exported[0].id.as_str(), exported[0].command.as_str()), ("sed-no-unbuffered", ""));
    let in_loop = found("sed -u s/1/2/", "small", |figures| {
        figures.pipes.push(PipeFigures { number: 2, from: 2, to: 1, ..figures.pipes[0].clone() });
    });
    assert_eq!((in_loop[0].id.as_str(), in_loop[0].command.as_str()), ("sed-no-unbuffered", ""));
    // Another program of that name, or options of another program.
    for (words, cause, typed) in [
        ("gzip -dc", "computing", "igzip() { cat; }; s0 | gzip -dc | s2"),
        ("gzip -dc", "computing", "hash -p /bin/true igzip; s0 | gzip -dc | s2"),
        ("./gzip -dc", "computing", "s0 | ./gzip -dc | s2"),
        ("gzip -dc", "computing", "s0 | PATH=/p gzip -dc | s2"),
        ("gzip -dc", "computing", "s0 | env -i gzip -dc | s2"),
        ("gzip -dc", "computing", "s0 | sudo gzip -dc | s2"),
        ("gzip -dc a.Z", "computing", "s0 | gzip -dc a.Z | s2"),
        ("bzip2 -c a b", "computing", "s0 | bzip2 -c a b | s2"),
        ("gzip a", "computing", "s0 | gzip a | s2"),
        ("gawk { print $1 - 1 }", "computing", "s0 | gawk '{ print $1 - 1 }' | s2"),
        ("gawk -f p.awk", "computing", "s0 | gawk -f p.awk | s2"),
        ("sed -u 2e date", "small", "s0 | sed -u '2e date' | s2"),
        ("sed -u -f p.sed", "small", "s0 | sed -u -f p.sed | s2"),
        ("dd ibs=512 obs=1M", "small", "s0 | dd ibs=512 obs=1M | s2"),
        ("dd if=/dev/st0 bs=512", "small", "s0 | dd if=/dev/st0 bs=512 | s2"),
        ("sort2", "computing", "s0 | sort2 | s2"),
        ("xz -9", "computing", "ulimit -v 900000; s0 | xz -9 | s2"),
        ("gzip -dc", "computing", "for i in 1 2; do s0 | gzip -dc | s2; done"),
        ("gzip -dc", "computing", "f() { s0 | gzip -dc | s2; }; f"),
        ("gzip -dc", "computing", "s0 | { gzip -dc; cat; } | s2"),
        ("grep --line-buffered 7", "small", "s0 | timeout 8 grep --line-buffered 7 | s2"),
        ("grep --line-buffered 7", "small", "set -o pipefail; s0 | grep --line-buffered 7 | s2"),
        ("grep --exclude-dir --line-buffered -r 7", "small", "s0 | grep --exclude-dir --line-buffered -r 7 | s2"),
        ("gawk { print $1 }", "computing", "s0 | gawk '{ print $1 }' | s2"),
        ("ssh -o ciphers=x h", "computing", "s0 | ssh -o ciphers=x h | s2"),
        ("grep --line-buffered 7", "small", "s0 | grep --line-buffered 7 >/dev/udp/h/9"),
        ("grep --line-buffered 7", "small", "s0 | grep --line-buffered 7 | nc -u h 9"),
        ("grep --line-buffered 7", "small", "s0 | grep --line-buffered 7 | tee f | socat - UDP:h:9"),
        ("grep --line-buffered 7", "small", "s0 | grep --line-buffered 7 | dd bs=64k count=5"),
        ("dd bs=512", "small", "s0 | dd bs=512 </dev/st0 | s2"),
        ("gzip -dc", "computing", "command hash -p /bin/true igzip; s0 | gzip -dc | s2"),
        ("gzip -dc", "computing", "trap 'igzip() { cat; }' DEBUG; s0 | gzip -dc | s2"),
        ("gzip -dc", "computing", "$E 'igzip() { cat; }'; s0 | gzip -dc | s2"),
        ("gzip -dc", "computing", "PATH+=:/p; s0 | gzip -dc | s2"),
        ("gzip -dc", "computing", "read PATH; s0 | gzip -dc | s2"),
    ] {
        assert_eq!(command(words, cause, typed), "", "{typed}");
    }
    assert_eq!(command("gzip -dc", "computing", "s0 | nice gzip -dc | s2"), "s0 | nice igzip -dc | s2");
    let compressed = |typed: &'static str| {
        let remedies = found("ssh -C h tar -C d", "computing", |figures| {
            figures.typed = Some(typed.into());
            (figures.stages[0].bytes_in_per_second, figures.stages[0].bytes_out_per_second) = (Some(9e6), Some(1e6));
        });
        remedies[0].command.clone()
    };
    assert_eq!(compressed("ssh -C h tar -C d | s2"), "ssh -o Compression=no h tar -C d | s2");
    // A command is printed only with options that are known.
    for row in TABLE.iter() {
        let is_any = row.options.iter().flatten().any(|option| option == "*");
        assert_eq!(row.command.is_empty(), row.options.is_none(), "{}", row.id);
        assert!(!(is_any && row.replaces_program()), "{}: another program has other options", row.id);
    }
}

#[test]
fn the_program_that_parallel_runs_gets_advice() {
    let words = "parallel --pipe --block 4M -j2 zstd -q -15";
    let children = |share: f64| {
        move |figures: &mut PipelineFigures| {
            figures.typed = Some(format!("cat a | {words} | wc -c").into());
            let stage = &mut figures.stages[0];
            (stage.cpu, stage.cpu_of_children) = (Some(1.6), Some(share * 1.6));
        }
    };
    let ids = |found: Vec<Remedy>| found.into_iter().map(|remedy| remedy.id).collect::<Vec<_>>();
    assert_eq!(ids(found(words, "computing", children(0.9))), ["compression-level"]);
    let named = |figures: &mut PipelineFigures| {
        children(0.9)(figures);
        figures.stages[0].name = "parallel".to_owned();
    };
    let script = format!("perl /usr/bin/{words}");
    assert_eq!(ids(found(&script, "computing", named)), ["compression-level"], "parallel is a script");
    assert_eq!(ids(found(words, "computing", children(0.2))), ["parallel-block"]);
}

#[test]
fn the_remedy_for_a_started_program_is_that_of_its_starter() {
    let found = found("gzip", "computing", |figures| figures.typed = Some("tar czf - d | wc -c".into()));
    assert_eq!(found[0].id, "tar-use-compress");
    assert!(found.iter().all(|remedy| remedy.id != "gzip-pigz"), "{found:?}");
    assert!(ids("gzip", "computing").iter().all(|id| id != "tar-use-compress"));
}

#[test]
fn the_block_size_of_dd_is_replaced_only_without_a_count() {
    let commands = |typed: &str| found(typed, "small reads and writes", |_| {})[0].command.clone();
    assert_eq!(commands("dd if=f bs=512 status=none"), "dd if=f status=none bs=32k | s2");
    assert_eq!(commands("dd if=f bs=512 count=9"), "");
}

#[test]
fn the_table_names_the_causes_that_occur_and_no_others() {
    let occurring: BTreeSet<CauseName> = every_cause().flat_map(Cause::names).copied().collect();
    let named: BTreeSet<CauseName> = TABLE.iter().flat_map(|row| &row.cause).copied().collect();
    let groups = [CauseName::Waiting];
    assert!(named.is_subset(&occurring), "{:?} never occur", named.difference(&occurring));
    let without: Vec<_> = occurring.difference(&named).filter(|name| !groups.contains(name)).collect();
    assert!(without.is_empty(), "{without:?} have no remedy");
}

#[test]
fn remedies_depend_on_the_options_beside_them() {
    let small = |typed: &str| ids_of(found(typed, "small reads and writes", |_| {}));
    assert_eq!(small("dd bs=1 skip=1000"), ["dd-skip-bytes"]);
    assert_eq!(found("dd bs=1 skip=1000", "small reads and writes", |_| {})[0].command, "");
    assert_eq!((small("dd bs=1 seek=9"), small("dd bs=8")), (vec!["dd-bs-count".to_owned()], vec!["dd-bs".to_owned()]));
    let computing = |typed: &str| ids(typed, "computing");
    assert_eq!(computing("parallel --pipe -N 1 jq .a"), ["parallel-records"]);
    assert_eq!(computing("parallel --pipe --block 1M jq .a"), ["parallel-block"]);
    assert!(computing("samtools collate -O x").is_empty() && computing("samtools sort x") == ["samtools-threads"]);
    let ssh = |rates: Option<(f64, f64)>| {
        ids_of(found("ssh host cat", "computing", |figures| {
            figures.stages[0].bytes_in_per_second = rates.map(|(input, _)| input);
            figures.stages[0].bytes_out_per_second = rates.map(|(_, output)| output);
        }))
    };
    assert_eq!(
        (ssh(Some((26e6, 5e6))), ssh(Some((26e6, 26e6)))),
        (vec!["ssh-no-compression".to_owned()], vec!["ssh-cipher".to_owned()])
    );
    assert_eq!(ids("gawk {print}", "output buffered (held)"), ["awk-fflush"]);
    assert_eq!(ids("awk {print}", "output buffered (held)"), ["awk-flush"]);
}

#[test]
fn a_name_as_typed_has_rows_of_its_own() {
    let found = found("gzip -cd a.gz", "computing", |figures| figures.stages[0].name = "zcat".to_owned());
    assert_eq!(found.iter().map(|remedy| remedy.id.as_str()).collect::<Vec<_>>(), ["zcat-igzip"]);
}

#[test]
fn single_thread_options_are_removed_when_more_threads_are_advised() {
    let command = |typed: &str| found(typed, "computing", |_| {})[0].command.clone();
    assert_eq!(
        (command("xz -1 -T1"), command("zstd -T 1 -9")),
        ("xz -T0 -1 | s2".to_owned(), "zstd -T0 -9 | s2".to_owned())
    );
    assert_eq!(command("zstd -9 --threads=1 f"), "zstd -T0 -9 f | s2");
    assert_eq!(command("xz -1"), "xz -T0 -1 | s2");
}

#[test]
fn no_parallel_work_is_advised_where_the_cpus_are_taken() {
    let busy = found("gzip -9", "computing", |figures| figures.limits.idle_cpus = Some(0.05));
    assert!(busy.iter().all(|remedy| remedy.id != "gzip-pigz"), "{busy:?}");
    let bound = found("gzip -9", "computing", |figures| figures.stages[0].cpus = vec![0]);
    assert!(bound.iter().all(|remedy| remedy.id != "gzip-pigz"), "{bound:?}");
    let idle = found("gzip -9", "computing", |figures| figures.limits.idle_cpus = Some(0.9));
    assert_eq!((idle[0].id.as_str(), idle[0].command.as_str()), ("gzip-pigz", "pigz -9 | s2"));
}

#[test]
fn less_work_is_advised_if_cpus_are_shared() {
    let stage = |number: usize, command: &str| StageFigures {
        name: command.split(' ').next().unwrap().to_owned(),
        words: words(command),
        cpu: Some(0.6),
        ..stage(number, 99, 1, 0)
    };
    let figures = line(vec![stage(1, "gzip -9"), stage(2, "zstd -11 -T2"), stage(3, "cut -f1")]);
    let ids: Vec<String> = of_less_work(&figures).into_iter().map(|remedy| remedy.id).collect();
    assert_eq!(ids, ["gzip-compression-level", "compression-level"]);
}

#[test]
fn advice_notes_changed_output_and_keeps_commands_as_typed() {
    let before = |next: &'static str| {
        let remedies = found("sort -k 2", "computing", |figures| {
            figures.stages[0].collates = true;
            figures.stages[1].name = next.to_owned();
            figures.typed = Some(format!("zcat 'a b.gz' | sort -k '2' | {next}").into());
        });
        remedies.into_iter().find(|remedy| remedy.id == "sort-lc-all-c").unwrap()
    };
    let locale = before("uniq");
    assert_eq!(locale.command, "zcat 'a b.gz' | LC_ALL=C sort -k '2' | uniq");
    assert_eq!(before("join").command, "", "its other input is sorted by the language's rules");
    assert_eq!(before("uniq >a; comm a b").command, "", "so is b");
    assert!(locale.text.contains("the output changes: lines are sorted by"), "{}", locale.text);
}
