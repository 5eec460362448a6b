//! Tests of the settings for several rails, by the names of this library and those of MVAPICH.

use knobs::{Bytes, Knobs, MV2_ALIASES, QueuePairs, RailPolicy, TABLE};

use super::{message, parse};

fn notices(vars: &[(&str, &str)]) -> Vec<String> {
    let vars = vars.iter();
    knobs::notices(vars.map(|(name, value)| (name.to_string(), value.to_string())))
}

#[test]
fn rails_are_set_by_our_names() {
    let defaults = Knobs::default();
    assert_eq!(defaults.rail_policy, RailPolicy::Adaptive);
    assert_eq!(defaults.stripe_threshold, Bytes::kib(16));
    assert_eq!(defaults.rails.most(), 8);
    let knobs = parse(&[
        ("FISHPLATE_RAILS", "2"),
        ("FISHPLATE_RAIL_POLICY", "Round-Robin"),
        ("FISHPLATE_STRIPE_THRESHOLD", "8K"),
        ("FISHPLATE_STRIPE_ABOVE_EAGER", "on"),
        ("FISHPLATE_RAIL_QPS", "shared"),
    ])
    .unwrap();
    assert_eq!(knobs.rails.most(), 2);
    assert_eq!(knobs.rail_policy, RailPolicy::RoundRobin);
    assert_eq!(knobs.stripe_threshold, Bytes::kib(8));
    assert!(knobs.stripe_above_eager);
    assert_eq!(knobs.rail_qps, QueuePairs::Shared);
}

#[test]
fn the_names_of_mvapich_mean_the_same() {
    let knobs = parse(&[
        ("MV2_SM_SCHEDULING", "ROUND_ROBIN"),
        ("MV2_RAIL_SHARING_LARGE_MSG_THRESHOLD", "8192"),
        ("MV2_IBA_EAGER_THRESHOLD", "12K"),
        ("MV2_VBUF_TOTAL_SIZE", "12288"),
        ("MV2_NUM_RAILS", "2"),
    ])
    .unwrap();
    assert_eq!(knobs.rail_policy, RailPolicy::RoundRobin);
    assert_eq!(knobs.stripe_threshold, Bytes::kib(8));
    assert_eq!(knobs.eager_limit, Bytes::kib(12));
    assert_eq!(knobs.rdma_chunk, Bytes::kib(12));
    assert_eq!(knobs.rails.most(), 2);
    for (word, policy) in [
        ("USE_FIRST", RailPolicy::Stripe),
        ("round_robin", RailPolicy::RoundRobin),
        ("FIXED_MAPPING", RailPolicy::Fixed),
        ("PROCESS_BINDING", RailPolicy::Fixed),
    ] {
        let knobs = parse(&[("MV2_RAIL_SHARING_POLICY", word)]).unwrap();
        assert_eq!(knobs.rail_policy, policy, "{word}");
    }
}

#[test]
fn rails_are_devices_times_ports() {
    let rails = |vars: &[(&str, &str)]| parse(vars).unwrap().rails.most();
    assert_eq!(rails(&[("MV2_NUM_HCAS", "2")]), 2);
    assert_eq!(rails(&[("MV2_NUM_PORTS", "2")]), 2);
    assert_eq!(rails(&[("MV2_NUM_PORTS", "2"), ("MV2_NUM_HCAS", "3")]), 6);
    let three = [
        ("MV2_NUM_PORTS", "2"),
        ("MV2_NUM_RAILS", "4"),
        ("MV2_NUM_HCAS", "2"),
    ];
    assert_eq!(rails(&three), 4);
    let words = message(&[
        ("MV2_NUM_RAILS", "2"),
        ("MV2_NUM_HCAS", "2"),
        ("MV2_NUM_PORTS", "2"),
    ]);
    assert!(
        words.contains("MV2_NUM_RAILS and MV2_NUM_HCAS times MV2_NUM_PORTS"),
        "{words}"
    );
    let words = message(&[("MV2_NUM_HCAS", "8"), ("MV2_NUM_PORTS", "2")]);
    assert!(
        words.contains("MV2_NUM_HCAS=8 MV2_NUM_PORTS=2: expected at most 8 rails"),
        "{words}"
    );
}

#[test]
fn our_name_wins_over_an_alias_in_any_order() {
    let ours = ("FISHPLATE_RAIL_POLICY", "adaptive");
    let alias = ("MV2_SM_SCHEDULING", "ROUND_ROBIN");
    for vars in [[ours, alias], [alias, ours]] {
        let policy = parse(&vars).unwrap().rail_policy;
        assert_eq!(policy, RailPolicy::Adaptive);
        let expected = "MV2_SM_SCHEDULING has no effect: FISHPLATE_RAIL_POLICY is set and wins";
        assert_eq!(notices(&vars), [expected]);
    }
    let old = [
        ("MV2_IBA_EAGER_THRESHOLD", "12K"),
        ("FISHPLATE_EAGER_THRESHOLD", "8K"),
    ];
    assert_eq!(parse(&old).unwrap().eager_limit, Bytes::kib(8));
    assert!(notices(&old)[0].contains("FISHPLATE_EAGER_THRESHOLD is set"));
    // An empty value sets nothing.
    let empty = [("FISHPLATE_RAIL_POLICY", ""), alias];
    let policy = parse(&empty).unwrap().rail_policy;
    assert_eq!(policy, RailPolicy::RoundRobin);
    assert_eq!(notices(&empty), [""; 0]);
}

#[test]
fn two_aliases_must_not_contradict() {
    let both = |word| {
        [
            ("MV2_SM_SCHEDULING", "USE_FIRST"),
            ("MV2_RAIL_SHARING_POLICY", word),
        ]
    };
    assert!(parse(&both("use_first")).is_ok());
    let words = message(&both("ROUND_ROBIN"));
    assert!(
        words.contains("MV2_SM_SCHEDULING and MV2_RAIL_SHARING_POLICY"),
        "{words}"
    );
}

#[test]
fn a_bad_value_is_named_by_the_variable_that_was_typed() {
    for (variable, value, expected) in [
        ("FISHPLATE_RAIL_POLICY", "ROUND_ROBIN", "round-robin"),
        ("FISHPLATE_RAILS", "0", "from 1 to 8, or all"),
        ("FISHPLATE_RAILS", "9", "from 1 to 8, or all"),
        ("FISHPLATE_RAIL_QPS", "two", "separate or shared"),
        ("MV2_SM_SCHEDULING", "SHARING", "ROUND_ROBIN (round-robin)"),
        ("MV2_NUM_RAILS", "none", "from 1 to 8"),
        ("MV2_NUM_PORTS", "0", "from 1 to 8"),
        ("MV2_VBUF_TOTAL_SIZE", "12", "from 1K to 16M"),
        ("MV2_IBA_EAGER_THRESHOLD", "a lot", "16K"),
        ("MV2_RAIL_SHARING_LARGE_MSG_THRESHOLD", "-1", "16K"),
    ] {
        let words = message(&[(variable, value)]);
        assert!(
            words.starts_with(&format!("{variable}={value}: ")),
            "{words}"
        );
        assert!(words.contains(expected), "{words}");
    }
    // An invalid value is an error even where a variable of this library overrides it.
    let words = message(&[("FISHPLATE_RAILS", "2"), ("MV2_NUM_HCAS", "x")]);
    assert!(words.starts_with("MV2_NUM_HCAS=x: "), "{words}");
}

#[test]
fn names_of_mvapich_without_meaning_are_ignored_and_named_once() {
    let vars = [
        ("MV2_USE_CUDA", "1"),
        ("MV2_ENABLE_AFFINITY", "0"),
        ("MV2_NUM_HCAS", "2"),
        ("PATH", "/bin"),
    ];
    assert_eq!(parse(&vars).unwrap().rails.most(), 2);
    let notices = notices(&vars);
    assert_eq!(notices.len(), 1);
    assert!(
        notices[0].contains(": MV2_ENABLE_AFFINITY, MV2_USE_CUDA ("),
        "{notices:?}"
    );
}

#[test]
fn every_alias_is_listed_with_its_setting() {
    let listed = |alias: &str, env: &str| {
        let mut rows = MV2_ALIASES.iter();
        rows.any(|row| row.env == alias && row.setting == env)
    };
    let mut aliases = 0;
    for knob in TABLE {
        for alias in knob.aliases.iter().filter(|name| name.starts_with("MV2_")) {
            assert!(listed(alias, knob.env), "{alias}");
            aliases += 1;
        }
    }
    assert_eq!(aliases, MV2_ALIASES.len());
}
