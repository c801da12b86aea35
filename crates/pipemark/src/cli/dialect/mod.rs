//! Options of hyperfine in `ab`, and of pv and mbuffer in `relay`. Where the meaning is the same, they are replaced by
//! pipemark's own; otherwise the error says what to use instead.

mod tables;
#[cfg(test)]
pub(super) mod tests;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use pipemark_console::ExitError;

use tables::Meaning::{If, Is, Nothing, Scan, Step, Unless, Use};
use tables::{CLASHES, ForeignOption, ForeignProgram, HYPERFINE, MBUFFER, MBUFFER_ONLY, PV, ValueKind};

fn dialects(verb: &OsStr, words: &[OsString]) -> &'static [ForeignProgram] {
    const OF_PV: [ForeignProgram; 2] = [PV, MBUFFER_ONLY];
    const QUIET: [ForeignProgram; 3] = [CLASHES, PV, MBUFFER_ONLY];
    const OF_MBUFFER: [ForeignProgram; 4] = [CLASHES, MBUFFER, PV, MBUFFER_ONLY];
    match verb.to_str() {
        Some("ab") => &[HYPERFINE],
        Some("relay") if has_letter(words, b'm') => &OF_MBUFFER,
        Some("relay") if has_letter(words, b'q') => &QUIET,
        Some("relay") => &OF_PV,
        _ => &[],
    }
}

/// Whether a word has this letter before one that takes the rest of the word as its value.
fn has_letter(words: &[OsString], letter: u8) -> bool {
    let takes_value = |letter: u8| {
        let named = |option: &&ForeignOption| option.names.iter().any(|name| name.as_bytes() == [letter]);
        PV.options.iter().find(named).is_some_and(|option| option.values > 0)
    };
    let of_word = |word: &OsString| {
        let letters =
            word.as_bytes().strip_prefix(b"-").filter(|letters| !letters.starts_with(b"-")).unwrap_or_default();
        let end = letters.iter().position(|&one| takes_value(one)).unwrap_or(letters.len());
        letters[..end].contains(&letter)
    };
    words.iter().take_while(|word| *word != "--").any(of_word)
}

/// The verb's own options, so that they aren't taken for those of another program: each letter or name, and whether it
/// takes a value.
type OwnOptions<'o> = &'o dyn Fn(&[u8]) -> Option<bool>;

/// The words of a call with pipemark's own options only.
///
/// # Errors
/// When an option has no equivalent. The sentence says what to use instead.
pub fn translate(words: Vec<OsString>, own: OwnOptions) -> Result<Vec<OsString>, ExitError> {
    let Some(verb) = words.get(1) else { return Ok(words) };
    let dialects = dialects(verb, &words[2..]);
    if dialects.is_empty() {
        return Ok(words);
    }
    let mut translation = Translation { dialects, rest: words[2..].iter(), done: words[..2].to_vec(), step: None };
    while let Some(word) = translation.rest.next() {
        let bytes = word.as_bytes();
        if bytes == b"--" {
            translation.done.push(word.clone());
            translation.done.extend(translation.rest.by_ref().cloned());
        } else if bytes == b"--progress" && !translation.has_form() {
            // Otherwise a file would be taken for the form.
            translation.done.push("--progress=text".into());
        } else if let Some(name) = bytes.strip_prefix(b"--") {
            translation.long(word, name, own)?;
        } else if bytes.len() > 1 && bytes[0] == b'-' {
            translation.letters(word, &bytes[1..], own)?;
        } else {
            translation.done.push(word.clone());
        }
    }
    translation.finish()
}

struct Translation<'w> {
    dialects: &'static [ForeignProgram],
    rest: std::slice::Iter<'w, OsString>,
    done: Vec<OsString>,
    /// The step of a range, which may come before or after the range.
    step: Option<OsString>,
}

impl Translation<'_> {
    fn find(&self, name: &[u8]) -> Option<(&'static str, &'static ForeignOption)> {
        let of = |dialect: &'static ForeignProgram| {
            let option = dialect.options.iter().find(|option| option.names.iter().any(|one| one.as_bytes() == name));
            option.map(|option| (dialect.program, option))
        };
        self.dialects.iter().find_map(of)
    }

    fn long(&mut self, word: &OsString, name: &[u8], own: OwnOptions) -> Result<(), ExitError> {
        let (name, value) = match name.iter().position(|&byte| byte == b'=') {
            Some(at) => (&name[..at], Some(&name[at + 1..])),
            None => (name, None),
        };
        let next = value.map(OsStr::from_bytes).or_else(|| self.rest.as_slice().first().map(OsString::as_os_str));
        // An own option of the same name may have another unit: pv's --interval is in seconds.
        let is_foreign = |option: &ForeignOption| match option.meaning {
            Unless(kind, _) if option.values == 0 => value.is_some() && kind.matches(OsStr::new("")),
            Unless(kind, _) => next.is_some_and(|value| kind.matches(value)),
            If(kind, ..) => own(name).is_none() || next.is_some_and(|value| kind.matches(value)),
            _ => own(name).is_none(),
        };
        match self.find(name).filter(|(_, option)| name.len() > 1 && is_foreign(option)) {
            Some((program, option)) => {
                let typed = format!("--{}", String::from_utf8_lossy(name));
                self.replace(program, option, &typed, value.map(OsStr::from_bytes))
            }
            None => {
                self.done.push(word.clone());
                // A value of an own option isn't an option.
                if own(name) == Some(true) && value.is_none() {
                    self.done.extend(self.rest.next().cloned());
                }
                Ok(())
            }
        }
    }

    fn letters(&mut self, word: &OsString, letters: &[u8], own: OwnOptions) -> Result<(), ExitError> {
        for (at, letter) in letters.iter().enumerate() {
            let (name, behind) = (&letters[at..=at], &letters[at + 1..]);
            let found = self.find(name);
            // An own option whose letter another program uses too: hyperfine's -P has three values.
            let is_own = own(name).filter(|_| match found.map(|(_, option)| option.meaning) {
                Some(Scan) => !self.is_scan(behind),
                Some(Unless(ValueKind::Any, _)) => !behind.starts_with(b"="),
                Some(Unless(kind, _)) => !self.value(behind).is_some_and(|value| kind.matches(value)),
                _ => true,
            });
            match (is_own, found) {
                (Some(true), _) => {
                    self.done.push(OsString::from_vec([b"-", &letters[at..]].concat()));
                    if behind.is_empty() {
                        self.done.extend(self.rest.next().cloned());
                    }
                    return Ok(());
                }
                (Some(false), _) => self.done.push(OsString::from_vec([b"-", name].concat())),
                (None, Some((program, option))) => {
                    let typed = format!("-{}", char::from(*letter));
                    let takes_rest = option.values > 0 && !behind.is_empty();
                    let value = takes_rest.then(|| OsStr::from_bytes(behind));
                    self.replace(program, option, &typed, value)?;
                    if takes_rest {
                        return Ok(());
                    }
                }
                // clap says what is wrong with it.
                (None, None) if at == 0 => {
                    self.done.push(word.clone());
                    return Ok(());
                }
                (None, None) => {
                    self.done.push(OsString::from_vec([b"-", &letters[at..]].concat()));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Whether the form of relay's --progress follows.
    fn has_form(&self) -> bool {
        self.rest.as_slice().first().is_some_and(|word| word == "json" || word == "text")
    }

    /// The value of a letter: what is behind it in its word, or the next word.
    fn value<'v>(&'v self, behind: &'v [u8]) -> Option<&'v OsStr> {
        let next = self.rest.as_slice().first().map(OsString::as_os_str);
        if behind.is_empty() { next } else { Some(OsStr::from_bytes(behind)) }
    }

    /// Whether the values that follow are those of a range: a name without `=`.
    fn is_scan(&self, behind: &[u8]) -> bool {
        self.value(behind).is_some_and(|name| !name.as_bytes().contains(&b'='))
    }

    fn replace(
        &mut self,
        program: &str,
        option: &ForeignOption,
        typed: &str,
        value: Option<&OsStr>,
    ) -> Result<(), ExitError> {
        let says = |sentence: &str| ExitError::usage(format_args!("{program}'s {typed}: {sentence}"));
        // Before its values are taken: some options of this kind take one, and some don't.
        if let Use(sentence) | Unless(_, sentence) = option.meaning {
            return Err(says(sentence));
        }
        let mut values: Vec<OsString> = value.map(OsStr::to_owned).into_iter().collect();
        while values.len() < option.values {
            let missing =
                || says(&format!("it takes {} value{}", option.values, if option.values == 1 { "" } else { "s" }));
            values.push(self.rest.next().ok_or_else(missing)?.clone());
        }
        match option.meaning {
            Is(words) => words.iter().for_each(|word| self.push(word, &values)),
            If(kind, words, _) if kind.matches(&values[0]) => words.iter().for_each(|word| self.push(word, &values)),
            If(.., sentence) | Use(sentence) | Unless(_, sentence) => return Err(says(sentence)),
            Nothing => {}
            Scan => self.push("--parameter={1}={2}..{3}", &values),
            Step => self.step = values.pop(),
        }
        Ok(())
    }

    /// Adds an own option with its values. A flag that was given already isn't given twice.
    fn push(&mut self, template: &str, values: &[OsString]) {
        let mut word = Vec::new();
        let mut rest = template;
        while let Some((before, behind)) = rest.split_once('{') {
            let (number, behind) = behind.split_once('}').unwrap_or((behind, ""));
            word.extend_from_slice(before.as_bytes());
            let at = number.parse().unwrap_or(1_usize) - 1;
            word.extend_from_slice(values.get(at).map_or(&[][..], |value| value.as_bytes()));
            rest = behind;
        }
        word.extend_from_slice(rest.as_bytes());
        let name = template.split('=').next().unwrap_or(template).as_bytes();
        let has_flag = |done: &OsString| done.as_bytes().split(|&byte| byte == b'=').next() == Some(name);
        let may_repeat = template.contains('{');
        if may_repeat || !self.done.iter().any(has_flag) {
            self.done.push(OsString::from_vec(word));
        }
    }

    fn finish(mut self) -> Result<Vec<OsString>, ExitError> {
        let Some(step) = self.step else { return Ok(self.done) };
        let is_range = |word: &&mut OsString| {
            let word = word.as_bytes();
            word.starts_with(b"--parameter=") && word.windows(2).any(|two| two == b"..")
        };
        match self.done.iter_mut().find(is_range) {
            Some(range) => {
                range.push(":");
                range.push(step);
                Ok(self.done)
            }
            None => Err(ExitError::usage("hyperfine's -D: it needs a range, as in -P NAME=1..10:STEP")),
        }
    }
}
