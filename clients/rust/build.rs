//! Makes the messages of the API out of its protos, without protoc.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("proto");
    println!("cargo:rerun-if-changed=proto/contextengine/v1");
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join("contextengine/v1"))? {
        files.push(entry?.path());
    }
    // Code that does not depend on the order of a directory.
    files.sort();
    let descriptors = protox::compile(files, [root])?;
    prost_build::Config::new()
        // Sorted, so that equal messages have equal encodings.
        .btree_map(["."])
        .compile_fds(descriptors)?;
    Ok(())
}
