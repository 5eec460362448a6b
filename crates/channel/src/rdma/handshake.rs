//! What ranks tell each other before there is a connection, by a slow way: a few bytes that need no connection.

use device::Address;

use super::config::Config;

/// Changes whenever the ring or these words do.
const VERSION: u8 = 3;

/// What a rank tells a peer.
#[derive(Clone, Debug, PartialEq)]
pub enum Word {
    /// Here is my end.
    Hello(Box<Hello>),
    /// My end is connected to yours: you may write.
    Ready,
    /// All that I have written is where it belongs, and I will write no more.
    Bye,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hello {
    pub config: Config,
    /// My end is connected to yours already.
    pub ready: bool,
    /// There is memory for rings. Unless both ends have it, packets go as messages.
    pub rings: bool,
    /// So many messages may come to me before I say more.
    pub credits: u32,
    /// Of the memory that the peer writes to.
    pub address: u64,
    pub rkey: u32,
    pub control: Address,
    pub bulk: Address,
}

impl Word {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        match self {
            Word::Ready => bytes.push(1),
            Word::Bye => bytes.push(2),
            Word::Hello(hello) => {
                bytes.extend([
                    0,
                    hello.config.design.number(),
                    hello.ready.into(),
                    hello.rings.into(),
                ]);
                for size in [hello.config.ring_bytes, hello.config.chunk] {
                    bytes.extend((size as u64).to_le_bytes());
                }
                bytes.extend(hello.address.to_le_bytes());
                bytes.extend(hello.rkey.to_le_bytes());
                bytes.extend(hello.credits.to_le_bytes());
                for end in [hello.control, hello.bulk] {
                    bytes.extend(end.port.to_le_bytes());
                    bytes.extend(end.qp.to_le_bytes());
                }
            }
        }
        bytes
    }

    /// What a peer has told, given our own choices. An error says what is wrong with it.
    pub fn decode(bytes: &[u8], ours: &Config) -> Result<Word, String> {
        let mut rest = bytes;
        let version = number::<1>(&mut rest)? as u8;
        if version != VERSION {
            return Err(format!(
                "its version of the channel is {version}, ours {VERSION}"
            ));
        }
        let word = match number::<1>(&mut rest)? {
            1 => Word::Ready,
            2 => Word::Bye,
            0 => {
                let design = number::<1>(&mut rest)? as u8;
                let ready = number::<1>(&mut rest)? == 1;
                let rings = number::<1>(&mut rest)? == 1;
                let theirs = [number::<8>(&mut rest)?, number::<8>(&mut rest)?];
                let wanted = [ours.ring_bytes as u128, ours.chunk as u128];
                if (design, theirs) != (ours.design.number(), wanted) {
                    return Err(format!(
                        "it has rings of {} bytes, chunks of {} and design {design}, we have {} and {} and design {}: \
                         give all ranks the same FISHPLATE_RDMA_* settings",
                        theirs[0],
                        theirs[1],
                        wanted[0],
                        wanted[1],
                        ours.design.number(),
                    ));
                }
                let (address, rkey) = (
                    number::<8>(&mut rest)? as u64,
                    number::<4>(&mut rest)? as u32,
                );
                let credits = number::<4>(&mut rest)? as u32;
                let mut end = || -> Result<Address, String> {
                    Ok(Address {
                        port: number::<16>(&mut rest)?,
                        qp: number::<4>(&mut rest)? as u32,
                    })
                };
                Word::Hello(Box::new(Hello {
                    config: *ours,
                    ready,
                    rings,
                    credits,
                    address,
                    rkey,
                    control: end()?,
                    bulk: end()?,
                }))
            }
            other => return Err(format!("a word of kind {other}")),
        };
        match rest {
            [] => Ok(word),
            _ => Err(format!("{} bytes too many in a word", rest.len())),
        }
    }
}

/// The next number of `N` bytes.
fn number<const N: usize>(from: &mut &[u8]) -> Result<u128, String> {
    let (bytes, rest) = from
        .split_at_checked(N)
        .ok_or_else(|| "a word that is too short".to_string())?;
    *from = rest;
    Ok(bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_as_they_were() {
        let ours = Config::default();
        let end = |port, qp| Address { port, qp };
        let hello = Hello {
            config: ours,
            ready: true,
            rings: false,
            credits: 5,
            address: 1 << 60,
            rkey: u32::MAX,
            control: end(u128::MAX - 3, 17),
            bulk: end(1, u32::MAX),
        };
        for word in [Word::Hello(Box::new(hello)), Word::Ready, Word::Bye] {
            assert_eq!(Word::decode(&word.encode(), &ours), Ok(word));
        }
        let other = Config { chunk: 7, ..ours };
        let error = Word::decode(&Word::Hello(Box::new(hello)).encode(), &other).unwrap_err();
        assert!(
            error.contains("chunks of 16384") && error.contains("FISHPLATE_RDMA"),
            "{error}"
        );
        assert!(Word::decode(&[VERSION, 9], &ours).is_err());
        assert!(Word::decode(&[VERSION, 0, 1], &ours).is_err());
        assert!(Word::decode(&[], &ours).is_err());
    }
}
