//! Decides which stages may run again unasked: those whose program and options only read (purity.toml), in the
//! surroundings in which they run.

mod row;
mod surroundings;

use std::sync::LazyLock;

use pipemark_shell::RedirectionKind;

use crate::typed::{TypedCommand, TypedStage};
use row::{TABLE, concern_of_command};
use surroundings::Surroundings;

/// Why a stage can't run again unasked, as a clause such as `tee writes out.txt`; `None` if it only reads.
pub fn concern(stage: &TypedStage) -> Option<String> {
    static OWN: LazyLock<Surroundings> = LazyLock::new(Surroundings::own);
    concern_in(stage, &OWN)
}

fn concern_in(stage: &TypedStage, surroundings: &Surroundings) -> Option<String> {
    let Some(command) = &stage.command else {
        return Some(format!("what '{}' does can't be seen from its text", shortened(&stage.text)));
    };
    redirected(command).or_else(|| concern_of_command(command, false, surroundings))
}

/// A target of a redirection that isn't the pipeline, or that can't be read again.
fn redirected(command: &TypedCommand) -> Option<String> {
    for one in &command.redirections {
        let to_descriptor = matches!(one.kind, RedirectionKind::DuplicateOutput | RedirectionKind::DuplicateInput);
        let reads = one.kind == RedirectionKind::Read;
        let known = to_descriptor && ["0", "1", "2"].contains(&one.target.value.as_str());
        if reads && let Some(once) = surroundings::read_once(&one.target.value) {
            return Some(format!("{} reads {} ({once})", command.program(), one.target.text));
        }
        if !(known || reads || one.kind == RedirectionKind::HereString || one.target.value == "/dev/null") {
            return Some(format!("{} is redirected to {}", command.program(), one.target.text));
        }
    }
    None
}

/// How a program's options are written.
pub struct OptionSyntax {
    /// Letters of short options that take a value.
    pub values: String,
    /// Whether words after the first operand belong to another command.
    pub stops: bool,
}

/// How the options of a known program are written.
pub fn option_syntax(program: &str) -> Option<OptionSyntax> {
    let row = TABLE.iter().find(|row| row.names.iter().any(|name| name == program))?;
    Some(OptionSyntax { values: row.letters_with_values(), stops: row.starts })
}

/// The beginning of a text, on one line.
pub fn shortened(text: &str) -> String {
    const MOST: usize = 40;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concern(text: &str) -> Option<String> {
        super::concern(&TypedStage::of(text.to_owned(), pipemark_shell::Dialect::Bash))
    }

    #[test]
    fn programs_that_only_read_are_known() {
        for text in [
            "zcat a.gz",
            "cat *.log",
            "grep -v bot",
            "cut -d' ' -f1",
            "sort -rn -k2,2 -t ,",
            "uniq -c",
            "head -n 5",
            "sort -to",
            "sort -k2o",
            "gzip -9",
            "gzip -dc a.gz",
            "LC_ALL=C sort",
            "awk '{c[$1]++} END {for (k in c) print c[k], k}'",
            "awk '$3 > 5 || $1 ~ /a|b/'",
            "sed -n 's/a/b/gp;5q'",
            "sed -e 's,a,b,' -e '/x/d'",
            "xargs -n 1 grep x",
            "find . -name '*.c'",
            "jq -r .path",
            "tr a-z A-Z <in",
            "sort 2>/dev/null",
            "git log --oneline",
            "dd bs=64k",
            "/usr/bin/sort",
            "env LC_ALL=C sort",
            "grep -- \"$x\" f",
            "tar cf - dir",
            "nice -n 5 sort",
            "xargs cat",
            "xargs -n1 env LC_ALL=C grep x",
            "tar -cf - --exclude=x dir",
            "tar tf a.tar",
            "tail -20",
            "sed --expression p -n",
            "find . -type f '(' -name a -o -name b ')' -print0",
            "openssl enc -aes-256-ctr -k x",
            "awk '{ print ($1 + $2) / 2 }'",
            "xxd -ps f",
            "xxd -c16 f",
            "zstd -T0 -c f",
            "xz -T 0 -c f",
            "xz -l f",
            "gzip -t f",
            "mlr --icsv --ojson head -n 4 then sort -nr x f",
            "printf '%s\\n' a",
            "[ -f x ]",
            "xargs -i grep x {}",
            "xargs printf '%s\\n'",
            "timeout 5 sort",
            "chrt -b 0 sort",
            "awk '/inet/ { print $2 }' f",
            "openssl enc -base64 -d",
            "cat /dev/null /dev/stdin",
            "env LC_ALL=\"$x\" sort",
            "samtools view a.bam chr1:1-20",
            "pixz -d",
        ] {
            assert_eq!(concern(text), None, "{text}");
        }
    }

    #[test]
    fn what_may_write_is_refused_with_its_reason() {
        for (text, reason) in [
            ("sed -i s/a/b/ f", "-i"),
            ("sed -ni s/a/b/ f", "-i"),
            ("sed 's/a/b/w out'", "script"),
            ("sed 's/x/y/e'", "script"),
            ("sort -uo f f", "-o"),
            ("sort --outp=f f", "--outp"),
            ("awk '{print > \"f\"}'", "script"),
            ("awk '{system(\"x\")}'", "script"),
            ("awk '{print | \"sort\"}'", "script"),
            ("tee f", "anything"),
            ("uniq a b", "writes b"),
            ("gzip f", "replaces f"),
            ("find . -delete", "-delete"),
            ("xargs rm", "rm may do anything"),
            ("tail -f log", "-f"),
            ("python3 x.py", "anything"),
            ("./sort", "./sort"),
            ("sort >out", "redirected to out"),
            ("sort >>out", "out"),
            ("while read x; do rm $x; done", "can't be seen"),
            ("dd of=f", "of=f"),
            ("sort $OPTIONS", "$OPTIONS"),
            ("git push", "git push"),
            ("LD_PRELOAD=x sort", "LD_PRELOAD"),
            ("env -i rm f", "rm"),
            ("awk -f x.awk", "-f"),
            ("tar xf a.tar", "tar xf"),
            ("curl http://a", "anything"),
            ("sort --compress-program=x", "--compress-program"),
            ("xargs gzip", "gzip gets words from xargs"),
            ("xargs -n2 uniq", "uniq gets words from xargs"),
            ("xargs sort", "sort gets words from xargs"),
            ("xargs nice", "nice starts what xargs reads"),
            ("uniq dir/*", "dir/*"),
            ("tar cf out.tar dir", "writes out.tar"),
            ("tar -c -f out.tar dir", "-f out.tar"),
            ("tar cf - --remove-file dir", "--remove-file"),
            ("tar cf - --checkpoint-action exec=x dir", "--checkpoint-action"),
            ("xz --files=list", "--files"),
            ("zstd --filelist=list", "--filelist"),
            ("fd -Hx rm", "-x"),
            ("openssl enc -out=x", "-out=x"),
            ("openssl enc --out x", "--out"),
            ("samtools view --unoutput f a.bam", "--unoutput"),
            ("mlr --prepipex x cat f", "--prepipex"),
            ("csvclean f", "anything"),
            ("xsv index f", "xsv index"),
            ("recode u8..l1 f", "anything"),
            ("file -C -m f", "-C"),
            ("sed -e p --expression 'w out'", "script"),
            ("sed ':a;w out'", "script"),
            ("sed \"s/a/$x/\"", "isn't known"),
            ("sed s/a/$x/", "script"),
            ("sort -$x", "isn't known"),
            ("mawk -W exec=f", "-W exec=f"),
            ("POSIXLY_CORRECT=1 gzip f -c", "POSIXLY_CORRECT"),
            // The option's value must be in the same word, or there is none.
            ("zstd -T f", "replaces f"),
            ("pigz -T f", "-T"),
            ("xargs -in rm cat", "rm may do anything"),
            // The last of several options decides.
            ("bzip2 -t -z f", "replaces f"),
            ("xz -l -z f", "replaces f"),
            ("zstd -t -d f.zst", "replaces f.zst"),
            ("pigz -l -d f.gz", "replaces f.gz"),
            ("pixz -c f", "-c"),
            ("pixz f", "writes f"),
            // These are words, not letters.
            ("xxd -ps f g", "writes g"),
            ("xxd -as f g", "-as"),
            ("mlr -n put 'end{system(\"x\")}'", "mlr -n"),
            ("mlr --icsv head then put -q x f", "mlr put"),
            ("mlr --icsv regtest", "mlr regtest"),
            ("diff3 --diff-prog=./x a b c", "--diff-prog"),
            ("xargs diff3", "diff3 gets words from xargs"),
            ("printf -v 'a[$(x)]' y", "-v"),
            ("printf \"$x\" y", "isn't known"),
            ("test -v 'a[$(x)]'", "-v"),
            // An expansion may be several words.
            ("sort a$x", "isn't known"),
            ("dd bs=$x", "isn't known"),
            ("env LC_ALL=$x sort", "isn't known"),
            ("xargs -- env LC_ALL=$x sort", "isn't known"),
            // What connects, asks or can be read only once.
            ("cat </dev/tcp/localhost/80", "a connection"),
            ("awk 1 /inet/tcp/0/localhost/80", "connects"),
            ("tar tf host:a.tar", "connects to host:a.tar"),
            ("tar cf - -T list", "-T"),
            ("xmllint --format http://host/a.xml", "connects"),
            ("xmllint --valid a.xml", "--valid"),
            ("samtools view https://host/a.bam", "connects"),
            ("samtools view a.cram", "connects"),
            ("openssl enc -aes-256-ctr", "password"),
            ("cat /dev/tty", "a device"),
            ("sort /proc/kmsg", "read once"),
            ("dd if=/dev/tty", "a device"),
            ("chrt -o rm cat", "rm"),
        ] {
            let found = concern(text);
            assert!(found.as_ref().is_some_and(|found| found.contains(reason)), "{text}: {found:?}");
        }
    }

    #[test]
    fn the_surroundings_may_change_what_a_program_does() {
        let directory = std::env::temp_dir().join(format!("pipemark-purity-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let script = directory.join("sort");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let fifo = directory.join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
        let concern = |text: &str, environment: &str, directories: &[&std::path::Path]| {
            let directories = directories.iter().map(|path| path.to_path_buf()).collect();
            let surroundings = Surroundings::of(environment.replace(' ', "\0").into_bytes(), directories);
            let stage = TypedStage::of(text.to_owned(), pipemark_shell::Dialect::Bash);
            concern_in(&stage, &surroundings).unwrap_or_default()
        };
        for (text, variable) in [
            ("rg x", "RIPGREP_CONFIG_PATH=x"),
            ("zgrep x", "GREP=x"),
            ("sort", "LD_PRELOAD=x"),
            ("tar tf a.tar", "TAR_OPTIONS=--remove-files"),
            ("git diff", "GIT_EXTERNAL_DIFF=x"),
            ("git log", "GIT_TRACE_SETUP=/x"),
            ("gzip f -c", "POSIXLY_CORRECT="),
            ("sort", "BASH_ENV=x"),
            ("sort", "BASH_FUNC_sort%%=x"),
            ("xargs grep x", "BASH_FUNC_xargs%%=x"),
            ("env sort", "LD_AUDIT=x"),
        ] {
            assert_eq!(concern(text, "HOME=/", &[]), "", "{text}");
            assert_ne!(concern(text, variable, &[]), "", "{text} with {variable}");
        }
        for (text, variable) in
            [("xz -dc f", "XZ_OPT=-T0"), ("sort", "RIPGREP_CONFIG_PATH=x"), ("rg x", "RIPGREP_CONFIG_PATH=")]
        {
            assert_eq!(concern(text, variable, &[]), "", "{text} with {variable}");
        }
        let system = std::path::Path::new("/usr/bin");
        assert!(concern("sort", "", &[&directory, system]).ends_with("sort, which may do anything"));
        assert_eq!(concern("sort", "", &[system, &directory]), "");
        assert_eq!(concern("/usr/bin/sort", "", &[&directory, system]), "");
        assert_eq!(concern("sort", "", &[&directory]), "", "only that one is installed");
        for text in ["sort F", "dd if=F", "grep -f F", "cat <F", "sort --files0-from=F"] {
            let text = text.replace('F', fifo.to_str().unwrap());
            assert!(concern(&text, "", &[]).ends_with("(a FIFO)"), "{text}");
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn each_name_has_one_row() {
        let mut names: Vec<&String> = TABLE.iter().flat_map(|row| &row.names).collect();
        names.sort();
        let twice = names.windows(2).find(|two| two[0] == two[1]);
        assert_eq!(twice, None);
    }
}
