//! The owner: queues, batches, exactly once; inputs in, effects out: pure.
