//! The shape of the tree of agents: arithmetic on the numbers of hosts.
//!
//! With degree `d` the launcher is the parent of the first `d` agents, and agent `i` that of agents
//! `d(i+1)` to `d(i+2)-1`. The members of a subtree are an interval on each level.

use std::ops::Range;

use pmi::Hosts;

/// The tree of the agents of a job, and the ranks of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The most children of the launcher and of each agent. None: all are the launcher's.
    degree: Option<usize>,
    /// The first rank of each host, and the number of ranks.
    firsts: Vec<usize>,
}

impl Shape {
    /// The shape for these numbers of ranks on each host. A degree of 0, or one that all hosts
    /// fit, is a star.
    pub(crate) fn new(degree: usize, counts: &[usize]) -> Shape {
        let mut firsts = vec![0];
        let mut next = 0;
        for count in counts {
            next += count;
            firsts.push(next);
        }
        Shape {
            degree: (degree > 0 && degree < counts.len()).then_some(degree),
            firsts,
        }
    }

    /// The shape for a placement in blocks.
    pub(crate) fn of(degree: usize, hosts: &Hosts) -> Shape {
        let mut counts = vec![0; hosts.count()];
        (0..hosts.ranks()).for_each(|rank| counts[hosts.of(rank) as usize] += 1);
        Shape::new(degree, &counts)
    }

    /// The number of hosts.
    pub(crate) fn agents(&self) -> usize {
        self.firsts.len() - 1
    }

    /// The number of ranks.
    pub(crate) fn ranks(&self) -> usize {
        self.firsts[self.agents()]
    }

    /// Whether some agents have others below them.
    pub(crate) fn is_tree(&self) -> bool {
        self.degree.is_some()
    }

    /// The hosts whose parent is the launcher.
    pub(crate) fn top(&self) -> Range<usize> {
        0..self.degree.unwrap_or(self.agents())
    }

    /// The parent of a host. None: the launcher.
    #[cfg(test)]
    pub(crate) fn parent(&self, host: usize) -> Option<usize> {
        let degree = self.degree?;
        (host / degree).checked_sub(1)
    }

    /// The children of a host.
    pub(crate) fn children(&self, host: usize) -> Range<usize> {
        self.below(host..host + 1)
    }

    /// The hosts whose parents are these.
    fn below(&self, hosts: Range<usize>) -> Range<usize> {
        let end = self.agents();
        match self.degree {
            Some(degree) => {
                let first = |host: usize| degree.saturating_mul(host + 1).min(end);
                first(hosts.start)..first(hosts.end)
            }
            None => end..end,
        }
    }

    /// The hosts that have children.
    pub(crate) fn inner(&self) -> Range<usize> {
        let inner = (0..self.agents()).find(|&host| self.children(host).is_empty());
        0..inner.unwrap_or(0)
    }

    /// The ranks of a host.
    pub(crate) fn own(&self, host: usize) -> Range<usize> {
        self.firsts[host]..self.firsts[host + 1]
    }

    /// The ranks of a host and of all below it: a range for each level.
    pub(crate) fn subtree(&self, host: usize) -> Vec<Range<usize>> {
        let mut level = host..host + 1;
        let mut ranks = Vec::new();
        while !level.is_empty() {
            ranks.push(self.firsts[level.start]..self.firsts[level.end]);
            level = self.below(level);
        }
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_is_below_its_parent_once() {
        for (degree, agents) in [(1, 5), (2, 3), (2, 40), (3, 4), (16, 64), (8, 1000), (7, 7)] {
            let counts: Vec<usize> = (0..agents).map(|host| 1 + host % 3).collect();
            let shape = Shape::new(degree, &counts);
            assert_eq!(shape.is_tree(), degree < agents);
            let mut seen = vec![0; shape.ranks()];
            for host in shape.top() {
                assert_eq!(shape.parent(host), None);
                for range in shape.subtree(host) {
                    range.for_each(|rank| seen[rank] += 1);
                }
            }
            assert!(seen.iter().all(|&times| times == 1), "{degree} {agents}");
            for host in 0..agents {
                let children = shape.children(host);
                assert!(children.len() <= degree);
                assert_eq!(children.is_empty(), !shape.inner().contains(&host));
                assert!(
                    children
                        .into_iter()
                        .all(|child| shape.parent(child) == Some(host))
                );
                assert_eq!(shape.subtree(host)[0], shape.own(host));
            }
        }
    }

    #[test]
    fn without_a_degree_all_are_children_of_the_launcher() {
        let shape = Shape::of(0, &Hosts::blocks(&[2, 3]));
        assert!(!shape.is_tree() && shape.inner().is_empty());
        assert_eq!(
            (shape.top(), shape.own(1), shape.parent(1)),
            (0..2, 2..5, None)
        );
        assert_eq!(shape.subtree(1), std::slice::from_ref(&(2..5)));
    }
}
