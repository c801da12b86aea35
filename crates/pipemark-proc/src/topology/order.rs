//! Sorts stages in the order of the data.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Sorts `count` stages so that each stage comes after those that feed it. `feeds` has pairs of a stage and one that it
/// feeds. If the data allows several orders, or flows in a cycle, keeps the given order. Numbers from `count` up stand
/// for pipes between many stages, and aren't part of the result.
pub fn upstream_first(count: usize, feeds: &[(usize, usize)]) -> Vec<usize> {
    let nodes = feeds.iter().map(|&(from, to)| from.max(to) + 1).max().unwrap_or(0).max(count);
    let (mut next, mut missing) = (vec![Vec::new(); nodes], vec![0_usize; nodes]);
    for &(from, to) in feeds.iter().filter(|(from, to)| from != to) {
        next[from].push(to);
        missing[to] += 1;
    }
    let mut ready: BinaryHeap<Reverse<usize>> = (0..count).filter(|&node| missing[node] == 0).map(Reverse).collect();
    let (mut done, mut is_done, mut first) = (Vec::new(), vec![false; count], 0);
    while done.len() < count {
        let node = ready.pop().map_or_else(
            || {
                first += is_done[first..].iter().take_while(|&&done| done).count();
                first
            },
            |Reverse(node)| node,
        );
        if std::mem::replace(&mut is_done[node], true) {
            continue;
        }
        done.push(node);
        let mut passed = vec![node];
        while let Some(node) = passed.pop() {
            for &to in &next[node] {
                missing[to] -= 1;
                match missing[to] {
                    0 if to >= count => passed.push(to),
                    0 if !is_done[to] => ready.push(Reverse(to)),
                    _ => {}
                }
            }
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_follow_those_that_feed_them() {
        assert_eq!(upstream_first(4, &[(3, 2), (2, 1), (1, 0)]), [3, 2, 1, 0]);
        assert_eq!(upstream_first(4, &[(2, 0), (2, 2)]), [1, 2, 0, 3], "the given order where the data leaves it open");
        assert_eq!(upstream_first(3, &[(0, 1), (1, 0), (1, 2)]), [0, 1, 2], "a cycle");
        assert_eq!(upstream_first(4, &[(2, 4), (3, 4), (4, 0), (4, 1)]), [2, 3, 0, 1], "through a pipe");
    }
}
