//! Kinds of parameters: the C type in both forms of a procedure, the check of the argument, and the
//! Rust type that the procedure's function gets.

use crate::table::{Access, Length, Parameter};

/// The kind of a parameter: a word of the table's last column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Kind(&'static Row);

#[derive(PartialEq, Eq)]
struct Row {
    word: &'static str,
    class: Class,
    /// The C types in the plain form and in the `_c` form.
    c: [&'static str; 2],
    /// The Rust types in the plain form and in the `_c` form.
    rust: [&'static str; 2],
}

/// The method by which an argument is decoded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The argument is passed on unchanged.
    Plain,
    /// The argument is checked by a function of `args`, whose name is the word of the kind.
    Checked,
    /// An integer whose width depends on the form. The procedure gets an unchecked i64.
    Widened,
    /// An integer whose width depends on the form, and which must not be negative.
    Count,
    /// An int in C, and a bool for the procedure.
    Flag,
    /// A C string.
    Text,
    /// A user's function, with two types if it has a `_c` form.
    Function,
    /// `...`
    Variadic,
}

const INT: [&str; 2] = ["int", "int"];
const C_INT: [&str; 2] = ["c_int", "c_int"];

macro_rules! rows {
    ($($word:literal $class:ident $c:expr, $rust:expr;)*) => {
        &[$(Row { word: $word, class: Class::$class, c: $c, rust: $rust }),*]
    };
}

const ROWS: &[Row] = rows! {
    // Integers.
    "int" Plain INT, C_INT;
    "index" Plain INT, C_INT;
    "weight" Plain INT, C_INT;
    "errcode" Plain INT, C_INT;
    "level" Plain ["const int", "const int"], C_INT;
    "rank" Checked INT, C_INT;
    "dest" Checked INT, C_INT;
    "source" Checked INT, C_INT;
    "root" Checked INT, C_INT;
    "tag" Checked INT, C_INT;
    "tag_any" Checked INT, C_INT;
    "n" Checked INT, C_INT;
    "len" Checked INT, C_INT;
    "ndims" Checked INT, C_INT;
    "flag" Flag INT, C_INT;
    "count" Count ["int", "MPI_Count"], ["c_int", "i64"];
    "count_at_root" Widened ["int", "MPI_Count"], ["c_int", "i64"];
    "stride" Widened ["int", "MPI_Count"], ["c_int", "i64"];
    "displ" Widened ["int", "MPI_Aint"], ["c_int", "isize"];
    "disp_unit" Widened ["int", "MPI_Aint"], ["c_int", "isize"];
    "extent" Widened ["MPI_Aint", "MPI_Count"], ["isize", "i64"];
    "bytes" Count ["MPI_Aint", "MPI_Count"], ["isize", "i64"];
    "xcount" Count ["MPI_Count", "MPI_Count"], ["i64", "i64"];
    "aint" Plain ["MPI_Aint", "MPI_Aint"], ["isize", "isize"];
    "size" Checked ["MPI_Aint", "MPI_Aint"], ["isize", "isize"];
    "offset" Plain ["MPI_Offset", "MPI_Offset"], ["i64", "i64"];
    "double" Plain ["double", "double"], ["f64", "f64"];
    // Handles.
    "comm" Plain ["MPI_Comm"; 2], ["Comm"; 2];
    "datatype" Plain ["MPI_Datatype"; 2], ["Datatype"; 2];
    "errhandler" Plain ["MPI_Errhandler"; 2], ["Errhandler"; 2];
    "file" Plain ["MPI_File"; 2], ["File"; 2];
    "group" Plain ["MPI_Group"; 2], ["Group"; 2];
    "info" Plain ["MPI_Info"; 2], ["Info"; 2];
    "message" Plain ["MPI_Message"; 2], ["Message"; 2];
    "op" Plain ["MPI_Op"; 2], ["Op"; 2];
    "request" Plain ["MPI_Request"; 2], ["Request"; 2];
    "session" Plain ["MPI_Session"; 2], ["Session"; 2];
    "win" Plain ["MPI_Win"; 2], ["Win"; 2];
    "t_cvar_handle" Plain ["MPI_T_cvar_handle"; 2], ["ToolsHandle"; 2];
    "t_enum" Plain ["MPI_T_enum"; 2], ["ToolsHandle"; 2];
    "t_event_instance" Plain ["MPI_T_event_instance"; 2], ["ToolsHandle"; 2];
    "t_event_registration" Plain ["MPI_T_event_registration"; 2], ["ToolsHandle"; 2];
    "t_pvar_handle" Plain ["MPI_T_pvar_handle"; 2], ["ToolsHandle"; 2];
    "t_pvar_session" Plain ["MPI_T_pvar_session"; 2], ["ToolsHandle"; 2];
    "t_cb_safety" Plain ["MPI_T_cb_safety"; 2], C_INT;
    "t_source_order" Plain ["MPI_T_source_order"; 2], C_INT;
    // Memory.
    "in" Plain ["const void *"; 2], ["*const c_void"; 2];
    "out" Plain ["void *"; 2], ["*mut c_void"; 2];
    "ptr" Plain ["void *"; 2], ["*mut c_void"; 2];
    "attr" Plain ["void *"; 2], ["*mut c_void"; 2];
    "state" Plain ["void *"; 2], ["*mut c_void"; 2];
    "memory" Plain ["void *"; 2], ["*mut c_void"; 2];
    "detached" Plain ["void *"; 2], ["*mut c_void"; 2];
    "status" Plain ["MPI_Status"; 2], ["Status"; 2];
    "str" Text ["char"; 2], ["c_char"; 2];
    "triple" Plain INT, ["[c_int; 3]"; 2];
    "argv_ptr" Plain ["char ***"; 2], ["*mut *mut *mut c_char"; 2];
    "argv" Plain ["char *"; 2], ["*mut *mut c_char"; 2];
    "commands" Plain ["char *"; 2], ["*mut *mut c_char"; 2];
    "argvs" Plain ["char **"; 2], ["*mut *mut *mut c_char"; 2];
    "..." Variadic ["..."; 2], [""; 2];
    // Users' functions.
    "fn_comm_copy_attr_function" Function ["MPI_Comm_copy_attr_function *"; 2], ["callback::CommCopyAttr"; 2];
    "fn_comm_delete_attr_function" Function ["MPI_Comm_delete_attr_function *"; 2], ["callback::CommDeleteAttr"; 2];
    "fn_type_copy_attr_function" Function ["MPI_Type_copy_attr_function *"; 2], ["callback::TypeCopyAttr"; 2];
    "fn_type_delete_attr_function" Function ["MPI_Type_delete_attr_function *"; 2], ["callback::TypeDeleteAttr"; 2];
    "fn_win_copy_attr_function" Function ["MPI_Win_copy_attr_function *"; 2], ["callback::WinCopyAttr"; 2];
    "fn_win_delete_attr_function" Function ["MPI_Win_delete_attr_function *"; 2], ["callback::WinDeleteAttr"; 2];
    "fn_comm_errhandler_function" Function ["MPI_Comm_errhandler_function *"; 2], ["callback::CommErrhandler"; 2];
    "fn_win_errhandler_function" Function ["MPI_Win_errhandler_function *"; 2], ["callback::WinErrhandler"; 2];
    "fn_file_errhandler_function" Function ["MPI_File_errhandler_function *"; 2], ["callback::FileErrhandler"; 2];
    "fn_session_errhandler_function" Function ["MPI_Session_errhandler_function *"; 2], ["callback::SessionErrhandler"; 2];
    "fn_grequest_query_function" Function ["MPI_Grequest_query_function *"; 2], ["callback::GrequestQuery"; 2];
    "fn_grequest_free_function" Function ["MPI_Grequest_free_function *"; 2], ["callback::GrequestFree"; 2];
    "fn_grequest_cancel_function" Function ["MPI_Grequest_cancel_function *"; 2], ["callback::GrequestCancel"; 2];
    "fn_datarep_extent_function" Function ["MPI_Datarep_extent_function *"; 2], ["callback::DatarepExtent"; 2];
    "fn_user_function" Function ["MPI_User_function *", "MPI_User_function_c *"], ["callback::User", "callback::UserLarge"];
    "fn_datarep_conversion_function" Function
        ["MPI_Datarep_conversion_function *", "MPI_Datarep_conversion_function_c *"],
        ["callback::DatarepConversion", "callback::DatarepConversionLarge"];
    "fn_t_event_cb_function" Function ["MPI_T_event_cb_function"; 2], ["callback::ToolsEvent"; 2];
    "fn_t_event_free_cb_function" Function ["MPI_T_event_free_cb_function"; 2], ["callback::ToolsEventFree"; 2];
    "fn_t_event_dropped_cb_function" Function ["MPI_T_event_dropped_cb_function"; 2], ["callback::ToolsEventDropped"; 2];
};

impl Kind {
    pub(crate) fn named(word: &str) -> Result<Kind, String> {
        ROWS.iter()
            .find(|row| row.word == word)
            .map(Kind)
            .ok_or_else(|| format!("unknown kind `{word}`"))
    }

    /// The name of the kind in the table of procedures.
    pub fn word(self) -> &'static str {
        self.0.word
    }

    /// The method by which an argument of this kind is decoded.
    pub fn class(self) -> Class {
        self.0.class
    }

    /// The C type of one element, in the large or the plain form.
    pub(crate) fn c(self, large: bool) -> &'static str {
        self.0.c[usize::from(large)]
    }

    /// The Rust type of one element, in the large or the plain form.
    pub fn rust(self, large: bool) -> &'static str {
        self.0.rust[usize::from(large)]
    }

    /// True if the kind is an address that is no message buffer of the call.
    fn is_address(self) -> bool {
        let words = ["ptr", "attr", "state", "memory", "detached"];
        words.contains(&self.word())
    }

    /// True if the kind is an integer whose width depends on the form.
    fn is_count(self) -> bool {
        matches!(self.class(), Class::Count | Class::Widened)
    }

    /// True if the kind is a user's function with two types.
    fn has_two_functions(self) -> bool {
        self.class() == Class::Function && self.0.c[0] != self.0.c[1]
    }
}

impl Parameter {
    /// The declaration of the parameter in C.
    pub(crate) fn c(&self, large: bool) -> String {
        let (ty, name) = (self.kind.c(large), &self.name);
        let array = self.length != Length::One;
        match (self.kind.word(), self.access) {
            ("...", _) => "...".into(),
            ("str", Access::In) if array => format!("const char {name}[]"),
            ("str", Access::In) => format!("const char *{name}"),
            ("str", _) => format!("char *{name}"),
            ("status", Access::Out) if array => format!("MPI_Status *{name}"),
            ("triple", _) => format!("int {name}[][3]"),
            ("argv" | "commands" | "argvs", _) => format!("{}[]", spaced(ty, name)),
            _ if self.kind.is_address() && self.access == Access::Out => format!("void *{name}"),
            (_, Access::In) if array => format!("const {}[]", spaced(ty, name)),
            (_, Access::In) => spaced(ty, name),
            (_, Access::Read) => format!("const {ty} *{name}"),
            _ if array => format!("{ty} {name}[]"),
            _ => format!("{ty} *{name}"),
        }
    }

    /// The type of the parameter in the signature of the entry point.
    pub fn rust(&self, large: bool) -> String {
        let ty = self.kind.rust(large);
        let array = self.length != Length::One;
        match (self.kind.word(), self.access) {
            ("triple", _) => format!("*const {ty}"),
            (_, Access::In) if array || self.kind.class() == Class::Text => format!("*const {ty}"),
            (_, Access::In) => ty.into(),
            (_, Access::Read) => format!("*const {ty}"),
            _ => format!("*mut {ty}"),
        }
    }

    /// The expression that converts the raw argument for the procedure. It may end in `?`, and may
    /// use earlier parameters, which are decoded before.
    pub(crate) fn decode(&self, large: bool) -> String {
        if self.only_large && !large {
            return "None".into();
        }
        let expression = self.decode_present(large);
        if self.only_large {
            format!("Some({expression})")
        } else {
            expression
        }
    }

    fn decode_present(&self, large: bool) -> String {
        let name = &self.name;
        let kind = self.kind;
        // MPI_Aint and MPI_Count both have 64 bits.
        let wide = kind.rust(large) != "c_int";
        let option = if self.optional { "optional_" } else { "" };
        match (&self.length, self.access) {
            _ if kind.class() == Class::Text => self.decode_text(),
            (Length::One, Access::In) => match kind.class() {
                Class::Plain => name.clone(),
                Class::Checked => format!("args::{}(\"{name}\", {name})?", kind.word()),
                Class::Widened => format!("{name} as i64"),
                // With MPI_IN_PLACE the count is not significant (MPI 5.0 §6.2).
                Class::Count if name == "sendcount" || name == "recvcount" => {
                    let buffer = name.replace("count", "buf");
                    format!("args::count_beside(\"{name}\", {buffer}.cast(), {name} as i64)?")
                }
                Class::Count => format!("args::count(\"{name}\", {name} as i64)?"),
                Class::Flag => format!("{name} != 0"),
                Class::Function if kind.has_two_functions() => {
                    let form = if large { "Large" } else { "Small" };
                    format!("{}Function::{form}({name})", kind.rust(false))
                }
                Class::Function => name.clone(),
                Class::Variadic => name.clone(),
                Class::Text => unreachable!("decoded above"),
            },
            (Length::One, Access::Out) if kind.word() == "status" => {
                format!("args::status({name})")
            }
            (Length::One, Access::Out | Access::InOut) if kind.is_count() => {
                format!("args::{option}out_count(\"{name}\", {name}.cast(), {wide})?")
            }
            (Length::One, Access::Out) if kind.class() == Class::Flag => {
                format!("args::{option}out(\"{name}\", {name}.cast::<Flag>())?")
            }
            (Length::One, Access::Out) if kind.is_address() => {
                format!("args::{option}out(\"{name}\", {name}.cast::<*mut c_void>())?")
            }
            (Length::One, Access::Out) => format!("args::{option}out(\"{name}\", {name})?"),
            (Length::One, Access::InOut) => format!("args::{option}inout(\"{name}\", {name})?"),
            (Length::One, Access::Read) => format!("args::read(\"{name}\", {name})?"),
            (Length::Unknown, Access::In) if kind.is_count() || kind.word() == "aint" => {
                format!("args::counts_of_comm(\"{name}\", {name}.cast(), {wide})")
            }
            (Length::Unknown, Access::In) => format!("args::array_of_comm(\"{name}\", {name})"),
            (Length::Unknown, _) => name.clone(),
            (Length::Named(length), access) => {
                let present = if self.only_large { ".unwrap_or(0)" } else { "" };
                let length = format!("{length}{present} as usize");
                match access {
                    Access::Out if kind.word() == "status" => {
                        format!("args::statuses({name}, {length})")
                    }
                    Access::In if kind.is_count() || kind.word() == "aint" => {
                        format!("args::counts(\"{name}\", {name}.cast(), {wide}, {length})?")
                    }
                    Access::In | Access::Read => {
                        format!("args::slice(\"{name}\", {name}, {length})?")
                    }
                    Access::InOut => format!("args::slice_mut(\"{name}\", {name}, {length})?"),
                    Access::Out => format!("args::slice_out(\"{name}\", {name}, {length})?"),
                }
            }
        }
    }

    fn decode_text(&self) -> String {
        let name = &self.name;
        match (&self.length, self.access) {
            (_, Access::In) => format!("args::text(\"{name}\", {name})?"),
            // A limit that is a constant includes the closing NUL; a length from the caller does
            // not.
            (Length::Named(length), _) if length.starts_with("MPI_") => {
                format!("args::out_text(\"{name}\", {name}, {length} as usize)?")
            }
            (Length::Named(length), _) => {
                format!("args::out_text(\"{name}\", {name}, {length} as usize + 1)?")
            }
            _ => name.clone(),
        }
    }
}

/// A declaration such as `int n` or `void *p`.
fn spaced(ty: &str, name: &str) -> String {
    let space = if ty.ends_with('*') { "" } else { " " };
    format!("{ty}{space}{name}")
}
