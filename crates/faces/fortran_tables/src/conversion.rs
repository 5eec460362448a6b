//! The parts of a conversion of one parameter: the dummy argument of the entry point, statements
//! before the call of the standard ABI, the argument, and statements after it.

#[derive(Default)]
pub(crate) struct Conversion {
    /// Name and type. None: Fortran has no such parameter.
    pub(crate) dummy: Option<String>,
    /// The hidden argument with the length of a character string.
    pub(crate) length: Option<String>,
    pub(crate) before: Vec<String>,
    pub(crate) argument: String,
    pub(crate) after: Vec<String>,
    /// The argument of the form of `mpi_f08`, where that differs.
    pub(crate) f08: Option<String>,
    /// The statement after the call in that form.
    pub(crate) f08_after: Option<String>,
    /// Of most handles and buffers, which need no long conversion: the condition, and the argument
    /// where it holds.
    pub(crate) known: Option<(String, String)>,
    pub(crate) is_choice: bool,
    /// It allocates, or calls the library.
    pub(crate) is_long: bool,
}

impl Conversion {
    /// The name of the dummy argument.
    pub(crate) fn name(&self) -> Option<String> {
        let dummy = self.dummy.as_ref()?;
        Some(dummy.split(':').next().unwrap_or(dummy).into())
    }

    /// The dummy argument of a choice buffer in `mpi_f08`.
    pub(crate) fn with_descriptor(&self) -> Conversion {
        let dummy = match (self.name(), self.is_choice) {
            (Some(name), true) => Some(format!("{name}: Descriptor")),
            _ => self.dummy.clone(),
        };
        Conversion {
            dummy,
            length: self.length.clone(),
            ..Conversion::default()
        }
    }

    /// The conversion of `mpi_f08`, where that has no descriptor.
    pub(crate) fn of_f08(self) -> Conversion {
        match self.f08 {
            Some(argument) => Conversion {
                argument,
                before: Vec::new(),
                after: self.f08_after.into_iter().collect(),
                f08: None,
                f08_after: None,
                ..self
            },
            None => self,
        }
    }

    /// The conversion where the condition of `known` holds.
    pub(crate) fn of_known(self) -> Conversion {
        match self.known {
            Some((_, argument)) => Conversion {
                argument,
                known: None,
                ..self
            },
            None => self,
        }
    }

    /// The conversion neither allocates nor calls the library, where the condition of `known`
    /// holds.
    pub(crate) fn is_short(&self) -> bool {
        !self.is_long
    }

    /// The condition of `known`. `has_descriptors`: choice buffers are descriptors.
    pub(crate) fn condition(&self, has_descriptors: bool) -> Option<String> {
        let condition = &self.known.as_ref()?.0;
        Some(match self.choice() {
            Some(name) if has_descriptors => {
                format!("{name}.is_simple() && buffer::is_memory({name}.address())")
            }
            _ => condition.clone(),
        })
    }

    /// The name of a choice buffer.
    pub(crate) fn choice(&self) -> Option<String> {
        self.name().filter(|_| self.is_choice)
    }

    pub(crate) fn before(mut self, line: impl Into<String>) -> Conversion {
        self.before.push(line.into());
        self.long()
    }

    /// A variable before the call that costs nothing.
    pub(crate) fn variable(mut self, line: impl Into<String>) -> Conversion {
        self.before.push(line.into());
        self
    }

    pub(crate) fn long(mut self) -> Conversion {
        self.is_long = true;
        self
    }

    pub(crate) fn after(mut self, line: impl Into<String>) -> Conversion {
        self.after.push(line.into());
        self
    }

    pub(crate) fn with_length(mut self, name: &str) -> Conversion {
        self.length = Some(format!("{name}_length"));
        self
    }
}

/// A parameter whose dummy argument is the address of a value of type `ty`.
pub(crate) fn dummy(name: &str, ty: &str, argument: String) -> Conversion {
    Conversion {
        dummy: Some(format!("{name}: *mut {ty}")),
        argument,
        ..Conversion::default()
    }
}
