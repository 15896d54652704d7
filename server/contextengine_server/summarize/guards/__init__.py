"""What a tenant's models may be asked: the circuit breaker and the cap on tokens."""
