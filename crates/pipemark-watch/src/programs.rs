//! Derives from a command line how a program buffers, and whether it reads all input before writing. Pure: no clock and
//! no I/O.

/// The program's name, without its directory.
pub fn program(words: &[String]) -> &str {
    const INTERPRETERS: [&str; 6] = ["perl", "python", "ruby", "node", "sh", "bash"];
    let first = words.first().map_or("", |word| base(word));
    // An installed script, such as /usr/bin/parallel.
    let script = words.get(1).filter(|word| word.starts_with('/') && word.contains("/bin/"));
    match script {
        Some(script) if INTERPRETERS.iter().any(|like| is_called(first, like)) => base(script),
        _ => first,
    }
}

/// The last part of a path; a login shell's name without its dash.
pub fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word).trim_start_matches('-')
}

/// Whether `name` is this program, possibly with a version, such as python3.11.
pub fn is_called(name: &str, like: &str) -> bool {
    let rest = name.strip_prefix(like);
    rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// Whether the command line has one of these options. Short options may be combined behind one dash, and long options
/// may have a value.
pub fn has_option(words: &[String], options: &[&str]) -> bool {
    let is = |word: &str, option: &str| match option.strip_prefix('-').filter(|rest| rest.len() == 1) {
        // A compression level: -1 is neither -11 nor -T1.
        Some(digit) if digit.starts_with(|c: char| c.is_ascii_digit()) => {
            let level = word.strip_prefix('-').unwrap_or_default();
            level.trim_start_matches(|c: char| c.is_ascii_digit()).len() + 1 == level.len() && level.starts_with(digit)
        }
        Some(letter) => word.starts_with('-') && !word.starts_with("--") && word[1..].contains(letter),
        None if option.starts_with("--") => word == option || word.starts_with(&format!("{option}=")),
        None => word.contains(option),
    };
    words.iter().skip(1).any(|word| options.iter().any(|option| is(word, option)))
}

/// Whether the program outputs nothing before the end of its input, whatever the input is.
pub fn needs_end(words: &[String]) -> bool {
    const ALWAYS: [&str; 17] = [
        "sort",
        "tac",
        "wc",
        "shuf",
        "tsort",
        "md5sum",
        "sha1sum",
        "sha224sum",
        "sha256sum",
        "sha384sum",
        "sha512sum",
        "b2sum",
        "cksum",
        "sum",
        "datamash",
        "sponge",
        "column",
    ];
    match program(words) {
        "tail" => !follows(words),
        "jq" => has_option(words, &["-s"]),
        name => ALWAYS.contains(&name),
    }
}

/// The option that makes a program fill its buffer before it writes; `None` if it wasn't given.
pub fn fills_first(words: &[String]) -> Option<&'static str> {
    let option = match program(words) {
        "mbuffer" => "-P",
        "buffer" => "-p",
        "pipemark" => "--start-at",
        _ => return None,
    };
    has_option(words, &[option]).then_some(option)
}

/// Whether the program copies its input unchanged, but writes nothing before the input ends.
pub fn stores_input(words: &[String]) -> bool {
    program(words) == "sponge" && words.len() == 1
}

/// Whether the program reads up to 5 seconds or 5 MB of a stream, to find out what it contains, before it writes.
pub fn probes_input(words: &[String]) -> bool {
    let reads_pipe = words.windows(2).any(|two| two[0] == "-i" && (two[1] == "-" || two[1].starts_with("pipe:")));
    program(words) == "ffmpeg" && reads_pipe && !has_word(words, "-probesize") && !has_word(words, "-analyzeduration")
}

fn has_word(words: &[String], word: &str) -> bool {
    words.iter().any(|own| own == word)
}

const COMPRESSORS: [&str; 15] = [
    "xz", "gzip", "zstd", "bzip2", "pigz", "lz4", "lzma", "lzip", "plzip", "lbzip2", "pbzip2", "pixz", "brotli", "7z",
    "lzop",
];

/// Whether the program compresses its input in blocks, and writes nothing before a block is full.
pub fn compresses(words: &[String]) -> bool {
    COMPRESSORS.contains(&program(words)) && !has_option(words, &["-d", "--decompress", "--flush-timeout"])
}

/// Whether the program possibly outputs nothing before the end of its input.
pub fn collects(words: &[String]) -> bool {
    match program(words) {
        "jq" => has_option(words, &["-s", "-n"]),
        "awk" | "gawk" | "mawk" | "nawk" => has_option(words, &["END"]),
        "uniq" => has_option(words, &["-c", "-d"]),
        "tail" => true,
        name => COMPRESSORS.contains(&name) || needs_end(words),
    }
}

/// Whether a program waits for more at the end of its data, so that its output has no end.
pub fn follows(words: &[String]) -> bool {
    match program(words) {
        "tail" => has_option(words, &["-f", "-F", "--follow"]),
        "journalctl" => has_option(words, &["-f", "--follow"]),
        "docker" | "podman" | "kubectl" => {
            words.iter().any(|word| word == "logs") && has_option(words, &["-f", "--follow"])
        }
        "dmesg" => has_option(words, &["-w", "-W", "--follow", "--follow-new"]),
        "inotifywait" => has_option(words, &["-m", "--monitor"]),
        "ping" | "tcpdump" => !has_option(words, &["-c"]),
        _ => false,
    }
}

/// Whether an option makes the program write each line at once.
pub fn writes_at_once(words: &[String]) -> bool {
    let name = program(words);
    match name {
        "grep" | "egrep" | "fgrep" | "zgrep" => has_option(words, &["--line-buffered"]),
        "sed" => has_option(words, &["-u", "-l", "--unbuffered"]),
        "jq" => has_option(words, &["--unbuffered"]),
        "tcpdump" | "tshark" | "ngrep" => has_option(words, &["-l", "-U"]),
        "mawk" | "awk" | "gawk" => has_option(words, &["fflush", "interactive"]),
        "perl" => has_option(words, &["$|", "autoflush"]),
        "cat" | "tee" | "dd" | "tail" | "head" | "pv" | "mbuffer" => true,
        "socat" | "nc" | "ncat" | "ssh" | "telnet" | "wget" | "websocat" => true,
        "curl" => has_option(words, &["-N", "--no-buffer"]),
        _ if is_called(name, "python") => has_option(words, &["-u", "flush=True", "flush()"]),
        "ruby" => has_option(words, &["sync"]),
        _ => false,
    }
}

/// The option with which a program limits its rate on purpose; `None` if it has none.
pub fn rate_limit(words: &[String]) -> Option<&'static str> {
    const OPTIONS: [(&str, &[&str]); 14] = [
        ("pv", &["--rate-limit", "-L"]),
        ("mbuffer", &["-r", "-R"]),
        ("curl", &["--limit-rate"]),
        ("wget", &["--limit-rate"]),
        ("yt-dlp", &["--limit-rate", "-r"]),
        ("aria2c", &["--max-overall-download-limit", "--max-download-limit"]),
        ("rsync", &["--bwlimit"]),
        ("rclone", &["--bwlimit"]),
        ("restic", &["--limit-download", "--limit-upload"]),
        ("scp", &["-l"]),
        ("sftp", &["-l"]),
        ("cstream", &["-t"]),
        ("ffmpeg", &["-readrate", "-re"]),
        ("parallel", &["--memfree", "--memsuspend", "--load", "--noswap", "--delay"]),
    ];
    let (_, options) = OPTIONS.iter().find(|(name, _)| *name == program(words))?;
    // ffmpeg's long options have one dash, so its words are compared whole.
    let has =
        |option: &str| if program(words) == "ffmpeg" { has_word(words, option) } else { has_option(words, &[option]) };
    options.iter().copied().find(|option| has(option))
}

/// The memory in bytes that -S or --buffer-size gives to `sort`; `None` without such an option, or if it gives a
/// percentage.
pub fn sort_memory(words: &[String]) -> Option<u64> {
    let mut rest = words.iter().skip(1).filter(|_| program(words) == "sort");
    let size = loop {
        let word = rest.next()?;
        match word.strip_prefix("--buffer-size=").or_else(|| word.strip_prefix("-S")) {
            None if word != "--buffer-size" => {}
            None | Some("") => break rest.next()?.as_str(),
            Some(size) => break size,
        }
    };
    let digits = size.trim_end_matches(|c: char| !c.is_ascii_digit());
    // Without a unit, sort counts in KiB.
    let unit = match &size[digits.len()..] {
        "b" => 0,
        "" | "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        "t" | "T" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << unit)
}

/// Whether the program is known to fill a buffer before writing to a pipe.
pub fn buffers_output(words: &[String]) -> bool {
    const FILTERS: [&str; 10] = ["perl", "ruby", "grep", "sed", "awk", "gawk", "mawk", "cut", "tr", "jq"];
    const OTHERS: [&str; 6] = ["uniq", "vmstat", "inotifywait", "tcpdump", "tshark", "ngrep"];
    let name = program(words);
    is_called(name, "python") || is_called(name, "pypy") || FILTERS.contains(&name) || OTHERS.contains(&name)
}

/// Whether the program passes on all or part of its input, possibly changed, whenever its buffer is full.
pub fn filters(words: &[String]) -> bool {
    let known = ["grep", "egrep", "fgrep", "sed", "awk", "gawk", "mawk", "cut", "tr", "jq", "uniq"];
    known.contains(&program(words)) && !collects(words)
}

/// Whether the program passes on only matching input.
pub fn selects(words: &[String]) -> bool {
    ["grep", "egrep", "fgrep", "zgrep"].contains(&program(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn names_have_no_directory_and_may_have_a_version() {
        assert_eq!(program(&words("/usr/bin/grep x")), "grep");
        assert_eq!(program(&words("-bash")), "bash");
        assert!(is_called("python3.11", "python") && is_called("python", "python") && !is_called("pythonx", "python"));
    }

    #[test]
    fn options_are_found_alone_and_among_others() {
        assert!(has_option(&words("xz -9T0"), &["-T"]) && has_option(&words("sort --parallel=4"), &["--parallel"]));
        assert!(has_option(&words("gzip -1c"), &["-1"]) && !has_option(&words("zstd -11 -T1"), &["-1"]));
        assert!(
            !has_option(&words("grep --Terse"), &["-T"]) && !has_option(&words("sort --parallels"), &["--parallel"])
        );
    }

    #[test]
    fn the_memory_of_sort_is_read_from_its_option() {
        let of = |text: &str| sort_memory(&words(text));
        assert_eq!(
            (of("sort -S 256K -k2"), of("sort -S2M"), of("sort -S 7")),
            (Some(256 << 10), Some(2 << 20), Some(7168))
        );
        assert_eq!(
            (of("sort --buffer-size 1G"), of("sort -S 25%"), of("sort -k2"), of("cut -S 1")),
            (Some(1 << 30), None, None, None)
        );
    }

    #[test]
    fn deliberate_rate_limits_are_recognised_by_their_options() {
        assert_eq!(rate_limit(&words("pv -qL 20m")), Some("-L"));
        assert_eq!(rate_limit(&words("/usr/bin/curl -s --limit-rate 8M x")), Some("--limit-rate"));
        assert_eq!(rate_limit(&words("wget -qO- --limit-rate=8m x")), Some("--limit-rate"));
        assert_eq!(rate_limit(&words("ffmpeg -re -i x -")), Some("-re"));
        assert_eq!((rate_limit(&words("pv -q")), rate_limit(&words("ffmpeg -report -i x"))), (None, None));
    }

    #[test]
    fn programs_that_write_at_once_or_at_the_end_are_recognised() {
        assert!(writes_at_once(&words("grep --line-buffered x")) && !writes_at_once(&words("grep x")));
        assert!(writes_at_once(&words("python3 -u job.py")) && writes_at_once(&words("cat")));
        assert!(
            collects(&words("sort -u")) && collects(&words("awk {s+=$1}END{print(s)}")) && !collects(&words("cut -f1"))
        );
        assert!(needs_end(&words("tail -n 5")) && !needs_end(&words("tail -f log")) && !needs_end(&words("gzip")));
        assert!(follows(&words("tail -n0 -F log")) && follows(&words("kubectl logs -f pod")));
        assert!(
            !follows(&words("kubectl get -f pod"))
                && !follows(&words("ping -c 3 host"))
                && follows(&words("ping host"))
        );
        assert!(buffers_output(&words("python3.11 job.py")) && !buffers_output(&words("tail -f log")));
    }
}
