//! Units are exact, and values read back as they are shown.

use fabric::quantity::{Quantity, Raw};
use fabric::{Bytes, GbPerSec, Metres, Nanos, PerSec, Ratio};

fn read<Q: Quantity>(text: &str) -> Option<Q> {
    Q::read(&Raw::Text(text.to_owned()))
}

#[test]
fn times_of_rates_are_exact_or_rounded_up() {
    let rate = |text: &str| read::<GbPerSec>(text).unwrap();
    assert_eq!(rate("8 Gb/s").time(1), Nanos::from_picos(1_000));
    assert_eq!(rate("400 Gb/s").time(64), Nanos::from_picos(1_280));
    assert_eq!(rate("3 Gb/s").time(1), Nanos::from_picos(2_667));
    assert_eq!(rate("1000 MB/s"), rate("8 Gb/s"));
    assert_eq!(rate("1 GB/s"), rate("8 Gb/s"));
    assert_eq!(rate("8 GT/s"), rate("8000 Mb/s"));
    // The product has more than 64 bits.
    assert_eq!(rate("8 Gb/s").time(1 << 40), Nanos::from_picos(1_000 << 40));
    assert_eq!(
        GbPerSec::of(1000, Nanos::from_picos(1_000_000)),
        Some(rate("8 Gb/s"))
    );
    assert_eq!(GbPerSec::of(1000, Nanos::ZERO), None);
}

#[test]
fn values_are_read_in_their_units() {
    assert_eq!(read("0.13 us"), Some(Nanos::from_picos(130_000)));
    assert_eq!(read("130ns"), Some(Nanos::from_picos(130_000)));
    assert_eq!(read("4 KiB"), Some(Bytes(4096)));
    assert_eq!(read("2.5 m"), Some(Metres::from_millimetres(2500)));
    assert_eq!(read("8.7 M/s"), Some(PerSec(8_700_000)));
    assert_eq!(read::<Ratio>("256/257 * 514/544"), Ratio::new(16, 17));
    assert_eq!(read::<Option<GbPerSec>>("none"), Some(None));
    assert_eq!(PerSec(50_000_000).interval(), Nanos::from_picos(20_000));
    assert_eq!(
        Metres::from_millimetres(2500).time(Nanos::from_picos(5_000)),
        Nanos::from_picos(12_500)
    );
}

#[test]
fn what_is_no_such_value_is_refused() {
    for text in ["", "5", "ns", "5 B", "-1 ns", "1.2.3 ns", "2 s", "1e9 ns"] {
        assert_eq!(read::<Nanos>(text), None, "{text}");
    }
    for text in ["0 Gb/s", "1 kb/s", "5 ns", "9999999 Gb/s"] {
        assert_eq!(read::<GbPerSec>(text), None, "{text}");
    }
    for text in ["0/1", "3/2", "1/0", "1", "1/2 * 3/2"] {
        assert_eq!(read::<Ratio>(text), None, "{text}");
    }
    assert_eq!(read::<Bytes>("2 GiB"), None);
    assert_eq!(u32::read(&Raw::Integer(-1)), None);
    assert_eq!(bool::read(&Raw::Integer(1)), None);
    assert_eq!(bool::from_word(2), None);
}

#[test]
fn what_is_shown_reads_back() {
    fn both<Q: Quantity + PartialEq + std::fmt::Debug + Copy>(value: Q) {
        assert_eq!(read(&value.show()), Some(value));
        assert_eq!(Q::from_word(value.to_word()), Some(value));
    }
    [0, 999, 130_000, 1_300_000, 12_345_678]
        .into_iter()
        .for_each(|picos| both(Nanos::from_picos(picos)));
    [0, 1, 1024, 4096, 8192, 1 << 20, 12345]
        .into_iter()
        .for_each(|bytes| both(Bytes(bytes)));
    [1_000_000, 14_062_500_000]
        .into_iter()
        .for_each(|bits| both(GbPerSec::from_bits_per_sec(bits)));
    both(Some(GbPerSec::from_bits_per_sec(50_800_000_000)));
    both(None::<GbPerSec>);
    both(PerSec(8_695_652));
    both(Metres::from_millimetres(1_500));
    both(Ratio::new(64, 66).unwrap());
}
