//! What an operator promises, and what an API server answers: on the embedded server by default, and
//! on a real kube-apiserver with `WINDLASS_TEST_SERVER=real`.

mod bench;
mod converge;
mod deletion;
mod gadget;
mod leadership;
mod refusals;
mod rights;
mod verbs;
