//! The launcher's decision between tree and star: a state machine without sockets.
//!
//! It waits until all ranks have been started, gives orders, and decides for the tree once every
//! inner agent has all its children. Anything that fails, or takes too long, decides for the star,
//! also later; that is final.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use super::place::Place;
use super::{TreeOrder, TreeReport};
use crate::exchange::shape::Shape;

/// The longest time from the first order to the last connection.
const PATIENCE: Duration = Duration::from_secs(3);

/// The longest reason of an agent.
const TEXT: usize = 4 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// Places are missing, or ranks that are not started.
    Waiting,
    /// Inner agents listen, children call.
    Joining {
        until: Instant,
    },
    Tree,
    Star,
}

/// The decision, and what is known for it.
#[derive(Debug)]
pub(crate) struct TreeBuild {
    shape: Shape,
    state: State,
    places: Vec<Option<Place>>,
    /// The hosts whose ranks have been started.
    started: usize,
    /// The addresses at which each inner agent was ordered to listen.
    listening: Vec<Vec<IpAddr>>,
    /// The inner agents that lack no child.
    complete: Vec<bool>,
    orders: Vec<(usize, TreeOrder)>,
    news: Option<TreeNews>,
}

/// A decision that has just been made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TreeNews {
    Tree,
    /// The reason.
    Star(String),
}

impl TreeBuild {
    pub(crate) fn new(shape: Shape) -> Self {
        let agents = shape.agents();
        TreeBuild {
            state: match shape.is_tree() {
                true => State::Waiting,
                false => State::Star,
            },
            places: vec![None; agents],
            started: 0,
            listening: vec![Vec::new(); agents],
            complete: vec![false; agents],
            orders: Vec::new(),
            news: None,
            shape,
        }
    }

    /// The ranks of a host have been started.
    pub(crate) fn started(&mut self, now: Instant) {
        self.started += 1;
        self.begin(now);
    }

    /// A report of an agent. The error says how it has broken the rules.
    pub(crate) fn hear(
        &mut self,
        host: usize,
        report: TreeReport,
        now: Instant,
    ) -> Result<(), String> {
        if !self.shape.is_tree() {
            return Err("it has spoken of a tree where there is none".into());
        }
        match report {
            TreeReport::Placed(place) => {
                place.check()?;
                if self.places[host].replace(place).is_some() {
                    return Err("it has reported its place twice".into());
                }
                self.begin(now);
            }
            TreeReport::Listening(addresses) => {
                let ordered = std::mem::take(&mut self.listening[host]);
                let given = addresses.iter().map(SocketAddr::ip);
                if self.state == State::Star {
                    return Ok(());
                }
                if ordered.is_empty() || !given.eq(ordered.iter().copied()) {
                    return Err("it listens where it was not ordered to".into());
                }
                self.call(host, &addresses);
            }
            TreeReport::Complete => {
                if !self.shape.inner().contains(&host) {
                    return Err("it has reported children that it has not".into());
                }
                self.complete[host] = true;
                self.decide();
            }
            TreeReport::Failed(mut why) => {
                let end = (0..=TEXT.min(why.len())).rev();
                let end = end.into_iter().find(|&at| why.is_char_boundary(at));
                why.truncate(end.unwrap_or(0));
                self.give_up(why);
            }
        }
        Ok(())
    }

    /// Decides for the star, for this reason.
    pub(crate) fn give_up(&mut self, why: String) {
        if self.state == State::Star {
            return;
        }
        self.state = State::Star;
        let agents = 0..self.shape.agents();
        self.orders = agents.map(|host| (host, TreeOrder::Leave)).collect();
        self.news = Some(TreeNews::Star(why));
    }

    /// The time of the next look.
    pub(crate) fn next(&self) -> Option<Instant> {
        match self.state {
            State::Joining { until } => Some(until),
            _ => None,
        }
    }

    /// Gives up when the time is over.
    pub(crate) fn look(&mut self, now: Instant) {
        if self.next().is_some_and(|until| now >= until) {
            let seconds = PATIENCE.as_secs();
            self.give_up(format!("connections are missing after {seconds} s"));
        }
    }

    /// Takes the orders that are to leave now, by host, and the decision that was made with them.
    /// Orders to other hosts wait.
    pub(crate) fn take(
        &mut self,
        can_leave: impl Fn(usize) -> bool,
    ) -> (Vec<(usize, TreeOrder)>, Option<TreeNews>) {
        let (now, later) = std::mem::take(&mut self.orders)
            .into_iter()
            .partition(|(host, _)| can_leave(*host));
        self.orders = later;
        (now, self.news.take())
    }

    /// Orders inner agents to listen, once all is known.
    fn begin(&mut self, now: Instant) {
        let are_here = self.started == self.shape.agents();
        if self.state != State::Waiting || !are_here || self.places.iter().any(Option::is_none) {
            return;
        }
        self.state = State::Joining {
            until: now + PATIENCE,
        };
        for host in self.shape.inner() {
            let mut wanted = Vec::new();
            for child in self.shape.children(host) {
                match self.address(host, child) {
                    Some(address) if wanted.contains(&address) => {}
                    Some(address) => wanted.push(address),
                    None => return self.give_up("two hosts have no network in common".into()),
                }
            }
            self.listening[host].clone_from(&wanted);
            self.orders.push((host, TreeOrder::Listen(wanted)));
        }
    }

    /// Orders the children of a host to call it.
    fn call(&mut self, host: usize, listening: &[SocketAddr]) {
        for child in self.shape.children(host) {
            let wanted = self.address(host, child);
            let place = listening.iter().find(|at| Some(at.ip()) == wanted);
            self.orders
                .extend(place.map(|at| (child, TreeOrder::Join(*at))));
        }
    }

    fn address(&self, host: usize, child: usize) -> Option<IpAddr> {
        let place = |host: usize| self.places[host].as_ref();
        place(host)?.address_for(place(child)?)
    }

    fn decide(&mut self) {
        let all = self.shape.inner().all(|host| self.complete[host]);
        if all && matches!(self.state, State::Joining { .. }) {
            self.state = State::Tree;
            let agents = 0..self.shape.agents();
            self.orders
                .extend(agents.map(|host| (host, TreeOrder::Use)));
            self.news = Some(TreeNews::Tree);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(machine: &str) -> TreeReport {
        TreeReport::Placed(Place {
            machine: machine.into(),
            addresses: Vec::new(),
        })
    }

    /// A tree of five agents with two children each, whose inner agents have been ordered to
    /// listen.
    fn begun(now: Instant) -> TreeBuild {
        let mut build = TreeBuild::new(Shape::new(2, &[1; 5]));
        for host in 0..5 {
            build.hear(host, place("a"), now).unwrap();
            assert_eq!(build.take(|_| true).0, []);
            build.started(now);
        }
        build
    }

    fn at(port: u16) -> TreeReport {
        TreeReport::Listening(vec![SocketAddr::from(([127, 0, 0, 1], port))])
    }

    #[test]
    fn a_tree_is_used_once_every_child_has_come() {
        let now = Instant::now();
        let mut build = begun(now);
        let listen = TreeOrder::Listen(vec![[127, 0, 0, 1].into()]);
        let orders = build.take(|_| true).0;
        assert_eq!(orders, [(0, listen.clone()), (1, listen)]);
        build.hear(1, at(7), now).unwrap();
        let join = TreeOrder::Join(SocketAddr::from(([127, 0, 0, 1], 7)));
        assert_eq!(build.take(|_| true).0, [(4, join)]);
        build.hear(0, at(8), now).unwrap();
        assert_eq!(build.take(|_| true).0.len(), 2);
        build.hear(1, TreeReport::Complete, now).unwrap();
        assert_eq!(build.take(|_| true), (vec![], None));
        build.hear(0, TreeReport::Complete, now).unwrap();
        let (orders, news) = build.take(|_| true);
        assert_eq!(news, Some(TreeNews::Tree));
        assert!(orders.len() == 5 && orders.iter().all(|(_, order)| *order == TreeOrder::Use));
        assert_eq!(build.next(), None);
        build
            .hear(3, TreeReport::Failed("gone".into()), now)
            .unwrap();
        let (orders, news) = build.take(|_| true);
        assert_eq!(news, Some(TreeNews::Star("gone".into())));
        assert!(orders.len() == 5 && orders.iter().all(|(_, order)| *order == TreeOrder::Leave));
    }

    #[test]
    fn silence_and_strange_networks_leave_a_star() {
        let now = Instant::now();
        let mut build = begun(now);
        build.look(build.next().unwrap());
        assert!(matches!(build.take(|_| true).1, Some(TreeNews::Star(_))));
        // Later reports change nothing.
        build.hear(0, at(8), now).unwrap();
        build.hear(0, TreeReport::Complete, now).unwrap();
        build.hear(1, TreeReport::Complete, now).unwrap();
        assert_eq!(build.take(|_| true), (vec![], None));

        let mut build = TreeBuild::new(Shape::new(1, &[1; 2]));
        build.started(now);
        build.started(now);
        build.hear(0, place("a"), now).unwrap();
        build.hear(1, place("b"), now).unwrap();
        let news = build.take(|_| true).1;
        assert_eq!(
            news,
            Some(TreeNews::Star("two hosts have no network in common".into()))
        );
    }

    #[test]
    fn lies_are_breaches() {
        let now = Instant::now();
        let mut build = begun(now);
        assert!(build.hear(0, place("a"), now).is_err());
        assert!(build.hear(2, at(7), now).is_err());
        assert!(build.hear(3, TreeReport::Complete, now).is_err());
        let elsewhere = TreeReport::Listening(vec![SocketAddr::from(([192, 0, 2, 1], 7))]);
        assert!(build.hear(1, elsewhere, now).is_err());
        let mut star = TreeBuild::new(Shape::new(0, &[1; 5]));
        assert!(star.hear(0, place("a"), now).is_err());
        let mut build = begun(now);
        let long = "é".repeat(TEXT);
        build.hear(0, TreeReport::Failed(long), now).unwrap();
        let Some(TreeNews::Star(why)) = build.take(|_| true).1 else {
            panic!("no star")
        };
        assert_eq!(why.len(), TEXT);
    }
}
