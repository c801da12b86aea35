//! Guesses: changes of a pipeline that need no knowledge of its programs. That the output is the same on this input proves
//! little (`sort -u` without repeated lines), so they are never combined, pasted or called the fastest. Pure.

mod change;
mod options;
mod stages;
mod threads;

use crate::purity::concern;
use crate::typed::TypedPipeline;

pub use change::Guess;

/// All guesses for the stages of a pipeline from `first` on, whose stages must only read; those before `first` stay as
/// they are.
pub fn guesses(pipeline: &TypedPipeline, first: usize, cpus: usize) -> Vec<Guess> {
    let stages = first..pipeline.stages.len();
    let mut found: Vec<Guess> = stages.clone().flat_map(|at| options::left_out(pipeline, at)).collect();
    found.extend(stages.clone().flat_map(|at| threads::counts(pipeline, at, cpus)));
    found.extend(stages.clone().flat_map(|at| stages::swapped(pipeline, at)));
    found.extend(stages::files_as_operands(pipeline, first));
    found.extend(threads::variables(pipeline, cpus));
    found.retain(|guess| guess.pipeline.stages.iter().skip(first).all(|stage| concern(stage).is_none()));
    found
}

/// A guess that unsets variables of the environment.
pub fn unset(pipeline: &TypedPipeline, names: &[String]) -> Guess {
    Guess {
        id: "unset".to_owned(),
        changed: 0..pipeline.stages.len(),
        text: format!("without {} in the environment", names.join(", ")),
        before: format!("unset {}\n", names.join(" ")),
        pipeline: pipeline.clone(),
    }
}

/// Whether a variable of the environment may be unset for a guess. The others say where things are, or belong to the
/// shell or to pipemark.
pub fn may_be_unset(name: &str) -> bool {
    const NEEDED: [&str; 13] = [
        "PATH",
        "HOME",
        "PWD",
        "OLDPWD",
        "TMPDIR",
        "USER",
        "LOGNAME",
        "SHELL",
        "SHLVL",
        "TERM",
        "_",
        "IFS",
        "PIPEMARK_RUN",
    ];
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty() && !NEEDED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipemark_shell::Dialect;

    fn of(text: &str, id: &str) -> Vec<String> {
        let pipeline = TypedPipeline::parse(text, Dialect::Posix).unwrap();
        let found = guesses(&pipeline, 0, 4).into_iter().filter(|guess| guess.id == id);
        found.map(|guess| guess.before + &guess.pipeline.text()).collect()
    }

    #[test]
    fn each_typed_option_is_left_out_with_its_value() {
        let id = "without-option";
        let all = of("sort -rn -k 2,2 -t: --stable f | uniq -c", id);
        assert_eq!(
            all,
            [
                "sort -n -k 2,2 -t: --stable f | uniq -c",
                "sort -r -k 2,2 -t: --stable f | uniq -c",
                "sort -rn -t: --stable f | uniq -c",
                "sort -rn -k 2,2 --stable f | uniq -c",
                "sort -rn -k 2,2 -t: f | uniq -c",
                "sort -rn -k 2,2 -t: --stable f | uniq",
            ]
        );
        assert_eq!(of("cat f | head -5", id), ["cat f | head"]);
        assert_eq!(of("xargs -n 1 grep -i x", id), ["xargs grep -i x"], "options of the started command stay");
        assert_eq!(of("grep -- -x", id), [""; 0]);
        assert_eq!(of("LC_ALL=C sort f", "without-variable"), ["sort f"]);
    }

    #[test]
    fn a_guess_that_may_write_is_none() {
        assert_eq!(of("gzip -9c f", "without-option"), ["gzip -c f"], "without -c, gzip replaces the file");
        assert_eq!(of("cat a b | uniq", "files-as-operands"), [""; 0], "uniq writes its second operand");
        assert_eq!(of("cat x | tee f | sort", "swap"), [""; 0]);
    }

    #[test]
    fn neighbouring_filters_are_swapped_and_files_read_by_the_next_program() {
        assert_eq!(of("zcat a | cut -f1 | sort 2>/dev/null | uniq", "swap").len(), 2);
        assert_eq!(of("zcat a | cut -f1 | sort", "swap"), ["zcat a | sort | cut -f1"]);
        assert_eq!(of("zcat a | sort b | cut -f1", "swap").len(), 1);
        assert_eq!(of("cat 'a b' c | sort -n", "files-as-operands"), ["sort -n 'a b' c"]);
        assert_eq!(of("cat -n a | sort", "files-as-operands"), [""; 0]);
        assert_eq!(of("cat a | sort <b", "files-as-operands"), [""; 0]);
    }

    #[test]
    fn threads_are_one_and_as_many_as_cpus() {
        assert_eq!(of("cat f | xz -cT 2", "threads"), ["cat f | xz -cT1", "cat f | xz -cT4"]);
        assert_eq!(of("cat f | sort", "threads"), ["cat f | sort --parallel=1", "cat f | sort --parallel=4"]);
        assert_eq!(of("rg --threads=4 x", "threads"), ["rg --threads=1 x"]);
        assert!(of("cat f | wc", "thread-variables")[0].starts_with("export OMP_NUM_THREADS=1 "));
    }

    #[test]
    fn variables_that_name_places_stay() {
        assert!(may_be_unset("LC_ALL") && may_be_unset("POSIXLY_CORRECT"));
        assert!(["PATH", "PIPEMARK_RUN", "BASH_FUNC_x%%", "1A", ""].iter().all(|name| !may_be_unset(name)));
    }
}
