//! The making of communicators.

use mpi::coll::carried::Carrier;
use mpi::coll::{self, Work};
use mpi::comm::Core;

use super::{Communicator, Player, Result};
use crate::program::{Handle, Making};
use crate::world::Vote;

impl Player {
    /// Makes a communicator. The members agree by messages to one of them and back.
    pub(super) async fn make_comm(
        &mut self,
        making: &Making,
        comm: Handle,
        new: Handle,
    ) -> Result<()> {
        let rank = self.own.rank;
        let found = self.comms.get_mut(&comm);
        let parent = found.ok_or("a communicator that the fast way does not have")?;
        parent.made += 1;
        let (of, size) = (
            (parent.member.core().context, parent.made),
            parent.member.core().size(),
        );
        let me = parent.member.core().rank as i64;
        let dims = parent.dims.clone();
        let vote = vote(making, me, &dims, self.own.host_of(rank as usize));
        self.own.world.votes(of, size, me as usize, vote);
        let work = |root: i32, me: i64| -> Result<[Work; 2]> {
            let each = 16;
            let all = coll::Blocks::even(self.buffer(each * size as u64)?, size);
            let gather = Work::Gather {
                send: Some(self.buffer(each)?),
                receive: (me == i64::from(root)).then_some(all),
                root,
            };
            let bcast = Work::Bcast {
                buffer: self.buffer(each * size as u64)?,
                root,
            };
            Ok([gather, bcast])
        };
        for work in work(0, me)? {
            let operation = self.operation(comm)?;
            let own = self.own.clone();
            self.run(Box::pin(async move { operation.run(&own, &work).await }))
                .await?;
        }
        let Some((context, members)) = self.own.world.made(of, me as usize) else {
            return Ok(());
        };
        let parent = self.comm(comm)?;
        let member = |world: &u32| *world as usize;
        let worlds: Vec<u32> = members
            .iter()
            .filter_map(|number| parent.member.core().members.world(member(number)))
            .map(|world| world as u32)
            .collect();
        let place = worlds.iter().position(|world| *world == rank);
        let core = Core::new(context, worlds.into(), place.ok_or("no member")?);
        let made = Communicator {
            member: parent.member.making(core),
            made: 0,
            dims: match making {
                Making::Cart { dims } => dims.clone(),
                Making::Dup => dims,
                _ => Box::default(),
            },
        };
        self.comms.insert(new, made);
        Ok(())
    }
}

/// The vote of a member for a new communicator: its group and its place there. `None`: it is in no
/// group.
fn vote(making: &Making, me: i64, dims: &[i64], host: u32) -> Vote {
    let (color, key) = match making {
        Making::Dup => (Some(0), me),
        Making::Split { color, key } => ((*color >= 0).then_some(*color), *key),
        Making::SplitByHost { key } => (Some(host.into()), *key),
        Making::Cart { dims } => {
            let places = dims.iter().product::<i64>();
            ((me < places).then_some(0), me)
        }
        Making::CartSub { remains } => {
            let (mut rest, mut color) = (me, 0);
            let mut stride = dims.iter().product::<i64>().max(1);
            for (at, dim) in dims.iter().enumerate() {
                stride /= (*dim).max(1);
                let place = rest / stride.max(1);
                rest -= place * stride;
                if remains.get(at).is_none_or(|remains| *remains == 0) {
                    color = color * dim + place;
                }
            }
            (Some(color), me)
        }
    };
    Vote { color, key }
}
