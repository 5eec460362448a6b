//! `fishplate fabric explain --route`: the switches and links between two hosts.

use ::fabric::network::Stop;
use ::fabric::network::path::Choice;
use ::fabric::{Nanos, Network, Rail, System};
use serde_json::{Value, json};

use super::print;

/// A request to explain the route between two hosts.
pub(super) struct RouteRequest<'a> {
    /// The name of the system in the catalogue, or a file.
    pub(super) name: &'a str,
    /// The two hosts, as `FROM:TO`.
    pub(super) hosts: &'a str,
    pub(super) rail: u32,
}

/// A route with all that is printed of it.
struct Route {
    rail: Rail,
    network: Network,
    from: u32,
    to: u32,
    stops: Vec<Stop>,
}

impl RouteRequest<'_> {
    pub(super) fn explain(&self, json: bool) -> Result<(), String> {
        let route = self.route()?;
        match json {
            true => say!("{}", self.object(&route)),
            false => self.show(&route),
        }
        Ok(())
    }

    fn route(&self) -> Result<Route, String> {
        let system = super::system(self.name)?;
        let rails = system.rails.count();
        if self.rail >= rails {
            let (name, rail) = (self.name, self.rail);
            return Err(format!(
                "--rail: {name}: there is no rail {rail}; the number of rails is {rails}, counted from 0"
            ));
        }
        let rail = system.rail(self.rail);
        let network = system.network(&rail).ok_or_else(|| {
            let name = self.name;
            format!("--route: {name} gives the number of switches between hosts (hops) and no network, so its routes are unknown")
        })?;
        let (from, to) = self.ends(&system, &network)?;
        let path = network.path(from, to, Choice::ByDestination);
        Ok(Route {
            stops: match from == to {
                true => Vec::new(),
                false => network.stops(from, &path),
            },
            rail,
            network,
            from,
            to,
        })
    }

    /// The numbers of the two hosts.
    fn ends(&self, system: &System, network: &Network) -> Result<(u32, u32), String> {
        let (from, to) = self
            .hosts
            .split_once(':')
            .ok_or_else(|| format!("--route {}: valid are two hosts, such as 0:1", self.hosts))?;
        let host = |word: &str| {
            let number = word.parse().ok().filter(|number| *number < system.nodes);
            let named = network
                .host_named(word)
                .filter(|number| *number < system.nodes);
            number.or(named).ok_or_else(|| {
                let last = system.nodes - 1;
                format!("--route {}: {} has no host {word}; valid are 0 to {last}, and names of hosts in its graph", self.hosts, self.name)
            })
        };
        Ok((host(from)?, host(to)?))
    }

    fn object(&self, route: &Route) -> Value {
        let stops = route.stops.iter().zip(1..).map(|(stop, number)| {
            json!({"link": stop.link, "switch": stop.switch, "rate_gb_per_s": route.rate(number), "ns": route.time(number).as_nanos()})
        });
        let [from, to] = [route.from, route.to].map(|host| route.network.host_name(host));
        json!({"system": self.name, "rail": self.rail, "from": route.from, "to": route.to,
            "from_name": from, "to_name": to, "hops": route.stops.len(),
            "stops": stops.collect::<Vec<Value>>(), "total_ns": route.total().as_nanos(),
            "shortest_routes": route.choices(), "adaptive": route.rail.is_adaptive(), "lanes": route.network.lanes()})
    }

    fn show(&self, route: &Route) {
        let switches = match route.stops.len() {
            1 => "1 switch".to_owned(),
            many => format!("{many} switches"),
        };
        let [from, to] = [route.from, route.to].map(|host| route.network.host_name(host));
        tell!("{}: the route from {from} to {to}: {switches}", self.name);
        let mut rows = vec![[String::new(), from, String::new(), "0.0".into()]];
        for (stop, number) in route.stops.iter().zip(1..) {
            let time = format!("{:.1}", route.time(number).as_nanos());
            let rate = format!("{:.0}", route.rate(number));
            rows.push([stop.link.clone(), stop.switch.clone(), rate, time]);
        }
        if route.from != route.to {
            let rate = format!("{:.0}", route.rail.link_rate().as_gb_per_sec());
            let time = format!("{:.1}", route.total().as_nanos());
            rows.push(["host link".into(), to, rate, time]);
        }
        print(["link", "leads to", "Gb/s", "ns"], rows, 2);
        tell!("ns: time until the first bit of a packet is there, with nothing else on the links.");
        for line in route.remarks() {
            tell!("{line}");
        }
    }
}

impl Route {
    /// The time at which the first bit reaches a switch, counted from 1.
    fn time(&self, number: u32) -> Nanos {
        self.rail.flight(number - 1)
    }

    /// The rate of the link to a switch, counted from 1, in Gb/s.
    fn rate(&self, number: u32) -> f64 {
        let rate = match number {
            1 => self.rail.link_rate(),
            _ => self.rail.inner_rate(),
        };
        rate.as_gb_per_sec()
    }

    /// The time at which the first bit reaches the host.
    fn total(&self) -> Nanos {
        match self.from == self.to {
            true => Nanos::ZERO,
            false => self.rail.flight(self.stops.len() as u32),
        }
    }

    /// The number of shortest routes that differ in their links.
    fn choices(&self) -> u32 {
        match self.stops.len() {
            0 | 1 => 1,
            _ => self.network.choices(self.from, self.to),
        }
    }

    /// The number of shortest routes, the routing and the lanes, as lines of text.
    fn remarks(&self) -> Vec<String> {
        let routing = match (self.rail.is_adaptive(), self.choices()) {
            (_, 1) => "There is 1 shortest route.".to_owned(),
            (false, many) => format!(
                "There are {many} shortest routes between the two hosts; the destination selects this one."
            ),
            (true, many) => format!(
                "There are {many} shortest routes between the two hosts. Routing is adaptive: a packet takes the fastest of a few when it \
                 leaves; this is the one that the destination selects where all links are free."
            ),
        };
        let mut lines = vec![routing];
        if let Network::Graph(key) = self.network
            && let Some(graph) = key.find()
        {
            use ::fabric::network::graph::Rule;
            let rule = match graph.rule() {
                Rule::Shortest => {
                    "The routes of the graph are shortest paths, spread over equal ones."
                }
                Rule::UpDown => {
                    "The routes of the graph go up and then down a tree, because its shortest paths could deadlock."
                }
                Rule::Given => "The routes of the graph are those of its tables.",
            };
            lines.push(rule.to_owned());
            if graph.lanes() > 1 {
                lines.push(format!(
                    "Packets to this host use virtual lane {}.",
                    graph.lane(self.to)
                ));
            }
        }
        lines.push(match self.network.lanes() {
            1 => "The routes of this network are free of deadlock with 1 virtual lane.".into(),
            many => format!(
                "The routes of this network are free of deadlock with {many} virtual lanes."
            ),
        });
        lines
    }
}
