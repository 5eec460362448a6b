//! An all-to-all exchange of records: byte strings whose lengths only their senders know.

use datatype::Buffer;

use super::Work;
use super::blocks::Blocks;
use super::call::Call;
use crate::Result;
use crate::rank::Rank;
use crate::request::Waiting;

/// Bytes of the length of a record, as it is sent.
const LENGTH: usize = 8;

impl Rank {
    /// Sends `give[member]` to each member of a communicator, and returns the bytes from each.
    pub(crate) fn exchange_records(
        &self,
        operation: &'static str,
        comm: u32,
        give: &[Vec<u8>],
    ) -> Result<Vec<Vec<u8>>> {
        let (core, tag) = {
            let mut state = self.lock();
            let entry = state.objects.comms.get_mut(comm)?;
            (entry.core.clone(), entry.collective_tag())
        };
        let call = Call::new(self, &core, tag);
        let among = Some(core.context);
        self.block_on(&Waiting::in_call(operation), among, exchange(&call, give))
    }
}

async fn exchange(call: &Call<'_>, give: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let whole = || call.bytes(call.size() * LENGTH);
    let (ours, theirs) = (whole()?, whole()?);
    for (member, bytes) in give.iter().enumerate() {
        ours.unpack(member * LENGTH, &(bytes.len() as u64).to_ne_bytes());
    }
    let even = |buffer: &Buffer| Blocks::even(buffer.clone(), call.size());
    let (ours, theirs) = (even(&ours), even(&theirs));
    exchange_blocks(call, ours, theirs.clone()).await?;
    let room = |member: usize| {
        let mut length = [0; LENGTH];
        theirs.part(member).pack(0, &mut length);
        call.bytes(u64::from_ne_bytes(length) as usize)
    };
    let filled = |bytes: &Vec<u8>| {
        let buffer = call.bytes(bytes.len())?;
        buffer.unpack(0, bytes);
        Ok(buffer)
    };
    let give: Result<Box<[Buffer]>> = give.iter().map(filled).collect();
    let take: Result<Box<[Buffer]>> = (0..call.size()).map(room).collect();
    let (give, take) = (Blocks::Each(give?), Blocks::Each(take?));
    exchange_blocks(call, give, take.clone()).await?;
    let bytes = |member: usize| {
        let part = take.part(member);
        let mut bytes = vec![0; part.len()];
        part.pack(0, &mut bytes);
        bytes
    };
    Ok((0..call.size()).map(bytes).collect())
}

async fn exchange_blocks(call: &Call<'_>, give: Blocks, take: Blocks) -> Result<()> {
    let work = Work::Alltoall {
        send: Some(give),
        receive: take,
    };
    work.by_messages(call).await
}
