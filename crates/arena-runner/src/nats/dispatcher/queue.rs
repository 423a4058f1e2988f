//! The queue of a competition's jobs, and the competition's other data on the NATS server.

use async_nats::jetstream::object_store::ObjectStore;
use futures_util::StreamExt;

use crate::nats::connect::{Nats, NatsError};
use crate::nats::names;
use crate::nats::publish::notify;
use crate::nats::wire::Announcement;

pub struct JobQueue {
    pub(super) nats: Nats,
    pub(super) bucket: ObjectStore,
    /// The id of the competition.
    pub(super) tournament: String,
    /// The id of this run, which distinguishes its jobs from those of earlier runs of the competition.
    run: String,
    /// The number of published jobs.
    jobs: u64,
}

impl JobQueue {
    pub fn new(nats: Nats, bucket: ObjectStore, tournament: String, run: String) -> JobQueue {
        JobQueue { nats, bucket, tournament, run, jobs: 0 }
    }

    pub(super) fn next_id(&mut self) -> String {
        self.jobs += 1;
        format!("{}-{}", self.run, self.jobs)
    }

    pub(super) async fn announce(&self) {
        let announcement = Announcement { tournament: self.tournament.clone(), generation: names::generation() };
        notify(&self.nats, names::announcement(&self.tournament), &announcement).await;
    }

    /// Returns true if the server has lost the jobs. Creates the streams again if they are gone.
    pub(super) async fn has_lost_jobs(&self) -> Result<bool, NatsError> {
        let Ok(stream) = self.nats.js.get_stream(names::JOBS).await else {
            self.nats.make_streams().await?;
            return Ok(true);
        };
        let Ok(mut subjects) = stream.info_with_subjects(names::jobs_of(&self.tournament)).await else {
            return Ok(false);
        };
        Ok(subjects.next().await.is_none())
    }

    /// Removes the competition's jobs from the queue. Workers still report the results of matches under way.
    pub(super) async fn clear(&self) -> Result<(), NatsError> {
        let stream = self.nats.js.get_stream(names::JOBS).await.map_err(|error| self.nats.failed(&error))?;
        let purged = stream.purge().filter(names::jobs_of(&self.tournament)).await;
        purged.map(|_| ()).map_err(|error| self.nats.failed(&error))
    }

    /// Removes the jobs that only this worker may take. If this fails, the jobs expire.
    pub(super) async fn clear_worker(&self, worker: &str) {
        if let Ok(stream) = self.nats.js.get_stream(names::JOBS).await {
            let _ = stream.purge().filter(names::for_worker(&self.tournament, worker)).await;
        }
    }

    /// Removes all of the competition's data from the server. If the removal fails, the server deletes the data when it
    /// expires.
    pub(super) async fn clean_up(&self) {
        let JobQueue { nats, tournament, .. } = self;
        let _ = self.clear().await;
        let _ = nats.js.delete_consumer_from_stream(&names::result_consumer(tournament), names::RESULTS).await;
        if let Ok(stream) = nats.js.get_stream(names::RESULTS).await {
            let _ = stream.purge().filter(names::results_of(tournament)).await;
        }
        let _ = nats.js.delete_object_store(names::bucket(tournament)).await;
    }
}
