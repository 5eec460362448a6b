//! Views of files (MPI 5.0 §14.3), and the sizes of data in them (§14.5).

use std::sync::Arc;

use datatype::Type;

use crate::attributes::Attributes;
use crate::file::calls::round::{FileRound, Procedure, Said, heard, told};
use crate::file::{
    DISPLACEMENT_CURRENT, FileHints, FileView, Representation, RepresentationFunctions,
};
use crate::rank::Rank;
use crate::state::Objects;
use crate::{Class, Error, Result};

/// The arguments of `MPI_File_set_view`.
pub struct ViewArguments<'a> {
    /// The displacement of the view in bytes.
    pub displacement: i64,
    /// The handle of the view's etype.
    pub etype: u32,
    /// The handle of the view's filetype.
    pub filetype: u32,
    /// The name of the data representation.
    pub representation: &'a str,
    /// The keys and values of the info object.
    pub info: Result<Vec<(String, String)>>,
}

/// The result of `MPI_File_get_view`. The user must free the handles.
pub struct ViewFacts {
    /// The displacement of the view in bytes.
    pub displacement: i64,
    /// The handle of the view's etype.
    pub etype: u32,
    /// The handle of the view's filetype.
    pub filetype: u32,
    /// The name of the data representation.
    pub representation: String,
}

impl Rank {
    /// `MPI_File_set_view`.
    pub fn file_set_view(
        self: &Arc<Rank>,
        operation: &'static str,
        file: u32,
        arguments: ViewArguments,
    ) -> Result<()> {
        let round = self.begin_round(file)?;
        let mut prepared = self.prepare_view(&round, file, arguments);
        self.in_round(operation, &round, async {
            let mine = prepared.as_ref().map_err(Error::clone);
            let mine = mine.map(|(view, hints)| Said {
                same: [view.bytes.etype(), hashed(view.representation.name()), 0],
                others: told(&hints.words()),
                ..Said::new(Procedure::SetView)
            });
            let all = round.exchange(mine).await?;
            if let Ok((_, hints)) = &mut prepared {
                hints.agree(&heard(&all));
            }
            // A sequential file continues where it is: its new view begins there.
            let reset = match round.is_first() && round.file.pointer.is_some() {
                true => {
                    let file = &round.file;
                    file.with_pointer(|pointer| pointer.set(&*file.storage, 0))
                }
                false => Ok(()),
            };
            round.agree(reset).await
        })?;
        let (view, hints) = prepared?;
        let mut state = self.lock();
        let open = state.objects.files.get_mut(file)?;
        (open.view, open.position, open.hints) = (Arc::new(view), 0, hints);
        Ok(())
    }

    /// `MPI_File_get_type_extent`: the extent of a datatype in the representation of a file.
    pub fn file_type_extent(&self, file: u32, datatype: u32) -> Result<i64> {
        let (ty, view) = {
            let state = self.lock();
            let ty = state.objects.types.get(datatype)?.clone();
            (ty, state.objects.files.get(file)?.view.clone())
        };
        Ok(view.representation.layout(&ty)?.extent() as i64)
    }

    fn prepare_view(
        &self,
        round: &FileRound,
        file: u32,
        arguments: ViewArguments,
    ) -> Result<(FileView, FileHints)> {
        let (etype, filetype, representation) = {
            let state = self.lock();
            let etype = state.objects.types.committed(arguments.etype)?.clone();
            let filetype = state.objects.types.committed(arguments.filetype)?.clone();
            (
                etype,
                filetype,
                state.objects.representation(arguments.representation)?,
            )
        };
        let shared = &round.file;
        let is_sequential = shared.mode.is_sequential();
        let displacement = match (arguments.displacement, is_sequential) {
            (DISPLACEMENT_CURRENT, true) => {
                let etypes = shared.with_pointer(|pointer| pointer.get(&*shared.storage))?;
                let state = self.lock();
                let view = &state.objects.files.get(file)?.view;
                let position = view.position_of(etypes);
                position.and_then(|position| view.bytes.offset_of(position))
            }
            (displacement @ 0.., false) => Some(displacement as u64),
            _ => None,
        };
        let displacement = displacement.ok_or_else(|| {
            let valid = match is_sequential {
                true => "MPI_DISPLACEMENT_CURRENT, because the file is sequential",
                false => "0 or more",
            };
            let given = arguments.displacement;
            let detail = format!("the displacement is {given}; valid: {valid}");
            Error::new(Class::ARG, detail)
        })?;
        let is_written = shared.mode.can_write();
        let view = FileView::new(displacement, etype, filetype, representation, is_written)?;
        let mut hints = self.lock().objects.files.get(file)?.hints.clone();
        hints.update(&arguments.info?);
        Ok((view, hints))
    }
}

impl Objects {
    /// `MPI_File_get_view`.
    pub fn file_view(&mut self, file: u32) -> Result<ViewFacts> {
        let view = self.files.get(file)?.view.clone();
        Ok(ViewFacts {
            displacement: view.bytes.displacement() as i64,
            etype: self.handle_for(&view.etype)?,
            filetype: self.handle_for(&view.filetype)?,
            representation: view.representation.name().to_string(),
        })
    }

    /// A handle of a datatype in use: that of the predefined type, or a new one.
    fn handle_for(&mut self, ty: &Type) -> Result<u32> {
        match ty {
            Type::Predefined(basic) => Ok(basic.handle() as u32),
            Type::Derived(_) => self.types.add_copy(ty.clone(), true, Attributes::default()),
        }
    }

    /// `MPI_Register_datarep`.
    pub fn register_representation(
        &mut self,
        name: &str,
        functions: Arc<dyn RepresentationFunctions>,
    ) -> Result<()> {
        if self.representation(name).is_ok() {
            let detail = format!("there is a data representation `{name}` already");
            return Err(Error::new(Class::DUP_DATAREP, detail));
        }
        self.files.registered.push((name.to_string(), functions));
        Ok(())
    }

    fn representation(&self, name: &str) -> Result<Representation> {
        Ok(match name {
            "native" => Representation::Native,
            "internal" => Representation::Internal,
            "external32" => Representation::External32,
            _ => {
                let mut known = self.files.registered.iter();
                let found = known.find(|(known, _)| known == name);
                let (name, functions) = found.ok_or_else(|| unsupported(name))?;
                Representation::Registered(name.clone(), functions.clone())
            }
        })
    }
}

#[cold]
fn unsupported(name: &str) -> Error {
    let detail = format!(
        "there is no data representation `{name}`; valid: native, internal, external32, and those \
         that the program has registered"
    );
    Error::new(Class::UNSUPPORTED_DATAREP, detail)
}

/// A hash of a name, by which ranks compare it (FNV-1a).
fn hashed(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
