use super::*;
use crate::process::OtherFiles;

/// `(pid, parent, group, [(fd, pipe, direction)])`.
type Line<'l> = (u32, u32, u32, &'l [(u32, u64, Direction)]);

fn snapshot(lines: &[Line<'_>]) -> Vec<Process> {
    let process = |&(pid, parent, group, ends): &Line<'_>| {
        let ends = ends.iter().map(|&(fd, pipe, direction)| PipeEnd { fd, pipe: PipeId(0, pipe), direction }).collect();
        let (comm, start) = (format!("p{pid}"), u64::from(pid));
        let (state, threads, of_kernel, ends) = ('S', 1, false, Some(ends));
        let (ticks, kernel_ticks, children_ticks, reaped, others) = (0, 0, 0, 0, OtherFiles::default());
        Process {
            pid,
            parent,
            group,
            start,
            state,
            threads,
            of_kernel,
            ticks,
            kernel_ticks,
            children_ticks,
            reaped,
            comm,
            files_of: pid,
            ends,
            others,
        }
    };
    lines.iter().map(process).collect()
}

fn found(lines: &[Line<'_>], seeds: &[u32], reach: Reach) -> Vec<Vec<u32>> {
    stages(&snapshot(lines), seeds, reach).into_iter().map(|shape| shape.pids).collect()
}

use Direction::{Both, In, Out};

#[test]
fn a_pipeline_is_found_from_each_of_its_processes() {
    let lines: [Line<'_>; 5] = [
        (10, 1, 10, &[]),
        (11, 10, 11, &[(1, 100, Out)]),
        (12, 10, 11, &[(0, 100, In), (1, 101, Out)]),
        (13, 10, 11, &[(0, 101, In)]),
        // Another pipeline of the same shell.
        (14, 10, 14, &[(1, 102, Out)]),
    ];
    for seed in [11, 12, 13] {
        assert_eq!(found(&lines, &[seed], Reach::Joined), [[11], [12], [13]], "{seed}");
    }
    // A search from the shell finds the same three stages. Process 14 is not a stage, because nothing reads its pipe.
    assert_eq!(found(&lines, &[10], Reach::Joined).len(), 3);
}

#[test]
fn a_process_that_only_passes_pipes_on_does_not_use_its_family() {
    let reads: [Line<'_>; 2] = [(10, 1, 10, &[(3, 100, In)]), (11, 10, 10, &[(1, 100, Out)])];
    assert!(uses_own_family(&snapshot(&reads), 10));
    let feeds: [Line<'_>; 2] = [(10, 1, 10, &[(4, 100, Out)]), (11, 10, 10, &[(0, 100, In)])];
    assert!(uses_own_family(&snapshot(&feeds), 10));
    // A shell that runs 'cat <(yes)'.
    let hands_on: [Line<'_>; 3] =
        [(10, 1, 10, &[(63, 100, In)]), (11, 10, 10, &[(63, 100, In)]), (12, 10, 10, &[(1, 100, Out)])];
    assert!(!uses_own_family(&snapshot(&hands_on), 10));
    // Both processes have an input from elsewhere.
    let waits: [Line<'_>; 2] = [(10, 1, 10, &[(0, 100, In)]), (11, 10, 10, &[(0, 100, In)])];
    assert!(!uses_own_family(&snapshot(&waits), 10));
}

#[test]
fn a_loop_and_its_commands_are_one_stage() {
    let lines: [Line<'_>; 4] = [
        (11, 10, 11, &[(1, 100, Out)]),
        (12, 10, 11, &[(0, 100, In), (1, 101, Out)]),
        (20, 12, 11, &[(0, 100, In), (1, 101, Out)]),
        (13, 10, 11, &[(0, 101, In)]),
    ];
    assert_eq!(found(&lines, &[13], Reach::Joined), [vec![11], vec![12, 20], vec![13]]);
}

#[test]
fn processes_started_by_xargs_belong_to_its_stage() {
    let lines: [Line<'_>; 4] =
        [(11, 10, 11, &[(1, 100, Out)]), (12, 10, 11, &[(0, 100, In)]), (20, 12, 11, &[]), (21, 12, 11, &[])];
    assert_eq!(found(&lines, &[11], Reach::Joined), [vec![11], vec![12, 20, 21]]);
}

#[test]
fn a_branch_of_tee_is_a_stage_of_its_own_although_tee_started_it() {
    let lines: [Line<'_>; 4] = [
        (11, 10, 11, &[(1, 100, Out)]),
        (12, 10, 11, &[(0, 100, In), (1, 101, Out), (63, 102, Out)]),
        (20, 12, 11, &[(0, 102, In), (1, 101, Out)]),
        (13, 10, 11, &[(0, 101, In)]),
    ];
    for seed in [11, 12, 13, 20] {
        assert_eq!(found(&lines, &[seed], Reach::Joined), [[11], [12], [20], [13]], "{seed}");
    }
}

#[test]
fn an_end_inherited_by_another_branch_is_ignored() {
    // tee reopened the branches' pipes as descriptors 3 and 4. The second branch inherited the first branch's
    // descriptor 63.
    let lines: [Line<'_>; 4] = [
        (9, 1, 9, &[(1, 99, Out)]),
        (10, 1, 9, &[(0, 99, In), (3, 100, Out), (4, 101, Out), (62, 101, Out), (63, 100, Out)]),
        (11, 10, 9, &[(0, 100, In)]),
        (12, 10, 9, &[(0, 101, In), (63, 100, Out)]),
    ];
    let shapes = stages(&snapshot(&lines), &[10], Reach::Joined);
    let outs: Vec<(u32, usize)> = shapes.iter().map(|shape| (shape.pids[0], shape.outs.len())).collect();
    assert_eq!(outs, [(9, 1), (10, 2), (11, 0), (12, 0)]);
}

#[test]
fn programs_that_feed_another_by_substitution_come_before_it() {
    let lines: [Line<'_>; 4] = [
        (12, 10, 12, &[(1, 101, Out), (62, 103, In), (63, 102, In)]),
        (20, 12, 12, &[(1, 102, Out)]),
        (21, 12, 12, &[(1, 103, Out)]),
        (13, 10, 12, &[(0, 101, In)]),
    ];
    assert_eq!(found(&lines, &[12], Reach::Joined), [[20], [21], [12], [13]]);
}

#[test]
fn a_shell_that_only_waits_for_a_pipeline_is_no_stage() {
    let lines: [Line<'_>; 6] = [
        (11, 10, 11, &[(1, 100, Out)]),
        (12, 10, 11, &[(0, 100, In), (1, 103, Out)]),
        (20, 12, 11, &[(0, 100, In), (1, 101, Out)]),
        (21, 12, 11, &[(0, 101, In), (1, 102, Out)]),
        (22, 12, 11, &[(0, 102, In), (1, 103, Out)]),
        (13, 10, 11, &[(0, 103, In)]),
    ];
    assert_eq!(found(&lines, &[11], Reach::Joined), [[11], [20], [21], [22], [13]]);
}

#[test]
fn several_writers_of_one_pipe_are_found() {
    let lines: [Line<'_>; 3] =
        [(11, 10, 11, &[(1, 100, Out)]), (12, 10, 11, &[(1, 100, Out)]), (13, 10, 11, &[(0, 100, In)])];
    assert_eq!(found(&lines, &[13], Reach::Joined), [[11], [12], [13]]);
    let given = found(&lines, &[11, 12, 13], Reach::Given);
    assert_eq!(given, [[11], [12], [13]]);
}

#[test]
fn standard_error_and_pipes_held_at_both_ends_lead_nowhere() {
    let lines: [Line<'_>; 4] = [
        (11, 10, 11, &[(1, 100, Out), (2, 900, Out), (5, 901, In), (6, 901, Out)]),
        (12, 10, 11, &[(0, 100, In), (2, 900, Out)]),
        (30, 1, 30, &[(0, 900, In)]),
        (31, 1, 31, &[(0, 901, In)]),
    ];
    assert_eq!(found(&lines, &[11], Reach::Joined), [[11], [12]]);
}

#[test]
fn other_descriptors_are_followed_in_one_group_or_family_only() {
    let lines: [Line<'_>; 4] = [
        (11, 10, 11, &[(1, 100, Out), (7, 900, Out)]),
        (12, 10, 11, &[(0, 100, In)]),
        (30, 1, 30, &[(7, 900, In)]),
        // A program that runs the pipeline and reads what it writes.
        (40, 1, 40, &[]),
    ];
    assert_eq!(found(&lines, &[11], Reach::Joined), [[11], [12]]);
    let lines: [Line<'_>; 3] =
        [(10, 1, 10, &[(9, 101, In)]), (11, 10, 11, &[(1, 100, Out)]), (12, 10, 11, &[(0, 100, In), (1, 101, Out)])];
    assert_eq!(found(&lines, &[11], Reach::Joined), [[11], [12], [10]]);
}

#[test]
fn without_pipes_the_given_processes_are_one_stage() {
    let lines: [Line<'_>; 2] = [(11, 10, 11, &[]), (12, 11, 11, &[])];
    assert_eq!(found(&lines, &[11], Reach::Joined), [[11, 12]]);
    assert_eq!(found(&lines, &[99], Reach::Joined), Vec::<Vec<u32>>::new());
}

#[test]
fn a_cycle_of_pipes_does_not_hang_the_search() {
    let lines: [Line<'_>; 2] =
        [(11, 10, 11, &[(0, 101, In), (1, 100, Out)]), (12, 10, 11, &[(0, 100, In), (1, 101, Out)])];
    assert_eq!(found(&lines, &[11], Reach::Joined), [[11], [12]]);
}

#[test]
fn an_unreadable_process_fills_the_gap_of_its_group() {
    let mut processes = snapshot(&[
        // The shell that started them is unreadable too.
        (10, 1, 10, &[]),
        (11, 10, 11, &[(1, 100, Out)]),
        (12, 10, 11, &[]),
        (13, 10, 11, &[(0, 101, In)]),
        // A pipe without a reader in another group is no gap of this group.
        (21, 10, 21, &[(1, 200, Out)]),
    ]);
    (processes[0].ends, processes[2].ends) = (None, None);
    fill_gaps(&mut processes);
    let found: Vec<Vec<u32>> = stages(&processes, &[11], Reach::Joined).into_iter().map(|shape| shape.pids).collect();
    assert_eq!(found, [[11], [12], [13]]);
    // With two unreadable processes, it isn't known which of them has which end.
    let mut two = snapshot(&[(11, 10, 11, &[(1, 100, Out)]), (12, 10, 11, &[]), (13, 10, 11, &[])]);
    (two[1].ends, two[2].ends) = (None, None);
    fill_gaps(&mut two);
    assert!(two[1].ends.is_none());
}

#[test]
fn standard_error_leads_to_a_stage_if_nothing_else_is_piped() {
    // a 2>&1 >file | b, started by a program that reads the errors of b.
    let lines: [Line<'_>; 3] =
        [(10, 1, 10, &[(5, 200, In)]), (11, 10, 11, &[(2, 100, Out)]), (12, 10, 11, &[(0, 100, In), (2, 200, Out)])];
    for seed in [11, 12] {
        assert_eq!(found(&lines, &[seed], Reach::Joined), [[11], [12]], "{seed}");
    }
    // If the process's output is piped elsewhere, its standard error doesn't lead to a stage.
    let lines: [Line<'_>; 3] =
        [(11, 10, 11, &[(1, 100, Out), (2, 101, Out)]), (12, 10, 11, &[(0, 100, In)]), (13, 10, 11, &[(0, 101, In)])];
    assert_eq!(found(&lines, &[11], Reach::Joined), [[11], [12]]);
}

#[test]
fn standard_error_of_a_whole_script_leads_nowhere() {
    // script 2>&1 | tee log, where the script runs a | b >file.
    let script: [Line<'_>; 4] = [
        (10, 1, 10, &[(1, 200, Out), (2, 200, Out)]),
        (11, 10, 10, &[(1, 100, Out), (2, 200, Out)]),
        (12, 10, 10, &[(0, 100, In), (2, 200, Out)]),
        (13, 1, 10, &[(0, 200, In)]),
    ];
    for seed in [11, 12] {
        assert_eq!(found(&script, &[seed], Reach::Joined), [[11], [12]], "{seed}");
    }
    assert_eq!(found(&script[..1], &[10], Reach::Joined), [[10]]);
    // { a 2>&1 >file; } | b: a's standard error was redirected to the shell's standard output.
    let group: [Line<'_>; 3] =
        [(10, 1, 10, &[(1, 100, Out)]), (11, 10, 10, &[(2, 100, Out)]), (12, 1, 10, &[(0, 100, In)])];
    assert_eq!(found(&group, &[11], Reach::Joined), [[11], [12]]);
}

/// Like Python's multiprocessing: workers share their parent's output, read work from one pipe and write results to
/// another. The parent holds both ends of these two pipes. Each worker also has a pipe that shows the parent that the
/// worker has ended.
#[test]
fn a_pool_of_workers_is_one_stage_whose_queues_are_its_own() {
    let lines: [Line<'_>; 5] = [
        (11, 10, 11, &[(1, 100, Out)]),
        (12, 10, 11, &[(0, 100, In), (1, 101, Out), (4, 102, Both), (5, 103, Both), (6, 104, In), (7, 105, In)]),
        (20, 12, 11, &[(1, 101, Out), (4, 102, In), (5, 103, Out), (8, 104, Out)]),
        (21, 12, 11, &[(1, 101, Out), (4, 102, In), (5, 103, Out), (8, 105, Out)]),
        (13, 10, 11, &[(0, 101, In)]),
    ];
    let shapes = stages(&snapshot(&lines), &[13], Reach::Joined);
    let pids: Vec<&[u32]> = shapes.iter().map(|shape| &shape.pids[..]).collect();
    assert_eq!(pids, [&[11][..], &[12, 20, 21], &[13]]);
    assert_eq!((&shapes[1].ins[..], &shapes[1].outs[..]), (&[PipeId(0, 100)][..], &[PipeId(0, 101)][..]));
}
