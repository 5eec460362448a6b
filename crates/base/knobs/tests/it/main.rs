//! Tests of settings as a user sees them: variables in, values or an error out.

mod rails;

use std::time::Duration;

use knobs::{Bytes, Error, KnobValue, Knobs, PREFIX, Seconds, SingleCopyMode, TABLE, Wait};

fn parse(vars: &[(&str, &str)]) -> Result<Knobs, Error> {
    Knobs::parse(
        vars.iter()
            .map(|(name, value)| (name.to_string(), value.to_string())),
    )
}

fn message(vars: &[(&str, &str)]) -> String {
    parse(vars).expect_err("accepted").to_string()
}

#[test]
fn nothing_set_gives_the_defaults() {
    assert_eq!(parse(&[("PATH", "/bin")]).unwrap(), Knobs::default());
    assert_eq!(
        parse(&[("FISHPLATE_EAGER_LIMIT", "")]).unwrap(),
        Knobs::default()
    );
}

#[test]
fn each_type_is_read() {
    let knobs = parse(&[
        ("FISHPLATE_EAGER_LIMIT", "64k"),
        ("FISHPLATE_RING_SLOTS", "512"),
        ("FISHPLATE_SINGLE_COPY", "OFF"),
        ("FISHPLATE_WAIT", "yield"),
        ("FISHPLATE_SPIN", "1.5ms"),
        ("FISHPLATE_REPORT_STUCK", "2"),
        ("FISHPLATE_COLLECTIVES", "bcast=binomial, allreduce@1K=ring"),
        ("FISHPLATE_DEVICE", " rxe0, mlx5_0:1"),
    ])
    .unwrap();
    assert_eq!(knobs.eager_limit, Bytes::kib(64));
    assert_eq!(knobs.ring_slots, 512);
    assert_eq!(knobs.single_copy, SingleCopyMode::Off);
    assert_eq!(knobs.wait, Wait::Yield);
    assert_eq!(knobs.spin, Duration::from_micros(1500));
    assert_eq!(knobs.report_stuck, Seconds(Duration::from_secs(2)));
    assert_eq!(knobs.device, "rxe0, mlx5_0:1");
    assert_eq!(knobs.collectives.choose("bcast", 0, 4), Some("binomial"));
    assert_eq!(knobs.collectives.choose("allreduce", 1023, 4), None);
    assert_eq!(knobs.collectives.choose("allreduce", 1024, 4), Some("ring"));
}

#[test]
fn launcher_and_agents_wait_longer_than_ranks() {
    let seconds = Duration::from_secs;
    let of = |vars: &[(&str, &str)]| {
        let knobs = parse(vars).unwrap();
        (knobs.outage.0, knobs.heartbeat())
    };
    let outage = |value| of(&[("FISHPLATE_OUTAGE", value)]);
    assert_eq!(of(&[]), (Some(seconds(120)), seconds(150)));
    assert_eq!(outage("0"), (Some(seconds(0)), seconds(30)));
    assert_eq!(outage("90"), (Some(seconds(90)), seconds(120)));
    assert_eq!(outage("1.5min"), (Some(seconds(90)), seconds(120)));
    assert_eq!(outage("500ms").0, Some(Duration::from_millis(500)));
    assert_eq!(outage("2h").0, Some(seconds(7200)));
    assert_eq!(outage("forever"), (None, Duration::ZERO));
    let given = of(&[("FISHPLATE_OUTAGE", "5min"), ("FISHPLATE_HEARTBEAT", "10")]);
    assert_eq!(given.1, seconds(10));
}

#[test]
fn the_largest_threshold_that_fits_wins() {
    let knobs = parse(&[(
        "FISHPLATE_COLLECTIVES",
        "bcast@1M=chain,bcast=flat,bcast@1K=tree",
    )])
    .unwrap();
    let chosen =
        [10, 2000, 2 << 20].map(|size| knobs.collectives.choose("bcast", size, 4).unwrap());
    assert_eq!(chosen, ["flat", "tree", "chain"]);
}

#[test]
fn an_unknown_variable_is_named_with_the_nearest_known_one() {
    let message = message(&[("FISHPLATE_EAGR_LIMIT", "1")]);
    for part in [
        "FISHPLATE_EAGR_LIMIT ",
        "FISHPLATE_EAGER_LIMIT?",
        "`fishplate knobs`",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let message = self::message(&[("FISHPLATE_QQQQQQQQQ", "1")]);
    assert!(!message.contains("did you mean"), "{message}");
}

#[test]
fn a_bad_value_is_named_with_what_would_be_valid() {
    let bad = [
        ("FISHPLATE_EAGER_LIMIT", "16Q", "16K"),
        ("FISHPLATE_EAGER_LIMIT", "-1", "16K"),
        ("FISHPLATE_EAGER_LIMIT", "99999999999999999999", "16K"),
        ("FISHPLATE_EAGER_LIMIT", "18014398509481984K", "16K"),
        ("FISHPLATE_EAGER_LIMIT", "1G", "from 0 to 64M"),
        ("FISHPLATE_RING_SLOTS", "0", "from 4 to 16384"),
        ("FISHPLATE_SPIN", "50", "50us"),
        ("FISHPLATE_SPIN", "us", "50us"),
        ("FISHPLATE_REPORT_STUCK", "inf", "seconds"),
        ("FISHPLATE_DEVICE", "rxe0\nrxe1", "one line"),
        ("FISHPLATE_WAIT", "nap", "auto, spin, yield or sleep"),
        (
            "FISHPLATE_COLLECTIVES",
            "bcast",
            "COLLECTIVE[@BYTES][/RANKS]=ALGORITHM",
        ),
        (
            "FISHPLATE_COLLECTIVES",
            "bcast@=x",
            "COLLECTIVE[@BYTES][/RANKS]=ALGORITHM",
        ),
    ];
    for (variable, value, expected) in bad {
        let message = message(&[(variable, value)]);
        assert!(
            message.contains(&format!("{variable}={value}")),
            "{message}"
        );
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn an_alias_sets_it_too_but_must_not_contradict() {
    let alias = ("FISHPLATE_EAGER_THRESHOLD", "1K");
    assert_eq!(parse(&[alias]).unwrap().eager_limit, Bytes::kib(1));
    assert!(parse(&[alias, ("FISHPLATE_EAGER_LIMIT", "1K")]).is_ok());
    let message = message(&[alias, ("FISHPLATE_EAGER_LIMIT", "2K")]);
    assert!(
        message.contains("FISHPLATE_EAGER_THRESHOLD and FISHPLATE_EAGER_LIMIT"),
        "{message}"
    );
}

#[test]
fn the_contract_of_the_launcher_is_known() {
    for row in knobs::CONTRACT {
        assert_eq!(
            parse(&[(row.env, "3")]),
            Ok(Knobs::default()),
            "{}",
            row.env
        );
    }
}

#[test]
fn a_value_that_is_not_text_is_an_error_that_names_its_variable() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let vars = [
        (OsString::from_vec(vec![0xff]), OsString::from("x")),
        (
            OsString::from("FISHPLATE_WAIT"),
            OsString::from_vec(vec![b's', 0xff]),
        ),
    ];
    let error = Knobs::parse(knobs::decode(vars.into_iter())).unwrap_err();
    assert!(error.to_string().starts_with("FISHPLATE_WAIT="), "{error}");
}

#[test]
fn the_table_is_sound() {
    let defaults = Knobs::default();
    for knob in TABLE {
        assert_eq!(knob.env, format!("{PREFIX}{}", knob.name.to_uppercase()));
        assert!(knob.doc().ends_with('.'), "{}: {}", knob.name, knob.doc());
        let text = (knob.default)();
        assert_eq!(
            defaults.show(knob.name),
            Some(text.clone()),
            "{}",
            knob.name
        );
        assert_eq!(
            parse(&[(knob.env, &text)]).unwrap(),
            defaults,
            "{}",
            knob.name
        );
    }
}

#[test]
fn what_is_shown_is_read_back() {
    for bytes in [0, 1, 1023, 1024, 1536, 1 << 20, 3 << 30] {
        assert_eq!(Bytes::parse(&Bytes(bytes).show()), Some(Bytes(bytes)));
    }
    for on in [true, false] {
        assert_eq!(bool::parse(&on.show()), Some(on));
    }
    for nanos in [0, 1, 1_500, 50_000, 2_000_000, 1_500_000_000, 7_000_000_000] {
        let time = Duration::from_nanos(nanos);
        assert_eq!(Duration::parse(&time.show()), Some(time));
        assert_eq!(Seconds::parse(&Seconds(time).show()), Some(Seconds(time)));
    }
}
