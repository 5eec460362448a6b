//! Starting ranks, watching them, and ending the job cleanly.
