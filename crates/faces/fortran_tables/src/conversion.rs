//! The parts of the generated conversion of one parameter: the dummy argument of the entry point,
//! statements before the call of the C library, the argument, and statements after it.

#[derive(Default)]
pub(crate) struct Conversion {
    /// Name and type of the dummy argument. `None`: Fortran has no such parameter.
    pub(crate) dummy: Option<String>,
    /// The hidden argument with the length of a character string, if there is one.
    pub(crate) length: Option<String>,
    pub(crate) before: Vec<String>,
    pub(crate) argument: String,
    pub(crate) after: Vec<String>,
    /// The argument in the entry point of `mpi_f08`, if it differs.
    pub(crate) f08: Option<String>,
    /// The statement after the call in the entry point of `mpi_f08`, if it has one.
    pub(crate) f08_after: Option<String>,
    /// For handles and buffers, most of which need no long conversion: the condition for the short
    /// one, and the argument if it is true.
    pub(crate) known: Option<(String, String)>,
    pub(crate) is_choice: bool,
    /// True if the conversion allocates memory, or calls the library.
    pub(crate) is_long: bool,
}

impl Conversion {
    /// The name of the dummy argument; `None` if Fortran has no such parameter.
    pub(crate) fn name(&self) -> Option<String> {
        let dummy = self.dummy.as_ref()?;
        Some(dummy.split(':').next().unwrap_or(dummy).into())
    }

    /// The conversion for `mpi_f08`, where the dummy argument of a choice buffer is a descriptor.
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

    /// The conversion for an entry point of `mpi_f08` without descriptors.
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

    /// The conversion if the condition of `known` is true.
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

    /// True if the conversion neither allocates nor calls the library, provided that the condition
    /// of `known` is true.
    pub(crate) fn is_short(&self) -> bool {
        !self.is_long
    }

    /// The condition of `known`. `has_descriptors`: true if choice buffers are descriptors.
    pub(crate) fn condition(&self, has_descriptors: bool) -> Option<String> {
        let condition = &self.known.as_ref()?.0;
        Some(match self.choice() {
            Some(name) if has_descriptors => {
                format!("{name}.is_simple() && buffer::is_memory({name}.address())")
            }
            _ => condition.clone(),
        })
    }

    /// The name of the parameter if it is a choice buffer.
    pub(crate) fn choice(&self) -> Option<String> {
        self.name().filter(|_| self.is_choice)
    }

    pub(crate) fn before(mut self, line: impl Into<String>) -> Conversion {
        self.before.push(line.into());
        self.long()
    }

    /// Adds a variable before the call, whose cost does not make the conversion a long one.
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

/// The conversion of a parameter whose dummy argument is the address of a value of type `ty`.
pub(crate) fn dummy(name: &str, ty: &str, argument: String) -> Conversion {
    Conversion {
        dummy: Some(format!("{name}: *mut {ty}")),
        argument,
        ..Conversion::default()
    }
}
