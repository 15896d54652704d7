//! A model that is lent beside whatever else is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use contextengine::{Client, Error};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::protocol::{Asked, Failure, read};

/// A lending that goes on.
pub struct Lending {
    jobs: Arc<AtomicUsize>,
    task: JoinHandle<Error>,
}

impl Lending {
    /// Lends a model that answers each job with a text after a delay, but fails on the first ones.
    pub fn begin(client: Client, asked: &Asked) -> Result<Self, Failure> {
        let hello = read(&asked.hello)?;
        let (text, failures) = (asked.text.clone(), asked.failures);
        let delay = Duration::from_secs_f64(asked.delay);
        let jobs = Arc::new(AtomicUsize::new(0));
        let given = jobs.clone();
        let complete = move |_| {
            let fails = given.fetch_add(1, Ordering::SeqCst) < failures;
            let text = text.clone();
            async move {
                if fails {
                    return Err("not this one");
                }
                sleep(delay).await;
                Ok(text)
            }
        };
        let task = tokio::spawn(async move { client.lend(hello, complete).await });
        Ok(Self { jobs, task })
    }

    /// How many jobs there were. Ends the lending; an error, if one had ended it.
    pub async fn end(self) -> Result<usize, Failure> {
        self.task.abort();
        match self.task.await {
            Ok(error) => Err(error.into()),
            Err(ended) if ended.is_cancelled() => Ok(self.jobs.load(Ordering::SeqCst)),
            Err(panic) => Err(panic.into()),
        }
    }
}
