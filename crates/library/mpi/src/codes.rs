//! Error classes, codes and strings that the user adds (MPI 5.0 §9.5). They need no rank: a program
//! may add them before it initializes MPI.

use std::collections::BTreeMap;

use crate::{Class, Error, Result};

/// The error classes, codes and texts that a program has added. The numbers of removed ones are not
/// used again.
pub struct Codes {
    added: BTreeMap<i32, Code>,
    last: i32,
}

struct Code {
    /// The error class of the code. For a class: its own number.
    class: i32,
    text: Option<String>,
}

impl Codes {
    /// A table of added error classes and codes, still empty.
    pub const fn new() -> Codes {
        Codes {
            added: BTreeMap::new(),
            last: Class::LASTCODE.0,
        }
    }

    /// The value of `MPI_LASTUSEDCODE`.
    pub fn last_used(&self) -> i32 {
        self.last
    }

    /// `MPI_Add_error_class`.
    pub fn add_class(&mut self) -> Result<i32> {
        let class = self.next()?;
        self.added.insert(class, Code { class, text: None });
        Ok(class)
    }

    /// `MPI_Add_error_code`: adds a code to a predefined class, or to one that the user added.
    pub fn add_code(&mut self, class: i32) -> Result<i32> {
        let predefined = (Class::SUCCESS.0..=Class::ABI.0).contains(&class);
        if !predefined && !self.is_class(class) {
            return Err(Error::new(
                Class::ARG,
                format!("{class} is not an error class"),
            ));
        }
        let code = self.next()?;
        self.added.insert(code, Code { class, text: None });
        Ok(code)
    }

    /// `MPI_Add_error_string`: sets the text of a code or class that the user added.
    pub fn add_string(&mut self, code: i32, text: &str) -> Result<()> {
        self.get_mut(code)?.text = Some(text.to_string());
        Ok(())
    }

    /// `MPI_Remove_error_class`. It is an error if the class still has codes or a text.
    pub fn remove_class(&mut self, class: i32) -> Result<()> {
        if !self.is_class(class) {
            return Err(Error::new(
                Class::ARG,
                format!("{class} is not an error class that this program added"),
            ));
        }
        if let Some((code, _)) = self
            .added
            .iter()
            .find(|&(&code, of)| of.class == class && code != class)
        {
            let detail =
                format!("error class {class} still has a code, {code}: remove its codes first");
            return Err(Error::new(Class::ARG, detail));
        }
        self.remove(class)
    }

    /// `MPI_Remove_error_code`. It is an error if the code still has a text.
    pub fn remove_code(&mut self, code: i32) -> Result<()> {
        self.get_mut(code)?;
        if self.is_class(code) {
            let detail = format!("{code} is an error class: MPI_Remove_error_class removes it");
            return Err(Error::new(Class::ARG, detail));
        }
        self.remove(code)
    }

    /// `MPI_Remove_error_string`.
    pub fn remove_string(&mut self, code: i32) -> Result<()> {
        match self.get_mut(code)?.text.take() {
            Some(_) => Ok(()),
            None => Err(Error::new(
                Class::ARG,
                format!("error code {code} has no text to remove"),
            )),
        }
    }

    /// The class of a code that the user added. `None`: the user has added no such code.
    pub fn class_of(&self, code: i32) -> Option<i32> {
        self.added.get(&code).map(|code| code.class)
    }

    /// The text of a code that the user added; empty if it has none. `None`: the user has added no
    /// such code.
    pub fn text_of(&self, code: i32) -> Option<&str> {
        self.added
            .get(&code)
            .map(|code| code.text.as_deref().unwrap_or(""))
    }

    fn is_class(&self, class: i32) -> bool {
        self.class_of(class) == Some(class)
    }

    fn next(&mut self) -> Result<i32> {
        let full = || Error::new(Class::NO_MEM, "there are no error codes left");
        self.last = self.last.checked_add(1).ok_or_else(full)?;
        Ok(self.last)
    }

    fn get_mut(&mut self, code: i32) -> Result<&mut Code> {
        self.added.get_mut(&code).ok_or_else(|| {
            Error::new(
                Class::ARG,
                format!("{code} is not an error code or class that this program added"),
            )
        })
    }

    fn remove(&mut self, code: i32) -> Result<()> {
        if self.get_mut(code)?.text.is_some() {
            let detail =
                format!("error code {code} still has a text: MPI_Remove_error_string removes it");
            return Err(Error::new(Class::ARG, detail));
        }
        self.added.remove(&code);
        Ok(())
    }
}

impl Default for Codes {
    fn default() -> Codes {
        Codes::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_belong_to_classes_and_have_texts() {
        let mut codes = Codes::new();
        assert_eq!(codes.last_used(), Class::LASTCODE.0);
        let class = codes.add_class().unwrap();
        let code = codes.add_code(class).unwrap();
        let io = codes.add_code(Class::IO.0).unwrap();
        assert!(class > Class::LASTCODE.0 && codes.last_used() == io);
        codes.add_string(code, "the tank is empty").unwrap();
        assert_eq!(
            (
                codes.class_of(class),
                codes.class_of(code),
                codes.class_of(io)
            ),
            (Some(class), Some(class), Some(35))
        );
        assert_eq!(
            (codes.text_of(code), codes.text_of(io), codes.text_of(3)),
            (Some("the tank is empty"), Some(""), None)
        );
    }

    #[test]
    fn only_what_was_added_can_be_changed_or_removed() {
        let mut codes = Codes::new();
        let class = codes.add_class().unwrap();
        let code = codes.add_code(class).unwrap();
        let failed = |result: Result<()>| assert_eq!(result.unwrap_err().class, Class::ARG);
        failed(codes.add_string(Class::IO.0, "no"));
        failed(codes.add_code(code).map(|_| ()));
        failed(codes.remove_class(class));
        failed(codes.remove_class(code));
        failed(codes.remove_code(class));
        failed(codes.remove_string(code));
        let last = codes.last_used();
        codes.add_string(code, "text").unwrap();
        failed(codes.remove_code(code));
        codes.remove_string(code).unwrap();
        codes.remove_code(code).unwrap();
        codes.remove_class(class).unwrap();
        failed(codes.remove_class(class));
        assert_eq!((codes.last_used(), codes.class_of(code)), (last, None));
        assert!(
            codes.add_class().unwrap() > last,
            "a removed number comes back"
        );
    }
}
