//! Options of commands, as far as remedies must respect them. Pure.

/// Options with which compressors write to standard output although they have file operands.
pub const TO_STDOUT: [&str; 3] = ["-c", "--stdout", "--to-stdout"];

/// A command's operands, and its options that have a value.
#[derive(Debug, Default)]
pub struct Arguments<'a> {
    pub operands: Vec<&'a str>,
    /// The index of the first operand; the number of words if there is none.
    pub first: usize,
    pub values: Vec<(&'a str, &'a str)>,
}

/// The arguments of a command; `None` if it has an option that isn't allowed. An allowed option that ends with = takes any
/// value, and one with a value after = takes this value. If + is allowed, options end at the first operand.
pub fn arguments<'a>(words: &'a [String], allowed: &'a [String]) -> Option<Arguments<'a>> {
    let entries = |option: &str| {
        let split =
            |entry: &'a String| entry.split_once('=').map_or((&entry[..], None), |(name, value)| (name, Some(value)));
        let same = |(name, _): &(&str, Option<&str>)| *name == option;
        allowed.iter().map(split).filter(same).collect::<Vec<_>>()
    };
    let stops = allowed.iter().any(|entry| entry == "+");
    let mut found = Arguments { first: words.len(), ..Arguments::default() };
    let mut at = 1;
    while at < words.len() {
        let word = &words[at][..];
        at += 1;
        if word == "--" || word == "-" || !word.starts_with('-') {
            let is_end = word == "--";
            let from = if is_end { at } else { at - 1 };
            if found.operands.is_empty() {
                found.first = from;
            }
            let to = if stops || is_end { words.len() } else { from + 1 };
            found.operands.extend(words[from..to].iter().map(String::as_str));
            at = to;
            continue;
        }
        let is_long = word.starts_with("--");
        let mut rest = word.char_indices().skip(1).map(|(start, letter)| (start, start + letter.len_utf8()));
        loop {
            let (name, joined) = if is_long {
                word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)))
            } else {
                let Some((start, end)) = rest.next() else { break };
                (&word[start..end], Some(&word[end..]).filter(|joined| !joined.is_empty()))
            };
            let option = if is_long { name.to_owned() } else { format!("-{name}") };
            let entries = entries(&option);
            let &(known, wanted) = entries.first()?;
            if wanted.is_some() {
                let value = joined.or_else(|| {
                    at += 1;
                    words.get(at - 1).map(String::as_str)
                })?;
                if !entries.iter().any(|(_, wanted)| wanted.is_some_and(|one| one.is_empty() || one == value)) {
                    return None;
                }
                found.values.push((known, value));
                break;
            }
            if is_long {
                break;
            }
        }
    }
    Some(found)
}

/// Whether a word may be the value of an option before it, or an operand after `--`.
pub fn may_be_value(known: &[Option<&str>], at: usize) -> bool {
    /// Short options of grep, sed and jq that take a value.
    const SHORT: &str = "efmABCdDlL";
    /// Long options that take two values.
    const TWO: [&str; 4] = ["--arg", "--argjson", "--slurpfile", "--rawfile"];
    let before = |distance: usize| at.checked_sub(distance).map(|at| known[at].unwrap_or_default());
    // A long option without = may take the next word.
    let is_long = before(1).is_some_and(|word| word.starts_with("--") && !word.contains('='));
    let is_second = before(2).is_some_and(|word| TWO.contains(&word));
    let is_short = before(1).is_some_and(|word| {
        word.starts_with('-') && !word.starts_with("--") && word.ends_with(|letter| SHORT.contains(letter))
    });
    is_short || is_long || is_second || known[..at].contains(&Some("--"))
}

/// The indices of options that request a single thread, which would contradict a command that requests more.
pub fn one_thread(words: &[Option<&str>], command: &str) -> Vec<usize> {
    let (joined, apart): (&[&str], &[&str]) = match command {
        command if command.contains("-T0") => (&["-T1", "--threads=1"], &["-T", "--threads"]),
        command if command.contains("-@") => (&["-@1", "--threads=1"], &["-@", "--threads"]),
        _ => return Vec::new(),
    };
    let is = |at: usize, options: &[&str]| words[at].is_some_and(|word| options.contains(&word));
    let joined = (0..words.len()).filter(|&at| is(at, joined));
    let apart = (1..words.len()).filter(|&at| words[at] == Some("1") && is(at - 1, apart)).flat_map(|at| [at - 1, at]);
    joined.chain(apart).collect()
}

/// The words of a command line without those options.
pub fn without_one_thread(words: &[String], command: &str) -> Vec<String> {
    let known: Vec<Option<&str>> = words.iter().map(|word| Some(word.as_str())).collect();
    let left_out = one_thread(&known, command);
    let kept = words.iter().enumerate().filter(|(at, _)| !left_out.contains(at));
    kept.map(|(_, word)| word.clone()).collect()
}
