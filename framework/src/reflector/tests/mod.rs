//! The reflector by itself, against a scripted source, on the paused clock.
