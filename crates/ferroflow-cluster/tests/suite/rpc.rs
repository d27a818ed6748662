//! Our client against our server, and a raw HTTP/2 client for requests that ours never sends.

mod clients;
mod fixture;
mod floods;
mod limits;
mod malformed;
mod servers;
