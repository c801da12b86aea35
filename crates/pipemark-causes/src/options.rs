//! Options of commands, as far as remedies must respect them. Pure.

/// Options with which compressors write to standard output although they have file operands.
pub const TO_STDOUT: [&str; 3] = ["-c", "--stdout", "--to-stdout"];

/// The operands of a command; `None` if it has an option that isn't allowed. An allowed option that ends with = takes any
/// value, and one with a value after = takes only this value. If + is allowed, options end at the first operand.
pub fn operands<'a>(words: &'a [String], allowed: &[String]) -> Option<Vec<&'a str>> {
    // The value that an allowed option takes: the empty value stands for any.
    let value_of = |option: &str| {
        let mut known = allowed
            .iter()
            .map(|entry| entry.split_once('=').map_or((&entry[..], None), |(name, value)| (name, Some(value))));
        known.find(|(name, _)| *name == option).map(|(_, value)| value)
    };
    let is_value = |wanted: &str, value: Option<&str>| wanted.is_empty() || value == Some(wanted);
    let stops = allowed.iter().any(|entry| entry == "+");
    let mut rest = words.iter().skip(1).map(String::as_str);
    let mut operands = Vec::new();
    while let Some(word) = rest.next() {
        if word == "--" {
            operands.extend(rest);
            break;
        } else if word == "-" || !word.starts_with('-') {
            operands.push(word);
            if stops {
                operands.extend(rest);
                break;
            }
        } else if word.starts_with("--") {
            let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            if let Some(wanted) = value_of(name)?
                && !is_value(wanted, value.or_else(|| rest.next()))
            {
                return None;
            }
        } else {
            for (at, letter) in word.char_indices().skip(1) {
                if let Some(wanted) = value_of(&format!("-{letter}"))? {
                    let value = Some(&word[at + letter.len_utf8()..]).filter(|value| !value.is_empty());
                    if !is_value(wanted, value.or_else(|| rest.next())) {
                        return None;
                    }
                    break;
                }
            }
        }
    }
    Some(operands)
}

/// Whether a word may be the value of the option before it, or an operand after `--`.
pub fn may_be_value(known: &[Option<&str>], at: usize) -> bool {
    /// Short options of grep, sed and jq that take a value.
    const SHORT: &str = "efmABCdDlL";
    /// Long options that take one value, or two.
    const LONG: [&str; 12] = [
        "--regexp",
        "--file",
        "--max-count",
        "--expression",
        "--label",
        "--include",
        "--exclude",
        "--indent",
        "--arg",
        "--argjson",
        "--slurpfile",
        "--rawfile",
    ];
    let before = |distance: usize| at.checked_sub(distance).map(|at| known[at].unwrap_or_default());
    let is_long = |word: Option<&str>| word.is_some_and(|word| LONG.contains(&word));
    let is_short = before(1).is_some_and(|word| {
        word.starts_with('-') && !word.starts_with("--") && word.ends_with(|letter| SHORT.contains(letter))
    });
    is_short || is_long(before(1)) || is_long(before(2)) || known[..at].contains(&Some("--"))
}

/// The indices of options that request a single thread, which would contradict parallel work.
pub fn one_thread(words: &[Option<&str>]) -> Vec<usize> {
    const JOINED: [&str; 6] = ["-T1", "--threads=1", "-@1", "-j1", "-p1", "--processes=1"];
    const APART: [&str; 4] = ["-T", "--threads", "-@", "-j"];
    let is = |at: usize, options: &[&str]| words[at].is_some_and(|word| options.contains(&word));
    let joined = (0..words.len()).filter(|&at| is(at, &JOINED));
    let apart = (1..words.len()).filter(|&at| words[at] == Some("1") && is(at - 1, &APART)).flat_map(|at| [at - 1, at]);
    joined.chain(apart).collect()
}

/// The words of a command without those options.
pub fn without_one_thread(words: &[String]) -> Vec<String> {
    let known: Vec<Option<&str>> = words.iter().map(|word| Some(word.as_str())).collect();
    let left_out = one_thread(&known);
    let kept = words.iter().enumerate().filter(|(at, _)| !left_out.contains(at));
    kept.map(|(_, word)| word.clone()).collect()
}
