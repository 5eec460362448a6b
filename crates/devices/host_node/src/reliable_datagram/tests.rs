//! Out-of-band messages over a medium that loses, repeats, reorders and damages datagrams at
//! random, by a seed.

use secret::Secret;
use sim::Random;

use super::*;
use crate::datagram::{DATAGRAM, PURPOSE};

fn codes(byte: u8) -> Codes {
    Codes::new(&Secret::from_bytes([byte; Secret::LENGTH]), PURPOSE)
}

/// Datagrams in flight, and the percentages of datagrams that are lost, doubled and damaged.
struct Medium {
    random: Random,
    flying: Vec<(usize, Vec<u8>)>,
    lose: u64,
    double: u64,
    damage: u64,
    carried: u64,
}

impl Medium {
    fn take(&mut self, to: usize, mut datagram: Vec<u8>) {
        self.carried += 1;
        assert!(datagram.len() <= DATAGRAM);
        if self.random.below(100) < self.lose {
            return;
        }
        if self.random.below(100) < self.double {
            self.flying.push((to, datagram.clone()));
        }
        if self.random.below(100) < self.damage {
            let at = self.random.below(datagram.len() as u64) as usize;
            datagram[at] ^= 1 << self.random.below(8);
        }
        self.flying.push((to, datagram));
    }

    /// Removes and returns an arriving datagram, chosen at random.
    fn give(&mut self) -> Option<(usize, Vec<u8>)> {
        let count = self.flying.len() as u64;
        (count > 0)
            .then(|| self.random.below(count))
            .map(|at| self.flying.swap_remove(at as usize))
    }
}

fn word(from: usize, to: usize, number: usize, random: &mut Random) -> Vec<u8> {
    let longest = [0, 1, 40, BODY as u64, BODY as u64 + 1, 20_000];
    let longest = longest[random.below(6) as usize];
    let len = if longest > 0 {
        random.below(longest + 1) as usize
    } else {
        0
    };
    let mut word = vec![from as u8, to as u8, number as u8];
    word.extend((0..len).map(|at| (at * 7 + number) as u8));
    word
}

/// Runs ranks that send each other messages until all have arrived. Returns the number of
/// datagrams.
fn play(seed: u64, bad: bool) -> u64 {
    const RANKS: usize = 4;
    let mut random = Random::new(seed);
    let percent = |random: &mut Random, most| if bad { random.below(most) } else { 0 };
    let mut medium = Medium {
        lose: percent(&mut random, 60),
        double: percent(&mut random, 50),
        damage: percent(&mut random, 30),
        random: Random::new(seed | 1 << 40),
        flying: Vec::new(),
        carried: 0,
    };
    let nonce = |rank: usize| 1000 + rank as u64;
    let mut ranks: Vec<ReliableDatagrams> = (0..RANKS)
        .map(|rank| ReliableDatagrams::new(rank, nonce(rank), codes(5)))
        .collect();
    let mut expected: BTreeMap<(usize, usize), VecDeque<Vec<u8>>> = BTreeMap::new();
    let (mut to_tell, mut now) = (60, 0);
    for _ in 0..2_000_000 {
        let rank = random.below(RANKS as u64) as usize;
        if to_tell > 0 && random.below(20) == 0 {
            to_tell -= 1;
            let to = random.below(RANKS as u64) as usize;
            let word = word(rank, to, to_tell, &mut random);
            ranks[rank].oob_send(to, &word);
            expected.entry((rank, to)).or_default().push_back(word);
        }
        // A peer's card becomes known some time after the first query.
        let strange: Vec<usize> = ranks[rank].strangers().collect();
        for stranger in strange.into_iter().filter(|_| random.below(10) == 0) {
            ranks[rank].introduce(stranger, nonce(stranger));
        }
        if let Some((to, datagram)) = ranks[rank].outgoing(now) {
            medium.take(to, datagram);
        }
        if random.below(3) > 0
            && let Some((to, datagram)) = medium.give()
        {
            ranks[to].incoming(&datagram, RANKS, now);
        }
        while let Some((from, word)) = ranks[rank].oob_recv() {
            let next = expected
                .get_mut(&(from, rank))
                .and_then(|words| words.pop_front());
            assert_eq!(Some(word), next, "rank {rank} from {from}");
        }
        let all_heard = expected.values().all(|words| words.is_empty());
        if to_tell == 0 && all_heard && ranks.iter().all(|rank| rank.unsettled().next().is_none()) {
            return medium.carried;
        }
        now += random.below(300_000);
    }
    panic!("not all was heard");
}

#[test]
fn words_arrive_in_order_whole_and_once_over_whatever_medium() {
    for seed in 1..=300 {
        println!("seed {seed}");
        play(seed, true);
    }
}

#[test]
fn a_good_medium_carries_little_more_than_it_must() {
    for seed in 1..=20 {
        println!("seed {seed}");
        let carried = play(seed, false);
        assert!(carried < 3_000, "{carried}");
    }
}

/// A datagram with the complete message `hello`, for rank 0 with its nonce.
fn hello(from: u32, serial: u64, number: u32) -> Vec<u8> {
    hello_for(Receiver { rank: 0, nonce: 77 }, from, serial, number)
}

fn hello_for(to: Receiver, from: u32, serial: u64, number: u32) -> Vec<u8> {
    let letter = Datagram {
        serial,
        from,
        number,
        taken: 0,
        flags: HAS_FRAGMENT | ENDS_WORD,
        body: b"hello",
    };
    letter.seal(&codes(5), to)
}

#[test]
fn a_stranger_is_not_heard() {
    let mut mail = ReliableDatagrams::new(0, 77, codes(5));
    let other = |rank, nonce| hello_for(Receiver { rank, nonce }, 1, 1, 1);
    let whole = hello(1, 1, 1);
    for strange in [
        // For another node of this rank, for another rank, from this rank itself, and a truncated
        // one.
        &other(0, 78)[..],
        &other(2, 77),
        &hello(0, 1, 1),
        &whole[..whole.len() - 1],
        &[],
    ] {
        assert!(!mail.incoming(strange, 4, 0));
    }
    let mut of_another_job = ReliableDatagrams::new(0, 77, codes(6));
    assert!(!of_another_job.incoming(&whole, 4, 0));
    assert_eq!(mail.oob_recv(), None);
    assert!(mail.peers.is_empty() && of_another_job.peers.is_empty());
    assert!(mail.incoming(&whole, 4, 0));
    assert_eq!(mail.oob_recv(), Some((1, b"hello".to_vec())));
}

#[test]
fn a_rank_is_heard_once_it_is_known() {
    let mut mail = ReliableDatagrams::new(0, 77, codes(5));
    let early = hello(4, 1, 1);
    assert!(mail.incoming(&early, 4, 0) && mail.peers.is_empty());
    assert!(mail.incoming(&early, 5, 0));
    assert_eq!(mail.oob_recv(), Some((4, b"hello".to_vec())));
}

#[test]
fn a_repeated_datagram_changes_nothing() {
    let mut mail = ReliableDatagrams::new(0, 77, codes(5));
    mail.introduce(1, 2);
    let first = hello(1, 1, 1);
    for is_first in [true, false, false] {
        assert!(mail.incoming(&first, 4, 0));
        assert_eq!(mail.oob_recv().is_some(), is_first);
        // Not even an acknowledgement is sent.
        assert_eq!(mail.outgoing(0).is_some(), is_first);
    }
    // The peer retransmits the fragment, because the acknowledgement was lost.
    assert!(mail.incoming(&hello(1, 2, 1), 4, 0));
    assert_eq!(mail.oob_recv(), None);
    assert!(mail.outgoing(0).is_some());
    // After the numbers of fragments have wrapped, an old datagram is still a repeated one.
    mail.peers.get_mut(&1).unwrap().received = 0;
    assert!(mail.incoming(&first, 4, 0));
    assert_eq!(mail.oob_recv(), None);
}

#[test]
fn a_peer_that_is_silent_is_asked_less_and_less_often_and_never_given_up() {
    let mut mail = ReliableDatagrams::new(0, 1, codes(5));
    mail.introduce(1, 2);
    mail.oob_send(1, b"anybody there?");
    let mut times = Vec::new();
    let mut now = 0;
    for _ in 0..12 {
        assert!(mail.outgoing(now).is_some());
        assert!(mail.outgoing(now).is_none());
        times.push(now);
        now = mail.due().unwrap();
    }
    let gaps: Vec<u64> = times.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(gaps[..3], [PATIENCE, 2 * PATIENCE, 4 * PATIENCE]);
    assert_eq!(gaps[10], MOST_PATIENCE);
}
