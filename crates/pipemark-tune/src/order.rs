//! Whether the order of lines matters to what follows in a pipeline.

use crate::typed::{TypedCommand, TypedStage};
use pipemark_causes::scripts::sed_is_per_line;

/// What may differ in the lines that the following stages get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reordering {
    /// Equal lines stay next to each other, as after another sort order.
    EqualLinesTogether,
    /// Any order.
    Any,
}

/// Whether the output of these stages is the same whatever the order of the lines that they get: each of them up to a
/// complete sort or a count treats lines one by one.
pub fn is_absorbed(following: &[TypedStage], reordering: Reordering) -> bool {
    let mut together = reordering == Reordering::EqualLinesTogether;
    for stage in following {
        let Some(command) = stage.command.as_ref().filter(|command| reads_only_the_pipe(command)) else { return false };
        match command.program() {
            "sort" => return is_total_order(command),
            "wc" => return true,
            "grep" | "egrep" | "fgrep" if counts(command) => return true,
            "uniq" if together && has_only(command, "c") => {}
            // Whole lines stay whole.
            "grep" | "egrep" | "fgrep" if is_filter(command) => {}
            "cut" | "rev" => together = false,
            "tr" if !command.arguments().iter().any(|word| {
                word.value.contains("\\n")
                    || word.value.contains('\n')
                    || word.value.starts_with("-c")
                    || word.value.starts_with("-C")
                    || word.value.contains("[:")
            }) =>
            {
                together = false;
            }
            "sed" if is_per_line_sed(command) => together = false,
            _ => return false,
        }
    }
    false
}

/// Whether a command reads nothing but the pipe and has no other effect on its order.
fn reads_only_the_pipe(command: &TypedCommand) -> bool {
    command.is_literal() && command.is_in_pipeline()
}

/// Whether the options are short ones among these letters, without values, and there are no operands.
pub fn has_only(command: &TypedCommand, letters: &str) -> bool {
    command.arguments().iter().all(|word| {
        word.value
            .strip_prefix('-')
            .is_some_and(|options| !options.is_empty() && options.chars().all(|c| letters.contains(c)))
    })
}

/// Whether sort's output depends only on the set of its lines: lines that compare equal are then compared as a whole.
pub fn is_total_order(command: &TypedCommand) -> bool {
    let mut unique = false;
    let mut partial = false;
    let mut words = command.arguments().iter();
    while let Some(word) = words.next() {
        let value = word.value.as_str();
        if value.starts_with("--parallel=") || value.starts_with("--buffer-size=") {
            continue;
        }
        let Some(options) = value.strip_prefix('-').filter(|rest| !rest.is_empty() && !rest.starts_with('-')) else {
            return false;
        };
        for (at, letter) in options.char_indices() {
            match letter {
                'r' => {}
                'u' => unique = true,
                'n' | 'b' | 'f' | 'g' | 'h' | 'M' | 'V' | 'd' | 'i' => partial = true,
                'k' | 't' | 'S' | 'T' => {
                    partial |= letter == 'k';
                    if options[at + 1..].is_empty() && words.next().is_none() {
                        return false;
                    }
                    break;
                }
                _ => return false,
            }
        }
    }
    !(unique && partial)
}

/// Whether sort has no operand, so that it reads the pipe.
pub fn is_plain_sort(command: &TypedCommand) -> bool {
    command.program() == "sort" && reads_only_the_pipe(command) && is_total_order(command)
}

/// The pattern and options of a grep that treats each line alone: it has one operand and no option that numbers,
/// counts, limits or adds lines.
pub fn is_filter(command: &TypedCommand) -> bool {
    let mut operands = 0;
    let mut words = command.arguments().iter();
    let mut pattern = false;
    while let Some(word) = words.next() {
        let value = word.value.as_str();
        if let Some(options) = value.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            if value == "--line-buffered" || value == "--color=never" {
                continue;
            }
            if options.starts_with('-') {
                return false;
            }
            for (at, letter) in options.char_indices() {
                match letter {
                    'v' | 'i' | 'E' | 'F' | 'G' | 'P' | 'w' | 'x' | 'h' | 'a' | 'y' | 's' => {}
                    'e' => {
                        pattern = true;
                        if options[at + 1..].is_empty() && words.next().is_none() {
                            return false;
                        }
                        break;
                    }
                    _ => return false,
                }
            }
        } else {
            operands += 1;
        }
    }
    operands == usize::from(!pattern)
}

/// Whether grep only counts lines.
fn counts(command: &TypedCommand) -> bool {
    let first = command.arguments().first().map(|word| word.value.as_str());
    first == Some("-c") && command.arguments().len() == 2 && !command.arguments()[1].value.starts_with('-')
}

fn is_per_line_sed(command: &TypedCommand) -> bool {
    match command.arguments() {
        [script] => sed_is_per_line(&script.value),
        [option, script] => ["-E", "-r", "-n", "-e"].contains(&option.value.as_str()) && sed_is_per_line(&script.value),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typed::TypedPipeline;

    fn absorbed(text: &str, reordering: Reordering) -> bool {
        is_absorbed(&TypedPipeline::parse(text, pipemark_shell::Dialect::Posix).unwrap().stages, reordering)
    }

    #[test]
    fn a_complete_sort_or_a_count_absorbs_the_order() {
        for text in [
            "sort -rn | head",
            "sort -k2,2n -t,",
            "cut -f1 | sort -u",
            "grep -v x | sort",
            "wc -l",
            "sed s/a/b/ | sort",
            "sort -u",
            "grep -c x",
            "tr a b | wc",
            "sort -S 1G --parallel=2",
        ] {
            assert!(absorbed(text, Reordering::Any), "{text}");
        }
        for text in [
            "head",
            "sort -s -k1",
            "sort -u -k1",
            "sort -un",
            "md5sum",
            "uniq",
            "grep -n x | sort",
            "grep -m 1 x | sort",
            "awk 1 | sort",
            "sort f",
            "sort -R",
            "sort -m",
            "tr -s '\\n' | sort",
            "sed 1d | sort",
            "cat",
            "grep -A1 x | sort",
            "sort $x",
        ] {
            assert!(!absorbed(text, Reordering::Any), "{text}");
        }
        assert!(absorbed("uniq -c | sort -rn | head", Reordering::EqualLinesTogether));
        assert!(!absorbed("cut -f1 | uniq -c | sort", Reordering::EqualLinesTogether));
        assert!(!absorbed("uniq -f1 | sort", Reordering::EqualLinesTogether));
    }
}
