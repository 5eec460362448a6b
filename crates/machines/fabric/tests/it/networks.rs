//! Systems whose network has given levels or is a graph.

use fabric::System;
use fabric::catalogue::Catalogue;

const CLUSTER: &str = include_str!("../../../../../examples/networks/cluster.toml");
const CABLES: &str = include_str!("../../../../../examples/networks/cluster.txt");
const ROUTES: &str = include_str!("../../../../../examples/networks/cluster-routes.txt");

/// The catalogue with a file beside those of the example, or the errors of the file.
fn with(text: &str) -> Result<Catalogue, String> {
    let mut catalogue = Catalogue::builtin();
    let open = |name: &str| match name {
        "cluster.txt" => Ok(("dir/cluster.txt".to_owned(), CABLES.to_owned())),
        "cluster-routes.txt" => Ok(("dir/routes.txt".to_owned(), ROUTES.to_owned())),
        _ => Err("there is no such file".to_owned()),
    };
    let added = catalogue.add_with("mine.toml", text, &open);
    added.map_err(|why| why.to_string())?;
    Ok(catalogue)
}

#[test]
fn a_compiled_system_has_its_graphs() {
    let catalogue = with(CLUSTER).unwrap();
    assert_eq!(catalogue.slips("mine.toml"), []);
    let [all, one] = ["cluster", "one-spine"].map(|name| catalogue.system(name).unwrap());
    assert!(all.encode() != one.encode());
    for system in [all, one] {
        let bytes = system.encode();
        assert_eq!(System::decode(&bytes).as_ref(), Ok(&system));
        for length in (0..bytes.len()).step_by(7) {
            assert!(System::decode(&bytes[..length]).is_err(), "{length}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            let _ = System::decode(&damaged);
        }
    }
    let sheet = catalogue.sheet("system", "one-spine").unwrap();
    let shown = sheet.fields.iter().find(|field| field.key.name == "graph");
    assert!(format!("{:?}", shown.unwrap().value).contains("dir/cluster.txt"));
}

#[test]
fn a_rail_has_a_graph_of_its_own() {
    let text = "[system.two]\nfrom = \"hdr\"\nsource = \"published: it\"\nnodes = 12\n\
        rails = [{ graph = \"cluster.txt\" }, { graph = \"none\", subnet = 1 }]\n";
    let system = with(text).unwrap().system("two").unwrap();
    assert_eq!(system.hops_on(&system.rail(0), 0, 11), 3);
    assert_eq!(system.hops_on(&system.rail(1), 0, 11), 1);
    assert_eq!(System::decode(&system.encode()), Ok(system));
}

#[test]
fn wrong_networks_have_their_messages() {
    let head = "[system.mine]\nfrom = \"edr\"\nsource = \"published: it\"\n";
    for (keys, expected) in [
        (
            "nodes = 13\ngraph = \"cluster.txt\"\n",
            "nodes: the graph has 12 hosts, not 13; valid are 2 to 12",
        ),
        (
            "nodes = 2\ngraph = \"other.txt\"\n",
            "graph: other.txt: there is no such file",
        ),
        (
            "nodes = 2\ngraph = 3\n",
            "graph: 3 is not valid; valid is the name of a text file",
        ),
        (
            "nodes = 2\nroutes = \"cluster-routes.txt\"\n",
            "routes: routes are those of a graph from a file",
        ),
        (
            "nodes = 2\ngraph = \"cluster-routes.txt\"\n",
            "dir/routes.txt:1: this is no line of the output of ibnetdiscover",
        ),
        (
            "nodes = 2\ngraph = \"cluster.txt\"\nroutes = \"cluster.txt\"\n",
            "routes: dir/cluster.txt:5: this is no line of the output of dump_lfts",
        ),
        (
            "nodes = 2\ngraph = \"cluster.txt\"\nswitch = { ports = 4 }\n",
            "needs switches with 8 ports, and this one has 4",
        ),
        (
            "nodes = 2\nswitch_hosts = 18\n",
            "a fat tree without dimensions follows from the ports",
        ),
        (
            "nodes = 2\nswitch_hosts = 20\ndimensions = \"18\"\ncables = \"18\"\n",
            "needs switches with 38 ports",
        ),
        (
            "nodes = 400\nswitch_hosts = 18\ndimensions = \"18\"\n",
            "a fat tree of these levels has 324 hosts, not 400",
        ),
        (
            "nodes = 2\nswitch = { ports = 1024 }\nswitch_hosts = 255\ndimensions = \"255x255x255x255\"\n",
            "links between switches is not possible",
        ),
    ] {
        let why = with(&format!("{head}{keys}"))
            .err()
            .unwrap_or_else(|| panic!("{keys}"));
        assert!(why.contains(expected), "{why}\n{expected}");
    }
}
