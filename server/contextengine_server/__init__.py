"""contextengine: a gRPC service that decides what a language model sees."""
