//! Prices of components and of machines. A price is optional, and no time depends on it.

mod machine;

use std::fmt;

use crate::quantity::{Quantity, Raw};

/// An amount of money in hundredths of a currency's unit, with that currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    hundredths: u64,
    currency: [u8; 3],
}

impl Price {
    /// The amount of the price, in units of its currency.
    pub fn amount(&self) -> f64 {
        self.hundredths as f64 / 100.0
    }

    /// The currency of the price in three letters, such as EUR.
    pub fn currency(&self) -> &str {
        std::str::from_utf8(&self.currency).unwrap_or("???")
    }

    /// This price multiplied by `over` and divided by `under`.
    pub fn part(&self, over: u64, under: u64) -> Price {
        let hundredths = u128::from(self.hundredths) * u128::from(over) / u128::from(under);
        Price {
            hundredths: hundredths as u64,
            ..*self
        }
    }

    fn plus(self, other: Price, times: u64) -> Result<Price, PriceGap> {
        if self.currency != other.currency {
            let (one, two) = (self.currency(), other.currency());
            return Err(PriceGap::Currencies(format!("{one} and {two}")));
        }
        Ok(Price {
            hundredths: self.hundredths + other.hundredths * times,
            ..self
        })
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.hundredths % 100 {
            0 => write!(f, "{} {}", self.hundredths / 100, self.currency()),
            part => {
                let whole = self.hundredths / 100;
                write!(f, "{whole}.{part:02} {}", self.currency())
            }
        }
    }
}

/// The largest price, in hundredths: 10^13 units of the currency.
const MOST: u64 = 1_000_000_000_000_000;

impl Quantity for Option<Price> {
    const VALID: &'static str = "\"none\", or an amount with its currency as three capital letters, such as \"450 USD\" or \"89.90EUR\"";

    fn read(raw: &Raw) -> Option<Self> {
        let Raw::Text(text) = raw else { return None };
        if text == "none" {
            return Some(None);
        }
        let text = text.trim();
        let (amount, currency) = text.split_at_checked(text.len().checked_sub(3)?)?;
        let amount = amount.trim_end();
        let currency: [u8; 3] = currency.as_bytes().try_into().ok()?;
        let is_number = amount.bytes().all(|c| c.is_ascii_digit() || c == b'.');
        let hundredths = (amount.parse::<f64>().ok()? * 100.0).round();
        let good = is_number && hundredths <= MOST as f64;
        let good = good && currency.iter().all(u8::is_ascii_uppercase);
        good.then_some(Some(Price {
            hundredths: hundredths as u64,
            currency,
        }))
    }

    fn show(&self) -> String {
        self.map_or("none".to_owned(), |price| price.to_string())
    }

    fn to_word(&self) -> u64 {
        self.map_or(u64::MAX, |price| {
            let letters = price.currency.iter();
            letters.fold(price.hundredths, |word, letter| {
                word << 5 | u64::from(letter - b'A')
            })
        })
    }

    fn from_word(word: u64) -> Option<Self> {
        if word == u64::MAX {
            return Some(None);
        }
        let letter = |place: u32| Some((word >> (5 * place) & 31) as u8).filter(|&at| at < 26);
        let currency = [letter(2)? + b'A', letter(1)? + b'A', letter(0)? + b'A'];
        let hundredths = word >> 15;
        (hundredths <= MOST).then_some(Some(Price {
            hundredths,
            currency,
        }))
    }
}

/// The reason why no price of a machine can be computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriceGap {
    /// Some components have no price: their names.
    Missing(Vec<&'static str>),
    /// The prices are in these currencies, which cannot be added.
    Currencies(String),
    /// The switches connect this many hosts at most.
    Room(u32),
}

impl fmt::Display for PriceGap {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            PriceGap::Missing(parts) => write!(f, "no price of its {}", parts.join(", ")),
            PriceGap::Currencies(both) => write!(f, "prices in {both} cannot be added"),
            PriceGap::Room(most) => write!(f, "its switches connect {most} hosts at most"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Option<Price>> {
        <Option<Price>>::read(&Raw::Text(text.into()))
    }

    #[test]
    fn a_price_has_an_amount_and_a_currency() {
        for text in ["450 USD", "89.90 EUR", "0 CHF", "none"] {
            let price = read(text).unwrap();
            assert_eq!(price.show(), text);
            assert_eq!(<Option<Price>>::from_word(price.to_word()), Some(price));
        }
        assert_eq!(read("89.90EUR"), read("89.90 EUR"));
        for text in [
            "450",
            "USD",
            "450 usd",
            "450 dollars",
            "-1 USD",
            "1e3 USD",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(<Option<Price>>::read(&Raw::Integer(450)), None);
    }
}
