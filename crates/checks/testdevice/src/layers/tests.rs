use super::*;

fn all_paths(text: &str) -> Vec<String> {
    paths(text, false).map(|path| path.join("::")).collect()
}

#[test]
fn paths_are_found_with_their_branches() {
    assert_eq!(
        all_paths("use super::{a::{B, C as D}, e, self};\nlet x: f::G<h::I> = 1;"),
        [
            "super::a::B",
            "super::a::C",
            "super::e",
            "super::self",
            "f::G",
            "h::I"
        ]
    );
    assert_eq!(
        all_paths("use a::{\n    b,\n    c::*,\n};"),
        ["a::b", "a::c::*"]
    );
}

#[test]
fn modules_of_tests_do_not_count() {
    let text = "mod a;\npub(crate) mod b;\n#[cfg(test)]\nmod c;\n#[cfg(unix)]\npub mod d;";
    assert_eq!(children(text).collect::<Vec<_>>(), ["a", "b", "d"]);
    let text = "use a::B;\n#[cfg(all(test, unix))]\nmod tests {\n    use c::D;\n}";
    assert_eq!(all_paths(&code(text)), ["a::B"]);
}

#[test]
fn own_methods_are_told_from_those_of_traits() {
    assert_eq!(own_methods_of("impl Wide<'_> {"), Some("Wide"));
    assert_eq!(
        own_methods_of("impl<'a, T: Into<U>> Wide<'a, T> {"),
        Some("Wide")
    );
    assert_eq!(own_methods_of("impl<T> Clone for Wide<T> {"), None);
    assert_eq!(own_methods_of("implement"), None);
}

#[test]
fn a_cycle_is_found_and_a_diamond_is_none() {
    let graph = |edges: &[(&str, &str)]| {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry(to.to_string()).or_default();
            let imports = graph.entry(from.to_string()).or_default();
            imports.insert(to.to_string());
        }
        graph
    };
    let diamond = graph(&[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]);
    assert_eq!(cycle(&diamond), None);
    let ring = graph(&[("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")]);
    assert_eq!(cycle(&ring).unwrap(), ["b", "c", "d", "b"]);
}
