use super::*;
use fabric::catalogue::Catalogue;
use fabric::components::Part;

/// The machine `name` of the catalogue, extended by the machines that `text` defines.
fn machine(name: &str, text: &str) -> Machine {
    let mut catalogue = Catalogue::builtin();
    catalogue.add("test.toml", text).unwrap();
    let sheet = catalogue.sheet(System::KIND, name).unwrap();
    Machine::new(name, sheet).unwrap()
}

fn set(machine: Machine, path: &str, value: &str) -> Result<Machine> {
    let change = Change {
        path: path.into(),
        value: value.into(),
    };
    machine.with_changes(vec![change])
}

#[test]
fn systems_that_differ_in_the_network_alone_have_the_same_hosts() {
    let text = "[system.mine]\nfrom = \"qdr\"\nhca = \"connectx-4\"\ncable = \"fibre\"\nswitch = \"sb7790\"\n\
                source = \"assumed: a test\"\n";
    let qdr = machine("qdr", text);
    for other in ["mine", "2xqdr", "qdr-2port", "2x1-qdr"] {
        assert!(machine(other, text).has_hosts_of(&qdr), "{other}");
    }
    for other in ["edr", "fdr", "blog-qdr", "8xqdr"] {
        assert!(!machine(other, text).has_hosts_of(&qdr), "{other}");
    }
    assert!(!machine("qdr", text).with_speed(2.0).has_hosts_of(&qdr));
    assert!(
        !set(machine("qdr", text), "host.poll", "1us")
            .unwrap()
            .has_hosts_of(&qdr)
    );
    assert!(
        !set(machine("qdr", text), "software.send", "1us")
            .unwrap()
            .has_hosts_of(&qdr)
    );
    // No time depends on the number of cores.
    assert!(
        set(machine("qdr", text), "host.cores", "4")
            .unwrap()
            .has_hosts_of(&qdr)
    );
    assert!(
        set(machine("qdr", text), "hca.send", "1us")
            .unwrap()
            .has_hosts_of(&qdr)
    );
}

#[test]
fn wrong_changes_are_explained() {
    for (path, value, says) in [
        (
            "hca.sned",
            "1us",
            "qdr: hca.connectx-2: there is no sned; did you mean send?",
        ),
        (
            "hca.send",
            "soon",
            "qdr: hca.connectx-2.send: \"soon\" is not valid",
        ),
        ("rails.1.hca.send", "1us", "a value has no 1.hca.send"),
        ("hca", "1us", "it is a part"),
    ] {
        let why = set(machine("qdr", ""), path, value)
            .unwrap_err()
            .to_string();
        assert!(why.contains(says), "{path}={value}: {why}");
    }
}

#[test]
fn a_machine_in_other_hosts_costs_what_those_hosts_cost() {
    let priced = |name: &str, host: &str| {
        format!(
            "[system.{name}]\nfrom = \"qdr\"\nsource = \"assumed: a test\"\nhost = {{ price = \"{host}\" }}\n\
             hca = {{ price = \"10 EUR\" }}\ncable = {{ price = \"1 EUR\" }}\nswitch = {{ price = \"100 EUR\" }}\n"
        )
    };
    let text = priced("one", "1000 EUR") + &priced("other", "3000 EUR");
    let (one, other) = (machine("one", &text), machine("other", &text));
    let own = one.cost(4, 2).unwrap().price.amount();
    let in_others = one.cost_in(&other, 4, 2).unwrap().price.amount();
    assert_eq!((own, in_others), (2122.0, 6122.0));
}

#[test]
fn fewer_rails_and_slower_links_are_simpler() {
    let mut order = ["2xqdr", "edr", "qdr-2port", "fdr", "r620-qdr", "qdr"]
        .map(|name| (machine(name, "").simplicity(), name));
    order.sort();
    let names = order.map(|(_, name)| name);
    assert_eq!(names[..4], ["qdr", "r620-qdr", "fdr", "edr"]);
}
