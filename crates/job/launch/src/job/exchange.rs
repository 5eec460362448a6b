//! The launcher's part of the exchange between hosts, and its decision for the tree of agents.

use std::time::Instant;

use super::RunningJob;
use crate::agent::frame::ToAgent;
use crate::agent::tree::build::TreeNews;
use crate::exchange::Up;
use crate::verdict::Cause;

impl RunningJob<'_> {
    /// Handles a message of an agent.
    pub(super) fn hear_exchange(&mut self, host: usize, up: Up) {
        match self.root.hear(host, up) {
            Ok(misuses) => {
                for misuse in misuses {
                    self.rank_failed(misuse.rank, Cause::Kvs { why: misuse.why });
                }
            }
            Err(why) => self.rules_broken(host, &why),
        }
    }

    /// Ends the job because a rank broke a rule of the store, as its agent or one above says.
    pub(super) fn rank_misused(&mut self, host: usize, rank: usize, why: &str) {
        match self.root.is_below(rank, host) {
            true => self.rank_failed(
                rank,
                Cause::Kvs {
                    why: terminal_text::lines(why),
                },
            ),
            false => self.rules_broken(
                host,
                &format!("it has spoken of rank {rank}, which is elsewhere"),
            ),
        }
    }

    /// Gives orders about the tree of agents.
    pub(super) fn look_after_tree(&mut self) {
        self.tree.look(Instant::now());
        let agents = &self.agents;
        let has_answered = |host: usize| agents.get(host).is_some_and(|agent| agent.has_answered);
        let (orders, news) = self.tree.take(has_answered);
        for (host, order) in orders {
            self.agents[host].link.post(&ToAgent::Tree(order));
        }
        let text = match news {
            None => return,
            Some(TreeNews::Tree) => {
                self.root.use_tree();
                let agents = self.agents.len();
                format!("the {agents} agents exchange values and fences over a tree")
            }
            Some(TreeNews::Star(why)) => {
                self.root.use_star();
                format!(
                    "agents exchange values and fences with the launcher alone: {}",
                    terminal_text::lines(&why)
                )
            }
        };
        // Agents that end close their connections.
        if self.options.verbose && !self.is_ending() {
            self.say(&text);
        }
    }

    /// Sends what agents are to hear.
    pub(super) fn send_exchange(&mut self) {
        let agents = &self.agents;
        let has_answered = |host: usize| agents.get(host).is_some_and(|agent| agent.has_answered);
        for (host, down) in self.root.take(has_answered) {
            for down in down.frames() {
                self.agents[host].link.post(&ToAgent::Down(down));
            }
        }
    }
}
